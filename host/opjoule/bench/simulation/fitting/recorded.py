"""A record in windows of the board's clock: measured power and activity, and the power that a model gives for it.

A window is the time between two samples of the board's counters, usually 0.1 s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from opjoule.attribution.activities import SYNC, Intervals, background
from opjoule.attribution.overlap import overlap_s
from opjoule.base.errors import BadInput, DataFault, RecordFault
from opjoule.base.settings import MEDIUM
from opjoule.bench.simulation.medium_work import MediumCourse, MediumMode, MediumStretch
from opjoule.bench.simulation.power_model import BoardModel, MediumModel
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.operations.board_files import load_changes
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Int64Array, PowerTrace
from opjoule.results.recorded import board_to_meter, corrected_trace, table_of
from opjoule.runs.record.phases import Phase, Role
from opjoule.runs.record.run_record import RunRecord, reading

WINDOW_MIN_S: Final = 0.02
WINDOW_MAX_S: Final = 1.0
"""Longest window: a longer pause between two samples does not show when something happened."""
EVEN_S: Final = 1.0
"""Time over which the kernel's ticks are averaged."""
WINDOWS_MIN: Final = 50
NOWHERE: Final = -1
SETTLED_S: Final = 0.002
"""Time left out after a change of the load: the board's regulators and the meter settle within it."""
NO_SYNCS: Final = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))
NEEDED: Final = "give a finished record of a measurement with a board"


@dataclass(frozen=True)
class ActivityWindows:
    """Recorded activity and measured power; every array has shape (n,)."""

    start_ns: Int64Array
    """[board_ns], increasing."""
    end_ns: Int64Array
    power_w: Float64Array
    """Mean of the window [W]; NaN if samples were lost or clipped."""
    busy_cores: Float64Array
    read_bytes: Float64Array
    """Bytes read from the medium in the window [B]."""
    written_bytes: Float64Array
    """Bytes written to the medium in the window [B]."""
    dirty_bytes: Float64Array
    """Bytes written but not yet on the medium at the window's end [B]."""
    phase: Int64Array
    """Index of the phase that contains the window's middle; NOWHERE between phases."""

    def __len__(self) -> int:
        return int(self.start_ns.size)

    @property
    def span_s(self) -> Float64Array:
        """Length of each window [s]."""
        return np.asarray((self.end_ns - self.start_ns) * 1e-9, np.float64)


@dataclass(frozen=True)
class SignatureLevels:
    """Mean power while the load signature was idle and busy."""

    idle_w: float
    busy_w: float
    core_s: float
    """Processor time of all stretches, by the board's counters [s]."""
    busy_s: float
    idle_s: float
    """Length of the busy and idle stretches [s]."""

    def busy_cores(self, rest_w: float) -> tuple[float, float]:
        """Mean number of busy cores in the busy and in the idle stretches, in proportion to their power above `rest_w`.

        On a board without other programs, the idle stretches have none; other programs prolong busy stretches.
        """
        above_w = max(self.busy_w - rest_w, 1e-9)
        part = min(max(self.idle_w - rest_w, 0.0) / above_w, 1.0)
        busy = self.core_s / (self.busy_s + part * self.idle_s)
        return busy, part * busy


@dataclass(frozen=True)
class Recorded:
    """One record as input of the fit."""

    name: str
    simulated: bool
    board: str
    medium: str
    meter: str
    cores: int
    windows: ActivityWindows
    phases: tuple[Phase, ...]
    sensor: ErrorBounds | None
    trace: PowerTrace
    signature: SignatureLevels | None
    syncs: Intervals
    """Calls that waited for the medium, on the board's clock."""

    def windows_of(self, role: Role) -> BoolArray:
        """Windows in phases of one role, without their lead-in, shape (n,)."""
        chosen = np.zeros(len(self.windows), np.bool_)
        for phase in self.phases:
            if phase.role is role:
                begun = self.windows.start_ns >= phase.steady.start_board_ns
                chosen |= begun & (self.windows.end_ns <= phase.steady.end_board_ns)
        return chosen


