"""What the regression asks of neighbours, what of groups, and what it says of columns that go together."""

from dataclasses import replace

import numpy as np
import pytest
from fitted_columns import NAMES, fit, fitted, none_long, reasons
from opjoule.attribution.columns import NEIGHBOURS_U, ColumnSets, beyond_count
from opjoule.attribution.overlap import Worked
from opjoule.attribution.window_groups import SLOPE_MAX, groups, near_slope
from opjoule.base.units import Cause


def test_what_neighbours_say_of_all_kinds_together_is_believed_to_two_per_cent():
    """Groups at other times correct it where they know better, and the interval holds it where they do not."""
    known, _, true_j = fitted(wander_j=0.01, near_too_steep=1.1)
    assert known.energy_j[-1] == pytest.approx(true_j, rel=0.02)
    for seed in range(5):
        estimate, _, true_j = fitted(wander_j=0.1, near_too_steep=1.02, seed=seed)
        assert abs(estimate.energy_j[-1] - true_j) < 2 * estimate.standard_u_j[-1] < 0.15 * true_j
    assert known.energy_j[1] / known.energy_j[0] == pytest.approx(3.0, rel=0.25)


def test_columns_that_stray_are_in_the_interval_of_an_activity_that_hardly_goes_its_own_way():
    """The kinds draw one per cent as the activity goes, which no scatter shows: an error of many times its size."""
    estimate, columns, _ = fitted(own_variation=0.01, strays=0.01, neighbours_u=1.0)
    true_j = 1e-3 * columns[:, 2].sum()
    at = NAMES.index("write_back")
    error_j = abs(estimate.energy_j[at] - true_j)
    assert 4 * estimate.scatter_u_j[at] < error_j < 2 * estimate.standard_u_j[at]
    apart, *_ = fitted(strays=0.01, neighbours_u=1.0)
    assert apart.simplified_u_j[at] < 0.01 * apart.energy_j[at]


def test_neighbours_that_tell_the_sum_of_the_kinds_tell_an_activity_that_hardly_goes_its_own_way():
    alone, columns, true_j = fitted(own_variation=0.01, strays=0.01, neighbours_u=1.0)
    told, *_ = fitted(own_variation=0.01, strays=0.01)
    at = NAMES.index("write_back")
    for part, of_part_j in ((at, 1e-3 * columns[:, 2].sum()), (-1, true_j)):
        assert told.standard_u_j[part] < 0.4 * alone.standard_u_j[part]
        assert abs(told.energy_j[part] - of_part_j) < 2 * told.standard_u_j[part]


