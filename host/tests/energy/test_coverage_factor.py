"""An interval holds the truth in 95 of 100 also where bounds make most of its uncertainty."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from opjoule.base.coverage import RECTANGULAR, coverage_factor, excess_kurtosis, excess_of
from opjoule.base.units import Quantity, from_json, k_words, unstated
from opjoule.energy.baseline import idle_power, marginal_energy
from opjoule.energy.budget import PARTS, Budget
from opjoule.energy.error_bounds import Shunt
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import INA219
from opjoule.runs.evaluation.quantities.definition import over_repeats
from opjoule.runs.record.json_file import plain

DRAWS = 40_000
HELD = 0.94, 0.965
sizes = st.floats(0.0, 1.0)


@given(st.lists(sizes, min_size=1, max_size=4), sizes, st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_the_factor_holds_95_of_100_of_any_sum_of_rectangles_and_a_normal_error(bounds, normal, seed):
    parts = [(bound_u, RECTANGULAR) for bound_u in bounds] + [(normal, 0.0)]
    standard_u = math.hypot(*(u for u, _ in parts))
    if standard_u < 1e-3:
        return
    rng = np.random.default_rng(seed)
    errors = normal * rng.standard_normal(DRAWS)
    for bound_u in bounds:
        errors += bound_u * math.sqrt(3) * rng.uniform(-1, 1, DRAWS)
    held = np.abs(errors) <= coverage_factor(excess_kurtosis(parts)) * standard_u
    assert HELD[0] < held.mean() < HELD[1]


def test_one_rectangle_needs_1_65_a_triangle_1_91_and_a_normal_error_2():
    assert coverage_factor(RECTANGULAR) == pytest.approx(0.9545 * math.sqrt(3), abs=1e-3)
    triangle = excess_kurtosis([(1.0, RECTANGULAR), (1.0, RECTANGULAR)])
    assert triangle == pytest.approx(-0.6)
    assert coverage_factor(triangle) == pytest.approx(math.sqrt(6) * (1 - math.sqrt(0.0455)), abs=0.02)
    assert coverage_factor(0.0) == coverage_factor(0.5) == 2.0


@given(st.floats(RECTANGULAR, 0.0))
def test_a_factor_tells_the_kurtosis_that_it_came_from(excess):
    assert excess_of(coverage_factor(excess)) == pytest.approx(excess, abs=0.01)


@given(sizes.filter(lambda u: u > 1e-3), st.floats(RECTANGULAR, 0.0), st.floats(-3, 3))
def test_standard_uncertainty_and_k_survive_scaling_and_the_file(standard_u, excess, factor):
    number = Quantity.from_standard(1.0, standard_u, "J", excess).scale(factor)
    entry = plain(number)
    assert from_json(entry) == number
    assert number.standard_u == pytest.approx(standard_u * abs(factor))
    assert ("k" in entry) == (number.k != 2.0)


def test_a_sum_of_two_rectangular_numbers_has_the_factor_of_a_triangle():
    assert coverage_factor(excess_kurtosis([(0.1, RECTANGULAR)] * 2)) == pytest.approx(1.913)


def budget(excess: float, **parts: float) -> Budget:
    """A budget of the parts given; `gain` has the excess kurtosis given."""
    return Budget({name: parts.get(name, 0.0) for name in PARTS}, excess={"gain": excess})


def test_a_budget_states_the_k_of_the_sum_of_its_parts_and_its_parts_add_up_to_u():
    combined = budget(RECTANGULAR, gain=3.0, offset=1.0)
    energy = combined.energy(100.0)
    assert 1.7 < combined.k < 1.9 and energy.u == pytest.approx(combined.k * math.sqrt(10))
    assert energy.standard_u == pytest.approx(math.sqrt(10))
    stated = combined.stated()
    assert math.hypot(*(part["value"] for part in stated.values())) == pytest.approx(energy.u)
    assert f"k = {combined.k:.3g}" in stated["gain"]["reason"]
    assert budget(RECTANGULAR, gain=0.1, offset=1.0).k == pytest.approx(2.0, abs=1e-3)
    assert combined.scaled(0.5).k == combined.k and combined.with_part("loss", 50.0).k == pytest.approx(2.0, abs=1e-3)


def test_repeats_keep_the_k_of_what_they_share_and_their_spread_counts_as_normal():
    one = budget(RECTANGULAR, gain=1.0).energy(10.0)
    assert over_repeats([one]).k == pytest.approx(1.653)
    alike = over_repeats([one, one, one])
    assert alike.k == pytest.approx(1.653) and alike.standard_u == pytest.approx(1.0)
    apart = over_repeats([replace(one, value=value) for value in (5.0, 10.0, 15.0)])
    assert apart.k == pytest.approx(2.0, abs=0.02)


def test_a_side_of_a_comparison_has_the_interval_that_its_record_states():
    one = budget(RECTANGULAR, gain=1.0).energy(10.0)
    for values in ([10.0], [9.8, 10.0, 10.2], [8.0, 10.0, 12.0]):
        number = over_repeats([replace(one, value=value) for value in values])
        side = from_json(plain(number.stated)).of_repeats(values)
        assert side.u == pytest.approx(number.u, rel=2e-3)
        assert side.common_u == pytest.approx(1.0, rel=1e-6)


def test_a_number_without_k_in_an_older_file_has_2():
    assert from_json({"value": 1.0, "u": 0.2, "unit": "J"}).standard_u == pytest.approx(0.1)


def test_words_name_one_factor_or_the_least_and_the_greatest():
    normal, bounded = Quantity(1.0, 0.1, "J"), Quantity(1.0, 0.1, "J", 1.653)
    assert k_words([normal]) == "k = 2"
    assert k_words([normal, bounded]) == "k = 1.65 to 2"
    assert k_words([unstated(1.0, "J", "a stated voltage")]) == k_words([]) == "uncertainty not stated"


def test_energy_power_and_energy_above_idle_of_an_unmarked_shunt_say_their_k():
    trace = PowerTrace.of(
        np.arange(40_000, dtype=np.int64) * 532_000,
        np.where(np.arange(40_000) < 20_000, 0.5, 1.0),
        np.full(40_000, 5.0),
    )
    sensor = INA219.error_bounds(3, 1.0, Shunt(0.1, kelvin=True), genuine=True)
    idle = idle_power(trace, [Window(10**9, 10 * 10**9, 0.0)], sensor)
    run = window_energy_j(trace, Window(11 * 10**9, 20 * 10**9, 0.0), sensor)
    marginal = marginal_energy(run, idle, sensor).energy
    assert run.energy.u is not None and marginal.u is not None
    for figure in (run.energy, run.power, idle.power, marginal):
        assert 1.65 < figure.k < 1.75
        assert figure.u == pytest.approx(figure.k * figure.standard_u)