def read_recorded(path: Path) -> Recorded:
    """Reads a finished record of a board.

    Raises: BadInput: a record that does not show a board's parameters, with the reason in one line. RecordFault: it is
        damaged or was changed. DataFault: its trace and its counters do not overlap.
    """
    with reading(path):
        record = RunRecord.open(path)
        _check(record, path)
        clock = board_to_meter(record.run)
        if clock is None:
            raise BadInput(f"{path}: its clocks could not be matched, so no power belongs to any activity")
        trace, sensor = corrected_trace(record)
        system = table_of(record, "system").sort_by("board_ns")
        events = table_of(record, "events")
    if len(trace) < 2 or system.num_rows < WINDOWS_MIN:
        raise DataFault(
            f"{path}: {len(trace)} samples of the meter and {system.num_rows} of the board's counters are too few"
        )
    windows = windows_of(system, record.run.phases, trace, clock.to_target)
    if int(np.isfinite(windows.power_w).sum()) < WINDOWS_MIN:
        raise DataFault(f"{path}: the power trace covers too little of the board's counters")
    board, medium = _subject(record)
    return Recorded(
        path.name,
        record.simulated,
        board,
        medium,
        str(record.run.found.meter.kind),
        max(record.run.found.cores or 1, 1),
        windows,
        record.run.phases,
        sensor,
        trace,
        signature_levels(load_changes(events).board_ns, trace, system, clock.to_target),
        background(events).get(SYNC, NO_SYNCS),
    )


def _subject(record: RunRecord) -> tuple[str, str]:
    """Names of board and medium; records without a plan have them among the options and the facts."""
    run, plan = record.run, record.document.get("plan")
    entry = plan if isinstance(plan, dict) else {}
    board, medium = entry.get("device", run.asked.device), entry.get(MEDIUM, run.found.medium)
    return str(board or "board"), str(medium or run.asked.medium or "medium")


def _check(record: RunRecord, path: Path) -> None:
    run = record.run
    if not run.phases and run.found.cores is None:
        raise BadInput(f"{path} is a trace without a board: nothing says what the board did; {NEEDED}")
    if not record.is_finished or run.status != "complete":
        why = f": {record.faults[0].text}" if record.faults else ""
        raise BadInput(f"{path} is {run.status}{why}; {NEEDED}")
    if record.withheld:
        raise BadInput(f"{path}: {next(iter(record.withheld.values()))}; {NEEDED}")
    if not (path / "system.parquet").exists():
        raise RecordFault(f"{path} has no system.parquet: nothing says what the board did")


def windows_of(system: pa.Table, phases: Sequence[Phase], trace: PowerTrace, to_meter: object) -> ActivityWindows:
    """Windows between two samples of the board's counters, which are sorted; `to_meter`: board_ns to meter_ns."""
    board_ns = system["board_ns"].to_numpy().astype(np.int64)

    def grown(name: str) -> Float64Array:
        return np.asarray(np.diff(system[name].to_numpy().astype(np.float64)), np.float64)

    span_s = np.diff(board_ns) * 1e-9
    own_s, all_s = grown("process_cpu_s"), grown("cpu_busy_s")
    read, written_bytes = grown("device_read_bytes"), grown("device_written_bytes")
    # a counter that falls belongs to another process: the activity between the two samples is unknown
    sound = (span_s >= WINDOW_MIN_S) & (span_s <= WINDOW_MAX_S)
    sound &= (all_s >= 0) & (own_s >= 0) & (read >= 0) & (written_bytes >= 0)
    busy_s = own_s + _evened(np.where(sound, all_s - own_s, 0.0), span_s)
    middle_ns = (board_ns[:-1] + board_ns[1:]) // 2
    phase_of = np.full(middle_ns.size, NOWHERE, np.int64)
    for at, phase in enumerate(phases):
        phase_of[(middle_ns >= phase.start_board_ns) & (middle_ns < phase.end_board_ns)] = at
    whole = ActivityWindows(
        board_ns[:-1],
        board_ns[1:],
        _mean_power_w(trace, np.asarray(to_meter(board_ns), np.int64)),  # type: ignore[operator]
        np.maximum(busy_s, 0.0) / np.maximum(span_s, 1e-9),
        read,
        written_bytes,
        system["dirty_bytes"].to_numpy().astype(np.float64)[1:],
        phase_of,
    )
    return ActivityWindows(*(np.asarray(getattr(whole, name))[sound] for name in whole.__dataclass_fields__))


def _evened(other_s: Float64Array, span_s: Float64Array) -> Float64Array:
    """Processor time of everything else, counted in ticks of 10 ms, averaged over about EVEN_S."""
    width = max(round(EVEN_S / max(float(np.median(span_s)), 1e-3)), 1)
    columns = other_s, np.ones(other_s.size)
    summed_s, counts = (np.convolve(column, np.ones(width), "same") for column in columns)
    return np.asarray(summed_s / counts, np.float64)[: other_s.size]


