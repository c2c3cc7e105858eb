"""Levels of power: nothing is lost of extremes, nothing is drawn over what is not known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.view.pyramid import Level, Pyramid


def level(power_w, width_ns=None):
    power_w = np.array(power_w, float)
    widths = np.full(power_w.size, 1000) if width_ns is None else np.array(width_ns)
    return Level(np.concatenate(([0], np.cumsum(widths))).astype(np.int64), power_w, power_w, power_w)


VALUES = st.lists(st.floats(0, 50) | st.just(float("nan")), min_size=1, max_size=300)


@given(VALUES, st.integers(1, 40))
def test_joining_keeps_extremes_energy_and_known_time(values, group):
    before, after = level(values), level(values).joined(group)
    known = np.isfinite(before.mean_w)
    assert (after.bounds_ns[0], after.bounds_ns[-1]) == (before.bounds_ns[0], before.bounds_ns[-1])
    assert np.isfinite(after.mean_w).any() == known.any()
    if known.any():
        assert np.nanmin(after.least_w) == np.nanmin(values)
        assert np.nanmax(after.greatest_w) == np.nanmax(values)
        inside = np.isfinite(after.mean_w)
        assert (after.least_w[inside] <= after.mean_w[inside] + 1e-9).all()
        assert (after.mean_w[inside] <= after.greatest_w[inside] + 1e-9).all()


def test_means_are_over_time():
    joined = level([1.0, 4.0], [3000, 1000]).joined(2)
    assert joined.mean_w == pytest.approx([1.75])


def test_no_level_spreads_a_value_over_a_long_hole():
    values, widths = np.ones(40_000), np.full(40_000, 1000)
    values[20_001], widths[20_001] = np.nan, 60_000_000
    pyramid = Pyramid.above(level(values, widths))
    assert len(pyramid.levels) >= 3
    for each in pyramid.levels:
        hole = np.flatnonzero(np.isnan(each.mean_w))
        assert hole.size == 1
        assert np.diff(each.bounds_ns)[hole[0]] == 60_000_000


@pytest.mark.parametrize("columns", [1, 100, 1500])
def test_a_view_has_no_more_cells_than_asked_for_and_covers_the_stretch(columns):
    pyramid = Pyramid.above(level(np.random.default_rng(1).normal(5, 1, 100_000)))
    for length in (100_000_000, 3_000_000, 40_000, 1500, 10):
        start = 50_000_000 if length < 100_000_000 else 0
        found, single = pyramid.view(start, start + length, columns)
        assert 1 <= len(found) <= max(columns, 1)
        assert found.bounds_ns[0] <= start and found.bounds_ns[-1] >= start + length
        assert single == (len(pyramid.levels[0].inside(start, start + length)) <= columns)
