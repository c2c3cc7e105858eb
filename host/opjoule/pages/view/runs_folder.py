"""The records under a folder by name, the open ones among them, and the pyramid of levels of each.

A pyramid is made when the record is first shown, then kept in view.cache beside the record. The cache contains no data
of its own. It is made again if it is missing or damaged, or if it belongs to another version of this program or to
another run.json (it contains the digest). Without write permission there is no cache.
"""

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, Self

import numpy as np
import pyarrow as pa

from opjoule.base.errors import BadInput, OpJouleError
from opjoule.base.files import rewriting
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.parquet_file import StretchReader, around
from opjoule.energy.trace.power_trace import Float64Array, PowerTrace
from opjoule.results.recorded import TimeAxis
from opjoule.results.run import OpenedRun, open_run
from opjoule.results.run_list import ListedRun, RunIndex, run_folders
from opjoule.results.tracks import Floats, LostStretch, SampleParts, Track, grouped, joined, sample_cells, sampled_track
from opjoule.runs.record.run_record import DIGEST, reading

POWER: Final = "power_w"
FACTOR: Final = 4
COARSEST: Final = 2000
"""Number of cells below which a level has no level above it."""
FINEST: Final = 16
"""Number of samples in a cell of the finest level of a trace longer than WHOLE."""
WHOLE: Final = 1 << 16
HALF_NS: Final = 0.5e-9