def _mean_power_w(trace: PowerTrace, edge_ns: Int64Array) -> Float64Array:
    """Mean power between edges on the meter's clock [W], shape (n - 1,); NaN where samples are missing."""
    good = trace.good & ~trace.clipped
    first, last = np.searchsorted(trace.meter_ns, edge_ns[:-1]), np.searchsorted(trace.meter_ns, edge_ns[1:])
    summed = np.concatenate([np.zeros(1), np.cumsum(np.where(good, trace.power_w, 0.0))])
    count = np.concatenate([np.zeros(1), np.cumsum(good)])
    of_window = count[last] - count[first]
    wanted = np.diff(edge_ns) / max(trace.period_ns, 1)
    mean_w = (summed[last] - summed[first]) / np.maximum(of_window, 1)
    return np.asarray(np.where((of_window >= 1) & (of_window >= 0.7 * wanted), mean_w, np.nan), np.float64)


def signature_levels(
    change_ns: Int64Array, trace: PowerTrace, system: pa.Table, to_meter: object
) -> SignatureLevels | None:
    """Power of the signature's busy and idle stretches, from the times of its changes, the first to busy; else None."""
    if change_ns.size < 4 or change_ns.size % 2:
        return None
    edge_ns = np.asarray(to_meter(change_ns), np.int64)  # type: ignore[operator]
    late_ns = round(SETTLED_S * 1e9)
    place = np.searchsorted(edge_ns, trace.meter_ns, "right") - 1
    inside = (place >= 0) & (place < edge_ns.size - 1) & trace.good & ~trace.clipped
    place = np.clip(place, 0, edge_ns.size - 2)
    since_ns, left_ns = trace.meter_ns - edge_ns[place], edge_ns[place + 1] - trace.meter_ns
    inside &= (since_ns > late_ns) & (left_ns > trace.period_ns)
    # the pause between the two patterns belongs to neither
    inside &= np.diff(edge_ns)[place] < 2_000_000_000
    stretch_w = np.bincount(place[inside], trace.power_w[inside]) / np.maximum(np.bincount(place[inside]), 1)
    held = np.bincount(place[inside]) >= 3
    number = np.arange(stretch_w.size)
    busy_w, idle_w = stretch_w[held & (number % 2 == 0)], stretch_w[held & (number % 2 == 1)]
    if busy_w.size < 4 or idle_w.size < 4:
        return None
    times_s = _signature_times_s(change_ns, system)
    return SignatureLevels(float(idle_w.mean()), float(busy_w.mean()), *times_s) if times_s[1] else None


def _signature_times_s(change_ns: Int64Array, system: pa.Table) -> tuple[float, float, float]:
    """Processor time during the signature from the board's counters, and length of its busy and idle stretches [s]."""
    board_ns = system["board_ns"].to_numpy().astype(np.float64)
    core_s = busy_s = idle_s = 0.0
    total_s = system["cpu_busy_s"].to_numpy().astype(np.float64)
    pauses = np.flatnonzero(np.diff(change_ns) > 2_000_000_000)
    for pattern_ns in np.split(change_ns, pauses + 1):
        if pattern_ns.size < 2 or pattern_ns[0] < board_ns[0] or pattern_ns[-1] > board_ns[-1]:
            continue
        core_s += float(np.diff(np.interp(pattern_ns[[0, -1]].astype(np.float64), board_ns, total_s))[0])
        busy_s += float(np.diff(pattern_ns)[::2].sum()) * 1e-9
        idle_s += float(np.diff(pattern_ns)[1::2].sum()) * 1e-9
    return core_s, busy_s, idle_s


LATE: Final = 0.1
"""Part of a window by which the counters may run ahead of the work; the next window compensates for it."""
BUSY: Final = (MediumMode.WRITING, MediumMode.READING, MediumMode.FLUSHING)


@dataclass(frozen=True)
class Replayed:
    """Mean power of each window by component [W]; every array has shape (n,)."""

    rest_w: Float64Array
    processor_w: Float64Array
    medium_w: Float64Array
    """Power of a medium that reads, writes or flushes, above its idle."""
    tail_w: Float64Array

    @property
    def total_w(self) -> Float64Array:
        """Sum of the components."""
        return self.rest_w + self.processor_w + self.medium_w + self.tail_w


def replayed(board: BoardModel, medium: MediumModel, one: Recorded) -> Replayed:
    """The model's power in each window of a record."""
    busy, tail = medium_shares(medium, medium_work(medium, one), one.windows)
    rest_w = board.power_w(0.0)
    above_w = np.array([board.power_w(float(busy)) for busy in one.windows.busy_cores]) - rest_w
    idle_w = np.full(len(one.windows), rest_w + medium.idle_w)
    return Replayed(idle_w, above_w, medium.active_w * busy, medium.tail_w * tail)


