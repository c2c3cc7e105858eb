"""The report lists each error of the sensor with its bound, who says so, and what it adds."""

from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

from opjoule.energy.error_bounds import Shunt
from opjoule.energy.sensor_calibration import SensorCalibration
from opjoule.meters.chips import INA219
from opjoule.pages.report.provenance import sensor_errors

UNKNOWN = replace(
    INA219.error_bounds(
        3, 0.5, Shunt(0.02, origin="shunt= in rig.toml, its tolerance assumed: unmarked"), genuine=False
    ),
    sensor_id="bench-1@0x40",
).wired(None)


def said(sensor, shared):
    answer = SimpleNamespace(run=SimpleNamespace(sensor=sensor), result={"shared": {"budget": shared}})
    return [ElementTree.tostring(element, "unicode").replace("\xa0", " ") for element in sensor_errors(answer)]


def test_each_row_of_an_uncalibrated_rig_has_its_bound_and_its_source():
    (page,) = said(UNKNOWN, {"bench-1@0x40: shunt": 0.5, "bench-1@0x40: wire to the board": -0.02})
    for words in (
        *("shunt", "5.00 %", "its tolerance assumed: unmarked", "1.0 J"),
        *("copper at the shunt", "2.50 %", "kelvin=yes is not stated"),
        *("temperature", "200 ppm/K of the shunt"),
        *("shunt heating", "per squared ampere"),
        *("voltage", "5.50 %", "genuine=yes is not stated"),
        *("wire to the board", "0.02 ohm", "rig.toml has no [supply] sense_ohm", "40 mJ"),
    ):
        assert words in page, words


def test_what_is_stated_and_what_is_calibrated_leaves_the_table():
    known = INA219.error_bounds(3, 0.5, Shunt(0.02, 0.005, "shunt= in rig.toml", 0.0, kelvin=True))
    (page,) = said(known, {})
    assert "copper" not in page and "0.500 %" in page and "wire" not in page
    (calibrated,) = said(replace(UNKNOWN, calibration=SensorCalibration("one")), {"calibration one: current_gain": 0.1})
    assert "5.50 %" not in calibrated and "calibration one: current_gain" in calibrated
    assert "wire" in calibrated


def test_a_record_without_its_sensors_errors_says_nothing():
    assert said(None, {}) == []
