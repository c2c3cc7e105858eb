"""A client that begins its operations at even distances, SIMULATED: neighbours tell little of what all kinds draw."""

import math
from dataclasses import replace

import numpy as np
import pytest
from fitted_columns import fit, none_long
from opjoule.attribution.columns import PartColumns
from opjoule.attribution.overlap import Waits, Worked
from opjoule.attribution.run_windows import BURSTS_U, engaged, misjudged
from opjoule.attribution.window_groups import groups
from opjoule.bench.simulation.parts import Steady
from opjoule.energy.operations.operation_table import OperationTable

NS = 1_000_000_000
WINDOW_NS = 5_475_000


def table(start_ns, duration_ns, threads=1):
    """Reads that begin at these times, by so many threads in turn."""
    start_ns, size = np.asarray(start_ns, np.int64), len(start_ns)
    return OperationTable(
        start_ns,
        np.full(size, duration_ns, np.int64),
        np.zeros(size, np.uint8),
        (np.arange(size) % threads).astype(np.uint16),
        np.zeros(size, np.int64),
        np.ones(size, np.bool_),
        ("read",),
    )


def test_a_client_is_engaged_while_an_operation_is_under_way_whatever_that_waits_for():
    every_2_ms = np.arange(1000) * 2_000_000
    assert engaged(table(every_2_ms, 20_000)) == pytest.approx(0.01, rel=0.01)
    assert engaged(table(every_2_ms, 1_900_000)) == pytest.approx(0.95, rel=0.01)
    assert engaged(table(every_2_ms, 3_800_000, threads=2)) == pytest.approx(0.95, rel=0.01)
    assert engaged(table([], 1)) == 1.0


