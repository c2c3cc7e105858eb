"""A regular slow wave of the current raises the doubt of a beat; what moves without one does not."""

import numpy as np
import pytest
from opjoule.energy.cells import Cells
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.unseen_current import in_step_notices
from opjoule.meters.chips import ina219_breakout

COUNT = 8_000
PERIOD_NS = 1_064_000
PLACE = np.linspace(0, 1, COUNT)


def triangle(cycles):
    return np.abs((PLACE * cycles + 0.3) % 1 * 2 - 1) * 2 - 1


def notices(current_a, seen=0.5):
    meter_ns = np.arange(COUNT, dtype=np.int64) * PERIOD_NS
    cells = Cells.of(PowerTrace.of(meter_ns, current_a, np.full(COUNT, 5.0)))
    return in_step_notices(cells, ina219_breakout(seen_fraction=seen), [(cells.start_ns, cells.end_ns)])


@pytest.mark.parametrize("cycles", [1.9, 2.5, 3.3, 5.0])
def test_a_beat_is_noted_with_an_error_that_is_large_enough(cycles):
    noise_a = np.random.default_rng(3).normal(0, 0.01, COUNT)
    (notice,) = notices(0.7 + 0.4 * triangle(cycles) + noise_a)
    assert "940 conversions a second" in notice.line and "shunts" in notice.remedy
    assert not notices(0.7 + 0.4 * triangle(cycles) + noise_a, seen=1.0)


@pytest.mark.parametrize(
    "moved_a",
    [
        np.where(PLACE > 0.4, 0.1, 0.0),
        0.2 * np.exp(-4 * PLACE),
        0.5 * (np.random.default_rng(1).random(COUNT) < 0.1),
        0.4 * triangle(300),
        np.zeros(COUNT),
    ],
    ids=["a step", "warm-up", "random bursts", "a wave of many cycles", "constant"],
)
def test_a_current_without_a_slow_regular_wave_is_not_noted(moved_a):
    assert not notices(0.7 + moved_a)


def test_a_span_of_few_samples_is_not_noted():
    meter_ns = np.arange(100, dtype=np.int64) * PERIOD_NS
    cells = Cells.of(PowerTrace.of(meter_ns, 0.7 + 0.4 * np.sin(meter_ns * 1e-7), np.full(100, 5.0)))
    assert not in_step_notices(cells, ina219_breakout(), [(cells.start_ns, cells.end_ns)])