@dataclass(frozen=True)
class Pyramid:
    """Levels of cells, finest first; each level has a quarter of the previous level's cells."""

    levels: Sequence[Track]
    """Levels, which contain only POWER."""
    samples: Callable[[float, float], Track] | None = None
    """Function that returns the cells of the samples in a stretch [s]; None if the finest level has them."""

    @classmethod
    def of(cls, samples: SampleParts, period_s: float) -> Self:
        """The levels of a trace's power."""
        cells = samples.count if samples.count <= WHOLE else -(-samples.count // FINEST)
        return cls.above(sampled_track(samples, period_s, cells))

    @classmethod
    def above(cls, track: Track) -> Self:
        """The levels above a track."""
        levels = [track]
        while len(levels[-1]) > COARSEST:
            levels.append(grouped(levels[-1], FACTOR))
        return cls(levels)

    def view(self, start_s: float, end_s: float, columns: int) -> Track:
        """At most about `columns` cells that cover a stretch."""
        # The resolution of time stamps; a cell that only touches the stretch is outside.
        start_s, end_s = start_s + HALF_NS, end_s - HALF_NS
        cells = self.levels[0].inside(start_s, end_s)
        if self.samples and len(cells) < columns:
            cells = self.samples(start_s, end_s)
        else:
            for level in self.levels[1:]:
                coarser = level.inside(start_s, end_s)
                if len(cells) <= columns or len(coarser) < columns:
                    break
                cells = coarser
        return joined(cells, max(columns, 1))


CACHE: Final = "view.cache"
VERSION: Final = 1
_SCHEMA: Final = pa.schema(
    [("start_s", pa.float64()), *((name, pa.float32()) for name in ("mean_w", "lowest_w", "highest_w"))]
)
_ABOUT: Final = b"opjoule.pages.view"


@dataclass(frozen=True)
class Extent:
    """All drawn properties of a trace except its power."""

    samples: int
    period_ns: int
    origin_ns: int
    """Origin of the time axis on the meter's clock."""
    end_s: float
    lost: list[LostStretch]
    lost_s: list[float]
    """Middle of each lost cell of the energy integral [s], ascending."""
    corrected: bool
    """Whether the sensor's calibration is valid for the trace."""

    @property
    def axis(self) -> TimeAxis:
        """The time axis of the trace."""
        return TimeAxis(self.origin_ns, self.lost)


@dataclass(frozen=True)
class Levels:
    """A record's trace, as drawn by the page."""

    extent: Extent
    pyramid: Pyramid


def kept_levels(run: OpenedRun) -> Levels | None:
    """Levels of a run from its cache; None if there is no valid cache."""
    digest = _digest(run)
    levels = _read(run.path / CACHE, digest) if digest else None
    return levels and replace(levels, pyramid=replace(levels.pyramid, samples=_stretches(run, levels.extent)))


def make_levels(run: OpenedRun) -> Levels:
    """Levels of a run from its trace; those of a long, finished run are kept in the cache.

    Raises: RecordFault: the trace cannot be read. WindowError: it has fewer than two good samples.
    """
    made = _made(run)
    if made.extent.samples <= WHOLE:
        return made
    if digest := _digest(run):
        with suppress(OSError):
            _write(run.path / CACHE, digest, made)
    return replace(made, pyramid=replace(made.pyramid, samples=_stretches(run, made.extent)))


def _digest(run: OpenedRun) -> str:
    """Digest for which the cache is valid: that of run.json, which has all checksums; empty while it may change."""
    return str(run.answer.record.document.get(DIGEST, "")) if run.answer.record.is_finished else ""


def _made(run: OpenedRun) -> Levels:
    trace, axis, cells = run.trace, run.axis, run.cells

    def power(some: slice) -> tuple[Floats, dict[str, Floats]]:
        return axis.of_meter(trace.meter_ns[some]), {POWER: trace.current_a[some] * trace.voltage_v[some]}

    pyramid = Pyramid.of(SampleParts(len(trace), power), trace.period_ns * NS)
    middle_ns = [(cells.bounds_ns[one.cell] + cells.bounds_ns[one.cell + 1]) // 2 for one in cells.lost]
    lost_s = np.sort((np.array(middle_ns, np.int64) - axis.origin_ns) * NS).tolist()
    end_s = (cells.end_ns - axis.origin_ns) * NS
    extent = Extent(len(trace), trace.period_ns, axis.origin_ns, end_s, axis.lost, lost_s, run.is_corrected)
    return Levels(extent, pyramid)


def _stretches(run: OpenedRun, extent: Extent) -> Callable[[float, float], Track]:
    """Function that reads the cells of single samples, from parts of the file or, without a file, from the trace."""
    axis, sensor = extent.axis, run.answer.record.run.sensor
    calibration = sensor.calibration if sensor and extent.corrected else None
    reader: list[StretchReader] = []

    def read(start_ns: int, end_ns: int) -> PowerTrace:
        if not run.answer.record.path("power.parquet").exists():
            some, trace = around(run.trace.meter_ns, start_ns, end_ns), run.trace
            return PowerTrace(trace.meter_ns[some], trace.current_a[some], trace.voltage_v[some])
        if not reader:
            reader.append(StretchReader(run.answer.record.intact("power.parquet")))
        trace = reader[0].between(start_ns, end_ns)
        return calibration.apply(trace) if calibration else trace

    def cells(start_s: float, end_s: float) -> Track:
        trace = read(*(extent.origin_ns + round(bound_s / NS) for bound_s in (start_s, end_s)))
        samples = SampleParts.of(axis.of_meter(trace.meter_ns), {POWER: trace.power_w})
        whole = sample_cells(samples, extent.period_ns * NS, slice(0, len(trace)))
        return whole.inside(start_s, end_s)

    return cells


def _write(path: Path, digest: str, levels: Levels) -> None:
    """Writes the cache. Raises: OSError: it cannot be written."""
    tracks = levels.pyramid.levels
    about = {
        "version": VERSION,
        "digest": digest,
        "extent": asdict(levels.extent),
        "end_s": [float(track.bounds_s[-1]) for track in tracks],
        "samples_per_cell": [track.samples_per_cell for track in tracks],
    }
    schema = _SCHEMA.with_metadata({_ABOUT: json.dumps(about)})
    with rewriting(path) as file, pa.ipc.new_file(file, schema) as writer:
        for track in tracks:
            columns = [track.bounds_s[:-1], track.mean[POWER], *track.extremes(POWER)]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _read(path: Path, digest: str) -> Levels | None:
    """Levels of the run.json with this digest; None if the cache does not have them."""
    try:
        file = pa.ipc.open_file(pa.memory_map(str(path)))
        about = json.loads(file.schema.metadata[_ABOUT])
        if (about["version"], about["digest"]) != (VERSION, digest):
            return None
        stored = about["extent"]
        extent = Extent(**{**stored, "lost": [LostStretch(**stretch) for stretch in stored["lost"]]})
        tracks = []
        rows = zip(about["end_s"], about["samples_per_cell"], strict=True)
        for number, (end_s, samples) in enumerate(rows):
            start_s, *values_w = (column.to_numpy() for column in file.get_batch(number).columns)
            mean, lowest, highest = ({POWER: column} for column in values_w)
            tracks.append(Track(np.append(start_s, end_s), mean, lowest, highest, samples))
        return Levels(extent, Pyramid(tracks))
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        return None


OPEN_AT_ONCE: Final = 6
"""Number of runs that are kept open: as many as the page shows at once."""
READ_S: Final = 0.5
"""How long a list waits for records that are still being read."""
NEW_S: Final = 60.0
"""How long a list that was read to its end is given to whoever asks next; a page asks again after a few seconds."""


@dataclass(frozen=True)
class Listing:
    """The records that are known so far."""

    runs: dict[str, ListedRun]
    """Name -> record, in descending order of names."""
    total: int
    """Number of existing records; larger than that of the known ones while some are still being read."""
    is_whole: bool
    """Whether all records were checked, at most NEW_S ago."""


class ShownRun:
    """An open record, with results that are computed once."""

    def __init__(self, run: OpenedRun) -> None:
        self.lock = threading.Lock()
        """Lock of the drawn data."""
        self.energies = threading.Lock()
        """Lock of energies, for which the whole trace is read."""
        self._given = run
        self._ahead: threading.Thread | None = None

    @cached_property
    def _opened(self) -> tuple[OpenedRun, Levels]:
        kept = kept_levels(self._given)
        if kept is None:
            return self._given, make_levels(self._given)
        return replace(self._given, known_axis=kept.extent.axis), kept

    @property
    def run(self) -> OpenedRun:
        """The record; if its levels are cached, drawing does not read its trace."""
        return self._opened[0]

    @property
    def extent(self) -> Extent:
        """Length, time axis and lost stretches of the trace."""
        return self._opened[1].extent

    @property
    def pyramid(self) -> Pyramid:
        """The power in several resolutions."""
        return self._opened[1].pyramid

    @cached_property
    def operations_s(self) -> Float64Array:
        """Start of each operation on the run's time axis [s], ascending; empty if unknown."""
        if not (self.run.path / "operations.parquet").exists():
            return np.zeros(0)
        times_s: Float64Array = np.sort(self.run.time_s(self.run.starts_ns))
        return times_s[np.isfinite(times_s)]

    @cached_property
    def lost_s(self) -> Float64Array:
        """Middle of each lost stretch on the run's time axis [s], ascending."""
        return np.array(self.extent.lost_s, np.float64)

    def read_ahead(self) -> None:
        """Starts reading what energies need, in a thread, so that the first energy is available sooner."""
        if self._ahead is None:
            self._ahead = threading.Thread(target=self._energy, name="reading-ahead", daemon=True)
            self._ahead.start()

    def _energy(self) -> None:
        with (
            self.energies,
            suppress(OpJouleError, OSError),
            reading(self._given.path),
        ):  # the next request reports it
            if self.extent.samples > WHOLE and self.run.answer.record.is_finished:
                self.run.forget_samples()
            self.run.energy(0.0, self.extent.end_s / 2)


class RunsFolder:
    """All records under one folder, which may be a record itself. May be used from several threads."""

    def __init__(self, folder: Path) -> None:
        """Raises: RecordFault: there is no such folder."""
        self.folder = folder
        self._open: OrderedDict[str, ShownRun] = OrderedDict()
        self._lock = threading.Lock()
        self._index = RunIndex(folder)
        self._runs: dict[str, ListedRun] = {}
        self._reading: threading.Thread | None = None
        self._read_s = 0.0
        """End of the last reading, on the clock of time.monotonic()."""
        next(run_folders(folder), None)

    def listing(self) -> Listing:
        """All records. Only those that changed since they were last read are read again, in a thread.

        To check ten thousand records may take longer than a call waits: the next call gets them, and only the one after
        it checks anew.
        """
        with self._lock:
            if self._reading and not self._reading.is_alive() and time.monotonic() - self._read_s > NEW_S:
                self._reading = None
            if self._reading is None:
                self._reading = threading.Thread(target=self._read, name="reading-the-list", daemon=True)
                self._reading.start()
            reading = self._reading
        reading.join(READ_S)
        is_whole = not reading.is_alive()
        with self._lock:
            if is_whole and self._reading is reading:
                self._reading = None
        runs = dict(sorted(self._runs.copy().items(), reverse=True))
        return Listing(runs, max(self._index.total, len(runs)), is_whole)

    def _read(self) -> None:
        runs = {}
        with suppress(OpJouleError, OSError):  # the folder is gone: the list ends here
            for name, run in self._index.runs():
                runs[name] = self._runs[name] = run
        self._runs = runs
        self._read_s = time.monotonic()

    def place(self, name: str) -> Path:
        """Folder of the run with this name. Raises: BadInput: there is none."""
        known = self._runs.get(name)
        path = known.path if known and (known.path / "run.json").exists() else self._index.places().get(name)
        if path is None:
            raise BadInput(f"there is no run '{name}' in {self.folder}")
        return path

    def open(self, name: str) -> ShownRun:
        """The run with this name. Raises: BadInput: there is none. RecordFault: it cannot be read."""
        with self._lock:
            shown = self._open.get(name)
            if shown is None:
                shown = self._open[name] = ShownRun(open_run(self.place(name)))
            self._open.move_to_end(name)
            while len(self._open) > OPEN_AT_ONCE:
                self._open.popitem(last=False)
        return shown
