"""Costs of several kinds that write, from runs in other mixes whose energies are known."""

import numpy as np
import pytest
from opjoule.base.notices import NoticeKind
from opjoule.base.units import Quantity
from opjoule.runs.evaluation.mixes import WriteCosts, WrittenRun

COST_J = {"update": 20e-6, "insert": 90e-6, "remove": 10e-6}
WRITES = 40_000


def favour(kinds, kind=None):
    """Counts of a run in which the kinds are equally frequent, or the others halved in favour of one."""
    halved = {one: WRITES / len(kinds) / (1 if kind is None else 2) for one in kinds}
    if kind:
        halved[kind] += WRITES / 2
    return {one: round(count) for one, count in halved.items()}


def runs_of(kinds, factors, gain_u=0.0, own_u_j=0.0):
    """Repeats and runs in favour of each kind; `factors`: of each run's energy."""
    mixes = [favour(kinds, kind) for kind in kinds]
    counts = [favour(kinds)] * (len(factors) - len(mixes)) + mixes
    runs = []
    for of, factor in zip(counts, factors, strict=True):
        energy_j = factor * sum(COST_J[kind] * count for kind, count in of.items())
        shared = {"scale": gain_u * energy_j}
        runs.append(WrittenRun(of, Quantity.from_standard(energy_j, gain_u * energy_j, "J", shared=shared), own_u_j))
    return runs[: -len(mixes)], runs[-len(mixes) :]


def standard_u(costs):
    return np.sqrt(costs.scatter_u_j**2 + sum(u_j**2 for u_j in costs.common_j.values()))


@pytest.mark.parametrize("kinds", [("update", "insert"), ("update", "insert", "remove")])
def test_exact_energies_give_the_costs_and_a_wrong_gain_moves_all_alike(kinds):
    costs = WriteCosts.of(*runs_of(kinds, np.full(4 + len(kinds), 1.0), gain_u=0.1))
    true_j = [COST_J[kind] for kind in costs.kinds]
    assert costs.cost_j == pytest.approx(true_j)
    assert costs.scatter_u_j == pytest.approx(0.0, abs=1e-12)
    assert costs.common_j["scale"] == pytest.approx(0.1 * np.array(true_j))
    assert not costs.notices


def test_the_costs_add_up_to_what_the_repeats_drew():
    repeats, mixes = runs_of(("update", "insert"), [1.0, 1.1, 1.05, 1.02, 0.97, 1.01])
    costs = WriteCosts.of(repeats, mixes)
    mean_j = np.mean([float(run.energy) for run in repeats])
    assert sum(cost_j * repeats[0].counts[kind] for kind, cost_j in zip(costs.kinds, costs.cost_j, strict=True)) == (
        pytest.approx(mean_j)
    )
    left = Quantity.from_standard(3.0, 0.1, "J", shared={"scale": 0.1})
    shares = costs.shares(left, {"update": 100, "insert": 50})
    assert sum(map(float, shares.values())) == pytest.approx(3.0)
    ratio = float(shares["insert"]) / float(shares["update"])
    assert ratio == pytest.approx(0.5 * costs.cost_j[1] / costs.cost_j[0])


@pytest.mark.parametrize(("kinds", "scatter"), [(("update", "insert"), 0.02), (("update", "insert", "remove"), 0.05)])
def test_intervals_hold_the_true_costs_when_runs_scatter(kinds, scatter):
    rng, held, width = np.random.default_rng(7), [], []
    for _ in range(400):
        costs = WriteCosts.of(*runs_of(kinds, 1.0 + scatter * rng.normal(size=4 + len(kinds))))
        true_j = np.array([COST_J[kind] for kind in costs.kinds])
        held += list(np.abs(costs.cost_j - true_j) <= 2.0 * standard_u(costs))
        width += list(standard_u(costs) / true_j)
    assert 0.93 < np.mean(held) < 0.995
    assert np.median(width) < 10 * scatter


def test_the_own_errors_of_runs_count_even_where_these_do_not_scatter():
    quiet = WriteCosts.of(*runs_of(("update", "insert"), np.ones(6), own_u_j=0.05))
    assert (quiet.scatter_u_j * WRITES > 0.05).all()


def test_costs_that_are_not_additive_are_named_and_their_interval_includes_it():
    scatter = [0.999, 1.001, 1.0, 1.0]
    additive = WriteCosts.of(*runs_of(("update", "insert"), [*scatter, 1.0, 1.0]))
    apart = WriteCosts.of(*runs_of(("update", "insert"), [*scatter, 1.2, 1.2]))
    (notice,) = apart.notices
    assert notice.kind is NoticeKind.NOT_ADDITIVE
    assert "would draw 20 % more than they did in the repeats" in notice.line
    assert not additive.notices
    assert (standard_u(apart) > 20 * standard_u(additive)).all()


def test_a_kind_that_no_other_mix_favours_is_told_apart_with_a_wider_interval():
    repeats, mixes = runs_of(("update", "insert"), [0.99, 1.01, 1.0, 1.0, 1.0, 1.0])
    one = WriteCosts.of(repeats, mixes[:1])
    assert one.cost_j == pytest.approx(list(map(COST_J.get, one.kinds)), rel=0.02)
    assert one.chance == 1.0
    assert (one.scatter_u_j > WriteCosts.of(repeats, mixes).scatter_u_j).all()


def test_too_few_runs_or_mixes_that_are_alike_tell_nothing():
    repeats, mixes = runs_of(("update", "insert"), np.ones(6))
    assert WriteCosts.of(repeats, []) is None
    assert WriteCosts.of(repeats[:1], mixes[:1]) is None, "no run is left to show the scatter"
    assert WriteCosts.of(repeats, repeats[:2]) is None
    jitter = [WrittenRun({"update": 20_000 + n, "insert": 20_000}, run.energy) for n, run in enumerate(repeats)]
    assert WriteCosts.of(jitter, jitter[:1]) is None


def test_what_costs_nothing_in_all_is_not_divided():
    repeats, mixes = runs_of(("update", "insert"), -np.ones(6))
    assert WriteCosts.of(repeats, mixes) is None
