"""A real engine's run with known energies: the times come from a record, the powers are drawn at random. SIMULATED.

The record contains the start and end of each operation, the flushes, compactions and syncs of the engine, the times at
which the workload waited for them, and the bytes written over time. Each kind of operation, each activity and the
medium get random powers of their own. None of them is proportional to processor time. Meter, idle and clocks come from
known_meter.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from known_medium import Medium, MediumCourse, waited_part
from known_meter import BOARD_NS, IDLE_S, KINDS, LEAD_IN_S, measured
from known_pieces import Gridded, Piece, bursts, wander
from opjoule.attribution.activities import SYNC, Intervals, background
from opjoule.attribution.attributed_run import Attribution
from opjoule.attribution.overlap import overlap_s
from opjoule.base.units import Quantity
from opjoule.bench.simulation.parts import Float64Array, Overlapping, PartPowers, Steady, own_stretches
from opjoule.boards.databases import background_threads
from opjoule.energy.operations.board_files import read_system
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.runs.evaluation.attributed import AlignedMedium, WorkedRun, attributed
from opjoule.runs.evaluation.evidence import BoardEvents, read_logs
from opjoule.runs.evaluation.quantities.definition import SystemSamples
from opjoule.runs.evaluation.quantities.operations import READS
from opjoule.runs.evaluation.repeat_energy import repeat_energy
from opjoule.runs.record.phases import Cycle, Phase, Role
from opjoule.runs.record.run_record import RunRecord

Generator = np.random.Generator
START_S: Final = IDLE_S + 1.0
GRID_S: Final = 1e-3
SAMPLED_S: Final = 0.1
"""Interval between readings of the board's counters."""
LONG: Final = 3.0
"""An operation has waited if it is longer than this many times the 99th percentile of its kind, or has slept. Such an
operation works for the median time of its kind and up to WAKES_S, because a waiting thread is off the processor."""
WAKES_S: Final = 1e-4
"""Greatest work of going to sleep and waking up [s]; each trial draws its own. In four records of LevelDB the processor
time grows by 90 to 380 us a wait (processor_time.py), of which an unknown part is a compaction's."""
SLEPT_S: Final = 1e-3
"""Sleep [s] of a writer that an engine with compactions slows down: LevelDB (MakeRoomForWrite in db/db_impl.cc) and
RocksDB (DelayWrite in db/db_impl/db_impl_write.cc)."""
SAVED_MAX: Final = 0.5
"""Greatest part of an operation's energy that one within a burst saves: the loader of our trials spends 6.4 of some 20
us of processor time on going to sleep and waking up (engine_power.WAKE_UP_S)."""
FADES_S: Final = (2e-5, 1e-3)
"""Least and greatest time in which that fades: from a sleep's entry to that in which caches are filled again."""
HUMP_STEPS: Final = 8


