"""What two figures share cancels in their comparison; what they do not share stays."""

import itertools
import math
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from calibrated_sensor import TrueReference, TrueSensor, bench_reference, points
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from opjoule.base.coverage import student_t
from opjoule.base.units import Quantity, exact, from_json, unstated
from opjoule.energy.baseline import idle_power as energy_idle_power
from opjoule.energy.calibration.fitting import calibrate
from opjoule.energy.cells import Cells
from opjoule.energy.comparison import (
    correlation,
    differ,
    difference,
    more_to_differ,
    ratio,
    ratio_limits,
    same_probability,
)
from opjoule.energy.repeats import repeat_standard_u, student_t_of
from opjoule.energy.systematic import Integrals, systematic
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import ina219_breakout
from opjoule.results.comparison.cell import Group, paired
from opjoule.results.comparison.contrasts import Contrast, judged
from opjoule.runs.evaluation.quantities.common import idle_power
from opjoule.runs.evaluation.quantities.definition import Definition, Repeat, RepeatEnergy, Topic

BOUNDS = replace(ina219_breakout(), sensor_id="bench-1@0x40", heating_max_per_a2=0.0)


def made(identity, gain=1.01, reference=None):
    reference = reference or bench_reference()
    return calibrate(points(TrueSensor(gain, 1e-3), TrueReference(reference)), reference, BOUNDS, identity).calibration


ONE = made("one")


def side(calibration, mean_a, seconds=10.0, volts=5.0, own_u=0.0):
    """An energy of a steady load, with what its calibration is uncertain by and something of its own."""
    bounds = replace(BOUNDS, calibration=calibration)
    energy_j = mean_a * volts * seconds
    error = systematic(bounds, Integrals(energy_j, volts * seconds, mean_a * seconds))
    u = float(np.hypot(np.hypot(error.gain_u, error.offset_u), own_u))
    return Quantity.from_standard(energy_j, u, "J", shared=error.shared)


def test_two_equal_energies_by_one_calibration_differ_by_nothing():
    a, b = side(ONE, 0.8), side(ONE, 0.8)
    assert a.standard_u > 0.01
    assert difference(a, b).u < 1e-6 * a.standard_u and ratio(a, b).u < 1e-7
    assert correlation(a, b) == pytest.approx(1.0)


def test_what_is_each_energys_own_stays():
    a, b = side(ONE, 0.8, own_u=0.03), side(ONE, 0.8, own_u=0.04)
    assert difference(a, b).u == pytest.approx(2 * 0.05)
    assert ratio(a, b).u == pytest.approx(2 * 0.05 / a.value)


def test_a_gain_cancels_in_the_ratio_of_different_energies_and_an_offset_does_not():
    only_gain = replace(ONE, covariance=((1e-6, 0, 0, 0), (0,) * 4, (0,) * 4, (0,) * 4), common=())
    only_gain = replace(only_gain, current=replace(only_gain.current, offset=0.0))
    a, b = side(only_gain, 0.4), side(only_gain, 1.2)
    assert a.standard_u == pytest.approx(1e-3 * a.value / only_gain.current.gain)
    assert ratio(a, b).u < 1e-9
    only_offset = replace(ONE, covariance=((0,) * 4, (0,) * 4, (0, 0, 1e-6, 0), (0,) * 4), common=())
    a, b = side(only_offset, 0.4), side(only_offset, 1.2)
    share = 1e-3 / 0.4 - 1e-3 / 1.2
    assert ratio(a, b).u == pytest.approx(2 * share * ratio(a, b).value)


def test_two_calibrations_against_one_reference_share_what_that_gets_wrong():
    same, other = made("two", 0.99), made("two", 0.99, bench_reference("DMM 8"))
    a = side(ONE, 0.8)
    shared, apart = ratio(a, side(same, 0.9)), ratio(a, side(other, 0.9))
    assert shared.u < 0.6 * apart.u
    assert apart.u == pytest.approx(
        apart.value * 2 * np.hypot(a.standard_u / 40, side(other, 0.9).standard_u / 45), rel=1e-9
    )


def test_as_delivered_one_named_sensor_cancels_too_and_two_unnamed_ones_do_not():
    a, b = side(None, 0.8), side(None, 0.8)
    assert difference(a, b).u < 1e-6 * a.standard_u
    unnamed = [Quantity.from_standard(energy.value, energy.standard_u, "J") for energy in (a, b)]
    assert difference(*unnamed).u == pytest.approx(2 * 2**0.5 * a.standard_u)


