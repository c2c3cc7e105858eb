"""Replies for the live page, from a record's raw files, read while they grow: power in blocks, and progress notes."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from opjoule.base.errors import BadInput, OpJouleError
from opjoule.base.scripts import program
from opjoule.base.units import missing, unstated
from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.exchanges import BOARD_EXCHANGES, METER_EXCHANGES, fit_exchanges, read_exchanges
from opjoule.energy.trace.power_trace import Float64Array, Int64Array
from opjoule.pages.view.replies import columns_of, power_values, report_of, rounded, stated_row, stretch_of
from opjoule.pages.view.runs_folder import POWER
from opjoule.results.answer import open_answer
from opjoule.results.tracks import Track, joined, phase_kind
from opjoule.runs.measuring.progress import PROGRESS, phase_title
from opjoule.runs.record.phases import Phase
from opjoule.runs.record.run_record import RunRecord, reading

BLOCK_NS: Final = 20_000_000
"""Length of a block on the meter's clock; a block keeps least, greatest and mean power of its samples."""
HOLE_BLOCKS: Final = 3
"""A pause longer than this many times the usual distance of two blocks is a hole."""
NEWEST_S: Final = 1.0
"""Averaging time of the power that is shown as a number."""


class GrowingPower:
    """Blocks of a raw power stream, updated as the file grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self._schema: pa.Schema | None = None
        self._waiting: tuple[Int64Array, Float64Array] = np.zeros(0, np.int64), np.zeros(0)
        self._block = np.zeros(0, np.int64)
        self._values_w = np.zeros((3, 0))
        self.samples = 0
        """Number of samples read so far, including lost ones."""
        self.track: Track | None = None
        """All finished blocks, in seconds since the first; a hole between two blocks is a cell of its own."""

    def catch_up(self) -> None:
        """Reads what was flushed since the last call; an incomplete batch waits for the next call."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            grown = pa.BufferReader(file.read())
        begun_bytes, parts = self._read_bytes, [self._waiting]
        while True:
            try:
                message = pa.ipc.read_message(grown)
            except (EOFError, OSError, pa.ArrowException):
                break
            self._read_bytes = begun_bytes + grown.tell()
            if message.type == "schema":
                self._schema = pa.ipc.read_schema(message)
            elif self._schema is not None:
                parts.append(_power(pa.ipc.read_record_batch(message, self._schema)))
        self.samples += sum(len(part[0]) for part in parts[1:])
        self._take(np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))

    def _take(self, meter_ns: Int64Array, power_w: Float64Array) -> None:
        """Adds the finished blocks of these samples; samples of the last block wait for more."""
        block = meter_ns // BLOCK_NS
        whole = int(np.searchsorted(block, block[-1])) if block.size else 0
        self._waiting = meter_ns[whole:], power_w[whole:]
        if not whole:
            return
        starts = np.flatnonzero(np.diff(block[:whole], prepend=block[0] - 1))
        known = np.isfinite(power_w[:whole])
        with np.errstate(invalid="ignore"):
            sum_w = np.add.reduceat(np.where(known, power_w[:whole], 0.0), starts)
            mean_w = sum_w / np.add.reduceat(known.astype(float), starts)
        made = [mean_w, np.fmin.reduceat(power_w[:whole], starts), np.fmax.reduceat(power_w[:whole], starts)]
        self._block = np.concatenate((self._block, block[starts]))
        self._values_w = np.concatenate((self._values_w, np.array(made)), axis=1)
        self.track = self._cells()

    def _cells(self) -> Track:
        distance = np.diff(self._block)
        usual = float(np.median(distance)) if distance.size else 1.0
        holes = np.flatnonzero(distance > HOLE_BLOCKS * usual)
        bounds = np.insert(self._block, holes + 1, self._block[holes] + 1)
        end = self._block[-1:] + max(round(usual), 1)
        values_w = np.insert(self._values_w, holes + 1, np.nan, axis=1)
        bounds_s = np.asarray((np.concatenate((bounds, end)) * BLOCK_NS - self.origin_ns) * 1e-9, np.float64)
        mean, lowest, highest = ({POWER: values} for values in values_w)
        return Track(bounds_s, mean, lowest, highest)

    @property
    def origin_ns(self) -> int:
        """Beginning of the first block [meter_ns]."""
        return int(self._block[0]) * BLOCK_NS

    def energy_j(self, start_s: float, end_s: float) -> tuple[float, float]:
        """Energy of the blocks in a stretch [J], and the part of the stretch that has samples [s]."""
        if self.track is None:
            return 0.0, 0.0
        bounds_s, cells_w = self.track.bounds_s.clip(start_s, end_s), self.track.mean[POWER]
        length_s = np.where(np.isfinite(cells_w), np.diff(bounds_s), 0.0)
        return float(np.nansum(cells_w * length_s)), float(length_s.sum())

    def newest_w(self) -> float | None:
        """Mean power of the last second [W]; None before the first sample."""
        recent = self._values_w[0, self._block > self._block[-1:] - round(NEWEST_S * 1e9 / BLOCK_NS)]
        known = recent[np.isfinite(recent)]
        return float(known.mean()) if known.size else None


