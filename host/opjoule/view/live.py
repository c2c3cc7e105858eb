"""A record while it grows: what a measurement has written so far, read from its raw files as they are flushed."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from opjoule.drawing.pyramid import POWER
from opjoule.drawing.stretches import phase_kind
from opjoule.drawing.tracks import Track, joined
from opjoule.errors import BadInput, OpJouleError
from opjoule.measurement.progress_notes import PROGRESS
from opjoule.record.run_record import reading
from opjoule.report.answer import open_answer
from opjoule.trace.power_trace import Float64Array, Int64Array
from opjoule.view.replies import asked_columns, asked_stretch, power_values, rounded

BLOCK_NS: Final = 20_000_000
"""Samples are kept as least, greatest and mean of each such stretch of the meter's clock."""
HOLE_BLOCKS: Final = 3
"""So many times the usual distance of two blocks without a sample are a hole."""
NEWEST_S: Final = 1.0
"""The power shown as a number is the mean of so much."""


class GrowingPower:
    """Blocks of a raw power stream, kept up with the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self._schema: pa.Schema | None = None
        self._waiting: tuple[Int64Array, Float64Array] = np.zeros(0, np.int64), np.zeros(0)
        self._block = np.zeros(0, np.int64)
        self._values_w = np.zeros((3, 0))
        self.samples = 0
        """Read so far, lost ones included."""
        self.track: Track | None = None
        """All whole blocks so far, in seconds since the first began; a hole between two is a cell of its own."""

    def catch_up(self) -> None:
        """Takes in what was flushed since; a batch that is not whole yet waits for the next time."""
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
        """Whole blocks of these samples; those of the last one, which may get more, wait."""
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

    def newest_w(self) -> float | None:
        """Mean of the last second; None before the first sample."""
        recent = self._values_w[0, self._block > self._block[-1:] - round(NEWEST_S * 1e9 / BLOCK_NS)]
        known = recent[np.isfinite(recent)]
        return float(known.mean()) if known.size else None


def _power(batch: pa.RecordBatch) -> tuple[Int64Array, Float64Array]:
    meter_ns, current_a, voltage_v = (
        batch.column(name).to_numpy(zero_copy_only=False) for name in ("meter_ns", "current_a", "voltage_v")
    )
    return meter_ns, current_a * voltage_v


class GrowingNotes:
    """The lines of raw/progress.jsonl, kept up with the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self.phases: list[tuple[int, str]] = []
        """(meter_ns, what it is called) of each phase's beginning."""
        self.counts: list[tuple[int, float]] = []
        """(meter_ns, operations of its phase so far); a phase begins with 0."""
        self.temperature_c: float | None = None

    def catch_up(self) -> None:
        """Takes in the lines that are whole."""
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
                self.phases.append((at_ns, str(entry["phase"])))
                self.counts.append((at_ns, 0.0))
            if "operations" in entry:
                self.counts.append((at_ns, float(entry["operations"])))
            self.temperature_c = entry.get("temperature_c", self.temperature_c)

    def rates(self) -> tuple[Int64Array, Float64Array]:
        """Bounds [meter_ns], shape (n + 1,), and operations per second between them, shape (n,)."""
        if len(self.counts) < 2:
            return np.zeros(0, np.int64), np.zeros(0)
        at_ns, done = (np.array(column) for column in zip(*self.counts, strict=True))
        keep = np.concatenate((np.diff(at_ns) > 0, [True]))  # of one moment the last
        at_ns, done = at_ns[keep].astype(np.int64), done[keep]
        return at_ns, np.maximum(np.diff(done), 0.0) / (np.diff(at_ns) * 1e-9)


class LiveReplies:
    """The answers to the page's questions while a measurement goes on. Safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._directory: Path | None = None
        self._power, self._notes = GrowingPower(Path()), GrowingNotes(Path())
        self.known = {
            "runs": self._runs,
            "run": self._run,
            "power": self._read_power,
            "stretch": self._stretch,
        }

    def watch(self, directory: Path) -> None:
        """From now on the answers are about this record, which need not be there yet."""
        with self._lock:
            self._directory = directory
            self._power = GrowingPower(directory / "raw" / "power.arrows")
            self._notes = GrowingNotes(directory / "raw" / PROGRESS)

    def _runs(self, asked: Mapping[str, str]) -> Any:
        with self._lock:
            found = self._directory
        name = found.name if found else ""
        run = {"name": name, "title": name, "status": "being measured", "started_utc": "", "problem": ""}
        return {"folder": str(found.parent) if found else "", "runs": [run] if found else [], "live": True}

    def _run(self, asked: Mapping[str, str]) -> Any:
        """What is known so far; reads on."""
        with self._lock:
            power, notes = self._power, self._notes
            power.catch_up()
            notes.catch_up()
            end_s = float(power.track.bounds_s[-1]) if power.track else 0.0
            rates = notes.rates()[1]
            return {
                "title": _title(self._directory),
                "status": "being measured",
                "faults": [],
                "duration_s": end_s,
                "samples": power.samples,
                "phases": self._phases(end_s),
                "now": {
                    "power_w": power.newest_w(),
                    "operations_per_s": float(rates[-1]) if rates.size and notes.counts[-1][1] else None,
                    "temperature_c": notes.temperature_c,
                    "phase": notes.phases[-1][1] if notes.phases else None,
                },
            }

    def _read_power(self, asked: Mapping[str, str]) -> Any:
        start_s, end_s = asked_stretch(asked)
        columns = asked_columns(asked)
        with self._lock:
            track = self._power.track
            if track is None:
                raise BadInput("no sample has come yet")
            at_ns, per_s = self._notes.rates()
            operations = None
            if per_s.any():
                operations = {"bounds_s": rounded(self._seconds(at_ns), 3), "per_s": rounded(per_s, 1)}
            return {
                **power_values(joined(track.inside(start_s, end_s), columns)),
                "single": False,
                "lost_s": [],
                "operations": operations,
            }

    def _stretch(self, asked: Mapping[str, str]) -> Any:
        raise BadInput("joules are told once the measurement has ended: host/view.py shows it then")

    def _seconds(self, meter_ns: Int64Array) -> Float64Array:
        """On the axis that begins with the first block."""
        return np.asarray((meter_ns - self._power.origin_ns) * 1e-9, np.float64)

    def _phases(self, end_s: float) -> list[dict[str, Any]]:
        if not end_s or not self._notes.phases:
            return []
        starts_s = self._seconds(np.array([each[0] for each in self._notes.phases], np.int64)).clip(
            0.0, end_s
        )
        names = [name.strip() for _, name in self._notes.phases]
        return [
            {
                "name": name,
                "repeat": 1,
                "kind": phase_kind(name.split(" (")[0]),
                "start_s": start_s,
                "end_s": stop_s,
            }
            for name, start_s, stop_s in zip(
                names, starts_s.tolist(), [*starts_s[1:].tolist(), end_s], strict=True
            )
            if stop_s > start_s
        ]


def _title(directory: Path | None) -> str:
    """What is measured, with the word SIMULATED where it is."""
    if directory is None:
        return ""
    try:
        with reading(directory):
            return open_answer(directory).title
    except (OpJouleError, OSError):
        return directory.name  # not begun yet