@given(st.floats(0.1, 1.4), st.floats(0.1, 1.4), st.floats(0, 0.1), st.floats(0, 0.1))
def test_a_comparison_by_one_calibration_is_never_less_certain_than_by_two(first_a, second_a, first_u, second_u):
    a, b = side(ONE, first_a, own_u=first_u), side(ONE, second_a, own_u=second_u)
    alone = [Quantity.from_standard(energy.value, energy.standard_u, "J") for energy in (a, b)]
    assert ratio(a, b).u <= ratio(*alone).u * (1 + 1e-9)
    assert difference(a, b).value == pytest.approx(-difference(b, a).value)
    assert difference(a, b).u == pytest.approx(difference(b, a).u)


def test_an_energy_per_operation_is_compared_like_its_energy():
    a, b = side(ONE, 0.8, own_u=0.03), side(ONE, 0.9, own_u=0.04)
    per = ratio(a.scale(1 / 1000), b.scale(1 / 2000))
    assert per.value == pytest.approx(2 * ratio(a, b).value)
    assert per.relative_u == pytest.approx(ratio(a, b).relative_u)


def test_numbers_of_a_result_are_taken_with_what_it_says_they_share():
    number = {"value": 40.0, "u": 0.1, "unit": "J"}
    taken = from_json(number).of_repeats([], {"x": 0.04})
    assert taken.own_u == pytest.approx(0.03)
    with pytest.raises(ValueError, match="clipped"):
        difference(taken, unstated(40.0, "J", "clipped"))
    with pytest.raises(ValueError, match="J with W"):
        difference(taken, Quantity.from_standard(1.0, 0.1, "W"))


def repeats(rng, count, mean_j, spread_j, common=0.0):
    """A figure of several repeats as result.json states it: all of them wrong by a part that is stated to be shared."""
    values = (mean_j + rng.normal(0, spread_j, count) + common).tolist()
    u = 2 * np.hypot(repeat_standard_u(values), 1.0)
    return Quantity(float(np.mean(values)), u, "J").of_repeats(values, {"one sensor: gain": 1.0})


@pytest.mark.parametrize(("counts", "spreads_j"), [((5, 5), (1, 1)), ((5, 5), (0.3, 1)), ((3, 3), (1, 1))])
def test_two_that_are_the_same_are_found_different_as_seldom_as_stated(counts, spreads_j):
    """And the interval of their difference holds it, though both are far off by what they share."""
    rng = np.random.default_rng(4)
    held, differing = [], []
    for _ in range(2000):
        common = rng.normal(0, 1.0)
        a, b = (repeats(rng, n, 100.0, s, common) for n, s in zip(counts, spreads_j, strict=True))
        held.append(difference(a, b).covers(0.0))
        differing.append(differ(a, b))
    assert 0.94 <= np.mean(held) <= 0.98
    assert differing == [not covered for covered in held]


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("known", [0.1, 0.3, 1.0])
def test_a_known_error_beside_the_spread_makes_no_more_false_differences(count, known):
    """Two runs that agree by chance are no better known because of an error that both have anyway."""
    rng = np.random.default_rng(29)
    found, probabilities = 0, []
    for _ in range(2000):
        a, b = (
            Quantity.of_values(rng.normal(100.0 + rng.normal(0.0, known), 1.0, count).tolist(), "J", known, 0.0, {})
            for _ in range(2)
        )
        found += bool(differ(a, b))
        probabilities.append(same_probability(a, b))
    assert found <= 0.06 * 2000
    assert np.count_nonzero(np.array(probabilities) < 0.0455 / 18) <= 12  # 5 are nominal, 12 come once in 300
    assert np.count_nonzero(np.array(probabilities) < 0.0455) == pytest.approx(found, abs=5)


