"""The load line: voltage between bus readings follows the current as the readings show it."""

import numpy as np
import pytest
from opjoule.meters.load_line import LoadLine


def test_before_the_first_reading_the_held_voltage_stands():
    held = np.array([5.0, 5.0])
    assert LoadLine().voltage_v(np.array([0.1, 0.2]), held) is held


def test_a_stiff_supply_keeps_the_reading_whatever_the_current():
    line = LoadLine()
    for current_a in (0.2, 1.0, 0.2, 1.0):
        line.read(5.0, current_a, current_a)
    assert line.resistance_ohm == 0.0
    assert line.voltage_v(np.array([0.0, 2.0]), np.zeros(2)) == pytest.approx([5.0, 5.0])


def test_a_resistance_is_found_despite_the_steps_of_the_voltage_codes():
    random = np.random.default_rng(1)
    line = LoadLine()
    for current_a in random.uniform(0.3, 1.2, 400):
        line.read(round((5.1 - 0.15 * current_a) / 0.004) * 0.004, current_a, current_a)
    assert line.resistance_ohm == pytest.approx(0.15, rel=0.03)
    line.read(5.1 - 0.15 * 0.5, 0.5, 0.5)
    assert line.voltage_v(np.array([1.0]), np.zeros(1)) == pytest.approx([5.1 - 0.15], abs=0.004)


def test_a_reading_in_mid_change_says_nothing_of_the_resistance():
    line = LoadLine()
    for _ in range(50):
        line.read(5.0, 0.2, 1.0)
        line.read(4.5, 1.0, 0.2)
    assert line.resistance_ohm == 0.0


def test_a_voltage_that_rises_with_the_current_is_not_a_supply():
    line = LoadLine()
    for current_a in (0.2, 1.0, 0.2, 1.0):
        line.read(5.0 + 0.1 * current_a, current_a, current_a)
    assert line.resistance_ohm == 0.0
