"""Power of the simulated board with a loader on it, from the activity of the loader and its engine.

Each kind of operation and each activity has its own power (parts.py). An operation has the energy of its kind,
however long it takes, even next to background work. Processor time counts only where neither is running.
"""

import contextlib
import glob
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from opjoule.attribution.activities import SYNC, Intervals
from opjoule.attribution.overlap import overlap_s
from opjoule.bench.simulation.medium_work import MediumMode, MediumStretch
from opjoule.bench.simulation.parts import (
    OTHER,
    PARTS,
    READING,
    TAIL,
    WRITE_BACK,
    Overlapping,
    PartCourseWriter,
    PartPowers,
    Steady,
    own_stretches,
)
from opjoule.bench.simulation.power_model import Activity, LoadModel, PowerModel, Rows
from opjoule.energy.operations.board_files import BEGIN
from opjoule.energy.operations.operation_table import ACTIVITIES, LOADER_KINDS, OperationTable
from opjoule.energy.operations.oplog import BLOCK_HEADER, BLOCK_MAGIC, FILE_HEADER, LogBlock, decode_block
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.runs.record.phases import MIX, RUN

READ_BYTES: Final = 1 << 22
"""Bytes per read; the rest follows in the next one."""


class GrowingLog:
    """Returns each block once, as soon as it is complete. Checksums are left to readers of the finished log."""

    def __init__(self, path: Path) -> None:
        """Opens the log. Raises: OSError: it does not exist."""
        self._file = path.open("rb")
        self._at = FILE_HEADER.size

    def more(self) -> list[OperationTable]:
        """The operations of blocks completed since the last call, each block of one thread, in order of time.

        Raises: ValueError: not an operation log.
        """
        self._file.seek(self._at)
        data, offset, tables = self._file.read(READ_BYTES), 0, []
        while offset + BLOCK_HEADER.size <= len(data):
            magic, thread, _, records, size, base_board_ns, crc32, *_ = BLOCK_HEADER.unpack_from(data, offset)
            if magic != BLOCK_MAGIC:
                raise ValueError(f"block magic is {magic:#010x}")
            payload_at = offset + BLOCK_HEADER.size
            end = payload_at + size
            if end > len(data):
                break
            block = LogBlock(self._at + offset, thread, records, base_board_ns, crc32, payload_at, end)
            table = OperationTable.empty(records)
            filled, _ = decode_block(block, data[payload_at:end], table, 0)
            if filled:
                tables.append(table.select(slice(filled)))
            offset = end
        self._at += offset
        return tables

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


@dataclass(frozen=True)
class PhaseOperations:
    """Operations of one thread of one loader, in order."""

    phase: str
    """The loader's phase without the number of its repeat: load, run, harness. A run in another mix is a run: an
    operation of a kind draws the same in it."""
    operations: OperationTable


@dataclass
class Event:
    """Background work of an engine."""

    activity: str
    start_ns: int
    end_ns: int | None
    """None while it continues."""


@dataclass
class _Followed:
    log: GrowingLog
    events: Path
    read: int = 0
    partial: bytes = b""
    going: dict[tuple[str, int], Event] = field(default_factory=dict)


