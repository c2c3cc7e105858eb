"""The medium: where bytes go between two samples of the counters, its tail, and what no model can decide. SIMULATED."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from known_medium import Medium  # path set above
from known_meter import BOARD_NS, KINDS, RUN_STARTS_S, watched
from known_pieces import Gridded
from known_work import Known
from opjoule.attribution.activities import Intervals
from opjoule.attribution.attribute import attribute_runs
from opjoule.attribution.counters import Counters
from opjoule.attribution.medium import MediumRun, medium_models
from opjoule.attribution.tails import Transfers
from opjoule.base.units import Cause
from opjoule.bench.simulation.parts import Steady
from opjoule.runs.evaluation.quantities.operations import activity

SECOND = 1_000_000_000


def deviance_of(energy_j, noise_j=0.0, rows_each=10):
    """Minus twice the logarithm of a likelihood, of windows that only the medium explains."""

    def deviance(columns):
        rows = np.stack(columns, axis=1)
        left = energy_j - rows @ np.linalg.lstsq(rows, energy_j, rcond=None)[0]
        return energy_j.size / rows_each * float(np.log(np.mean(left**2) + noise_j))

    return deviance


def models_of(runs, deviance):
    """Models of the medium, each window a group of its own."""
    return medium_models(runs, deviance, np.arange(sum(run.first.size for run in runs)))


def writes_of(board_ns, written_bytes):
    """Counters of a medium that nothing reads."""
    return Counters(board_ns, written_bytes, np.zeros(board_ns.size), np.zeros(board_ns.size))


def test_a_pause_that_lasts_shows_the_tail_and_one_that_is_cut_short_may():
    time_s = np.arange(0.0, 6.01, 0.1)
    written_bytes = np.where(np.isin(np.arange(60), [10, 11, 17]), 10.0, 0.0)
    quick = Transfers.of(written_bytes, 0.0 * written_bytes, time_s, 0.0)
    held, rests = quick.tail_s(2.0, 1.0), quick.tail_s(2.0, 0.0)
    assert held[12:17].sum() == pytest.approx(0.5) and rests[12:17].sum() == 0.0
    assert held[18:].sum() == rests[18:].sum() == pytest.approx(2.0)
    assert held[:10].sum() == 0.0 and held[[10, 11, 17]].sum() == pytest.approx(0.3)
    slow = Transfers.of(written_bytes, written_bytes / 200.0, time_s, 0.0)
    assert slow.tail_s(2.0, 1.0)[[10, 11, 17]].sum() == pytest.approx(0.15), "busy half of the time"


def test_writing_that_ends_between_two_samples_goes_at_the_rate_before():
    stamps = np.arange(0, 10) * 100_000_000
    counters = writes_of(stamps, np.array([0, 0, 50, 150, 250, 280, 280, 280, 280, 280.0]))
    edges = np.array([0.15, 0.151, 0.2, 0.4, 0.43, 0.431, 0.5]) * SECOND
    assert counters.at(edges.astype(np.int64)) == pytest.approx([0, 1, 50, 250, 280, 280, 280])


def test_bytes_between_two_samples_may_have_gone_while_the_engine_worked():
    counters = writes_of(np.arange(0, 5) * SECOND // 10, np.array([0, 10, 70, 80, 90.0]))
    work = Intervals.of(np.array([120, 170]) * 1_000_000, np.array([140, 180]) * 1_000_000)
    edges = np.array([100, 120, 130, 140, 170, 180, 200, 350]) * 1_000_000
    assert counters.beside(edges, work) == pytest.approx([10, 10, 30, 50, 50, 70, 70, 85])


def test_a_tail_is_as_sharp_as_the_counters_under_long_windows():
    edges = np.arange(0, 101) * SECOND
    stamps = np.arange(0, 1001) * SECOND // 10
    bursts_s = np.cumsum(np.random.default_rng(1).uniform(3.0, 9.0, 14))
    counters = writes_of(stamps, 1e6 * np.searchsorted(bursts_s, stamps * 1e-9))
    sharp = np.diff(counters.at(stamps))
    tail = Transfers.of(sharp, sharp / 1e7, stamps * 1e-9, 0.1).tail_s(2.3, 1.0).reshape(-1, 10).sum(axis=1)
    energy_j = 1e-6 * sharp.reshape(-1, 10).sum(axis=1) + tail
    model = models_of([MediumRun.of(counters, edges)], deviance_of(energy_j, 1e-9, 1)).best
    assert model.tail_length_s == pytest.approx(2.3, rel=0.02)
    assert model.tail_s == pytest.approx(tail, abs=0.05)


def test_a_transfer_between_two_pauses_goes_at_the_medium_s_rate_in_the_middle():
    stamps = np.arange(0, 8) * SECOND // 10
    counters = writes_of(stamps, np.array([0, 0, 100, 100, 600, 1100, 1100, 1100.0]))
    edges = np.array([0.1, 0.139, 0.141, 0.15, 0.159, 0.161, 0.2]) * SECOND
    assert counters.at(edges.astype(np.int64)) == pytest.approx([0, 0, 5, 50, 95, 100, 100])


@pytest.mark.parametrize("windows_s", [0.016, 1.0], ids=["short windows", "long windows"])
def test_a_tail_follows_a_read_like_a_write(windows_s):
    rng = np.random.default_rng(4)
    reads_s, writes_s = np.sort(rng.uniform(1, 190, 40)), np.sort(rng.uniform(1, 190, 15))
    edges = (np.arange(0.0, 200.0, windows_s) * SECOND).astype(np.int64)
    stamps = np.arange(0, 2000) * SECOND // 10
    written_bytes, read_bytes = (
        2e6 * np.searchsorted(writes_s, stamps * 1e-9),
        4096.0 * np.searchsorted(reads_s, stamps * 1e-9),
    )
    counters = Counters(stamps, written_bytes, read_bytes, 0.0 * read_bytes)
    grid_s = np.arange(0.0, 200.0, 1e-3)
    last_s = np.sort(np.concatenate([reads_s, writes_s]))
    since_s = grid_s - last_s[np.maximum(np.searchsorted(last_s, grid_s) - 1, 0)]
    tail = np.append(0.0, np.cumsum(((since_s >= 0) & (since_s < 0.7)) * 1e-3))
    tail_s = np.diff(np.interp(edges * 1e-9, np.append(0.0, grid_s + 1e-3), tail))
    energy_j = 0.2 * tail_s + rng.normal(0, 1e-4, tail_s.size)
    model = models_of([MediumRun.of(counters, edges)], deviance_of(energy_j)).best
    assert model.tail_length_s == pytest.approx(0.7, abs=0.03)
    assert model.tail_s.sum() == pytest.approx(tail_s.sum(), rel=0.05)


@pytest.mark.parametrize(
    ("place", "noise_j"),
    [("evenly", 5e-3), ("work", 5e-3), ("middle", 5.0)],
    ids=["evenly", "work", "not seen"],
)
def test_bytes_between_two_samples_are_placed_in_the_middle_unless_the_windows_tell(place, noise_j):
    edges = np.arange(0, 60 * SECOND, SECOND // 50)
    starts = np.arange(SECOND // 3, 59 * SECOND, 777_000_000)
    work = Intervals.of(starts, starts + 60_000_000)
    stamps = np.arange(0, 60 * SECOND, SECOND // 10)
    counters = writes_of(stamps, 1e6 * np.searchsorted(starts, stamps) + np.arange(stamps.size) * 1e5)
    ends = {"evenly": counters.at(edges), "work": counters.beside(edges, work)}
    placed = {name: np.diff(total_bytes) for name, total_bytes in {**ends, "middle": sum(ends.values()) / 2}.items()}
    energy_j = 1e-6 * placed[place] + np.random.default_rng(3).normal(0, noise_j, edges.size - 1)
    models = models_of([MediumRun.of(counters, edges, {"work": work})], deviance_of(energy_j))
    assert models.best.written_bytes == pytest.approx(placed[place])
    assert len(models.placed) == 2, "wherever they went, the others count"


def test_a_tail_is_found_in_what_settle_shows():
    edges = np.arange(0, 30 * SECOND, SECOND // 50)
    stamps = np.arange(0, 30 * SECOND, SECOND // 10)
    counters = writes_of(stamps, np.clip(stamps * 1e-9, 0, 15) * 1e6)
    written_bytes = np.diff(counters.at(edges))
    tail_s = Transfers.of(written_bytes, written_bytes / 1e6, edges * 1e-9, 0.1).tail_s(3.0, 0.5)
    noise_j = np.random.default_rng(2).normal(0, 2e-5, written_bytes.size)
    models = models_of([MediumRun.of(counters, edges)], deviance_of(1e-6 * written_bytes + 0.2 * tail_s + noise_j))
    assert models.best.tail_length_s == pytest.approx(3.0, rel=0.02)


@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "busy"])
def test_the_tail_of_a_sync_before_the_run_goes_on_in_the_run(busy):
    """The loader syncs just before each run; if nothing is dirty, the counters show no byte of it."""
    edges = np.arange(0, 30 * SECOND, SECOND // 50)
    stamps = np.arange(0, 30 * SECOND, SECOND // 10)
    counters = writes_of(stamps, np.clip(stamps * 1e-9 - 12, 0, 3) * 1e6)
    written_bytes = np.diff(counters.at(edges))
    of_run = written_bytes, written_bytes / 1e6, edges * 1e-9, 0.1
    tail_s = Transfers.of(*of_run, busy_before=busy).tail_s(3.0, 0.5)
    assert tail_s[:500].sum() == pytest.approx(3.0 if busy else 0.0)
    noise_j = np.random.default_rng(2).normal(0, 2e-5, written_bytes.size)
    models = models_of([MediumRun.of(counters, edges)], deviance_of(1e-6 * written_bytes + 0.2 * tail_s + noise_j))
    assert models.best.tail_length_s == pytest.approx(3.0, rel=0.02)
    assert models.best.tail_s == pytest.approx(tail_s, abs=0.02)


def test_bytes_that_a_sync_waits_for_are_the_sync_s():
    edges = np.arange(0, 5) * SECOND // 10
    counters = writes_of(edges, np.array([0, 10, 20, 30, 40.0]) * 1e6)
    syncs = Intervals.of(np.array([100, 250]) * 1_000_000, np.array([200, 300]) * 1_000_000)
    run = MediumRun.of(counters, edges, {"sync": syncs})
    assert run.written("evenly") == pytest.approx([10e6, 0.0, 5e6, 10e6])
    assert run.written("sync") == pytest.approx([10e6, 0.0, 0.0, 10e6])


@pytest.mark.parametrize("tail_w", [0.0, 0.2])
def test_a_medium_without_transfers_has_no_tail_but_that_of_the_sync_before_the_run(tail_w):
    counters = writes_of(np.arange(0, 100) * SECOND // 10, np.zeros(100))
    edges = np.arange(0, 1000) * SECOND // 100
    energy_j = tail_w * (edges[:-1] < 3 * SECOND) / 100 + np.random.default_rng(3).normal(0, 2e-5, 999)
    models = models_of([MediumRun.of(counters, edges)], deviance_of(energy_j))
    assert not (models.placed or models.written or models.best.written_bytes.any())
    assert models.best.tail_length_s == (pytest.approx(3.0, rel=0.02) if tail_w else None)


RUN_S, EACH_J = 40.0, {"read": 45e-6, "update": 385e-6}
SSD = Medium(150e6, 0.0, 2.2, 0.5, 1.0, 4096.0, 0.3)
"""The case in which an engine writes again before the tail is over: it draws almost throughout."""
CARD = Medium(14e6, 0.0, 0.33, 0.066, 0.25, 4096.0, 0.3)
RARELY = Medium(150e6, 0.0, 2.2, 0.5, 1.0, 4096.0, 5.0)


def attributed(medium, seed=3):
    """One thread that reads and updates at random, and writes its pages so often."""
    rng = np.random.default_rng(seed)
    count = round(RUN_S / 250e-6)
    kind = (np.repeat(rng.random(count // 500) < 0.5, 500) ^ (rng.random(count) < 0.2)).astype(np.uint8)
    length_s = np.where(kind == 1, 230e-6, 60e-6)
    finish_s = np.cumsum(length_s + rng.exponential(90e-6, count))
    kind, length_s, finish_s = (column[finish_s < RUN_S] for column in (kind, length_s, finish_s))
    begin_s, count = RUN_STARTS_S + finish_s - length_s, kind.size
    energy_j = np.array([*EACH_J.values()])[kind]
    grid_s = np.arange(RUN_STARTS_S, RUN_STARTS_S + RUN_S + 10.0, 1e-3)
    dirtied = np.clip((grid_s - RUN_STARTS_S) / RUN_S, 0.0, 1.0) * 40e6
    course = medium.course(grid_s, dirtied, np.zeros(0))
    powers = {"write_back": course.write_back_w, "tail": course.tail_w}
    true_j = {name: float(energy_j[kind == at].sum()) for at, name in enumerate(EACH_J)}
    true_j |= {name: float(power_w.sum()) * 1e-3 for name, power_w in powers.items()}
    known = Known(
        RUN_STARTS_S, RUN_STARTS_S + RUN_S, RUN_STARTS_S + RUN_S + 8.0, tuple(EACH_J), kind, begin_s, length_s,
        np.zeros(count, np.uint16), {}, False, (grid_s + 1e-3, course.written_bytes),
        [Steady(begin_s, begin_s + length_s, energy_j), *(Gridded(RUN_STARTS_S, 1e-3, w) for w in powers.values())],
        true_j,
    )  # fmt: skip
    attribution = attribute_runs([watched(rng, KINDS[2], known).work])[0]
    return true_j, {**attribution.operations, **attribution.activities}, attribution


@pytest.mark.parametrize("medium", [SSD, CARD, RARELY], ids=["ssd", "card", "rarely"])
def test_what_is_told_on_a_medium_with_a_tail_holds_the_truth(medium):
    true_j, parts, _ = attributed(medium)
    for name, share in parts.items():
        if not share.reason:
            assert abs(share.value - true_j[name]) <= 2.5 * share.standard_u, name


def test_where_the_tail_goes_on_almost_throughout_it_is_not_taken_for_the_operations():
    true_j, parts, attribution = attributed(SSD)
    assert attribution.tail_length_s == pytest.approx(1.0, abs=0.15)
    assert parts["tail"].reason and parts["write_back"].reason
    assert abs(float(attribution.foreground) - sum(true_j[name] for name in EACH_J)) <= attribution.foreground.u
    for name in EACH_J:
        error_j = abs(parts[name].value - true_j[name])
        assert error_j <= 2.5 * parts[name].standard_u
        assert parts[name].reason or error_j <= 2.0 * parts[name].standard_u
    of_medium_j = true_j["write_back"] + true_j["tail"]
    assert attribution.unseparated.value == pytest.approx(of_medium_j, rel=0.1)


@pytest.mark.parametrize("medium", [CARD, RARELY], ids=["card", "rarely"])
def test_kinds_are_told_where_the_tail_is_small_or_pauses_show_it(medium):
    _, parts, _ = attributed(medium)
    assert not parts["read"].reason or not parts["update"].reason
    assert not found_nothing(parts)


def found_nothing(parts):
    """Parts that are told as nothing."""
    return [name for name, share in parts.items() if not share.reason and share.value == 0.0]


def test_a_part_without_a_column_is_not_found_and_never_nothing():
    repeat = SimpleNamespace(attribution=SimpleNamespace(activities={}))
    for name, (cause, why) in {
        "tail": (Cause.NOT_FOUND, "not found: the power shows no tail"),
        "write_back": (Cause.NOT_FOUND, "not found: nothing was written to the medium outside of syncs"),
        "flush": (Cause.NOT_REPORTED, "the engine reported none"),
    }.items():
        energy = activity(name)(repeat)
        assert energy.value is None and energy.cause is cause and energy.reason.startswith(why)


BEAT_S, SELECT_J = 12e-3, 1e-3


def selecting(seed, moves_s, tail_w, *, writes=False):
    """A command that marks a `select` every 12 ms and moves a page at these times, each followed by a tail of 0.5 s."""
    rng = np.random.default_rng(seed)
    begin_s = RUN_STARTS_S + np.cumsum(rng.exponential(BEAT_S - 2e-3, round(20.0 / BEAT_S)) + 2e-3)
    begin_s = begin_s[begin_s < RUN_STARTS_S + 20.0 - 2e-3]
    length_s, energy_j = np.full(begin_s.size, 2e-3), np.full(begin_s.size, SELECT_J)
    grid_s = np.arange(RUN_STARTS_S, RUN_STARTS_S + 30.0, 1e-3)
    at_s = np.append(-np.inf, RUN_STARTS_S + np.asarray(moves_s, float))
    since_s = grid_s - at_s[np.searchsorted(at_s, grid_s, "right") - 1]
    moved_bytes = 65536.0 * (np.searchsorted(at_s, grid_s + 1e-3, "right") - 1)
    pieces = [
        Steady(begin_s, begin_s + length_s, energy_j),
        Gridded(RUN_STARTS_S, 1e-3, tail_w * (since_s < 0.5)),
    ]
    known = Known(
        RUN_STARTS_S, RUN_STARTS_S + 20.0, RUN_STARTS_S + 28.0, ("select",), np.zeros(begin_s.size, np.uint8), begin_s,
        length_s, np.zeros(begin_s.size, np.uint16), {}, False, (grid_s + 1e-3, moved_bytes), pieces,
        {"select": float(energy_j.sum())},
    )  # fmt: skip
    work = watched(rng, KINDS[1], known).work
    if writes:
        return work
    nothing = np.zeros(work.counters.board_ns.size)
    read_bytes = np.interp((work.counters.board_ns - BOARD_NS) * 1e-9, grid_s + 1e-3, moved_bytes)
    return replace(work, counters=replace(work.counters, written_bytes=nothing, read_bytes=read_bytes))


def reasons_of(attribution):
    shares = {**attribution.operations, "foreground": attribution.foreground, **attribution.activities}
    return {name: share.reason for name, share in shares.items() if share.reason}


THROUGHOUT_S = np.arange(0.05, 20.0, 0.15)
"""Moments after which the tail never ends before the next transfer."""


def test_a_run_that_moves_no_byte_has_no_part_of_the_medium_and_its_operations_are_known():
    [dry] = attribute_runs([selecting(1, [], 0.0)])
    assert not dry.activities and dry.tail_length_s is None and not reasons_of(dry)


def test_a_run_without_a_write_is_not_said_to_depend_on_when_bytes_were_written():
    [reading] = attribute_runs([selecting(1, THROUGHOUT_S, 0.4)])
    said = reasons_of(reading)
    assert said["select"].startswith(f"{Cause.TAIL_OF_READS}: select drew") and "between reads" in said["select"]
    assert not any(Cause.MODEL_ONLY in why or "writ" in why for why in said.values())


def test_a_repeat_that_moves_no_byte_beside_one_that_writes_has_nothing_of_the_medium():
    dry, wet = attribute_runs([selecting(1, [], 0.0), selecting(2, THROUGHOUT_S[::6], 0.4, writes=True)])
    of_medium_j = [share.value for share in dry.activities.values()]
    assert of_medium_j == pytest.approx([0.0] * len(of_medium_j), abs=1e-9) and wet.activities["tail"].value > 1.0
    assert not any(Cause.MODEL_ONLY in why for why in reasons_of(dry).values())
