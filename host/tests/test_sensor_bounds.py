"""A meter without a shunt states the bounds of its current itself; none is made up for it."""

from __future__ import annotations

import pytest
from opjoule.energy.sensor import SensorModel, ina219_breakout
from opjoule.meters.joulescope import joulescope_sensor
from opjoule.meters.monsoon.models import HVPM
from opjoule.meters.pmic import PmicSource
from opjoule.meters.ppk2 import ppk2_sensor
from opjoule.meters.rapl import RaplSource
from opjoule.report.markup import text_of
from opjoule.report.provenance import essentials

OWN = {
    "joulescope": joulescope_sensor,
    "ppk2": ppk2_sensor,
    "monsoon": lambda: HVPM.sensor_model("main"),
    "rapl": lambda: RaplSource().sensor_model(),
    "pmic": lambda: PmicSource("vcgencmd").sensor_model(),
}


@pytest.mark.parametrize("name", OWN)
def test_no_shunt_is_made_up_and_the_bounds_are_the_meters(name):
    sensor = OWN[name]()
    assert sensor.shunt_ohm is None and sensor.power_gain_u > 0 and sensor.current_lsb_a > 0
    assert SensorModel.from_json(sensor.to_json()) == sensor
    said = text_of(essentials({"sensor": sensor.to_json()}))
    assert "shunt" not in said and "meter's own bounds" in said.replace("&#x27;", "'").replace("&#39;", "'")


def test_a_chip_behind_a_shunt_has_its_bounds_in_amperes():
    sensor = ina219_breakout(pga=8)
    assert sensor.current_offset_bound_a == pytest.approx(2e-3) and sensor.current_lsb_a == pytest.approx(
        1e-4
    )
    assert "tolerance 1" in text_of(essentials({"sensor": sensor.to_json()}))