@pytest.mark.parametrize(
    ("each_j", "noise_j"),
    [(1e-3, 1e-5), (0.0, 0.0), (-1e-3, 1e-5)],
    ids=["work in one block", "no energy", "less than the idle energy"],
)
def test_a_trace_with_little_or_nothing_in_it_breaks_nothing(each_j, noise_j):
    """Blocks are drawn again and again, some draws without the only one that has work; a meter may say zero."""
    count = np.zeros((400 * 32, 1))
    count[: len(count) // 4, 0] = np.arange(len(count) // 4) % 5
    columns = np.concatenate([count, count], axis=1)
    group = groups({}, np.full(len(count), 0.1), np.zeros(len(count), np.bool_), np.arange(len(count)) // 3200)
    energy_j = each_j * count[:, 0] + np.random.default_rng(1).normal(0, noise_j, len(count))
    with np.errstate(all="raise"):
        sets = ColumnSets(
            *(
                np.array(values)
                for values in ([True, True], [True, False], [False, True], [True, False], [0.0, NEIGHBOURS_U])
            )
        )
        estimate = fit(columns, energy_j, group, sets, np.array([[1.0, 0.0], [1.0, 0.0]]))
    assert np.all(np.isfinite(estimate.energy_j)) and np.all(np.isfinite(estimate.standard_u_j))


def test_a_part_without_a_course_of_its_own_strays_from_none():
    """What rounding leaves of its course is no course."""
    for seed in range(20):
        with np.errstate(all="raise"):
            estimate, *_ = fitted(steady=True, seed=seed)
        assert np.all(np.isfinite(estimate.simplified_u_j)) and np.all(estimate.simplified_u_j >= 0.0)


def test_the_width_alone_says_whether_a_part_is_told():
    assert not any(reasons(*fitted(own_variation=0.2)[:2]).values())
    estimate, columns, _ = fitted(own_variation=0.001, neighbours_u=1.0)
    said = reasons(estimate, columns)
    assert said["write_back"].startswith(f"{Cause.COLLINEAR}: write_back ")
    assert said["read"].startswith(f"{Cause.COLLINEAR}: read ") and said["read"].endswith(" write_back")


def test_an_interval_that_is_too_wide_says_what_is_known_and_how_long_would_tell():
    estimate, columns, _ = fitted()
    wide = replace(estimate, standard_u_j=estimate.energy_j * 0.2, scatter_u_j=estimate.energy_j * 0.2)
    said = reasons(wide, columns)["read"]
    assert said.startswith(
        f"{Cause.TOO_WIDE}: read drew {estimate.energy_j[0]:.3g} ± {estimate.energy_j[0] / 2.5:.2g} J"
    )
    assert said.endswith(" 300 s")
    lasting = replace(wide, scatter_u_j=estimate.energy_j * 0.02)
    assert "measure" not in reasons(lasting, columns)["read"]


def test_rivals_that_disagree_widen_the_interval_as_bounds_do():
    estimate, columns, _ = fitted()
    apart_j = np.array([0.0, 0.0, 3.0, 0.0])
    wide = estimate.with_bounds([estimate.energy_j + apart_j, estimate.energy_j - apart_j / 2])
    assert wide.model_u_j[2] == pytest.approx(3.0 / np.sqrt(2.0))
    assert wide.standard_u_j[2] == pytest.approx(np.hypot(estimate.standard_u_j[2], wide.model_u_j[2]))
    assert estimate.with_bounds([]) is estimate
    decided = replace(estimate, standard_u_j=estimate.energy_j.copy(), model_u_j=estimate.energy_j.copy())
    assert reasons(decided, columns)["write_back"].startswith(f"{Cause.MODEL_ONLY}: write_back drew 0")
    assert reasons(decided, columns, written=False)["read"].startswith(f"{Cause.TAIL_OF_READS}: read drew 0 to ")


def test_what_one_of_two_parts_drew_is_shared_out_in_the_middle_of_what_can_be():
    estimate, *_ = fitted()
    moved = estimate.moved(2, 0, 0.0, 1.0)
    assert moved.energy_j - estimate.energy_j == pytest.approx([0.5, 0.0, -0.5, 0.0])
    assert moved.model_u_j[[0, 2]] == pytest.approx(1 / np.sqrt(12))
    most = estimate.moved(2, 0, -1e9, 1e9)
    assert most.energy_j[0] >= 0.0 and most.energy_j[2] >= 0.0


def test_a_part_that_the_fit_leaves_at_nothing_is_not_found():
    estimate, columns, _ = fitted()
    nothing = replace(estimate, energy_j=estimate.energy_j * [1, 1, 0, 1])
    assert reasons(nothing, columns)["write_back"].startswith("not found: write_back drew less than")


def test_operations_that_take_no_time_at_all_have_columns():
    count, state = np.arange(60.0).reshape(30, 2) % 3, np.zeros(30, np.int64)
    group = groups({}, np.full(30, 0.01), np.zeros(30, np.bool_), state)
    near, far, slowed, long, lasted = beyond_count(Worked(count, np.zeros_like(count)), none_long(count), group)
    assert np.array_equal(far, -count) and np.isfinite(slowed).all()
    assert not (long.any() or lasted.any()) and np.abs(near).max() < 1e-12


@pytest.mark.parametrize("known", [False, True])
def test_neighbours_that_a_meter_shows_steeper_than_they_are_tell_the_same_costs(known):
    estimate, _, true_j = fitted(near_too_steep=1.05, slope=1.05 if known else 1.0, neighbours_u=1e-6)
    assert bool(estimate.energy_j[-1] == pytest.approx(true_j, rel=0.005)) is known


def test_a_slope_is_the_one_between_neighbours_within_limits():
    rng = np.random.default_rng(1)
    group = groups({}, np.full(640, 0.01), np.zeros(640, np.bool_), np.arange(640) // 32)
    true = np.repeat(rng.uniform(0, 40, 20), 32) + rng.normal(0, 1, 640)
    steeper = 1.1 * true - 0.1 * np.repeat([true[at : at + 32].mean() for at in range(0, 640, 32)], 32)
    assert near_slope(steeper, true, group) == pytest.approx(1.1, rel=0.01)
    assert near_slope(2.0 * true, true, group) == SLOPE_MAX
    assert near_slope(0.0 * true, true, group) == 1.0 / SLOPE_MAX
    assert near_slope(true, np.ones(640), group) == 1.0
