"""A meter states its own errors, of power or of current and voltage; a shunt is one only where the user gave one."""

from __future__ import annotations

import pytest
from opjoule.base.errors import RecordFault
from opjoule.energy.error_bounds import Shunt
from opjoule.meters.chips import INA219, INA226, INA228, INA260, SQ52201, chip_of, ina219_breakout
from opjoule.meters.joulescope import joulescope_sensor
from opjoule.meters.messages import ChipKind
from opjoule.meters.monsoon.models import HVPM
from opjoule.meters.pmic import PmicSource
from opjoule.meters.powersensor3 import powersensor3_sensor
from opjoule.meters.ppk2 import ppk2_sensor
from opjoule.meters.rapl import RaplSource
from opjoule.meters.smartpower3 import smartpower3_sensor
from opjoule.pages.drawing.page import text_of
from opjoule.pages.report.provenance import essentials
from opjoule.runs.record.json_file import plain
from raw_record import run_json

OWN = {
    "joulescope": joulescope_sensor,
    "ppk2": ppk2_sensor,
    "smartpower3": smartpower3_sensor,
    "powersensor3": powersensor3_sensor,
    "monsoon": lambda: HVPM.error_bounds("main"),
    "rapl": lambda: RaplSource().error_bounds(),
    "pmic": lambda: PmicSource("vcgencmd").error_bounds(),
}


def essentials_of(sensor):
    return text_of(essentials(run_json(sensor=sensor))).replace("&#x27;", "'").replace("&#39;", "'")


@pytest.mark.parametrize("name", OWN)
def test_no_shunt_is_made_up_and_the_bounds_are_the_meters(name):
    bounds = OWN[name]()
    assert bounds.shunt is None and bounds.power_gain_u > 0 and bounds.current_step_a > 0
    assert run_json(sensor=plain(bounds)).sensor == bounds
    said = essentials_of(plain(bounds))
    assert "shunt" not in said and "meter's own bounds" in said


def test_a_meter_of_power_states_no_current():
    bounds = RaplSource().error_bounds()
    assert bounds.gain_errors_max == {"power": 0.05} and bounds.voltage_gain_error_max == 0.0
    said = essentials_of(plain(bounds))
    assert "power within 5" in said and "current" not in said and "voltage" not in said


def test_a_chip_behind_a_shunt_has_its_bounds_in_amperes():
    bounds = ina219_breakout()
    assert bounds.current_offset_max_a == pytest.approx(2e-3)
    assert bounds.current_step_a == pytest.approx(1e-4)
    assert "tolerance 1" in essentials_of(plain(bounds))


@pytest.mark.parametrize("chip", [INA219, INA226, INA228], ids=lambda chip: chip.name)
def test_a_chips_ranges_end_where_its_codes_do_and_the_narrowest_is_first(chip):
    assert [input_range.end * input_range.step_v for input_range in chip.ranges] == pytest.approx(
        [input_range.max_v for input_range in chip.ranges], rel=1e-4
    )
    assert list(chip.ranges) == sorted(chip.ranges, key=lambda input_range: input_range.max_v)


@pytest.mark.parametrize("entry", [{"shunt": 1}, {"shunt_ohm": 0.1}, {}])
def test_bounds_that_are_none_are_one_clear_line(entry):
    with pytest.raises(RecordFault, match=r"^run\.json is corrupt: .+"):
        run_json(sensor=entry)


def test_a_copy_of_an_ina226_is_not_given_the_ina226_s_bounds():
    """Users found such modules up to 5.3 % high in voltage."""
    bounds = SQ52201.error_bounds(0, 1.0, Shunt(0.02, 0.005))
    assert bounds.gain_errors_max["voltage"] > 0.053
    assert INA226.error_bounds(0, 1.0, Shunt(0.02, 0.005)).gain_errors_max["voltage"] < 0.003
    assert "SQ52201" in SQ52201.note and bounds.model == "SQ52201"


def test_every_chip_of_the_protocol_has_its_file_and_its_name():
    for kind in set(ChipKind) - {ChipKind.NONE}:
        chip = chip_of(kind)
        assert chip.name == kind.name and chip.times(chip.alone).period_us > 0
        assert chip.ranges[-1].max_v == pytest.approx(chip.ranges[-1].step_v * chip.ranges[-1].end, rel=2e-3)


def test_an_ina234_s_codes_of_12_bits_are_in_its_bounds():
    """SBOS844C, 6.5: 40 and 10 uV, 25.6 mV, offsets of 100 uV and 15 mV."""
    chip, shunt = chip_of(ChipKind.INA234), Shunt(0.02, 0.005)
    wide, narrow = (chip.error_bounds(code, 1.0, shunt) for code in (0, 1))
    assert (wide.current_step_a, narrow.current_step_a) == (pytest.approx(2e-3), pytest.approx(0.5e-3))
    assert wide.current_offset_max_a == pytest.approx(5e-3) and wide.voltage_step_v == 25.6e-3
    assert chip.range_code(20) == 1 and chip.range_code(40) == 0


def test_a_conversion_of_fewer_bits_has_wider_steps():
    """SBOS448G, table 5: 9 to 12 bits over the same range."""
    fine, coarse = (INA219.error_bounds(3, 1.0, Shunt(0.1), shunt_adc=code, bus_adc=code) for code in (3, 0))
    assert (fine.current_step_a, fine.voltage_step_v) == (pytest.approx(1e-4), 4e-3)
    assert (coarse.current_step_a, coarse.voltage_step_v) == (pytest.approx(8e-4), 32e-3)


def test_a_chip_with_its_own_shunt_counts_no_tolerance_twice():
    bounds = INA260.error_bounds(0, 1.0, INA260.own_shunt)
    assert bounds.gain_errors_max["shunt"] == 0
    assert (bounds.current_max_a, bounds.current_step_a) == (pytest.approx(15.0), pytest.approx(1.25e-3))
    assert bounds.current_offset_max_a == pytest.approx(5e-3)
