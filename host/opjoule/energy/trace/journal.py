"""The files of a trace: append-only Arrow streams that survive kill -9 while it is recorded, parquet at the end.

    raw/power.arrows  raw/gaps.arrows  raw/edges.arrows     appended about once a second, never rewritten
    power.parquet     gaps.parquet     edges.parquet        made from them at the end: tmp, fsync, rename

A meter that converts the voltage only occasionally also has bus.arrows and bus.parquet. The voltages of its
power.arrows are held from reading to reading. The voltages of power.parquet and of `read_trace` follow the supply's
load line, and their stamps (with those of gaps.parquet) are even within each row of conversions.

The sensor in the board's supply has number 0. Further sensors have files of their own: power-1, gaps-1. `read_trace`
uses the parquet files if they exist, else the streams.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, astuple, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opjoule.base.errors import RecordFault, naming
from opjoule.energy.trace.conversion_rows import evenly_stamped
from opjoule.energy.trace.parquet_file import (
    BUS,
    EDGES,
    GAPS,
    POWER,
    ROW_GROUP_ROWS,
    check_columns,
    check_version,
    open_parquet,
    readable,
    write_parquet,
)
from opjoule.energy.trace.power_trace import Gap, PowerTrace
from opjoule.energy.trace.supply_line import BusReadings

FLUSH_PERIOD_S = 1.0
_SAMPLE_BYTES = 24
"""Least size of one sample in a stream."""
TABLES = {"gaps": GAPS, "edges": EDGES, "bus": BUS, "power": POWER}
"""In the order of their parquet files: where power.parquet is, the other ones are."""
ALWAYS = ("power", "gaps", "edges")
"""Tables that every trace has, even if they are empty."""


def _files(directory: Path, name: str, sensor: int) -> tuple[Path, Path]:
    """(parquet file, stream) of one table of one sensor."""
    stem = f"{name}-{sensor}" if sensor else name
    return directory / f"{stem}.parquet", directory / "raw" / f"{stem}.arrows"


def _joined(parts: tuple[Any, ...]) -> Any:
    """One array of several, or one list of several."""
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else list(chain.from_iterable(parts))


class AppendStream:
    """One append-only Arrow stream file with rows waiting in memory."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._file = path.open("xb")
        self._schema = schema
        self._waiting: list[list[Any]] = []
        with naming(path):
            self._writer = pa.ipc.new_stream(self._file, schema)
            # The schema reaches the file with the first batch.
            self._writer.write_batch(pa.RecordBatch.from_pylist([], schema))
            self._file.flush()

    def append(self, columns: list[Any]) -> None:
        """Adds rows, given as the schema's columns; they wait for `flush`.

        Args:
            columns: lists in every call of a stream, or arrays in every call; they must not change afterwards.
        """
        self._waiting.append(columns)

    def flush(self) -> None:
        """Hands the waiting rows to the kernel. Raises: OSError: the medium is full or gone."""
        with naming(self._path):
            if self._waiting:
                # Arrow takes longer for an array than for its rows: one array a column, not one a frame of the meter.
                columns = map(_joined, zip(*self._waiting, strict=True))
                arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
                self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
                self._waiting.clear()
            self._file.flush()

    def close(self) -> None:
        """Ends the stream and waits until it is on the medium. Raises: OSError: as `flush`; the file is then closed."""
        with naming(self._path):
            try:
                self.flush()
                self._writer.close()
                self._file.flush()
                os.fsync(self._file.fileno())
            finally:
                self._file.close()