def _power(batch: pa.RecordBatch) -> tuple[Int64Array, Float64Array]:
    columns = (batch.column(name) for name in ("meter_ns", "current_a", "voltage_v"))
    meter_ns, current_a, voltage_v = (column.to_numpy(zero_copy_only=False) for column in columns)
    return meter_ns, current_a * voltage_v


@dataclass(frozen=True)
class PhaseNoted:
    """A phase that has begun."""

    name: str
    repeat: int
    repeats: int


@dataclass(frozen=True)
class TimeNoted:
    """Progress of the measurement at one moment."""

    host_ns: int
    """Time of the note on the clock of time.monotonic_ns()."""
    elapsed_s: float
    remaining_s: float | None
    """None if it is not known."""
    is_least: bool


class GrowingNotes:
    """Contents of raw/progress.jsonl, updated as the file grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self.phase: PhaseNoted | None = None
        """The newest phase."""
        self.counts: list[tuple[int, float]] = []
        """(meter_ns, operations of the phase so far); a phase begins with 0."""
        self.reached: list[tuple[int, int]] = []
        """(meter_ns of the note, board_ns) of the newest phase's beginning and, once known, of its end."""
        self.time: TimeNoted | None = None
        self.temperature_c: float | None = None

    def catch_up(self) -> None:
        """Reads the complete lines that were added since the last call."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            lines, _, _ = file.read().rpartition(b"\n")
        self._read_bytes += len(lines) + 1 if lines else 0
        for line in lines.splitlines():
            entry = json.loads(line)
            at_ns = int(entry["meter_ns"])
            if "phase" in entry:
                self.phase = PhaseNoted(str(entry["phase"]), int(entry["repeat"]), int(entry["repeats"]))
                self.counts.append((at_ns, 0.0))
                self.reached = []
            if "board_ns" in entry:
                self.reached.append((at_ns, int(entry["board_ns"])))
            if "elapsed_s" in entry:
                left = entry.get("remaining_s"), bool(entry.get("is_least"))
                self.time = TimeNoted(int(entry["host_ns"]), float(entry["elapsed_s"]), *left)
            if "operations" in entry:
                self.counts.append((at_ns, float(entry["operations"])))
            self.temperature_c = entry.get("temperature_c", self.temperature_c)

    def rates(self) -> tuple[Int64Array, Float64Array]:
        """Bounds [meter_ns], shape (n + 1,), and operations per second between them, shape (n,)."""
        if len(self.counts) < 2:
            return np.zeros(0, np.int64), np.zeros(0)
        at_ns, done = (np.array(column) for column in zip(*self.counts, strict=True))
        keep = np.concatenate((np.diff(at_ns) > 0, [True]))  # the last count of each moment
        at_ns, done = at_ns[keep].astype(np.int64), done[keep]
        return at_ns, np.maximum(np.diff(done), 0.0) / (np.diff(at_ns) * 1e-9)


SETTLE: Final = "settle"


@dataclass(frozen=True)
class PlacedPhase:
    """A phase on the meter's clock."""

    name: str
    repeat: int
    start_ns: int
    """[meter_ns]"""
    end_ns: int | None
    """[meter_ns]; None while the phase is running."""

    @property
    def kind(self) -> str:
        """Kind of the phase, which determines its colour."""
        return phase_kind(self.name)


