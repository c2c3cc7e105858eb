"""Levels of power: nothing is lost of extremes, nothing is drawn over what is not known."""

import numpy as np
import pytest
from opjoule.pages.view.runs_folder import FINEST, POWER, WHOLE, Pyramid
from opjoule.results.tracks import SampleParts, Track


def track(power_w, width_s=None):
    power_w = np.array(power_w, float)
    widths = np.full(power_w.size, 1e-6) if width_s is None else np.array(width_s)
    return Track(np.concatenate(([0.0], np.cumsum(widths))), {POWER: power_w})


def test_no_level_spreads_a_value_over_a_long_hole():
    values, widths = np.ones(40_000), np.full(40_000, 1e-6)
    values[20_001], widths[20_001] = np.nan, 0.06
    pyramid = Pyramid.above(track(values, widths))
    assert len(pyramid.levels) >= 3
    for level in pyramid.levels:
        hole = np.flatnonzero(np.isnan(level.mean[POWER]))
        assert hole.size == 1
        assert np.diff(level.bounds_s)[hole[0]] == pytest.approx(0.06)


def test_every_level_has_the_extremes_of_the_samples():
    power_w = np.random.default_rng(2).normal(5, 1, 100_000)
    for level in Pyramid.above(track(power_w)).levels:
        least_w, greatest_w = level.extremes(POWER)
        assert (least_w.min(), greatest_w.max()) == (power_w.min(), power_w.max())


@pytest.mark.parametrize("columns", [1, 100, 1500])
def test_a_view_has_no_more_cells_than_asked_for_and_covers_the_stretch(columns):
    pyramid = Pyramid.above(track(np.random.default_rng(1).normal(5, 1, 100_000)))
    for length in (0.1, 0.003, 4e-5, 1.5e-6, 1e-8):
        start = 0.05 if length < 0.1 else 0.0
        view = pyramid.view(start, start + length, columns)
        assert 1 <= len(view) <= max(columns, 1)
        assert view.bounds_s[0] <= start + 1e-9 and view.bounds_s[-1] >= start + length - 1e-9
        assert (view.samples_per_cell == 1) == (
            len(pyramid.levels[0].inside(start + 5e-10, start + length - 5e-10)) <= columns
        )


def test_a_long_trace_has_no_level_of_single_samples_and_asks_for_those_of_a_short_stretch():
    count, stretches = WHOLE + 1, []
    power_w = np.random.default_rng(3).normal(5, 1, count)
    made = Pyramid.of(SampleParts.of(np.arange(count) * 1e-3, {POWER: power_w}), 1e-3)
    assert made.levels[0].samples_per_cell == FINEST and len(made.levels[0]) == -(-count // FINEST)
    pyramid = Pyramid(made.levels, lambda start_s, end_s: stretches.append((start_s, end_s)) or track([1.0, 2.0]))
    assert pyramid.view(0.0, count * 1e-3, 1000).samples_per_cell > 1 and not stretches
    assert pyramid.view(10.0, 11.0, 1000).samples_per_cell == 1 and stretches == [pytest.approx((10.0, 11.0))]