@dataclass(frozen=True)
class Timeline:
    """Activity of an engine in one run; all time stamps are moved so that the run begins START_S after BOARD_NS."""

    database: str
    operations: OperationTable
    events: pa.Table
    samples: pa.Table
    run_s: float

    @classmethod
    def read(cls, directory: Path) -> Timeline:
        """Reads the first repeat of a record. Raises: ValueError: it did not end, or its operations are unknown."""
        record = RunRecord.open(directory)
        cycle = Cycle.of(record.run.phases, 1)
        events = BoardEvents.of(record).table
        logged = read_logs(record, events)
        if cycle is None or logged.withheld:
            raise ValueError(f"{directory}: {logged.withheld or 'its first run did not end; choose another record'}")
        start_ns, end_ns = cycle.work.start_board_ns, cycle.work.end_board_ns
        later_ns = BOARD_NS + round(START_S * 1e9) - start_ns
        inside = (logged.table.board_ns >= start_ns) & (logged.table.board_ns < end_ns)
        operations = logged.table.select(np.asarray(inside, np.bool_))
        stamps_ns, settled_ns = events["board_ns"].to_numpy(), (cycle.drain or cycle.work).end_board_ns
        of_run = events.filter(pa.array((stamps_ns >= start_ns) & (stamps_ns < settled_ns)))
        return cls(
            record.run.asked.db or "",
            replace(operations, board_ns=operations.board_ns + later_ns),
            moved(of_run, ("board_ns", "end_board_ns"), later_ns),
            moved(read_system(record.intact("raw/repeat-1.system.csv")), ("board_ns",), later_ns),
            (end_ns - start_ns) * 1e-9,
        )

    @cached_property
    def dirtied(self) -> tuple[Float64Array, Float64Array]:
        """Steps of a grid [s], and bytes written to the page cache by the end of each step."""
        return _placed(self)

    @cached_property
    def synced_s(self) -> Float64Array:
        """Starts of the syncs [s]."""
        syncs = self.activities.get("sync")
        return seconds(syncs.start_ns) if syncs else np.zeros(0)

    @cached_property
    def synced_bytes_per_s(self) -> float:
        """Write rate at which 19 of 20 syncs could have returned when they did [bytes/s]."""
        syncs = self.activities.get("sync")
        if syncs is None or syncs.start_ns.size < 2:
            return 0.0
        grid_s, dirtied = self.dirtied
        at_s = np.maximum.accumulate(np.sort(seconds(syncs.end_ns)))
        moved, passed_s = np.diff(np.interp(at_s, grid_s, dirtied)), np.diff(at_s)
        return float(np.quantile(moved / np.maximum(passed_s, SAMPLED_S / 10), 0.95))

    @cached_property
    def beside(self) -> np.ndarray:
        """Activities in progress at the start of each operation, one bit an activity, shape (n,)."""
        begin_ns, state = self.operations.board_ns, np.zeros(len(self.operations), np.int64)
        for bit, of in enumerate(self.activities.values()):
            begun = np.searchsorted(of.start_ns, begin_ns, "right")
            state |= (begun > np.searchsorted(np.sort(of.end_ns), begin_ns, "right")).astype(np.int64) << bit
        return state

    def seen(self, written_bytes: Float64Array, read_bytes: Float64Array) -> pa.Table:
        """Board samples whose counters show the bytes that the medium has completed by each step."""
        grid_s, _ = self.dirtied
        sampled_s = seconds(self.samples["board_ns"].to_numpy())
        at_s = np.arange(min(sampled_s[0], START_S - 0.05), grid_s[-1], SAMPLED_S)
        counted, read = (
            np.rint(np.interp(at_s, grid_s + GRID_S, moved)).astype(np.int64) for moved in (written_bytes, read_bytes)
        )
        last = self.samples.slice(len(self.samples) - 1, 1)
        table = pa.concat_tables([last] * at_s.size)
        columns = {
            "board_ns": BOARD_NS + np.rint(at_s * 1e9).astype(np.int64),
            "device_written_bytes": counted,
            "device_read_bytes": read,
            "process_cpu_s": np.interp(at_s, sampled_s, self.samples["process_cpu_s"].to_numpy()),
        }
        for name, values in columns.items():
            place = table.column_names.index(name)
            table = table.set_column(place, table.schema.field(place), pa.array(values))
        return table

    @cached_property
    def worked(self) -> float:
        """Time for which operations work at most, relative to the median of their kind.

        Together they work no longer than the processor time that the record counted from the first to the last.
        Infinite if no operation is cut short by this.
        """
        made = self.operations
        length_s, kinds = made.duration_ns * 1e-9, made.counts()
        at_s = seconds(np.array([made.board_ns[0], made.board_ns[-1] + made.duration_ns[-1]]))
        counted_s = self.samples["process_cpu_s"].to_numpy()
        cpu_s = float(np.diff(np.interp(at_s, seconds(self.samples["board_ns"].to_numpy()), counted_s))[0])
        relative = np.zeros(len(made))
        for name in kinds:
            rows = made.of_kind(name)
            relative[rows] = length_s[rows] / np.median(length_s[rows])
        if not 0.0 < cpu_s < length_s.sum():
            return np.inf
        order = np.argsort(relative)
        within_s = np.cumsum(length_s[order])
        beyond_s = np.append(np.cumsum((length_s / relative)[order][::-1])[::-1][1:], 0.0)
        return float(np.interp(cpu_s, within_s + relative[order] * beyond_s, relative[order]))

    @cached_property
    def activities(self) -> Mapping[str, Intervals]:
        """The engine's background work, as the attribution sees it."""
        return background(self.events)