class GrowingPhases:
    """Phases of one record, updated from its run.json and its round trips."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._mark: tuple[int, int] = (0, 0)
        self._phases: tuple[Phase, ...] = ()
        self._placed: tuple[tuple[object, ...], list[PlacedPhase]] = ((), [])
        self.simulated = False
        self.late_ns = 0
        """How far progress notes are behind the meter's clock, since the newest sample was older than the note [ns]."""

    def known(self, notes: GrowingNotes) -> list[PlacedPhase]:
        """Finished phases, and the running one once its beginning is known; empty without a board."""
        self._read_run()
        reached = tuple(notes.reached)
        about = (self._mark, notes.phase, reached)
        if about != self._placed[0] or not self._placed[1]:
            self._placed = about, list(self._place(notes.phase, reached))
        return self._placed[1]

    def _read_run(self) -> None:
        try:
            stat = (self._directory / "run.json").stat()
            if (mark := (stat.st_mtime_ns, stat.st_ino)) != self._mark:
                run = RunRecord.open(self._directory).run
                self._mark, self._phases, self.simulated = mark, run.phases, run.simulated
        except (OpJouleError, OSError):
            return  # not begun yet

    def _place(self, newest: PhaseNoted | None, reached: tuple[tuple[int, int], ...]) -> Iterator[PlacedPhase]:
        if not (self._phases or reached) or (to_meter := self._map()) is None:
            return
        for phase in self._phases:
            ends_ns = to_meter.to_target(phase.start_board_ns), to_meter.to_target(phase.end_board_ns)
            yield PlacedPhase(phase.name, phase.repeat, *ends_ns)
        if not (reached and newest):
            return
        noted_ns, began_board_ns = reached[0]
        start_ns = to_meter.to_target(began_board_ns)
        if newest.name != SETTLE:  # settle begins at the end of the previous phase, but its note comes later
            self.late_ns = start_ns - noted_ns
        if not any(phase.start_board_ns == began_board_ns for phase in self._phases):
            end_ns = to_meter.to_target(reached[1][1]) if len(reached) > 1 else None
            yield PlacedPhase(newest.name, newest.repeat, start_ns, end_ns)

    def _map(self) -> ClockMap | None:
        """Clock map from the board to the meter; None before there are enough round trips."""
        raw = self._directory / "raw"
        try:
            to_host = fit_exchanges(read_exchanges(raw / BOARD_EXCHANGES), "host", "board").inverse()
            return to_host.then(fit_exchanges(read_exchanges(raw / METER_EXCHANGES), "host", "meter"))
        except (OpJouleError, OSError):
            return None


BEING_MEASURED: Final = "being measured"
UNCORRECTED: Final = "as the meter sends it, before calibration; the interval follows after the run"


