"""Experiments with known joules, SIMULATED: intervals hold the truth, and what cannot be told is not told.

Many more, of every kind: host/validate.py.
"""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attribution_trials import SCENARIOS, trial  # path set above
from known_meter import experiment
from known_work import Choice
from msgspec import structs
from opjoule.attribution.attribute import attribute_runs
from opjoule.attribution.overlap import Waits
from opjoule.attribution.waits import RARE

HOST = Path(__file__).resolve().parents[2]
SEEDS = range(5)


@pytest.fixture(scope="module")
def held():
    return {
        name: [figure for seed in SEEDS for figure in trial(name, seed)]
        for name in (
            "everything at random",
            "50/50, an update costs 3 reads",
            "writes on two background threads",
        )
    }


def test_most_intervals_hold_the_truth(held):
    identified = [figure for figures in held.values() for figure in figures if figure.identified]
    assert len(identified) > 60
    assert np.mean([figure.covered for figure in identified]) > 0.8


def test_kinds_of_known_cost_are_found_within_5_percent(held):
    kinds = [
        kind for kind in held["50/50, an update costs 3 reads"] if kind.name in {"read", "update"} and kind.identified
    ]
    assert np.median([abs(kind.error) for kind in kinds]) < 0.02
    assert np.mean([abs(kind.error) <= 0.05 for kind in kinds]) >= 0.8


def test_the_share_of_compaction_is_found_within_5_points(held):
    shares = [
        share for share in held["writes on two background threads"] if share.name == "compaction" and share.identified
    ]
    assert shares
    assert all(abs(share.found_j - share.true_j) <= 0.05 * share.whole_j for share in shares)


@pytest.mark.slow
def test_kinds_that_nothing_tells_apart_are_not_told():
    for seed in SEEDS:
        kinds = [kind for kind in trial("kinds that cannot be told apart", seed) if kind.name in {"read", "update"}]
        assert kinds and not any(kind.identified for kind in kinds)


def test_mix_blocks_tell_them_apart():
    kinds = [kind for kind in trial("the same in mix blocks", 6) if kind.name in {"read", "update"}]
    assert all(kind.identified for kind in kinds) and max(abs(kind.error) for kind in kinds) < 0.1


def test_parts_add_up_to_the_whole():
    for seed in (0, 3):
        made = experiment(seed, Choice(seconds=20.0))
        attribution = attribute_runs([made.work])[0]
        shares = [*attribution.operations.values(), *attribution.activities.values()]
        assert sum(share.value for share in shares) == pytest.approx(made.energies.marginal.energy.value, rel=1e-6)
        foreground = attribution.operations if attribution.foreground.reason else {"all": attribution.foreground}
        parts = [*foreground.values(), *attribution.activities.values()]
        identified_j = sum(part.value for part in parts if not part.reason)
        assert identified_j + attribution.unseparated.value == pytest.approx(
            made.energies.marginal.energy.value, rel=1e-6
        )


def test_what_is_not_told_goes_into_the_sum_of_what_cannot_be_told_apart():
    made = experiment(0, Choice(seconds=20.0))
    attribution = attribute_runs([made.work])[0]
    name = next(name for name, share in attribution.activities.items() if not share.reason)
    untold = structs.replace(attribution.activities[name], reason="too few windows")
    hidden = replace(attribution, activities={**attribution.activities, name: untold})
    moved_j = attribution.activities[name].value
    assert not attribution.activities[name].reason
    identified_j = sum(part.value for part in (hidden.foreground, *hidden.activities.values()) if not part.reason)
    assert identified_j + hidden.unseparated.value == pytest.approx(hidden.whole.value)
    assert hidden.unseparated.value - attribution.unseparated.value == pytest.approx(moved_j, rel=0.05, abs=0.05)


@pytest.mark.slow
def test_repeats_together_tell_what_each_alone_does_not_and_add_up_to_all_of_them():
    works = [experiment(seed, Choice(seconds=10.0)).work for seed in (4, 4)]
    [alone], (one, other) = attribute_runs(works[:1]), attribute_runs(works)
    assert one.foreground.reason == other.foreground.reason
    both_j = sum(
        share.value
        for attribution in (one, other)
        for share in (attribution.foreground, *attribution.activities.values())
    )
    assert both_j == pytest.approx(one.whole.value + other.whole.value, rel=1e-3)
    assert one.operations["read"].standard_u < alone.operations["read"].standard_u


def test_a_short_run_tells_nothing():
    made = experiment(1, Choice(mix=(0.5, 0.5), seconds=0.3, slow_meter=True, engine="plain"))
    reasons = [share.reason for share in attribute_runs([made.work])[0].operations.values()]
    assert all(reasons), "nothing is told"


@pytest.mark.slow
def test_the_same_data_give_the_same_answer():
    made = experiment(4, Choice(seconds=10.0))
    one, other = attribute_runs([made.work])[0], attribute_runs([made.work])[0]
    assert (one.operations, one.activities) == (other.operations, other.activities)


def test_the_help_of_validate_lists_every_scenario():
    said = subprocess.run([HOST / "validate.py", "--help"], capture_output=True, text=True, check=True).stdout
    listed = said.partition("\nScenarios:\n")[2].partition("\n\n")[0]
    assert [line.strip() for line in listed.splitlines()] == list(SCENARIOS)


def test_every_scenario_can_be_drawn():
    for name in SCENARIOS:
        assert SCENARIOS[name].seconds == 60.0


def test_waiting_is_stated_as_a_part_of_the_time_of_all_threads():
    work = experiment(0, Choice(seconds=10.0)).work
    table, run_ns = work.operations, work.work_end_board_ns - work.start_board_ns
    duration_ns = table.duration_ns.copy()
    duration_ns[:: len(table) // 50] += 100_000_000
    longer = replace(table, duration_ns=duration_ns)
    limit_ns = Waits.of(longer, RARE).longest_ns[longer.kind]
    waited_ns = np.maximum(duration_ns - limit_ns, 0).sum()
    threads = len(set(table.thread.tolist()))
    assert threads > 1 and waited_ns > 0.05 * run_ns * threads
    assert attribute_runs([replace(work, operations=longer)])[0].waited == pytest.approx(
        waited_ns / (run_ns * threads), rel=0.05
    )
