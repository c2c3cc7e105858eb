"""What goes into the regression: windows, the engine's seconds, busy time."""

from dataclasses import replace

import numpy as np
import pytest
from fitted_columns import fit, none_long
from opjoule.attribution.activities import Intervals, background_s, changes_ns
from opjoule.attribution.columns import BY_TIME, ColumnSets, PartColumns, beyond_count
from opjoule.attribution.medium import MediumColumns
from opjoule.attribution.overlap import Worked
from opjoule.attribution.verdict import too_short
from opjoule.attribution.window_groups import Groups, groups, stretch_edges_ns
from opjoule.attribution.windows import Windows, window_ns
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.cells import Cells
from opjoule.energy.trace.power_trace import Gap, PowerTrace

SECOND = 1_000_000_000
TO_METER = ClockMap("board", "meter", 0, 500, 1.0, 0, 0, "truth", 0, 10)


def trace(gaps=()):
    rng = np.random.default_rng(1)
    stamps = np.arange(1, 4000, dtype=np.int64) * 1_000_000
    return PowerTrace.of(stamps, rng.uniform(0.2, 1.0, stamps.size), np.full(stamps.size, 5.0), gaps)


def test_edges_of_windows_lie_on_bounds_of_samples_and_where_something_changed():
    cells = Cells.of(trace())
    cut = Windows.cut(cells, TO_METER, SECOND, 3 * SECOND, 20_000_000, np.array([2 * SECOND + 7_300_000]))
    inner = cut.edge_board_ns[1:-1] + 500
    assert np.isin(inner, cells.bounds_ns).all()
    assert np.abs(cut.edge_board_ns - (2 * SECOND + 7_300_000)).min() <= 500_000
    assert len(cut) == 101


def test_energies_of_windows_add_up_to_that_of_the_stretch():
    cells = Cells.of(trace())
    cut = Windows.cut(cells, TO_METER, SECOND + 123, 3 * SECOND - 77, 20_000_000)
    assert cut.energy_j.sum() == pytest.approx(float(cells.power.between(SECOND + 623, 3 * SECOND + 423)))
    assert cut.duration_s.sum() == pytest.approx(2.0 - 200e-9)


def test_windows_with_samples_lost_for_good_are_not_sound():
    lost = Gap(1_500_400_000, 1_530_000_000, 29, None, "lost")
    cut = Windows.cut(Cells.of(trace([lost])), TO_METER, SECOND, 3 * SECOND, 20_000_000)
    assert 1 <= np.count_nonzero(~cut.sound) <= 4
    assert Windows.cut(Cells.of(trace()), TO_METER, SECOND, 3 * SECOND, 20_000_000).sound.all()


def test_a_window_is_ten_samples_and_eight_operations_at_least():
    assert window_ns(532_000, 100_000.0, 60 * SECOND) == 5_320_000
    assert window_ns(532_000, 2e6, 60 * SECOND) == 16_000_000


def intervals(*pairs):
    return Intervals.of(*(np.array(times_ms, np.int64) * 1_000_000 for times_ms in zip(*pairs, strict=True)))


WORK = {
    "compaction": intervals((100, 400), (600, 700)),
    "flush": intervals((200, 250), (450, 500)),
    "sync": intervals((240, 250), (390, 400), (800, 810)),
}


def test_seconds_of_a_sync_are_taken_from_the_work_that_waits_for_it():
    edges = np.array([0, 1000], np.int64) * 1_000_000
    two = background_s(edges, WORK, one_thread=False)
    assert {name: float(busy_s[0]) for name, busy_s in two.items()} == pytest.approx(
        {"compaction": 0.39, "flush": 0.09, "sync": 0.03}
    )


def test_on_one_thread_a_compaction_rests_while_it_flushes():
    edges = np.array([0, 1000], np.int64) * 1_000_000
    one = background_s(edges, WORK, one_thread=True)
    assert one["compaction"][0] == pytest.approx(0.34)
    assert sum(float(busy_s[0]) for busy_s in one.values()) == pytest.approx(0.46)


def test_changes_leave_out_what_is_too_short_and_keep_the_longest():
    assert changes_ns(WORK, 60_000_000, 100).size == 4
    assert changes_ns(WORK, 0, 1).tolist() == [100_000_000, 400_000_000]
    assert changes_ns({}, 0, 1).size == 0


