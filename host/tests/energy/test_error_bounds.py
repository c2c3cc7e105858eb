"""A meter states its own errors, of power or of current and voltage; a shunt is one only where the user gave one."""

from __future__ import annotations

import json

import pytest
from opjoule.drawing.markup import text_of
from opjoule.energy.error_bounds import Shunt
from opjoule.errors import RecordFault
from opjoule.evaluation.collection import collect
from opjoule.evaluation.evidence import Evidence
from opjoule.meters.chips import chip_of
from opjoule.meters.chips.ina219 import INA219, ina219_breakout
from opjoule.meters.chips.ina226 import INA226
from opjoule.meters.chips.ina228 import INA228
from opjoule.meters.chips.ina260 import INA260
from opjoule.meters.chips.sq52201 import SQ52201
from opjoule.meters.joulescope import joulescope_sensor
from opjoule.meters.messages import ChipKind
from opjoule.meters.monsoon.models import HVPM
from opjoule.meters.polled.pmic import PmicSource
from opjoule.meters.polled.rapl import RaplSource
from opjoule.meters.ppk2 import ppk2_sensor
from opjoule.record.json_file import plain
from opjoule.record.run_record import RunRecord
from opjoule.report.head import head_lines
from opjoule.report.provenance import essentials
from raw_record import run_json, running_record

OWN = {
    "joulescope": joulescope_sensor,
    "ppk2": ppk2_sensor,
    "monsoon": lambda: HVPM.error_bounds("main"),
    "rapl": lambda: RaplSource().error_bounds(),
    "pmic": lambda: PmicSource("vcgencmd").error_bounds(),
}
OLDER = {
    "shunt_ohm": 0.07,
    "shunt_tolerance": 0.01,
    "gain_error_max": 0.005,
    "offset_v_max": 200e-6,
    "shunt_lsb_v": 10e-6,
    "bus_lsb_v": 4e-3,
    "bus_gain_error_max": 0.005,
    "current_max_a": 3.2,
    "shunt_from": "shunt= in rig.toml",
}
"""As records held it when the bounds were those of a shunt's voltage."""


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
    assert [each.end * each.step_v for each in chip.ranges] == pytest.approx(
        [each.max_v for each in chip.ranges], rel=1e-4
    )
    assert list(chip.ranges) == sorted(chip.ranges, key=lambda each: each.max_v)


def test_bounds_of_an_older_record_are_the_same_to_the_last_digit():
    """The quotients of 0.07 ohm are no round numbers."""
    bounds = run_json(sensor=OLDER).sensor
    assert (bounds.current_offset_max_a, bounds.current_step_a) == (200e-6 / 0.07, 10e-6 / 0.07)
    assert bounds.gain_errors_max == {"shunt": 0.01, "current": 0.005, "voltage": 0.005}
    assert (bounds.seen_fraction, bounds.clock_error_max, bounds.voltage_step_v) == (0.5, 8e-3, 4e-3)
    assert bounds.shunt == Shunt(0.07, 0.01) and bounds.shunt.origin == "shunt= in rig.toml"
    assert head_lines(run_json(sensor=OLDER)) == head_lines(run_json(sensor=plain(bounds)))
    assert essentials_of(OLDER) == essentials_of(plain(bounds))


def test_an_older_record_of_a_meter_without_a_shunt_has_its_current_as_it_was_stated():
    own = {"shunt_ohm": None, "current_offset_max_a": 1e-3, "current_step_a": 1e-6, "offset_v_max": 0.0}
    bounds = run_json(sensor={**OLDER, **own, "seen_fraction": 1.0, "clock_error_max": 160e-6}).sensor
    assert (bounds.shunt, bounds.current_offset_max_a, bounds.current_step_a) == (None, 1e-3, 1e-6)
    assert bounds.gain_errors_max == {"current": 0.005, "voltage": 0.005}
    assert (bounds.seen_fraction, bounds.clock_error_max) == (1.0, 160e-6)


def test_an_older_record_is_analysed_to_the_same_figures(tmp_path):
    results = []
    for name, sensor in (("older", OLDER), ("now", run_json(sensor=OLDER).sensor)):
        record = running_record(tmp_path / name)
        record.document["sensor"].clear()
        record.update(sensor=sensor)
        collect(record, Evidence.of(RunRecord.open(record.directory), ended_early=False))
        results.append(json.loads((record.directory / "result.json").read_text()))
    assert results[0] == results[1] and results[0]["energy_j"]["u"] > 0


@pytest.mark.parametrize("entry", [{"shunt": 1}, {"shunt_ohm": 0.1}, {**OLDER, "shunt_ohm": 0}, {}])
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


def test_a_chip_with_its_own_shunt_counts_no_tolerance_twice():
    bounds = INA260.error_bounds(0, 1.0, INA260.own_shunt)
    assert bounds.gain_errors_max["shunt"] == 0
    assert (bounds.current_max_a, bounds.current_step_a) == (pytest.approx(15.0), pytest.approx(1.25e-3))
    assert bounds.current_offset_max_a == pytest.approx(5e-3)
