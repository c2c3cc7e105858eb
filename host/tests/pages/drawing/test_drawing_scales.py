"""Scales, ticks and limits of axes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.pages.drawing.drawing import (
    REACH,
    Scale,
    limits_about,
    limits_from_zero,
    log_ticks,
    stacked,
    ticks,
)
from opjoule.pages.drawing.shown import MARGIN, ratio_axis

VALUES = st.lists(st.tuples(st.floats(1e-6, 1e6), st.floats(0, 1e6)), min_size=1, max_size=20)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.booleans())
def test_ends_are_at_the_ends_and_what_lies_beyond_is_at_the_nearer_end(low, span, logarithmic):
    low = abs(low) + 1e-3 if logarithmic else low
    scale = Scale(low, low + span, 10.0, 90.0, logarithmic)
    assert scale(low) == pytest.approx(10.0) and scale(low + span) == pytest.approx(90.0)
    assert scale(low - 1) == 10.0 and scale(low + 2 * span + 1) == 90.0


def test_equal_ratios_are_equally_far_apart_on_a_logarithmic_scale():
    scale = Scale(1.0, 100.0, logarithmic=True)
    assert scale(10.0) == pytest.approx(50.0) and scale(2.0) - scale(1.0) == pytest.approx(scale(20) - scale(10))


@given(st.floats(-1e4, 1e4), st.floats(0.01, 1e4), st.integers(2, 10))
def test_ticks_are_round_inside_and_not_too_many(low, span, most):
    positions = ticks(low, low + span, most)
    assert len(positions) <= most + 1 and all(low - 1e-6 <= position <= low + span + 1e-6 for position in positions)


@given(st.floats(1e-6, 1e3), st.floats(1.05, 1e6), st.integers(4, 8))
def test_logarithmic_ticks_are_inside_and_not_too_many(low, ratio, most):
    positions = log_ticks(low, low * ratio, most)
    assert len(positions) <= most + 1 and all(low <= position <= low * ratio * (1 + 1e-6) for position in positions)


def test_a_narrow_logarithmic_axis_has_ticks_too():
    assert log_ticks(0.9, 1.3, 4) == [0.9, 1.0, 1.1, 1.2, 1.3]


@given(st.lists(st.floats(-1e6, 1e6), max_size=12))
def test_parts_of_a_stack_follow_each_other_on_their_side_of_zero(values):
    places = stacked(values)
    assert [end - start for start, end in places] == pytest.approx(values, abs=1e-6)
    for sign in (1, -1):
        same_side = [place for place, value in zip(places, values, strict=True) if sign * value > 0]
        assert [start for start, _ in same_side] == pytest.approx(
            [0.0, *(end for _, end in same_side)][: len(same_side)]
        )


@given(VALUES)
def test_an_axis_from_zero_holds_every_value_and_goes_no_further_than_its_reach(points):
    low, high = limits_from_zero(points)
    most = max(value for value, _ in points)
    assert low == 0.0 and most <= high <= REACH * most * (1 + 1e-9)


@given(VALUES, st.booleans())
def test_an_axis_about_points_holds_them_and_a_logarithmic_one_stays_above_zero(points, logarithmic):
    low, high = limits_about(points, logarithmic=logarithmic)
    assert low < min(value for value, _ in points) <= max(value for value, _ in points) < high
    assert low > 0 or not logarithmic


def test_an_axis_of_ratios_holds_one_and_an_infinite_interval_does_not_stretch_it():
    axis = ratio_axis([(3.0, (1.0, math.inf), (0.0, math.inf))])
    assert axis.low <= 0.9 and 3.0 < axis.high <= MARGIN * REACH * 3.0