class LoaderFiles:
    """Follows the files of all loaders below a folder, each from its first byte to its removal."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._followed: dict[Path, _Followed] = {}
        self._damaged: set[Path] = set()

    def more(self) -> tuple[list[PhaseOperations], list[Event]]:
        """Blocks and events since the last call; an event returned without an end gets its end later."""
        # Path.glob() raises if a folder is removed meanwhile (CPython GH-90208, until 3.12); glob.glob() does not.
        for path in map(Path, glob.glob(f"{glob.escape(str(self._folder))}/*/*/*.oplog")):  # noqa: PTH207
            if path not in self._followed and path not in self._damaged:
                with contextlib.suppress(OSError):  # removed meanwhile
                    self._followed[path] = _Followed(GrowingLog(path), path.with_suffix(".events.jsonl"))
        blocks, events = [], []
        for path, followed in list(self._followed.items()):
            there = path.exists()
            phase = path.stem.rpartition("-")[0] or path.stem
            phase = RUN if phase == MIX else phase
            try:
                blocks += [PhaseOperations(phase, table) for table in followed.log.more()]
                events += list(_events(followed))
            except (ValueError, KeyError):  # damaged: the evaluation reads the complete file and reports it
                there = False
                self._damaged.add(path)
            if not there:
                followed.log.close()
                for event in followed.going.values():
                    event.end_ns = event.start_ns  # its loader has ended
                del self._followed[path]
        return blocks, events


def _events(loader: _Followed) -> Iterator[Event]:
    """New events, in the order of their lines."""
    try:
        with loader.events.open("rb") as file:
            file.seek(loader.read)
            data = file.read()
    except OSError:
        return
    loader.read += len(data)
    *lines, loader.partial = (loader.partial + data).split(b"\n")
    for line in lines:
        row = json.loads(line)
        name, start_ns = str(row["event"]), int(row["board_ns"])
        if name == BEGIN and row["detail"] in ACTIVITIES:
            event = Event(str(row["detail"]), start_ns, None)
            loader.going[event.activity, start_ns] = event
            yield event
        elif name in ACTIVITIES:
            begun = loader.going.pop((name, start_ns), None)
            if begun:
                begun.end_ns = int(row["end_board_ns"])
            else:
                yield Event(name, start_ns, int(row["end_board_ns"]))


HOLD_NS: Final = 500_000_000
"""Delay of the power: the loader writes its operations after 0.25 s at most, its events after 0.1 s."""
READ_NS: Final = 50_000_000
"""Least time between two readings of the loaders' files [ns]. With the loader's 0.25 s it stays below HOLD_NS."""
STEP_NS: Final = 250_000
"""Time over which a part's power is assumed constant: half a sample of the fastest meter."""
WAKE_UP_S: Final = 8e-6
"""Most processor time of a client between two operations at a target rate [s]. The loader without a database took 6.4
us for each at 8,100 a second on the computer of our trials (`cpu_s` of the harness)."""
LEAST_BUSY: Final = 0.02
"""Least fraction of its time during which an operation keeps a core busy."""
_PARTS_OF_MEDIUM: Final = {MediumMode.READING: READING, MediumMode.TAIL: TAIL}


@dataclass(frozen=True)
class _Work:
    """Operations of one block that are not completely drawn yet."""

    base_ns: int
    end_ns: int
    by_kind: dict[str, Steady]
    """Pieces by kind, in seconds from base_ns on."""


