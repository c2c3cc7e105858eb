"""What moves within a conversion is bounded by what the conversions show, and steady loads pay nothing for it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from opjoule.energy.cells import Cells
from opjoule.energy.moving_current import BLOCK, TOGETHER, most_fast_a2, moving_current
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.unseen_current import near_range_notices
from opjoule.meters.chips import ina219_breakout

PERIOD_NS = 532_000
CONVERSIONS = 20_000
STEPS = 133
"""Steps of 4 us in a conversion."""


def averages(rng: np.random.Generator, on_s: float, regular: bool) -> tuple[np.ndarray, float]:
    """Conversions of a current that switches between 0.5 and 1.3 A; mean variance within them [A^2]."""
    count = CONVERSIONS * STEPS
    lengths_s = rng.uniform(0.5, 1.5, 2 * count) * on_s if regular else rng.exponential(on_s, 2 * count)
    edges = np.searchsorted(np.cumsum(lengths_s), np.arange(count) * 4e-6)
    current_a = np.where(edges % 2, 1.3, 0.5).reshape(CONVERSIONS, STEPS)
    return current_a.mean(axis=1), float(current_a.var(axis=1).mean())


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("on_s", [20e-6, 50e-6, 200e-6, 1e-3, 5e-3])
def test_bursts_of_any_length_lie_inside_the_range_that_is_stated(on_s, regular):
    current_a, variance_a2 = averages(np.random.default_rng(4), on_s, regular)
    moving = moving_current(current_a, PERIOD_NS)
    middle_a2, half_a2 = float(moving.a2.mean()), float(moving.half_a2.mean())
    assert abs(middle_a2 - variance_a2) <= 1.2 * half_a2


def test_a_steady_current_has_no_room_for_bursts():
    current_a = 0.9 + np.random.default_rng(1).normal(0, 1e-4, CONVERSIONS)
    moving = moving_current(current_a, PERIOD_NS)
    assert 0.3 * float(moving.half_a2.mean()) < 1e-6 * 4.5  # W behind 0.3 ohm, of 4.5 W


def test_few_samples_have_what_their_extremes_say():
    moving = moving_current(np.array([0.5, 0.9, 1.3]), PERIOD_NS)
    assert moving.a2 == pytest.approx([0.0, 0.16, 0.0])


def test_a_load_that_switches_unseen_near_the_range_has_a_note_and_a_steady_one_has_none():
    rng, bounds = np.random.default_rng(2), ina219_breakout(seen_fraction=1.0)
    meter_ns = np.arange(CONVERSIONS, dtype=np.int64) * PERIOD_NS
    for noise_a, noted in ((0.1, True), (1e-4, False)):
        current_a = 2.4 + rng.normal(0, noise_a, CONVERSIONS)
        cells = Cells.of(PowerTrace.of(meter_ns, current_a, np.full(CONVERSIONS, 5.0)))
        lines = near_range_notices(cells, bounds, [(cells.start_ns, cells.end_ns)])
        assert bool(lines) == noted
        assert all("3.2 A" in notice.line and "smaller shunt" in notice.remedy for notice in lines)


def test_pieces_that_cannot_reach_the_range_are_not_looked_at_closer():
    """Near the range one stretch of a long trace is noted, wherever it lies among the pieces."""
    bounds, count = ina219_breakout(seen_fraction=1.0), 3 * TOGETHER
    rng = np.random.default_rng(3)
    meter_ns = np.arange(count, dtype=np.int64) * PERIOD_NS
    for start in (0, TOGETHER - 500, 2 * TOGETHER + 100, count - CONVERSIONS):
        current_a = 0.5 + rng.normal(0, 0.02, count)
        current_a[start : start + CONVERSIONS] = 2.4 + rng.normal(0, 0.1, CONVERSIONS)
        cells = Cells.of(PowerTrace.of(meter_ns, current_a, np.full(count, 5.0)))
        assert near_range_notices(cells, bounds, [(cells.start_ns, cells.end_ns)])


@pytest.mark.parametrize("count", [1, 17, BLOCK, BLOCK + 2, TOGETHER, TOGETHER + 1, TOGETHER + BLOCK + 3])
def test_the_variance_is_that_of_the_definition_at_every_edge_of_a_piece(count):
    rng = np.random.default_rng(count)
    current_a = 0.6 + rng.normal(0, 0.001, count) + 0.4 * (np.arange(count) % 40 < 3)
    levels_a2 = np.array(
        [
            (around.max() - here) * (here - around.min())
            for at, here in enumerate(current_a.tolist())
            for around in (current_a[max(at - 8, 0) : at + 9],)
        ]
    )
    half_a2 = moving_current(current_a, PERIOD_NS).half_a2
    assert np.all(half_a2 >= levels_a2)
    # What is faster has one value for a block, if that is not too much for the sample's own mean.
    faster_a2 = 2 * half_a2 - levels_a2
    free = (half_a2 > levels_a2 * (1 + 1e-6)) & (faster_a2 < most_fast_a2(current_a) * (1 - 1e-6))
    for at in range(0, count, BLOCK):
        of_block = faster_a2[at : at + BLOCK][free[at : at + BLOCK]]
        assert of_block == pytest.approx(of_block[:1].repeat(of_block.size))
    assert free.any() == (count >= BLOCK)


def test_an_hour_of_samples_needs_little_more_memory_than_its_result():
    current_a = 0.6 + np.random.default_rng(1).normal(0, 0.05, 20 * TOGETHER)
    tracemalloc.start()
    moving_current(current_a, PERIOD_NS)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 2 * current_a.nbytes