def test_work_that_is_over_before_ten_samples_are_is_not_told():
    starts = np.arange(1, 30) * SECOND
    lasting = {"flush": 60, "checkpoint": 400, "sync": 5}
    activities = {name: Intervals.of(starts, starts + ms * 1_000_000) for name, ms in lasting.items()}
    assert list(too_short(activities, 10_000_000)) == ["flush", "sync"]
    sync = too_short(activities, 1_064_000)["sync"]
    assert sync.reason.startswith(f"{sync.cause}: sync ") and "0.005 s" in sync.reason
    assert not too_short(activities, 200_000)


def test_two_syncs_at_once_are_waited_for_once():
    syncs = Intervals.of(np.array([300, 100, 150]) * 1_000_000, np.array([400, 250, 200]) * 1_000_000)
    edges = np.array([0, 1000], np.int64) * 1_000_000
    assert background_s(edges, {"sync": syncs}, one_thread=False)["sync"][0] == pytest.approx(0.25)
    assert syncs.merged.start_ns.tolist() == [100_000_000, 300_000_000]


def test_groups_of_two_runs_have_nothing_in_common():
    one = groups({}, np.full(64, 0.01), np.arange(64) >= 60, np.arange(64) // 32)
    both = Groups.joined([one, one])
    for labels in (both.near, both.of_window, both.block):
        assert not set(labels[:64].tolist()) & set(labels[64:].tolist())
    assert both.settling.size == both.lasted_s.size == 2 * one.settling.size


def test_groups_are_neighbours_with_the_same_background_work():
    duration_s = np.full(640, 0.01)
    work = np.zeros(640)
    work[100:200] = 0.01
    group = groups({"flush": work}, duration_s, np.arange(640) >= 600, np.arange(640) // 32)
    of = group.near
    assert of[99] != of[100] and of[199] != of[200] and of[599] != of[600]
    assert of[104] == of[111] and group.lasted_s.sum() == pytest.approx(6.4)
    assert group.settling.sum() >= 2


def test_stretches_begin_and_end_where_the_counters_were_read():
    read_ns = np.arange(0, 30 * SECOND, 97_000_000)
    edges = stretch_edges_ns(10 * SECOND, 20 * SECOND, 5_320_000, read_ns)
    assert np.isin(edges, read_ns).all() and edges.size > 25
    assert np.diff(edges).min() >= 190_000_000 and np.diff(edges).max() <= 450_000_000
    without = stretch_edges_ns(10 * SECOND, 20 * SECOND, 5_320_000, read_ns[:0])
    assert without.size > 25 and np.unique(np.diff(without)).size == 1


def test_a_slower_processor_is_no_more_work():
    count = np.full((640, 1), 20.0)
    busy_s = np.full((640, 1), 1e-3)
    busy_s[320:] *= 2.0
    group = groups({}, np.full(640, 0.01), np.zeros(640, np.bool_), np.arange(640) // 32)
    near, far, slowed, *_ = beyond_count(Worked(count, busy_s), none_long(count), group)
    assert np.abs(near).max() < 0.05 * 20 * 16
    assert np.abs(near[330:] - near[330:].mean()).max() < 1e-9
    assert far.sum() == pytest.approx(0.0, abs=1e-9)
    assert np.ptp(slowed[:310]) < 1e-9 and slowed[330:].mean() > slowed[:310].mean()


def test_quick_neighbourhoods_do_not_decide_what_an_operation_costs():
    """Operations slow down for a while. A read costs the same then, an update as much more as it takes longer."""
    rng = np.random.default_rng(1)
    windows, read_j, update_w = 3200, 1e-4, 0.5
    slower = np.repeat(rng.lognormal(0.0, 0.5, windows // 16), 16)[:, None]
    at_work = rng.uniform(0.1, 1.0, (windows, 2))
    count = rng.poisson(at_work * np.array([40.0, 8.0]) / slower).astype(np.float64)
    busy_s = slower * np.array([1e-4, 5e-4]) * rng.gamma(4.0 * np.maximum(count, 1e-9)) / 4.0
    group = groups({}, np.full(windows, 0.01), np.zeros(windows, np.bool_), np.arange(windows) // 32)
    columns = PartColumns.of({"read": 0, "update": 1}, Worked(count, busy_s), none_long(count), {}, group, 0.0)
    true_j = read_j * count[:, 0], update_w * busy_s[:, 1]
    idle_j = np.repeat(rng.normal(0.0, 2e-3, windows // 32), 32)
    energy_j = sum(true_j) + idle_j - idle_j.mean()
    fitted_run = fit(columns.matrix, energy_j, group, columns.sets, columns.parts)
    assert fitted_run.energy_j[:2] == pytest.approx(np.sum(true_j, axis=1), rel=0.02)


def test_how_long_the_long_operations_took_keeps_their_room_from_the_kinds():
    """A client that is always busy: a window with a very long update has room for few other operations."""
    rng = np.random.default_rng(1)
    kind = (rng.random(400_000) < 0.1).astype(np.int64)
    worked_s = np.array([1e-5, 4e-5])[kind] * rng.lognormal(0.0, 0.3, kind.size)
    long = rng.random(kind.size) < 0.01
    worked_s[long] *= rng.lognormal(2.5, 0.9, long.sum())
    end_s = np.cumsum(worked_s)
    edges = np.searchsorted(end_s, np.arange(0.0, end_s[-1], 2e-3))

    def worked(some):
        windows = np.stack([kind == 0, kind == 1], axis=1) * some[:, None]
        return Worked(*(np.add.reduceat(windows * each, edges[:-1])[:-1] for each in (1.0, worked_s[:, None])))

    number, long_ones = worked(np.ones(kind.size)), worked(long)
    true_j = number.busy_s * np.array([1.0, 1.5])
    windows = len(true_j)
    group = groups({}, number.busy_s.sum(axis=1), np.zeros(windows, np.bool_), np.arange(windows) // 128)
    columns = PartColumns.joined([PartColumns.of({"read": 0, "update": 1}, number, long_ones, {}, group, 0.0)])
    energy_j = fit(columns.matrix, true_j.sum(axis=1), group, columns.sets, columns.parts).energy_j[:2]
    assert energy_j == pytest.approx(true_j.sum(axis=0), rel=0.005)


def test_operations_that_wait_do_not_change_what_the_others_cost():
    """An update in fifty waits, thirty times as long as an update works, which nothing but its time shows."""
    rng = np.random.default_rng(1)
    windows, usual_s = 6400, np.array([1e-5, 3e-5])
    waited = rng.poisson(np.array([0.0, 0.5]), (windows, 2)).astype(np.float64)
    left = 1.0 - 0.2 * waited.sum(axis=1, keepdims=True).clip(0.0, 4.0)  # of a window's time for the others
    count = rng.poisson(np.array([200.0, 25.0]) * left).astype(np.float64)
    worked_s = usual_s * rng.gamma(4.0 * np.maximum(count + waited, 1e-9)) / 4.0
    true_j = worked_s * np.array([2.0, 3.0])
    energy_j = true_j.sum(axis=1) + np.repeat(rng.normal(0.0, 2e-3, windows // 32), 32)
    group = groups({}, np.full(windows, 0.01), np.zeros(windows, np.bool_), np.arange(windows) // 32)
    waited_s = waited * 30.0 * usual_s

    def fit_of(long):
        operations = Worked(count + waited, worked_s + waited_s)
        columns = PartColumns.of({"read": 0, "update": 1}, operations, long, {}, group, 0.0)
        return fitted_with(columns, energy_j - energy_j.mean() + true_j.sum() / windows)

    true_j = true_j.sum(axis=0)
    told, untold = fit_of(Worked(waited, waited_s + waited * usual_s)), fit_of(none_long(count))
    assert told.energy_j[:2] == pytest.approx(true_j, rel=0.01)
    assert untold.energy_j[0] > 1.02 * true_j[0] and untold.energy_j[1] < 0.97 * true_j[1]


def with_syncs(syncs_differ):
    """Columns, energies and true parts of a run that waits for syncs for most of its time, and of its settle.

    The medium writes in the run's syncs, and in those of settle only if they do not differ.
    """
    rng = np.random.default_rng(1)
    windows, stretch = 3200, np.arange(3200) // 32
    settling = np.arange(windows) >= 2400
    often = np.where(settling, 0.3, 0.9)[::32]
    sync_s = 0.01 * np.repeat(rng.random(often.size) < often, 32)
    synced_bytes = 3e6 * sync_s * ~(settling & syncs_differ)
    count = rng.poisson(np.repeat(rng.uniform(5.0, 15.0, often.size), 32) * ~settling)[:, None].astype(np.float64)
    group = groups({"sync": sync_s}, np.full(windows, 0.01), settling, stretch)
    busy_s = 1e-4 * rng.gamma(4.0 * np.maximum(count, 1e-9)) / 4.0
    columns = PartColumns.of({"read": 0}, Worked(count, busy_s), none_long(count), {"sync": sync_s}, group, 0.25)
    true_j = busy_s[:, 0], 0.1 * sync_s + 2e-7 * synced_bytes
    nothing = np.zeros(windows)
    medium = MediumColumns(nothing, nothing, None, np.zeros((2, windows)), np.stack([synced_bytes, nothing]))
    noise_j = np.repeat(rng.normal(0.0, 2e-5, often.size), 32)
    return columns, medium, sum(true_j) + noise_j - noise_j.mean(), np.sum(true_j, axis=1)


@pytest.mark.parametrize("syncs_differ", [False, True])
def test_syncs_in_which_the_medium_writes_less_cost_operations_nothing(syncs_differ):
    columns, medium, energy_j, true_j = with_syncs(syncs_differ)
    fitted_run = fitted_with(columns.with_medium(medium), energy_j)
    assert fitted_run.energy_j[:2] == pytest.approx(true_j, rel=0.02)
    alone = fitted_with(columns, energy_j)
    assert (alone.energy_j[0] > 1.1 * true_j[0]) == syncs_differ


def fitted_with(columns, energy_j):
    return fit(columns.matrix, energy_j, columns.group, columns.sets, columns.parts)


def test_operations_of_uneven_length_move_no_energy_between_their_kind_and_the_rest():
    """The usual time in a neighbourhood rests on few operations, so that its inverse is too large in the mean."""
    rng = np.random.default_rng(1)
    count = rng.poisson(3.0, (640, 2)).astype(np.float64)
    busy_s = count * 1e-3 * rng.lognormal(0.0, 1.0, (640, 2))
    group = groups({}, np.full(640, 0.01), np.zeros(640, np.bool_), np.arange(640) // 32)
    long = Worked(rng.poisson(0.1, count.shape).astype(np.float64), 0.05 * busy_s)
    beyond = beyond_count(Worked(count, busy_s), long, group)
    assert beyond.near.std() > 1.0
    for excess in beyond:
        assert excess.sum(axis=0) == pytest.approx([0.0, 0.0], abs=1e-9)


def test_operations_that_often_wait_count_between_one_each_and_their_time():
    rng = np.random.default_rng(1)
    count = rng.poisson(20, (640, 1)).astype(np.float64)
    busy_s = count * 1e-5 * rng.uniform(1.0, 3.0, (640, 1))
    group = groups({}, np.full(640, 0.01), np.zeros(640, np.bool_), np.arange(640) // 32)
    worked = Worked(count, busy_s), none_long(count)
    never = PartColumns.of({"update": 0}, *worked, {}, group, 0.0)
    often = PartColumns.of({"update": 0}, *worked, {}, group, 0.0, waiting=True)
    by_time = busy_s[:, 0] * count.sum() / busy_s.sum()
    assert often.of_kind["update"][:, 0] == pytest.approx((count[:, 0] + by_time) / 2)
    least, most = (often.with_more_by_time(part) for part in (-BY_TIME, 1.0 - BY_TIME))
    assert least.of_kind["update"][:, 0] == pytest.approx(count[:, 0])
    assert most.of_kind["update"][:, 0] == pytest.approx(by_time)
    assert most.matrix.sum(axis=0) == pytest.approx(least.matrix.sum(axis=0))
    assert never.with_more_by_time(1.0).matrix == pytest.approx(never.matrix)


def test_the_course_of_background_work_is_not_taken_for_what_operations_cost():
    """Reads slow down while the power of a flush rises. Windows without a flush scatter less, so that they decide."""
    rng = np.random.default_rng(1)
    windows, cost_j = 6400, np.array([1e-4, 1.5e-4])
    flush = np.arange(windows) // 8 % 2
    hump = np.sin((np.arange(8) + 0.5) / 8 * np.pi)
    course = flush * np.tile(hump - hump.mean(), windows // 8)
    load = np.repeat(rng.uniform(5.0, 40.0, windows // 32), 32)
    count = rng.poisson(load[:, None] * np.stack([1.0 - 0.5 * course, np.ones(windows)], axis=1)).astype(np.float64)
    stretch, none = np.arange(windows) // 32, np.zeros(windows, np.bool_)
    group = groups({"flush": flush * 0.01}, np.full(windows, 0.01), none, stretch)
    energy_j = count @ cost_j + 5e-3 * course + rng.normal(0.0, 2e-4, windows)
    every, kinds = np.ones(3, np.bool_), np.array([True, True, False])
    sets = ColumnSets(near=kinds, far=every, free=~every, count=kinds, strays=np.zeros(3))

    def found(of):
        told = fit(np.column_stack([count, flush]), energy_j, of, sets, np.eye(3))
        return told.energy_j[:2] / (count.sum(axis=0) * cost_j)

    assert found(group) == pytest.approx([1.0, 1.0], abs=0.03)
    assert found(replace(group, background=none))[0] < 0.8
