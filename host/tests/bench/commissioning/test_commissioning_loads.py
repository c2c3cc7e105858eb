"""Verdicts on recordings without a board: zero, back-feed, a known resistor, two loads that add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from commissioned_traces import BOUNDS, recorded
from opjoule.bench.commissioning.desk import StepOutcome
from opjoule.bench.commissioning.known_loads import (
    Loads,
    judge_additivity,
    judge_back_feed,
    judge_resistor,
    judge_zero,
    ratio_bound,
)
from opjoule.energy.calibration.means import MeanReading

PASSED, FAILED = StepOutcome.PASSED, StepOutcome.FAILED


@pytest.mark.parametrize(
    ("offset_a", "drift_a", "outcome", "advice"),
    [
        (1.9e-3, 0.0, PASSED, ""),
        (-2.0e-3, 0.2e-3, PASSED, ""),
        (2.3e-3, 0.0, FAILED, "another breakout"),
        (-2.3e-3, 0.0, FAILED, "another breakout"),
        (0.0, 0.6e-3, FAILED, "draughts"),
        (0.0, -0.6e-3, FAILED, "draughts"),
    ],
)
def test_a_zero_is_held_against_the_data_sheet_and_against_its_drift_in_a_minute(offset_a, drift_a, outcome, advice):
    verdict = judge_zero(recorded(60.0, lambda time_s: offset_a + drift_a * (time_s / 60 - 0.5)))
    assert verdict.outcome is outcome and advice in verdict.advice
    assert verdict.figures["zero_a"].value == pytest.approx(offset_a, abs=2e-5)
    assert verdict.figures["drift_a"].value == pytest.approx(drift_a, abs=5e-5)


def test_a_drift_that_is_within_its_noise_is_no_drift():
    verdict = judge_zero(recorded(8.0, 0.0, noise_a=20e-3))
    assert abs(verdict.figures["drift_a"].value) > 0.3e-3 and verdict.outcome is PASSED


@pytest.mark.parametrize(("left_v", "outcome"), [(0.02, PASSED), (0.49, PASSED), (0.51, FAILED), (4.6, FAILED)])
def test_a_voltage_that_stays_without_the_fuse_is_a_second_supply(left_v, outcome):
    """Only the last second counts: the board's capacitors discharge before."""
    verdict = judge_back_feed(recorded(6.0, 0.0, lambda time_s: np.maximum(5.1 - 3 * time_s, left_v)))
    assert verdict.outcome is outcome
    assert ("HDMI" in verdict.advice) == (outcome is FAILED)


def test_a_meter_without_voltage_leaves_the_fuse_out_of_it():
    assert (
        judge_back_feed(recorded(6.0, 0.0, bounds=replace(BOUNDS, voltage_step_v=0.0))).outcome is StepOutcome.SKIPPED
    )


def reading(current_a, voltage_v, u=1e-6):
    return MeanReading(current_a, u, voltage_v, u)


@pytest.mark.parametrize(
    ("factor", "outcome", "advice"),
    [
        (1.0, PASSED, ""),
        (1.015, PASSED, ""),
        (0.985, PASSED, ""),
        (1.04, FAILED, "calibrate"),
        (0.96, FAILED, "calibrate"),
        (0.2, FAILED, "shunt=0.02"),
        (0.1, FAILED, "shunt=0.01"),
        (2.0, FAILED, "shunt=0.2"),
        (1.3, FAILED, "0.13 ohm"),
        (-1.0, FAILED, "VIN+ and VIN"),
        (0.001, FAILED, "connect the resistor"),
    ],
)
def test_a_known_resistor_tells_a_wrong_shunt_and_wrong_wiring(factor, outcome, advice):
    verdict = judge_resistor(reading(0.51 * factor, 5.1), 10.0, 0.001, BOUNDS, 0.0)
    assert verdict.outcome is outcome
    assert advice in verdict.advice


def test_no_voltage_at_the_resistor_is_no_verdict_on_the_shunt():
    verdict = judge_resistor(reading(0.0, 0.01), 10.0, 0.001, BOUNDS, 0.0)
    assert verdict.outcome is FAILED and "supply is on" in verdict.advice


def test_the_bound_of_a_resistor_counts_every_bound_and_an_unknown_zero():
    read = reading(0.5, 5.0)
    known = ratio_bound(read, 0.5, BOUNDS, zero_known=True)
    assert known == pytest.approx(0.01 + 0.005 + 0.005 + 0.5e-4 / 0.5 + 2e-3 / 5, abs=2e-4)
    assert ratio_bound(read, 0.5, BOUNDS) == pytest.approx(known + 2e-3 / 0.5)


def loads(heating_per_a2=0.0, bend=0.0, zero_a=0.0):
    """Three readings of a 10 and a 5 ohm load behind 0.15 ohm."""
    readings = []
    for conductance in (0.1, 0.2, 0.3):
        volts = 5.1 / (1 + 0.15 * conductance)
        current_a = conductance * volts
        read_a = current_a * (1.01 + heating_per_a2 * current_a**2 + bend * current_a) + zero_a
        readings.append(reading(read_a, volts))
    return Loads(*readings)


def test_loads_add_up_whatever_the_gain_and_the_zero():
    """The voltage differs between the three, and no instrument of known gain is needed."""
    verdict = judge_additivity(loads(zero_a=1.5e-3), loads(zero_a=1.5e-3), BOUNDS, 1.5e-3)
    assert verdict.outcome is PASSED
    assert abs(verdict.figures["hot"].value) < 1e-5


def test_an_unknown_zero_widens_the_limit_by_the_data_sheets_offset():
    assert judge_additivity(loads(zero_a=1.9e-3), loads(zero_a=1.9e-3), BOUNDS, None).outcome is PASSED
    assert judge_additivity(loads(zero_a=4e-3), loads(zero_a=4e-3), BOUNDS, 0.0).outcome is FAILED


@pytest.mark.parametrize(("per_a2", "outcome"), [(0.0, PASSED), (0.9e-3, PASSED), (2.0e-3, FAILED)])
def test_a_shunt_that_heats_itself_is_shown_by_two_loads_alone(per_a2, outcome):
    verdict = judge_additivity(loads(), loads(per_a2), BOUNDS, 0.0)
    assert verdict.outcome is outcome
    assert ("20 milliohm" in verdict.advice) == (outcome is FAILED)
    # c (I^3 - Ia^3 - Ib^3) / I at 1, 2 and 3 parts
    share = per_a2 * loads().both.current_a ** 2 * (27 - 8 - 1) / 27
    assert verdict.figures["self_heating"].value == pytest.approx(share, rel=0.05, abs=1e-6)


def test_a_bend_without_heat_is_told_apart():
    verdict = judge_additivity(loads(bend=5e-3), loads(bend=5e-3), BOUNDS, 0.0)
    assert verdict.outcome is FAILED and "(cold)" in verdict.words


def test_a_difference_within_its_noise_is_none():
    noisy = [
        MeanReading(mean.current_a, 2e-3, mean.voltage_v, 1e-3)
        for mean in (loads(2e-3).a, loads(2e-3).b, loads(2e-3).both)
    ]
    assert judge_additivity(Loads(*noisy), Loads(*noisy), BOUNDS, 0.0).outcome is PASSED