@pytest.mark.parametrize("by_blocks", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_all_contrasts_of_a_campaign_report_no_more_false_differences_than_they_say(count, by_blocks):
    """Nine cells whose runs differ by 1.68 % beside a known error of 0.16 %, and nothing else; 18 contrasts."""
    rng, found = np.random.default_rng(4), 0
    of = Definition("marginal_energy_per_operation_j", "J/operation", Topic.HEADLINE)
    for _ in range(150):
        runs = {
            cell: {
                (None, block, f"rig-{block % 2}"): Quantity.from_standard(rng.normal(1.0, 0.0169), 0.0016, of.unit)
                for block in range(count)
            }
            for cell in itertools.product(range(3), range(3))
        }
        contrasts = []
        for (a, of_a), (b, of_b) in itertools.combinations(runs.items(), 2):
            if a[0] == b[0] or a[1] == b[1]:
                sides = paired(of_a, of_b) if by_blocks else [Quantity.mean([*each.values()]) for each in (of_a, of_b)]
                contrasts.append(Contrast(of, cast("Group", None), cast("Group", None), *sides))
        assert len(contrasts) == 18
        found += any(contrast.differs for contrast in judged(contrasts))
    assert found <= 14  # 6.8 are nominal; more than 14 come once in 200


def test_means_that_differ_by_rounding_are_the_same():
    a, b = (Quantity.of_values([1.297e-6] * count, "s", 0.0, 0.0, {}) for count in (3, 5))
    a = structs.replace(a, value=math.nextafter(float(b), 1.0))
    assert same_probability(a, b) == 1.0
    assert differ(a, b) is False


def test_there_is_no_ratio_of_what_is_not_above_0():
    two = Quantity.of_values([1.0, 1.1], "J", 0.0, 0.0, {})
    for other in (two.scale(-1.0), two.scale(0.0)):
        with pytest.raises(ValueError, match="must be above 0"):
            ratio_limits(two, other)
        with pytest.raises(ValueError, match="must be above 0"):
            ratio_limits(other, two)


def test_five_repeats_of_either_show_a_difference_of_three_hundredths():
    rng = np.random.default_rng(5)
    differing = [
        differ(repeats(rng, 5, 103.0, 1.0, common), repeats(rng, 5, 100.0, 1.0, common))
        for common in rng.normal(0, 1.0, 300)
    ]
    assert np.mean(differing) >= 0.95


def test_few_repeats_make_a_wide_interval_and_one_none_at_all():
    two, many = (repeats(np.random.default_rng(1), n, 100.0, 1.0) for n in (2, 40))
    assert difference(two, structs.replace(two, value=99.0)).u > 4 * np.hypot(two.spread_u, two.spread_u)
    assert difference(many, many).u == pytest.approx(2.03 * np.hypot(many.spread_u, many.spread_u), rel=0.01)
    one = Quantity.from_standard(103.0, 0.1, "J")
    assert differ(one, two) is None and differ(two, one) is None


def test_the_mean_of_runs_has_their_spread_and_keeps_what_they_share():
    runs = [Quantity.from_standard(value, 0.5, "J", shared={"gain": 0.4}) for value in (9.0, 10.0, 11.0)]
    mean = Quantity.mean(runs)
    assert (mean.value, mean.freedom, mean.shared) == (10.0, 2.0, {"gain": pytest.approx(0.4)})
    assert mean.spread_u == pytest.approx(3**-0.5) and mean.own_u == pytest.approx(0.3)
    assert Quantity.mean(runs[:1]) is runs[0]
    with pytest.raises(ValueError, match="nothing"):
        Quantity.mean([])


def test_the_spread_of_repeats_is_taken_out_of_the_stated_interval_once():
    values = [9.0, 10.0, 11.0]
    u = 2 * np.hypot(0.2, repeat_standard_u(values))
    taken = Quantity(10.0, u, "J").of_repeats(values, {"gain": 0.16})
    assert taken.spread_u == pytest.approx(3**-0.5)
    assert taken.own_u == pytest.approx(0.12)
    assert taken.scale(-2.0).spread_u == pytest.approx(2 * 3**-0.5)


def test_students_t_lies_between_the_tabulated_degrees_of_freedom():
    assert student_t(5) == 2.65
    assert 2.52 < student_t(5.5) < 2.65
    assert student_t(1e9) == pytest.approx(2.0, abs=1e-6)
    with pytest.raises(ValueError, match="at least one"):
        student_t(0.5)


@pytest.mark.parametrize("freedom", [1.1, 1.25, 1.5, 1.75, 1.9, 2.25, 2.5, 3.5, 4.5, 7.5, 12.5, 60.0])
def test_students_t_between_tabulated_degrees_of_freedom_is_right_within_one_per_cent(freedom):
    assert student_t(freedom) == pytest.approx(student_t_of(0.0455, freedom), rel=0.01)


@given(st.floats(1e-9, 1e9), st.floats(0, 1e-7))
def test_two_repeats_of_one_and_nothing_else_leave_one_degree_of_freedom_whatever_is_rounded(spread, rest):
    a = Quantity.from_standard(1.0, rest, "J").with_spread(spread, 1.0, 2)
    assert difference(a, exact(0.0, "J")).u <= 13.98 * math.hypot(spread, rest)


def test_the_interval_of_a_ratio_holds_one_exactly_where_the_two_are_not_found_different():
    draw, differing = np.random.default_rng(11), 0
    for _ in range(300):
        a, b = (
            Quantity.mean([Quantity.from_standard(float(value), 0.01, "J") for value in draw.normal(mean, 0.3, 4)])
            for mean in (2.0, 1.4)
        )
        low, high = ratio_limits(a, b)
        assert low < a.value / b.value < high
        assert differ(a, b) == (not low <= 1.0 <= high)
        differing += bool(differ(a, b))
    assert 50 < differing < 250


def test_the_interval_of_a_ratio_is_the_first_orders_where_it_is_narrow_and_uneven_where_not():
    a, b = Quantity.from_standard(2.0, 0.002, "J"), Quantity.from_standard(1.0, 0.002, "J")
    low, high = ratio_limits(a, b)
    assert (2.0 - low, high - 2.0) == pytest.approx((ratio(a, b).u, ratio(a, b).u), rel=0.01)
    # Fieller's by hand: |2 - r| = 2 * 0.2 r, the first side being exact
    assert ratio_limits(Quantity.from_standard(2.0, 0.0, "J"), Quantity.from_standard(1.0, 0.2, "J")) == pytest.approx(
        (2 / 1.4, 2 / 0.6), rel=1e-5
    )
    assert ratio_limits(Quantity.from_standard(2.0, 0.0, "J"), Quantity.from_standard(1.0, 0.6, "J")) == (
        pytest.approx(2 / 2.2),
        math.inf,
    )
    assert ratio_limits(Quantity.from_standard(1.0, 0.6, "J"), Quantity.from_standard(2.0, 0.0, "J"))[0] == 0.0


@pytest.mark.slow
def test_the_interval_of_a_ratio_holds_the_truth_as_often_as_it_says():
    draw, held = np.random.default_rng(5), 0
    for _ in range(2_000):
        a, b = (
            Quantity.mean([Quantity.from_standard(float(value), 0.0, "J") for value in draw.normal(mean, 0.4, 5)])
            for mean in (2.0, 1.0)
        )
        low, high = ratio_limits(a, b) if min(a.value, b.value) > 0 else (0.0, math.inf)
        held += low <= 2.0 <= high
    assert 0.94 < held / 2_000 < 0.975


@pytest.mark.parametrize("figure", [idle_power, lambda repeat: repeat.energy.run.power])
def test_the_gain_of_one_sensor_cancels_in_a_difference_of_powers(figure):
    """A gain of 1.5 % is 23 mW of each power, and 1 mW of a difference of 150 mW."""
    sides = []
    for power_w in (3.0, 3.15):
        current_a = np.random.default_rng(1).normal(power_w / 5.0, 1e-3, 20_000)
        cells = Cells.of(PowerTrace.of(np.arange(20_000) * 2_000_000, current_a, np.full(20_000, 5.0)))
        before, run, after = (Window(round(at * 1e9), round((at + 9) * 1e9), 0.0) for at in (1, 11, 21))
        energy = window_energy_j(cells, run, BOUNDS)
        idle = energy_idle_power(cells, [before, after], BOUNDS)
        sides.append(figure(Repeat(1, RepeatEnergy(energy, energy, idle, None, None, None), 9.0)))
    apart = difference(*sides)
    assert min(side.standard_u for side in sides) > 0.02
    assert apart.value == pytest.approx(-0.15, abs=1e-3) and apart.u < 0.01


@pytest.mark.parametrize(
    ("means", "spreads", "counts", "probability"),
    [
        ((1.0, 1.3), (0.1, 0.3), (5, 5), 0.0455),
        ((1.0, 2.15), (0.05, 1.2), (5, 5), 0.0455 / 9),
        ((1.0, 1.05), (0.1, 0.1), (3, 4), 0.0455 / 18),
    ],
)
def test_the_forecast_number_of_repeats_shows_the_difference_in_eight_of_ten_trials(
    means, spreads, counts, probability
):
    """Far fewer repeats show it less often, far more almost always."""
    present = [
        exact(mean, "J").with_spread(spread / math.sqrt(count), count - 1.0, count)
        for mean, spread, count in zip(means, spreads, counts, strict=True)
    ]
    more = more_to_differ(*present, probability)
    draw = np.random.default_rng(11)

    def shown(added: int) -> float:
        found = 0
        for _ in range(400):
            sides = [
                Quantity.mean(
                    [
                        Quantity.from_standard(float(value), 0.0, "J")
                        for value in draw.normal(mean, spread, count + added)
                    ]
                )
                for mean, spread, count in zip(means, spreads, counts, strict=True)
            ]
            found += same_probability(*sides) <= probability
        return found / 400

    assert 0.73 < shown(more) < 0.9
    assert shown(2 * more + counts[0]) > 0.95
    assert shown(more // 2) < 0.7


def test_repeats_cannot_decide_what_common_errors_leave_open():
    a, b = (Quantity.from_standard(value, 0.5, "J").with_spread(0.01, 4.0, 5) for value in (1.0, 1.2))
    assert more_to_differ(a, b, 0.0455) is None
    with pytest.raises(ValueError, match="single run"):
        more_to_differ(Quantity.from_standard(1.0, 0.1, "J"), b, 0.0455)


def test_more_repeats_lessen_the_spread_alone():
    runs = [Quantity.from_standard(value, 0.3, "J") for value in (1.0, 1.2, 0.8, 1.0)]
    now, later = Quantity.mean(runs), Quantity.mean(runs).with_more(12)
    assert later.spread_u == pytest.approx(now.spread_u / 2) and later.own_u == pytest.approx(now.own_u)
    assert (later.freedom, later.count, later.value) == (15.0, 16, now.value)
