"""What follows the port in serial:PORT,KEY=VALUE."""

import pytest
from opjoule.errors import BadInput
from opjoule.meters.messages import Mode, SensorModel
from opjoule.meters.sensors import SensorSettings, conversion_times
from opjoule.meters.serial_options import setting_changes, split_options


def test_a_port_alone_leaves_the_settings_to_the_meter():
    assert split_options("/dev/ttyACM0") == ("/dev/ttyACM0", {})
    assert setting_changes({}) == {}


def test_every_option_reaches_the_settings():
    port, options = split_options("COM3,mode=pairs,adc=mean16,range=80,bus_every=7")
    assert port == "COM3"
    assert setting_changes(options) == {
        "mode": Mode.PAIRS,
        "shunt_adc": 12,
        "bus_adc": 12,
        "shunt_range": 1,
        "bus_every": 7,
    }


def test_the_code_of_another_chip_is_passed_on():
    _, options = split_options("/dev/x,adc_code=42")
    assert setting_changes(options) == {"shunt_adc": 42, "bus_adc": 42}


def test_a_voltage_that_would_never_be_read_again_is_refused():
    settings = SensorSettings(**setting_changes(split_options("/dev/x,mode=shunts,bus_every=0")[1]))
    with pytest.raises(BadInput, match=r"bus_every=0: the supply's voltage would be read once"):
        conversion_times(SensorModel.INA219, settings)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("/dev/x,mod=pairs", "did you mean 'mode'"),
        ("/dev/x,pairs", "known are mode="),
        ("/dev/x,adc=13", "adc=13: there are 9, 10"),
        ("/dev/x,range=100", "range=100: there are 40, 80, 160, 320"),
        ("/dev/x,bus_every=-1", "whole number from 0 to 255"),
    ],
)
def test_what_there_is_not_is_one_clear_line(rest, message):
    with pytest.raises(BadInput, match=message):
        setting_changes(split_options(rest)[1])