def _placed(timeline: Timeline) -> tuple[Float64Array, Float64Array]:
    """Steps of the grid, and bytes written by the end of each.

    The counters give the bytes of each tenth of a second. The bytes of operations are placed at the operations, the
    rest at the times of flushes and compactions.
    """
    grid_s = np.arange(START_S, START_S + timeline.run_s + 120.0, GRID_S)
    sampled_s = seconds(timeline.samples["board_ns"].to_numpy())
    counted = timeline.samples["device_written_bytes"].to_numpy().astype(np.float64)
    interval = np.clip(np.searchsorted(sampled_s, grid_s + GRID_S / 2) - 1, 0, sampled_s.size - 2)
    grown = np.maximum(
        counted[interval + 1] - counted[interval], 0.0
    )  # when a process ends, the counter loses its bytes
    steps = np.bincount(interval, minlength=sampled_s.size)[interval]
    made = timeline.operations
    writes = ~np.isin(made.kind, [code for code, name in enumerate(made.kinds) if name in READS])
    at = np.searchsorted(grid_s, seconds(made.board_ns[writes])) - 1
    logged = np.bincount(np.clip(at, 0, None), made.bytes[writes].astype(np.float64), grid_s.size)
    edges_ns = BOARD_NS + np.rint(np.append(grid_s, grid_s[-1] + GRID_S) * 1e9).astype(np.int64)
    works = sum(
        (overlap_s(edges_ns, of.start_ns, of.end_ns) for name, of in timeline.activities.items() if name != "sync"),
        np.zeros(grid_s.size),
    )

    def within(values: Float64Array) -> Float64Array:
        return np.bincount(interval, values, sampled_s.size)[interval]

    logged *= np.minimum(1.0, grown / np.maximum(within(logged), 1.0))
    share = np.where(within(works) > 0, works / np.maximum(within(works), 1e-12), 1.0 / steps)
    step_bytes = np.where(grid_s < sampled_s[-1], logged + (grown - within(logged)) * share, 0.0)
    return grid_s, np.cumsum(step_bytes)


def moved(table: pa.Table, columns: tuple[str, ...], later_ns: int) -> pa.Table:
    """A table with the stamps in these columns moved."""
    for name in columns:
        place = table.column_names.index(name)
        table = table.set_column(place, table.schema.field(place), pc.add(table[name], later_ns))
    return table


@dataclass(frozen=True)
class Drawn:
    """Energy that the board drew above idle, and the true part of each kind and activity."""

    pieces: list[Piece]
    medium: list[Piece]
    """The pieces that the medium draws, which are the last in `pieces`."""
    true_j: Mapping[str, float]
    """By kind and by activity."""
    written_bytes: Float64Array
    """Bytes that the medium has completed by the end of each grid step."""
    read_bytes: Float64Array
    """Bytes read from it by then."""
    settled_s: float


def draw(
    rng: Generator,
    timeline: Timeline,
    *,
    late: bool = False,
    reads_per_s: float = 0.0,
    woken_s: float | None = None,
) -> Drawn:
    """Draws the powers of every part of a run.

    Args:
        late: the medium's tail begins only after the medium has been idle for a while.
        reads_per_s: pages that the run reads from the medium, at random.
        woken_s: work of going to sleep and waking up; None: drawn, up to WAKES_S.
    """
    powers = PartPowers.draw(rng, timeline.operations.counts(), timeline.activities)
    drawn_s = rng.spawn(1)[0].uniform(0.0, WAKES_S)
    pieces, true_j = drawn_operations(rng, timeline, powers, drawn_s if woken_s is None else woken_s)
    for name, piece in drawn_background(rng, timeline, powers).items():
        pieces.append(piece)
        true_j[name] = float(piece.until_j(np.array([1e6]))[0])
    medium, of_medium_j, course, settled_s = drawn_medium(rng, timeline, late, reads_per_s)
    for name, energy_j in of_medium_j.items():
        true_j[name] = true_j.get(name, 0.0) + energy_j
    return Drawn([*pieces, *medium], medium, true_j, course.written_bytes, course.read_bytes, settled_s)


def seconds(board_ns: np.ndarray) -> Float64Array:
    """Time since BOARD_NS [s]."""
    return np.asarray((board_ns - BOARD_NS) * 1e-9, np.float64)