def core_columns(busy_cores: Float64Array, cores: int) -> Float64Array:
    """Busy share of each core, one core after the other, shape (n, cores), as in the board's model."""
    return np.asarray(np.clip(busy_cores[:, None] - np.arange(cores), 0.0, 1.0), np.float64)


def medium_work(medium: MediumModel, one: Recorded) -> list[MediumStretch]:
    """Busy stretches of the medium, from the board's counters and the syncs that waited for it; in order of time.

    The bytes of a window take their time at the medium's rates, at most the whole window: they were done by its end.
    The stretch is at the window's start, or at its end if the work begins there and continues in the next window. A
    sync ends with the flush of the medium's cache.
    """
    stretches = [MediumStretch(*span, MediumMode.WRITING) for span in _moved(medium, one.windows)]
    flush_ns = round(medium.flush_s * 1e9)
    for start_ns, end_ns in zip(one.syncs.start_ns.tolist(), one.syncs.end_ns.tolist(), strict=True):
        if end_ns > start_ns and flush_ns:
            stretches.append(MediumStretch(max(end_ns - flush_ns, start_ns), end_ns, MediumMode.FLUSHING))
    kept: list[MediumStretch] = []
    for stretch in sorted(stretches, key=lambda stretch: stretch.start_ns):
        start_ns = max(stretch.start_ns, kept[-1].end_ns) if kept else stretch.start_ns
        if stretch.end_ns > start_ns:
            kept.append(MediumStretch(start_ns, stretch.end_ns, stretch.mode))
    return kept


def _moved(medium: MediumModel, windows: ActivityWindows) -> list[tuple[int, int]]:
    """Start and end [board_ns] of the stretches in which bytes are transferred."""
    wanted_s = windows.written_bytes / medium.write_bytes_per_s + windows.read_bytes / medium.read_bytes_per_s
    spans: list[tuple[int, int]] = []
    works = np.concatenate([[False], wanted_s > 0, [False]])
    late_ns = 0
    for at in np.flatnonzero(wanted_s > 0).tolist():
        start_ns, end_ns = int(windows.start_ns[at]), int(windows.end_ns[at])
        wanted_ns = round(float(wanted_s[at]) * 1e9) + (late_ns if works[at] else 0)
        lasts_ns = min(wanted_ns, end_ns - start_ns)
        late_ns = min(wanted_ns - lasts_ns, round(LATE * (end_ns - start_ns)))
        goes_on = works[at + 2] and not works[at]
        spans.append((end_ns - lasts_ns, end_ns) if goes_on else (start_ns, start_ns + lasts_ns))
    return spans


def medium_shares(
    medium: MediumModel, work: Sequence[MediumStretch], windows: ActivityWindows
) -> tuple[Float64Array, Float64Array]:
    """Share of each window in which the medium is busy, and share in its tail, shape (n,) each."""
    whole = MediumCourse(medium.tail_s).between(int(windows.start_ns[0]), int(windows.end_ns[-1]), work)
    return _share(whole, BUSY, windows), _share(whole, (MediumMode.TAIL,), windows)


def sync_share(one: Recorded) -> Float64Array:
    """Share of each window in which a sync waited, shape (n,); above 1 if several did."""
    if not len(one.syncs):
        return np.zeros(len(one.windows))
    edge_ns = np.sort(np.concatenate([one.windows.start_ns, one.windows.end_ns]))
    return np.asarray(overlap_s(edge_ns, one.syncs.start_ns, one.syncs.end_ns)[::2] / one.windows.span_s)


def _share(whole: Sequence[MediumStretch], modes: tuple[MediumMode, ...], windows: ActivityWindows) -> Float64Array:
    chosen = [stretch for stretch in whole if stretch.mode in modes]
    if not chosen:
        return np.zeros(len(windows))
    edge_ns = np.sort(np.concatenate([windows.start_ns, windows.end_ns]))
    start_ns, end_ns = np.array([[stretch.start_ns, stretch.end_ns] for stretch in chosen], np.int64).T
    inside_s = overlap_s(edge_ns, np.ascontiguousarray(start_ns), np.ascontiguousarray(end_ns))
    # windows do not overlap: between the sorted edges, every other stretch is a window
    return np.asarray(inside_s[::2] / windows.span_s, np.float64)