class LiveReplies:
    """Replies for the live page during and after a measurement. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._directory: Path | None = None
        self._power, self._notes = GrowingPower(Path()), GrowingNotes(Path())
        self._phases = GrowingPhases(Path())
        self._title = ""
        self._has_ended = False
        self.known = {
            "runs": self._runs,
            "run": self._run,
            "power": self._read_power,
            "stretch": self._stretch,
            "running": self._running,
        }
        self.pages = {"report": self._report}

    def watch(self, directory: Path) -> None:
        """Makes all further replies describe this record, which need not exist yet."""
        with self._lock:
            self._directory = directory
            self._power = GrowingPower(directory / "raw" / "power.arrows")
            self._notes = GrowingNotes(directory / "raw" / PROGRESS)
            self._phases = GrowingPhases(directory)
            self._title = ""

    def end(self) -> None:
        """Records that the measuring program has ended, for whatever reason."""
        with self._lock:
            self._has_ended = True

    def _runs(self, query: Mapping[str, str]) -> Any:
        with self._lock:
            directory = self._directory
            ended = _ending(directory) if self._has_ended else None
        names = [directory.name] if directory else []
        folder = str(directory.parent) if directory else ""
        return {"folder": folder, "runs": names, "live": True, "ended": ended}

    def _run(self, query: Mapping[str, str]) -> Any:
        """Reads new data and returns what is known so far."""
        with self._lock:
            power, notes = self._power, self._notes
            power.catch_up()
            notes.catch_up()
            end_s = float(power.track.bounds_s[-1]) if power.track else 0.0
            rates = notes.rates()[1]
            is_timed = rates.size and notes.counts[-1][1]
            self._title = self._title or _title(self._directory)
            bands = self._bands(end_s)
            return {
                "title": self._title or (self._directory.name if self._directory else ""),
                "simulated": self._phases.simulated,
                "status": BEING_MEASURED,
                "notices": [],
                "duration_s": end_s,
                "samples": power.samples,
                "operations": int(notes.counts[-1][1]) if notes.counts else 0,
                "phases": bands,
                "now": {
                    "power_w": power.newest_w(),
                    "energy_j": power.energy_j(0.0, end_s)[0] if end_s else None,
                    "operations_per_s": float(rates[-1]) if is_timed else None,
                    "temperature_c": notes.temperature_c,
                    "phase": notes.phase and phase_title(notes.phase.name, notes.phase.repeat, notes.phase.repeats),
                    **self._times(),
                },
            }

    def _times(self) -> dict[str, Any]:
        """Elapsed and remaining time [s], brought forward from the time of their note to now."""
        noted = self._notes.time
        if noted is None:
            return {"elapsed_s": None, "remaining_s": None, "is_least": False}
        since_s = max((time.monotonic_ns() - noted.host_ns) * 1e-9, 0.0) if not self._has_ended else 0.0
        left_s = None if noted.remaining_s is None else max(noted.remaining_s - since_s, 0.0)
        return {"elapsed_s": noted.elapsed_s + since_s, "remaining_s": left_s, "is_least": noted.is_least}

    def _bands(self, end_s: float) -> list[dict[str, Any]]:
        """Phases whose place on the meter's clock is known, on the page's time axis."""
        placed = self._phases.known(self._notes)
        if not end_s:
            return []
        bands = []
        for phase in placed:
            start_s = float(self._seconds(np.array([phase.start_ns]))[0])
            stop_s = end_s if phase.end_ns is None else float(self._seconds(np.array([phase.end_ns]))[0])
            start_s, stop_s = max(start_s, 0.0), min(stop_s, end_s)
            if stop_s > start_s:
                named = {"name": phase.name, "repeat": phase.repeat, "kind": phase.kind}
                bands.append({**named, "start_s": start_s, "end_s": stop_s})
        return bands

    def _read_power(self, query: Mapping[str, str]) -> Any:
        start_s, end_s = stretch_of(query)
        columns = columns_of(query)
        with self._lock:
            track = self._power.track
            if track is None:
                raise BadInput("no sample has arrived yet")
            at_ns, per_s = self._notes.rates()
            at_ns = at_ns + self._phases.late_ns
            operations = None
            if per_s.any():
                operations = {"bounds_s": rounded(self._seconds(at_ns), 3), "per_s": rounded(per_s, 1)}
            values = power_values(joined(track.inside(start_s, end_s), columns))
            return {**values, "single": False, "lost_s": [], "operations": operations}

    def _stretch(self, query: Mapping[str, str]) -> Any:
        """Energy of a stretch, from blocks of the raw trace so far."""
        start_s, end_s = stretch_of(query)
        with self._lock:
            energy_j, known_s = self._power.energy_j(start_s, end_s)
        if not known_s:
            raise BadInput("there is no sample in this stretch")
        rows = [
            stated_row("energy_j", "energy", unstated(energy_j, "J", UNCORRECTED)),
            stated_row("power_w", "mean power", unstated(energy_j / known_s, "W", UNCORRECTED)),
            stated_row("marginal_energy_j", "energy above idle", missing("known after the run", "J")),
        ]
        return {"operations": None, "quantities": rows}

    def _running(self, query: Mapping[str, str]) -> Any:
        """Cumulative energy over a stretch; a part without samples adds nothing."""
        start_s, end_s = stretch_of(query)
        moments_s = np.linspace(start_s, end_s, columns_of(query))
        with self._lock:
            energies_j = [self._power.energy_j(start_s, moment_s)[0] for moment_s in moments_s.tolist()]
        time_s, energy_j = rounded(moments_s - start_s, 6), rounded(np.array(energies_j), 6)
        return {"time_s": time_s, "energy_j": energy_j, "marginal_energy_j": None}

    def _report(self, query: Mapping[str, str]) -> bytes:
        with self._lock:
            directory = self._directory
        if directory is None or directory.name != query.get("run"):
            raise BadInput(f"this page has no run '{query.get('run', '')[:80]}'")
        return report_of(directory)

    def _seconds(self, meter_ns: Int64Array) -> Float64Array:
        """Times on the axis that begins with the first block [s]."""
        return np.asarray((meter_ns - self._power.origin_ns) * 1e-9, np.float64)


def _ending(directory: Path | None) -> dict[str, Any]:
    """Message for the page about a measurement whose program has ended."""
    if directory is None or not (directory / "run.json").exists():
        return {"words": "The measurement ended before its record was begun. The terminal shows the reason."}
    head: dict[str, Any] = {"record": str(directory), "report": False}
    try:
        record = RunRecord.open(directory)
    except OpJouleError as fault:
        return {**head, "words": f"The measurement has ended. {fault}"}
    if not record.is_finished:
        analyse = f"'{program('report')} {directory}' analyses the recorded data."
        return {**head, "words": f"The measurement was killed before its end. {analyse}"}
    words, has_report = f"The measurement has ended: {record.status}.", (directory / "report.html").exists()
    return {**head, "words": words, "report": has_report}


def _title(directory: Path | None) -> str:
    """Title of the measurement, with SIMULATED if it is; empty before the record is begun."""
    if directory is None:
        return ""
    try:
        with reading(directory):
            return open_answer(directory).title
    except (OpJouleError, OSError):
        return ""