def drawn_operations(
    rng: Generator, timeline: Timeline, powers: PartPowers, woken_s: float, loader_j: float = 0.0
) -> tuple[list[Piece], dict[str, float]]:
    """Pieces and true energies of the operations: a power while an operation works, plus an energy per operation.

    Operations take longer while background work runs, but on average they cost no more. All together they work no
    longer than the processor time of the record.

    Args:
        woken_s: work of going to sleep and waking up.
        loader_j: energy of the loader itself per operation.
    """
    made = timeline.operations
    begin_s, length_s = seconds(made.board_ns), made.duration_ns * 1e-9
    energy_j = np.zeros(len(made))
    for name in made.counts():
        rows = made.of_kind(name)
        usual_s = float(np.median(length_s[rows]))
        most_s = timeline.worked * usual_s
        longest_s = LONG * float(np.quantile(length_s[rows], 0.99))
        if "compaction" in timeline.activities and name not in READS:
            longest_s = min(longest_s, max(SLEPT_S, LONG * usual_s))
        works_s = np.minimum(np.where(length_s[rows] > longest_s, usual_s + woken_s, length_s[rows]), most_s)
        state = timeline.beside[rows]
        mean_s = np.bincount(state, works_s) / np.maximum(np.bincount(state), 1)
        works_s *= works_s.mean() / mean_s[state]
        energy_j[rows] = powers.operations_j(rng, name, works_s, min(usual_s, most_s)) + loader_j
    energy_j *= _in_bursts(rng.spawn(1)[0], made)
    true_j = {name: float(energy_j[made.of_kind(name)].sum()) for name in made.counts()}
    threads = [made.thread == thread for thread in np.unique(made.thread)]
    return [Steady(begin_s[t], (begin_s + length_s)[t], energy_j[t]) for t in threads], true_j


def _in_bursts(rng: Generator, made: OperationTable) -> Float64Array:
    """Energy of each operation over the mean: one soon after another of its thread saves a part of it, shape (n,).

    After a pause the processor leaves a sleep and its caches are colder. Up to SAVED_MAX is saved, and it fades with a
    time between FADES_S.
    """
    order = np.lexsort((made.board_ns, made.thread))
    begin_ns, thread = made.board_ns[order], made.thread[order]
    pause_s = np.full(len(made), np.inf)
    pause_s[order[1:]] = np.where(
        thread[1:] == thread[:-1], (begin_ns[1:] - (begin_ns + made.duration_ns[order])[:-1]) * 1e-9, np.inf
    )
    saved, fades_s = rng.uniform(0.0, SAVED_MAX), 10 ** rng.uniform(*np.log10(FADES_S))
    left = 1.0 - saved * np.exp(-np.maximum(pause_s, 0.0) / fades_s)
    return np.asarray(left / left.mean(), np.float64)


def drawn_background(rng: Generator, timeline: Timeline, powers: PartPowers) -> dict[str, Piece]:
    """Power of each activity, humped or flat. A thread that waits for a sync, or flushes, does not compact.

    Concurrent syncs draw what one does: threads that wait for the same medium are off the processor.
    """
    by_activity: dict[str, Piece] = {}
    activities = timeline.activities
    alone = background_threads(timeline.database) == 1
    for name, of in activities.items():
        shape = np.sin((np.arange(HUMP_STEPS) + 0.5) / HUMP_STEPS * np.pi) ** rng.uniform(0.0, 2.0)
        shape /= shape.mean()
        pieces = []
        events = of.merged if name == SYNC else of
        for start_ns, end_ns in zip(events.start_ns.tolist(), events.end_ns.tolist(), strict=True):
            own_w = powers.event_w(rng, name)
            edges = np.linspace(start_ns, end_ns, HUMP_STEPS + 1)
            for begin, finish in own_stretches(activities, name, start_ns, end_ns, one_thread=alone):
                cut = np.unique(np.clip(edges, begin, finish))
                at = np.searchsorted(edges, cut[:-1], "right") - 1
                pieces += list(zip(cut[:-1], cut[1:], own_w * shape[at], strict=True))
        begin_ns, finish_ns, power_w = np.array(pieces or np.zeros((0, 3))).T
        by_activity[name] = Overlapping(seconds(begin_ns), seconds(finish_ns), power_w)
    return by_activity