class TraceJournal:
    """Appends samples, gaps and edges to `directory/raw/*.arrows`; one thread at a time.

    Rows reach the file (not necessarily the medium) about once a second, or at `flush`.

    Raises: FileExistsError: the directory already contains a journal; raw data is never overwritten.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (directory / "raw").mkdir(parents=True, exist_ok=True)
        self._streams: dict[tuple[str, int], AppendStream] = {}
        for name in ALWAYS:
            self._stream(name)
        self._flushed_s = time.monotonic()
        self._last_meter_ns: dict[int, int] = {}
        self.samples = 0
        """Number of appended samples, without lost ones."""
        self.lost_samples = 0

    def append_samples(
        self,
        meter_ns: npt.NDArray[np.int64],
        current_a: npt.NDArray[np.float64],
        voltage_v: npt.NDArray[np.float64],
        sensor: int = 0,
        clipped: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Appends good samples, later than everything appended before for the same sensor; arrays of shape (n,).

        Args:
            meter_ns: centre of the current conversion [ns], increasing.
            clipped: True at the end of the meter's range; None: no sample is.
        Raises: ValueError: a stamp is not later than the one before it.
        """
        self._check_order(meter_ns, sensor)
        if clipped is None:
            clipped = np.zeros(meter_ns.size, np.bool_)
        self._stream("power", sensor).append([meter_ns, current_a, voltage_v, clipped])
        self.samples += int(meter_ns.size)
        self.flush_when_due()

    def append_gap(self, gap: Gap, sensor: int = 0) -> None:
        """Appends a gap, with one NaN row for each lost sample; call it before the samples after the gap."""
        lost_ns = gap.lost_centres_ns()
        self._check_order(lost_ns, sensor)
        nothing = np.full(lost_ns.size, np.nan)
        self._stream("power", sensor).append([lost_ns, nothing, nothing, np.zeros(lost_ns.size, np.bool_)])
        self._stream("gaps", sensor).append([[value] for value in astuple(gap)])
        self.lost_samples += gap.lost_samples
        self.flush_when_due()

    def append_bus(self, meter_ns: int, voltage_v: float, sensor: int = 0) -> None:
        """Appends a voltage reading between two samples; `meter_ns`: its end on the meter's clock."""
        self._stream("bus", sensor).append([[meter_ns], [voltage_v]])
        self.flush_when_due()

    def append_edge(self, meter_ns: int, level: int, index: int) -> None:
        """Appends one edge of the sync line; `index`: number of the edge since the meter's start."""
        self._stream("edges").append([[meter_ns], [level], [index]])
        self.flush_when_due()

    def flush(self) -> None:
        """Hands every waiting row to the kernel, so that it survives a kill of this process.

        The currents are written last, so that a reader of a running journal finds the voltages up to its last current.
        """
        for stream in reversed(self._streams.values()):
            stream.flush()
        self._flushed_s = time.monotonic()

    def close(self) -> None:
        """Ends all streams and waits until they are on the medium. Raises: OSError: the first error; all are closed."""
        with ExitStack() as closing:
            for stream in self._streams.values():
                closing.callback(stream.close)

    def _stream(self, name: str, sensor: int = 0) -> AppendStream:
        """The stream of one table; created when a further sensor first needs it."""
        key = name, sensor
        if key not in self._streams:
            _, path = _files(self._directory, name, sensor)
            self._streams[key] = AppendStream(path, TABLES[name])
        return self._streams[key]

    def flush_when_due(self) -> None:
        """Flushes if the last flush was a second or more ago. Raises: OSError: the medium is full or gone."""
        if time.monotonic() - self._flushed_s >= FLUSH_PERIOD_S:
            self.flush()

    def _check_order(self, meter_ns: npt.NDArray[np.int64], sensor: int) -> None:
        if meter_ns.size == 0:
            return
        before = self._last_meter_ns.get(sensor)
        if (before is not None and meter_ns[0] <= before) or bool(np.any(meter_ns[1:] <= meter_ns[:-1])):
            raise ValueError(f"samples out of order: {meter_ns[0]}..{meter_ns[-1]} ns after {before} ns")
        self._last_meter_ns[sensor] = int(meter_ns[-1])


@dataclass(frozen=True)
class SyncEdges:
    """Edges of the sync line recorded by the meter, each array of shape (n,)."""

    meter_ns: npt.NDArray[np.int64]
    level: npt.NDArray[np.int8]
    index: npt.NDArray[np.int64]
    """Number of the edge since the meter's start; a repeated number means the same edge."""


def read_trace(directory: Path, sensor: int = 0) -> PowerTrace:
    """The power trace of one sensor of a run directory; for a killed run, up to its last flush.

    Raises: RecordFault: the directory has no trace, or the trace is corrupt.
    """
    try:
        stored = _files(directory, "power", sensor)[0].exists()
        meter_ns, current_a, voltage_v, clipped = _samples(directory, sensor)
        gaps = [Gap(**row) for row in _table(directory, "gaps", sensor, streamed=not stored).to_pylist()]
        bus = _table(directory, "bus", sensor)
        columns = [bus.column(name).to_numpy() for name in BUS.names]
        trace = PowerTrace.of(meter_ns, current_a, voltage_v, gaps, clipped)
        trace = replace(trace, bus=BusReadings(*columns) if len(bus) else None)
        return (trace if stored else evenly_stamped(trace)).on_supply_line()
    except ValueError as fault:
        raise RecordFault(f"power trace in {directory}: {fault}") from None


def read_edges(directory: Path) -> SyncEdges:
    """The sync edges of a run directory; may be empty."""
    table = _table(directory, "edges")
    meter_ns, level, index = (table.column(name).to_numpy() for name in ("meter_ns", "level", "index"))
    return SyncEdges(meter_ns, level, index)


def further_numbers(directory: Path) -> list[int]:
    """Numbers of the sensors besides the board's supply that have a trace in a run directory."""
    paths = (*directory.glob("power-*.parquet"), *directory.glob("raw/power-*.arrows"))
    return sorted({int(path.name.partition("-")[2].partition(".")[0]) for path in paths})


