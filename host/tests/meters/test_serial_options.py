"""What follows the port in serial:PORT,KEY=VALUE."""

import pytest
from opjoule.base.errors import BadInput
from opjoule.energy.error_bounds import Shunt
from opjoule.meters.chips import INA219, INA226, INA228, SensorSettings
from opjoule.meters.messages import Mode
from opjoule.meters.serial.meter import KIND
from opjoule.meters.serial.options import shunts


def test_a_port_alone_leaves_the_settings_to_the_meter():
    address = KIND.address("/dev/ttyACM0")
    assert address.place == "/dev/ttyACM0" and address.options.settings == {} and address.options.sensors == (0,)


def test_every_option_reaches_the_settings():
    address = KIND.address("COM3,mode=pairs,adc=mean16,range=80,bus_every=7")
    assert address.place == "COM3"
    assert address.options.settings == {
        "mode": Mode.PAIRS,
        "shunt_adc": 12,
        "bus_adc": 12,
        "range_mv": 80,
        "bus_every": 7,
    }


@pytest.mark.parametrize(
    ("chip", "code", "codes"),
    [(INA226, 42, (42, 2)), (INA228, 63, (63, 7)), (INA226, 4, (4, 4)), (INA219, 12, (12, 12))],
)
def test_the_code_of_a_chip_sets_both_conversions(chip, code, codes):
    """The averages of an INA226 or INA228 stand in the shunt's code alone."""
    assert KIND.address(f"/dev/x,adc_code={code}").options.settings == {"adc_code": code}
    assert (chip.adc_codes(code)["shunt_adc"], chip.adc_codes(code)["bus_adc"]) == codes


@pytest.mark.parametrize(
    ("chip", "shunt_adc", "bus_adc", "share"),
    [
        (INA219, 12, 12, 0.75),  # all conversions of the shunt, then all of the bus
        (INA226, 4, 4, 0.75),  # one of each
        (INA226, 2 << 3 | 4, 4, 33 / 64),  # 16 times the shunt, then the bus
        (INA226, 2 << 3 | 4, 3, (16 * 1688 + 588) / (32 * 1688)),
    ],
)
def test_the_centre_of_the_shunt_s_mean_lies_where_the_chip_converts_it(chip, shunt_adc, bus_adc, share):
    settings = SensorSettings(mode=Mode.PAIRS, shunt_adc=shunt_adc, bus_adc=bus_adc)
    assert chip.times(settings).centre_share == pytest.approx(share)


def test_a_voltage_that_would_never_be_read_again_is_refused():
    settings = SensorSettings(**KIND.address("/dev/x,mode=shunts,bus_every=0").options.settings)
    with pytest.raises(BadInput, match=r"bus_every=0: "):
        INA219.times(settings)


REFUSED = [
    ("/dev/x,mod=pairs", "did you mean 'mode'"),
    ("/dev/x,pairs", "'pairs': known are adc, .*serial:PORT"),
    ("/dev/x,adc=13", "meter 'serial:/dev/x,adc=13': adc must be .*, not '13'"),
    ("/dev/x,range=100", "range must be .* not '100'"),
    ("/dev/x,bus_every=-1", "bus_every must be .* not '-1'"),
    ("/dev/x,sensors=0+0", r"sensors must be .* not '0\+0'"),
    ("/dev/x,sensors=", "sensors must be"),
    ("/dev/x,label=my sensor", "label must be .* not 'my sensor'"),
]
"""What follows "serial:" -> pattern of its refusal."""


@pytest.mark.parametrize(("rest", "message"), REFUSED)
def test_what_there_is_not_is_one_clear_line(rest, message):
    with pytest.raises(BadInput, match=message):
        KIND.address(rest)


def test_options_are_refused_in_the_words_of_the_golden_screen(golden):
    said = []
    for rest, _ in REFUSED:
        with pytest.raises(BadInput) as caught:
            KIND.address(rest)
        said.append(str(caught.value))
    golden("refused-meter-options", "\n".join(said))


def test_the_shunt_is_the_users():
    options = KIND.address("/dev/x,shunt=0.02,shunt_tolerance=0.5%,mode=pairs").options
    assert shunts(options) == (Shunt(0.02, 0.005),)
    assert options.settings == {"mode": Mode.PAIRS}
    assert shunts(KIND.address("").options) == (Shunt(0.1, 0.05),)
    assert shunts(KIND.address("/dev/x,shunt=0.02+0.1").options) == (Shunt(0.02, 0.05), Shunt(0.1, 0.05))
    stated = shunts(KIND.address("/dev/x,shunt=0.02,shunt_ppm=75,kelvin=yes").options)
    assert stated == (Shunt(0.02, 0.05, per_k=75e-6, kelvin=True),)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("shunt=20", "shunt must be 0.0001 to 10 ohm, 0.02 for R020; several sensors: .*, not '20'"),
        ("shunt=nan", "shunt must be 0.0001 to 10 ohm, .*, not 'nan'"),
        ("shunt=R020", "shunt must be .*, not 'R020'"),
        ("shunt_tolerance=1", "shunt_tolerance must be .*, not '1'"),
        ("shunt_ppm=-1", "shunt_ppm must be .*, not '-1'"),
        ("kelvin=maybe", "kelvin must be .*, not 'maybe'"),
    ],
)
def test_a_shunt_that_is_none_is_one_clear_line(options, message):
    with pytest.raises(BadInput, match=message):
        KIND.address(f"/dev/x,{options}")


def test_the_shunt_scales_range_offset_and_tolerance():
    bounds = INA219.error_bounds(SensorSettings().shunt_range, 1.0, Shunt(0.02, 0.005))
    assert bounds.shunt == Shunt(0.02, 0.005) and bounds.gain_errors_max["shunt"] == 0.005
    assert bounds.current_max_a == pytest.approx(16.0)
    assert bounds.current_offset_u_a == pytest.approx(200e-6 / 0.02 / 3**0.5, rel=0.001)


def test_the_ina228s_fine_range_has_steps_of_a_quarter():
    """SLYS021A: 312.5 nV at +-163.84 mV, 78.125 nV at +-40.96 mV."""
    assert INA228.range_code(40) == 1
    assert INA228.range_code(80) == 0
    assert INA228.scale(0.1, 1).shunt_lsb_v == pytest.approx(78.125e-9)
    assert INA228.scale(0.1, 0).shunt_lsb_v == pytest.approx(312.5e-9)
    with pytest.raises(BadInput, match=r"range=320: the INA228 measures up to 163.84 mV"):
        INA228.range_code(320)