def drawn_medium(
    rng: Generator, timeline: Timeline, late: bool, reads_per_s: float
) -> tuple[list[Piece], dict[str, float], MediumCourse, float]:
    """Draws a medium with its own write rate and a tail; returns pieces, true energies, course and end [s]."""
    end_s = START_S + timeline.run_s
    grid_s, dirtied = timeline.dirtied
    mean = max(float(dirtied[-1]) / timeline.run_s, 1e4)
    medium = Medium.draw(rng, mean, timeline.synced_bytes_per_s, late=late)
    read_s = rng.uniform(START_S, end_s, rng.poisson(reads_per_s * timeline.run_s)) if reads_per_s else None
    course = medium.course(grid_s, dirtied, timeline.synced_s, read_s)
    at_work = np.flatnonzero((course.write_back_w > 0) | (course.tail_w > 0))
    settled_s = max(end_s, float(grid_s[at_work[-1]]) if at_work.size else end_s) + 5.0
    powers = {"write_back": course.write_back_w, "tail": course.tail_w}
    intervals = timeline.activities.get("sync")
    syncs = (seconds(intervals.start_ns), seconds(intervals.end_ns)) if intervals else (np.zeros(0), np.zeros(0))
    waited = waited_part(grid_s, *syncs)
    true_j = {name: float((power_w * (1.0 - waited)).sum() * GRID_S) for name, power_w in powers.items()}
    if waited.any():
        true_j["sync"] = float(sum(power_w @ waited for power_w in powers.values()) * GRID_S)
    return [Gridded(START_S, GRID_S, power_w) for power_w in powers.values()], true_j, course, settled_s


@dataclass(frozen=True)
class Trial:
    """Attribution of one experiment, and its true energies."""

    attribution: Attribution
    drawn: Drawn


def trial(
    timeline: Timeline,
    seed: int,
    *,
    late: bool = False,
    supply: str | None = None,
    reads_per_s: float = 0.0,
    woken_s: float | None = None,
) -> Trial:
    """Draws the powers of the run's parts, a meter and a board's idle; then measures and attributes.

    Args:
        late, reads_per_s, woken_s: as in draw().
        supply: supply of the medium, "board" or "own". A second sensor of the same kind measures that supply, with its
            own idle, clock and errors. None: one sensor only.
    Raises: ValueError: the run is too short to be attributed.
    """
    rng = np.random.default_rng(seed)
    kind = KINDS[int(rng.integers(len(KINDS)))]
    drawn = draw(rng, timeline, late=late, reads_per_s=reads_per_s, woken_s=woken_s)
    end_s = drawn.settled_s + IDLE_S + 1.0
    idle = [
        wander(rng, end_s + 1, rng.uniform(1.5, 3.5), 10 ** rng.uniform(-3, -2)),
        bursts(rng, end_s + 1, rng.uniform(1, 10), 10 ** rng.uniform(-3, -1.7)),
    ]
    pieces, medium = [*idle, *drawn.pieces], None
    if supply:
        second = np.random.default_rng([seed, 1])
        sensed = [
            wander(second, end_s + 1, second.uniform(0.02, 0.3), 10 ** second.uniform(-4, -2.7)),
            *drawn.medium,
        ]
        medium = AlignedMedium(measured(second, kind, sensed, end_s, name="medium"), supply == "board")
        pieces = [*pieces, sensed[0]] if medium.of_board else pieces[: -len(drawn.medium)]
    aligned = measured(rng, kind, pieces, end_s)
    phases = _phases(timeline, drawn.settled_s)
    cycle = Cycle.of(phases, 1)
    assert cycle
    samples = SystemSamples.of_cycle(timeline.seen(drawn.written_bytes, drawn.read_bytes), cycle, 4)
    energies = repeat_energy(aligned, phases, 1)
    of_medium = (lambda: repeat_energy(medium.aligned, phases, 1)) if medium else None
    worked = WorkedRun(cycle, lambda: energies, timeline.operations, samples, of_medium)
    (attribution,) = attributed(aligned, [worked], timeline.events, timeline.database, medium)
    if isinstance(attribution, Quantity):
        raise ValueError(attribution.reason)
    return Trial(attribution, drawn)


def _phases(timeline: Timeline, settled_s: float) -> list[Phase]:
    edges_s = np.array([1.0, START_S, START_S + timeline.run_s, settled_s, settled_s + IDLE_S])
    edges = (BOARD_NS + np.rint(edges_s * 1e9).astype(np.int64)).tolist()
    idle = {"lead_in_s": LEAD_IN_S, "role": Role.BASELINE}
    return [
        Phase("idle-before", 1, edges[0], edges[1], **idle),
        Phase("run", 1, edges[1], edges[2], len(timeline.operations), role=Role.WORK),
        Phase("settle", 1, edges[2], edges[3], role=Role.DRAIN),
        Phase("idle-after", 1, edges[3], edges[4], **idle),
    ]