def to_parquet(directory: Path, read: PowerTrace | None = None) -> list[Path]:
    """Makes power.parquet, gaps.parquet and edges.parquet of every sensor from the streams, which stay.

    `read`: trace of sensor 0 from `read_trace`, if available; the stream is then not read again.
    """
    made = []
    for sensor in [0, *further_numbers(directory)]:
        trace = read if not sensor else None
        if trace is None and len(_table(directory, "bus", sensor)):  # the stream lacks its voltages and stamps
            trace = read_trace(directory, sensor)
        for name, schema in TABLES.items():
            parquet, stream = _files(directory, name, sensor)
            if not stream.exists():
                continue
            if trace and name == "power":
                parts = _power_parts(trace)
            elif trace and name == "gaps":
                parts = iter([pa.Table.from_pylist([asdict(gap) for gap in trace.gaps], schema)])
            else:
                parts = (pa.Table.from_batches([batch], schema) for batch in read_stream(stream, name))
            made.append(parquet)
            write_parquet(parquet, schema, parts)
    return made


def _power_parts(trace: PowerTrace) -> Iterator[pa.Table]:
    columns = [getattr(trace, name) for name in POWER.names]
    for at in range(0, len(trace), ROW_GROUP_ROWS):
        arrays = [pa.array(column[at : at + ROW_GROUP_ROWS]) for column in columns]
        yield pa.table(arrays, schema=POWER)


def read_stream(path: Path, name: str) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow stream file without an incomplete last one; empty if the file ends inside its schema.

    Raises: RecordFault: the stream's schema is not readable, or is not a version of `name` that this program reads.
    """
    if _has_torn_head(path):
        return  # the writer was killed between creating the file and the end of its first write
    with pa.OSFile(str(path), "rb") as source:
        try:
            reader = pa.ipc.open_stream(source)
        except (pa.ArrowException, ValueError, OSError) as fault:
            raise RecordFault(f"{path}: not a readable Arrow stream: {str(fault).splitlines()[0]}") from None
        schema = TABLES[name]
        check_version(reader.schema, schema, path)
        check_columns(reader.schema, schema, path)  # every batch has the schema of its stream
        as_it_is = reader.schema.names == schema.names
        try:
            while True:
                batch = reader.read_next_batch()
                yield batch if as_it_is else batch.select(schema.names)
        except (StopIteration, pa.ArrowException, ValueError, OSError):
            return


def _has_torn_head(path: Path) -> bool:
    """Whether the file ends inside its schema. Source: Arrow Columnar Format, "Encapsulated message format"."""
    with path.open("rb") as file:
        head = file.read(8)
    begins = head[:4] == b"\xff\xff\xff\xff"[: len(head)]
    return begins and path.stat().st_size < 8 + int.from_bytes(head[4:8], "little")


def _samples(directory: Path, sensor: int) -> list[npt.NDArray[Any]]:
    """The columns of the samples, filled batch by batch to save memory. Raises: as read_trace()."""
    parquet, stream = _files(directory, "power", sensor)
    if parquet.exists():
        rows, batches = _parquet_batches(parquet, "power")
    elif stream.exists():
        rows, batches = stream.stat().st_size // _SAMPLE_BYTES, read_stream(stream, "power")
    else:
        raise RecordFault(f"{directory}: no power trace (neither {parquet.name} nor raw/{stream.name})")
    columns = [np.empty(rows, field.type.to_pandas_dtype()) for field in POWER]
    filled = 0
    for batch in batches:
        if filled + batch.num_rows > columns[0].size:  # the stream grows while it is read
            more = filled + batch.num_rows
            columns = [np.concatenate([column, np.empty(more, column.dtype)]) for column in columns]
        for column, values in zip(columns, batch.columns, strict=True):
            column[filled : filled + batch.num_rows] = values.to_numpy(zero_copy_only=False)
        filled += batch.num_rows
    return [column[:filled] for column in columns]


def _parquet_batches(path: Path, name: str) -> tuple[int, Iterator[pa.RecordBatch]]:
    """Rows of a parquet file, and its batches."""
    schema = TABLES[name]
    file = open_parquet(path, schema)

    def batches() -> Iterator[pa.RecordBatch]:
        with readable(path), file:
            for batch in file.iter_batches(ROW_GROUP_ROWS):
                yield batch.select(schema.names)

    return file.metadata.num_rows, batches()


def _table(directory: Path, name: str, sensor: int = 0, *, streamed: bool = False) -> pa.Table:
    parquet, stream = _files(directory, name, sensor)
    if parquet.exists() and not streamed:
        return pa.Table.from_batches(_parquet_batches(parquet, name)[1], TABLES[name])
    return pa.Table.from_batches(read_stream(stream, name) if stream.exists() else [], TABLES[name])