class EnginePower(LoadModel):
    """Power by kind of operation and by activity; the medium's power is as in PowerModel."""

    hold_ns = HOLD_NS

    def __init__(self, model: PowerModel, seed: int, *, one_thread: bool) -> None:
        """Draws the power of each part; `one_thread`: the engine does its background work on one thread."""
        self._model = model
        self._rng = np.random.default_rng([seed, 1])  # independent of the rig's errors
        self._most_w = model.board.power_w(np.inf) - model.board.power_w(0.0)
        core_w = self._most_w / (len(model.board.busy_cores_w) - 1)
        self._powers = PartPowers.draw(self._rng, LOADER_KINDS, ACTIVITIES, core_w)
        self._one_thread = one_thread
        self._threads: defaultdict[str, set[int]] = defaultdict(set)
        self._usual_s: dict[tuple[str, str], float] = {}
        self._work: list[_Work] = []
        self._events: list[tuple[Event, float]] = []
        self._drawn_ns = self._next_read_ns = 0

    def begin(self, folder: Path) -> None:
        """Opens the files of the loaders and of the parts' energies."""
        self._files = LoaderFiles(folder)
        self._course = PartCourseWriter(folder / PARTS)

    def end(self) -> None:
        """Closes the file of the parts' energies."""
        self._course.close()

    def rows(self, activity: Activity, later: Sequence[Activity], busy: Sequence[MediumStretch]) -> Rows:
        """Rows at changes of the medium's mode, and every STEP_NS while an operation or activity is running."""
        self._read_files([activity, *later])
        start_ns, end_ns = activity.start_board_ns, activity.end_board_ns
        self._drawn_ns = end_ns
        horizon_ns = later[-1].end_board_ns if later else end_ns
        stretches = self._model.stretches(activity, busy)
        medium = [stretch for stretch in stretches if stretch.mode is not MediumMode.IDLE]
        moments_ns = [moment for stretch in medium for moment in (stretch.start_ns, stretch.end_ns)]
        changes_ns = np.array(sorted({start_ns, *moments_ns, end_ns}))
        at_work = self._work or self._events
        edge_ns = np.union1d(np.arange(start_ns, end_ns, STEP_NS), changes_ns) if at_work else changes_ns
        parts = self._operations(edge_ns) | self._background(edge_ns, horizon_ns)
        if parts:
            step_s = np.diff(edge_ns) * 1e-9
            whole_w = sum(parts.values()) / step_s
            held = np.minimum(1.0, self._most_w / np.maximum(whole_w, 1e-12))
            parts = {name: energy_j * held for name, energy_j in parts.items()}
        else:
            edge_ns, step_s = changes_ns, np.diff(changes_ns) * 1e-9
            if processor_w := self._model.processor_w(activity):
                parts[OTHER] = processor_w * step_s
        waited = self._waited(edge_ns, horizon_ns)
        for stretch in medium:
            part = _PARTS_OF_MEDIUM.get(stretch.mode, WRITE_BACK)
            inside = (edge_ns[:-1] >= stretch.start_ns) & (edge_ns[:-1] < stretch.end_ns)
            drawn_j = self._model.medium_w(stretch.mode) * step_s * inside
            of_sync = waited * (part != READING)
            for name, energy_j in ((part, drawn_j * (1.0 - of_sync)), (SYNC, drawn_j * of_sync)):
                if energy_j.any():
                    parts[name] = parts.get(name, 0.0) + energy_j
        self._course.add(edge_ns, parts)
        power_w = self._model.rest_w + sum(parts.values(), np.zeros(step_s.size)) / step_s
        steps = np.flatnonzero(np.diff(power_w, prepend=np.nan) != 0)
        return [(int(edge_ns[at]), *self._model.supply.at_power(float(power_w[at]))) for at in steps]

    def _read_files(self, known: Sequence[Activity]) -> None:
        """Takes over what the loaders have written since the last reading, if that was long enough ago."""
        now_ns = time.monotonic_ns()
        if now_ns < self._next_read_ns:
            return
        self._next_read_ns = now_ns + READ_NS
        blocks, events = self._files.more()
        for block in blocks:
            self._threads[block.phase].add(int(block.operations.thread[0]))
        for block in blocks:
            self._take(block, known)
        self._events += [(event, self._powers.event_w(self._rng, event.activity)) for event in events]

    def _take(self, block: PhaseOperations, known: Sequence[Activity]) -> None:
        """Assigns each operation its energy; the energy of operations that are reported too late is drawn later."""
        made = block.operations
        base_ns = int(made.board_ns[0])
        late_ns = max(self._drawn_ns - base_ns, 0)
        start_s = np.asarray((made.board_ns - base_ns) * 1e-9, np.float64)
        end_s = start_s + np.maximum(made.duration_ns, 1) * 1e-9
        by_kind = {}
        for name in made.counts():
            of_kind = made.of_kind(name)
            usual_s = self._usual(block, name, known)
            works_s = np.full(int(of_kind.sum()), usual_s)
            energy_j = self._powers.operations_j(self._rng, name, works_s, usual_s)
            by_kind[name] = Steady(start_s[of_kind], end_s[of_kind], energy_j)
        begin_ns = base_ns + late_ns
        self._work.append(_Work(begin_ns, begin_ns + round(float(end_s[-1]) * 1e9) + 1, by_kind))

    def _usual(self, block: PhaseOperations, kind: str, known: Sequence[Activity]) -> float:
        """Usual core time of an operation of a kind, including the loader's [s].

        It comes from the mean processor time of the first operations and their median durations. Processor time
        beyond the durations is that of going to sleep and waking up for a target rate, the same for all kinds, up to
        WAKE_UP_S; more than that belongs to the engine's own threads. With less, the durations contain waiting. The
        power at that core time differs between kinds.
        """
        key = (block.phase, kind)
        if key not in self._usual_s:
            made = block.operations
            first_ns, last_ns = int(made.board_ns[0]), int(made.board_ns[-1] + made.duration_ns[-1])
            seen = [one for one in known if one.end_board_ns > first_ns and one.start_board_ns < last_ns]
            span_s = sum(interval.end_board_ns - interval.start_board_ns for interval in seen) * 1e-9
            busy_s = sum(interval.cpu_s for interval in seen) / len(self._threads[block.phase])
            busy = min(max(busy_s / span_s, LEAST_BUSY), 1.0) if seen else 1.0
            mean_s = busy * (last_ns - first_ns) * 1e-9 / len(made)
            durations_ns = {name: made.duration_ns[made.of_kind(name)] for name in made.counts()}
            usual_ns = {name: float(np.median(duration_ns)) for name, duration_ns in durations_ns.items()}
            inside_s = sum(usual_ns[name] * count for name, count in made.counts().items()) * 1e-9 / len(made)
            within = min(mean_s / inside_s, 1.0) if inside_s else 1.0
            self._usual_s[key] = usual_ns[kind] * 1e-9 * within + min(max(mean_s - inside_s, 0.0), WAKE_UP_S)
        return self._usual_s[key]

    def _operations(self, edge_ns: np.ndarray) -> dict[str, Float64Array]:
        """Energy of each kind in each step [J]."""
        by_kind: dict[str, Float64Array] = {}
        for work in self._work:
            if work.base_ns >= edge_ns[-1]:
                continue
            at_s = (edge_ns - work.base_ns) * 1e-9
            for name, piece in work.by_kind.items():
                energy_j = np.diff(piece.until_j(at_s))
                if energy_j.any():
                    by_kind[name] = by_kind.get(name, 0.0) + energy_j
        self._work = [work for work in self._work if work.end_ns > edge_ns[-1]]
        return by_kind

    def _background(self, edge_ns: np.ndarray, horizon_ns: int) -> dict[str, Float64Array]:
        """Energy of each activity in each step [J]; events are known up to `horizon_ns`."""
        start_ns, end_ns = int(edge_ns[0]), int(edge_ns[-1])
        self._events = [entry for entry in self._events if (entry[0].end_ns or horizon_ns) > start_ns]
        now = [entry for entry in self._events if entry[0].start_ns < end_ns]
        if not now:
            return {}
        spans = {name: [event for event, _ in now if event.activity == name] for name in ACTIVITIES}
        activities = {name: _intervals(events, horizon_ns) for name, events in spans.items() if events}
        at_s = (edge_ns - start_ns) * 1e-9
        by_activity: dict[str, Float64Array] = {}
        for event, power_w in now:
            span_ns = event.start_ns, event.end_ns or horizon_ns
            stretches = own_stretches(activities, event.activity, *span_ns, one_thread=self._one_thread)
            begin_s, finish_s = (np.array(stretches, np.float64).reshape(-1, 2).T - start_ns) * 1e-9
            piece = Overlapping(begin_s, finish_s, np.full(begin_s.size, power_w))
            energy_j = np.diff(piece.until_j(at_s))
            by_activity[event.activity] = by_activity.get(event.activity, 0.0) + energy_j
        return by_activity

    def _waited(self, edge_ns: np.ndarray, horizon_ns: int) -> Float64Array:
        """Fraction of each step spent in syncs, when the medium's energy counts for the sync."""
        syncs = [event for event, _ in self._events if event.activity == SYNC]
        if not syncs:
            return np.zeros(edge_ns.size - 1)
        waited = _intervals(syncs, horizon_ns).merged
        return overlap_s(edge_ns.astype(np.int64), waited.start_ns, waited.end_ns) / (np.diff(edge_ns) * 1e-9)


def _intervals(events: Sequence[Event], horizon_ns: int) -> Intervals:
    """Intervals of the events; an event without an end extends to the horizon."""
    starts_ns = np.array([event.start_ns for event in events], np.int64)
    return Intervals.of(starts_ns, np.array([event.end_ns or horizon_ns for event in events], np.int64))