def missed(start_s, duration_ns=20_000):
    """What neighbours may misjudge of these operations."""
    operations = table(np.asarray(start_s) * NS, duration_ns)
    edge_ns = np.arange(0, operations.board_ns[-1], WINDOW_NS)
    return misjudged(edge_ns, np.arange(edge_ns.size - 1) // 16, operations, Waits.of(operations, 0.99))


def test_operations_at_even_distances_are_blurred_by_those_at_the_edges():
    """Two or three of them are in a window. A shift of 0.1 ms moves one in ten, and their number varies by 0.2."""
    assert missed(np.arange(10_000) * 2e-3) == pytest.approx(0.1 / (2 * 0.2) / math.sqrt(3), rel=0.2)


def test_bursts_alone_tell_only_what_operations_in_bursts_cost():
    """Between the bursts the distances are even: of single operations neighbours tell as little as without bursts."""
    bursts_s = np.repeat(np.arange(20.0), 500) + np.tile(np.arange(500) * 3e-5, 20)
    begin_s = np.sort(np.concatenate([np.arange(10_000) * 2e-3, bursts_s]))
    assert missed(begin_s) == pytest.approx(0.1 / (2 * 0.2) / math.sqrt(3), rel=0.6)


def test_a_part_is_left_for_what_operations_in_bursts_save():
    at_random_s = np.cumsum(np.random.default_rng(1).exponential(2e-4, 100_000))
    stalled_s = np.where(at_random_s % 0.5 < 0.02, at_random_s // 0.5 * 0.5 + 0.02, at_random_s)
    assert missed(np.sort(stalled_s + np.arange(stalled_s.size) * 1e-9)) == pytest.approx(
        math.hypot(BURSTS_U, 0.065 / math.sqrt(3)), rel=0.2
    )


def test_neighbours_are_believed_where_the_client_does_not_wait_or_waits_at_random():
    assert missed(np.arange(10_000) * 2e-3, 1_500_000) == 0.0
    assert missed(np.cumsum(np.random.default_rng(1).exponential(2e-3, 10_000))) < 0.03


def paced_run(strays, seed=1, longer=1.0):
    """Columns, window energies and true energies of a run of 500 operations a second, whose energy lies around each."""
    rng = np.random.default_rng(seed)
    begin_s = np.arange(20_000) * 2e-3 + rng.gamma(4.0, 10e-6, 20_000)
    kind = rng.integers(0, 2, begin_s.size)
    energy_j = np.where(kind == 1, 193e-6, 141e-6) * rng.uniform(0.75, 1.25, begin_s.size)
    edge_s = np.arange(9_000) * WINDOW_NS / NS
    length_s = np.where(kind == 1, 23e-6, 14e-6) * rng.uniform(0.8, 1.2, begin_s.size) * longer

    def by_window(weight):
        columns = [np.histogram(begin_s[kind == at], edge_s, weights=weight[kind == at])[0] for at in (0, 1)]
        return np.stack(columns, axis=1)

    count, busy_s = by_window(np.ones(begin_s.size)), by_window(length_s)
    drawn = Steady(begin_s - 125e-6, begin_s + 125e-6, energy_j)
    window_j = np.diff(drawn.until_j(edge_s)) + rng.normal(0.0, 2e-5, edge_s.size - 1)
    settling = edge_s[:-1] > begin_s[-1]
    group = groups({}, np.diff(edge_s), settling, np.arange(settling.size) // 48)
    columns = PartColumns.of({"read": 0, "update": 1}, Worked(count, busy_s), none_long(count), {}, group, strays)
    return columns, window_j, np.array([energy_j[kind == 0].sum(), energy_j[kind == 1].sum()])


def energy_ratios(*runs):
    """Energies of reads and updates in all runs together over the true ones."""
    columns = PartColumns.joined([of_run for of_run, _, _ in runs])
    window_j = np.concatenate([of_run for _, of_run, _ in runs])
    whole = fit(columns.matrix, window_j, columns.group, columns.sets, columns.parts)
    return whole.energy_j[:2] / sum(true_j for _, _, true_j in runs)


def test_far_windows_tell_what_all_kinds_of_a_paced_client_draw():
    assert energy_ratios(paced_run(0.12)) == pytest.approx([1.0, 1.0], abs=0.015)


def test_neighbours_alone_would_tell_it_wrong():
    assert np.abs(energy_ratios(paced_run(0.0)) - 1.0).max() > 0.03


def test_an_operation_counts_alike_in_all_runs_of_a_paced_client():
    """Else the differences between runs would decide what all kinds draw, which neighbours cannot tell."""
    columns = PartColumns.joined([paced_run(0.25, at, longer)[0] for at, longer in enumerate((1.0, 1.1, 0.9))])
    count = sum(of_kind[:, 0] for of_kind in columns.of_kind.values())
    some = count > 0
    assert np.ptp(columns.usual_s[some] / count[some]) < 1e-9 * columns.usual_s.max()


def bursty_run(*, woken, saved_j=10e-6, mean_s=1.2e-4, alone_j=30e-6):
    """Energy over the true one of operations at random, of which those soon after another save a part, beside a sync
    that lasts for as long as they do."""
    rng = np.random.default_rng(5)
    begin_s = np.cumsum(rng.exponential(mean_s, 300_000))
    woke = np.diff(begin_s, prepend=-1.0) > 35e-6
    energy_j = alone_j - saved_j * ~woke
    edge_s = np.arange(0.0, begin_s[-1], WINDOW_NS / NS)
    count, singles, window_j = (
        np.histogram(begin_s, edge_s, weights=weight)[0] for weight in (np.ones(woke.size), woke * 1.0, energy_j)
    )
    duration_s = np.diff(edge_s)
    group = groups({"sync": duration_s}, duration_s, np.zeros(count.size, np.bool_), np.arange(count.size) // 48)
    worked = Worked(count[:, None], count[:, None] * 15e-6 * rng.uniform(0.9, 1.1, (count.size, 1)))
    more = {"woken": singles[:, None]} if woken else {}
    columns = PartColumns.of({"read": 0}, worked, none_long(count[:, None]), {"sync": duration_s}, group, 0.0, **more)
    drawn_j = window_j + 1.0 * duration_s + rng.normal(0.0, 2e-5, count.size)
    whole = fit(columns.matrix, drawn_j, group, columns.sets, columns.parts)
    return whole.energy_j[0] / window_j.sum()


def test_operations_that_wake_the_processor_up_have_a_column():
    assert bursty_run(woken=True) == pytest.approx(1.0, abs=0.02)
    assert bursty_run(woken=False) < 0.95


def test_runs_with_and_without_a_column_of_those_that_wake_the_processor_up_are_joined():
    busy = [paced_run(0.25, at)[0] for at in range(2)]
    widths = {columns.shape[1] for columns in PartColumns.joined(busy).of_kind.values()}
    some = replace(busy[1], of_kind={name: columns.copy() for name, columns in busy[1].of_kind.items()})
    some.of_kind["read"][:, -1] = 1.0
    joined = PartColumns.joined([busy[0], some])
    assert {columns.shape[1] for columns in joined.of_kind.values()} == {width + 1 for width in widths}
    assert joined.of_kind["read"][:, -1].sum() == len(some.of_kind["read"])
    assert joined.matrix.shape[1] == joined.parts.shape[1] == joined.sets.near.size
