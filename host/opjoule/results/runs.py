"""Many records as tables that are read on demand: `opjoule.open_runs("runs")`.

DuckDB reads the records' Parquet files in parts and writes what exceeds its memory limit to a temporary file, so that
any number of runs needs no more memory than one. How to use it: docs/how-to/analyse-in-python.md. Why DuckDB:
docs/decisions/0012-duckdb-over-parquet.md.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from opjoule.base.errors import BadInput, OpJouleError
from opjoule.base.settings import MEDIUM
from opjoule.energy.operations.tables import BY_NAME
from opjoule.energy.sensor_calibration import Correction, SensorCalibration
from opjoule.energy.trace.parquet_file import POWER, checked_metadata, open_parquet
from opjoule.results.long_table import long_table, mean
from opjoule.results.recorded import corrected_trace
from opjoule.results.run_list import run_folders
from opjoule.runs.evaluation.wording import wording_of
from opjoule.runs.record.result import Conclusion, read_result
from opjoule.runs.record.run_record import RunRecord, reading

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

TABLES: Final[Mapping[str, pa.Schema]] = {
    "power": POWER,
    **{name: BY_NAME[name] for name in ("operations", "events", "system")},
}
"""Tables of a record by name, with their columns."""
_KEPT: Final[list[DuckDBPyConnection]] = []
"""Connections kept until the program ends: a relation needs its connection, and may outlive its OpenedRuns."""
_CURRENT: Final = """(scan.current_a * file.current_gain + file.current_offset_a)
    / (1 + file.heating_per_a2 * scan.current_a * scan.current_a)"""
"""Corrected current for the shunt's warmth at a steady current, since a row of a query does not know earlier rows."""
_VOLTAGE: Final = f"(scan.voltage_v * file.voltage_gain + file.voltage_offset_v - file.wire_ohm * {_CURRENT})"
_CORRECTED: Final = f"""
    {_CURRENT} as current_a,
    {_VOLTAGE} as voltage_v,
    {_CURRENT} * {_VOLTAGE} as power_w,"""


@dataclass(frozen=True)
class OpenedRuns:
    """The records below some folders: every number, sample, operation, event and counter of all of them."""

    folders: tuple[Path, ...]
    """Folders of the records, sorted by name; `run` in every table is one of them as text."""
    memory_limit: str
    """Memory limit of DuckDB, for example "1GB"."""
    unreadable: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Record or file that is in no table -> the reason; filled as the tables are read."""

    @cached_property
    def results(self) -> pa.Table:
        """One row per run: run, status, simulated, started_utc, db, device, storage, rig_name, block, and every
        quantity of its result by path, with its expanded uncertainty as `PATH u`.

        A value that a run does not have is null.
        """
        columns = dict.fromkeys(name for row, *_ in self._read for name in row)
        return pa.Table.from_pylist([{**dict.fromkeys(columns), **row} for row, *_ in self._read])

    @cached_property
    def quantities(self) -> pa.Table:
        """One row per quantity of each run, in the mean (`repeat` is null) and in each repeat: run, path, phase (null
        for the whole work), quantity, repeat, value, u, unit, cause, reason.
        """
        return pa.concat_tables(table for _, table, _ in self._read)

    @property
    def power(self) -> DuckDBPyRelation:
        """Samples of the supply, without lost ones: run, meter_ns, current_a [A], voltage_v [V], power_w [W], clipped.
        They are corrected by the sensor's calibration if that is valid for the run's trace.
        """
        return self._database.view("power")

    @property
    def operations(self) -> DuckDBPyRelation:
        """Run, and the columns of operations.parquet."""
        return self._database.view("operations")

    @property
    def events(self) -> DuckDBPyRelation:
        """Run, and the columns of events.parquet."""
        return self._database.view("events")

    @property
    def system(self) -> DuckDBPyRelation:
        """Run, and the columns of system.parquet."""
        return self._database.view("system")

    def sql(self, query: str) -> DuckDBPyRelation:
        """A DuckDB query over `results`, `quantities`, `power`, `operations`, `events` and `system`. Data are read
        when rows are fetched (`fetchall()`, `df()`, `to_arrow_table()`, `fetch_record_batch()`).

        Raises: BadInput: DuckDB rejects the query, or is not installed.
        """
        database = self._database
        import duckdb  # noqa: PLC0415  # the line above says what to do if it is not installed

        try:
            return database.sql(query)
        except duckdb.Error as error:
            raise BadInput(f"{' '.join(query.split())}: {str(error).splitlines()[0]}") from None

    @cached_property
    def _read(self) -> list[tuple[dict[str, Any], pa.Table, dict[str, float]]]:
        """Row of the results, long table, and correction of the samples, of each record."""
        records = []
        for folder in self.folders:
            try:
                with reading(folder):
                    record = RunRecord.open(folder)
                    records.append((*_numbers(record), _correction(record)))
            except OpJouleError as error:
                self.unreadable[str(folder)] = str(error)  # type: ignore[index]
        return records

    @cached_property
    def _database(self) -> DuckDBPyConnection:
        try:
            import duckdb  # noqa: PLC0415  # only this module needs it
        except ImportError:
            raise BadInput("open_runs needs DuckDB: pip install duckdb, or OpJoule with its extra [many]") from None
        database = duckdb.connect(
            config={
                "memory_limit": self.memory_limit,
                "preserve_insertion_order": False,
                "temp_directory": str(Path(tempfile.gettempdir()) / f"opjoule-duckdb-{os.getpid()}"),
            }
        )
        _KEPT.append(database)
        database.register("results", self.results)
        database.register("quantities", self.quantities)
        for name, schema in TABLES.items():
            files = list(self._files(name, schema))
            if not files:
                empty = schema.empty_table().add_column(0, "run", pa.array([], pa.string()))
                if name == "power":
                    empty = empty.append_column("power_w", pa.array([], pa.float64()))
                database.register(name, empty)
                continue
            database.register(f"{name}_files", pa.Table.from_pylist(files))
            paths = ", ".join("'" + str(file["path"]).replace("'", "''") + "'" for file in files)
            columns = ["meter_ns", "clipped"] if name == "power" else schema.names
            shown = ", ".join(f"scan.{column}" for column in columns)
            database.execute(
                f"create view {name} as select file.run, {_CORRECTED if name == 'power' else ''} {shown} "
                f"from read_parquet([{paths}], filename = 'path') scan "
                f"join {name}_files file using (path)"
            )
        return database

    def _files(self, name: str, schema: pa.Schema) -> Iterator[dict[str, Any]]:
        """The file of one table in each record that has it, with the correction of its samples."""
        for record, _, correction in self._read:
            path = Path(record["run"]) / f"{name}.parquet"
            if not path.exists():
                continue
            try:
                open_parquet(path, schema).close()
                yield {"path": str(path), "run": record["run"], **(correction if name == "power" else {})}
            except OpJouleError as error:
                self.unreadable[str(path)] = str(error)  # type: ignore[index]


def open_runs(*places: str | Path, memory_limit: str = "1GB") -> OpenedRuns:
    """Opens every record in or below some folders; data are read on demand, and nothing is written.

    Checksums of result.json and run.json are compared. Those of other files are not, since these would have to be read
    in full (`host/runs.py verify` does so). Data that exceed `memory_limit` are in a temporary file.
    Raises: RecordFault: a place is not a directory. BadInput: there is no record.
    """
    folders = tuple(dict.fromkeys(folder for place in places for folder in run_folders(Path(place))))
    if not folders:
        raise BadInput(f"{', '.join(map(str, places)) or 'nothing'}: there is no run record in it")
    return OpenedRuns(folders, memory_limit)


def _numbers(record: RunRecord) -> tuple[dict[str, Any], pa.Table]:
    """Row of the results and long table. Raises: RecordFault: result.json was changed since it was written, or is
    unreadable."""
    run, asked = record.run, record.document.get("asked", {})
    row: dict[str, Any] = {
        "run": str(record.directory),
        "status": record.status,
        "simulated": record.simulated,
        "started_utc": run.found.started_utc,
        "db": run.asked.db,
        "device": run.asked.device,
        MEDIUM: run.found.medium or run.asked.medium,
        "rig_name": asked.get("rig_name"),
        "block": asked.get("block"),
    }
    concluded = read_result(record.directory) if record.intact("result.json").exists() else Conclusion()
    known = wording_of(run).quantities_of(concluded.numbers)
    for of in known if concluded.numbers else ():
        number = mean(concluded, known, of.key)
        row |= {of.key: number.value, f"{of.key} u": number.u}
    table = long_table(concluded, known)
    return row, table.add_column(0, "run", pa.array([row["run"]] * len(table), pa.string()))


def _correction(record: RunRecord) -> dict[str, float]:
    """Gains, offsets and heating (1 and 0 if no calibration is valid for the trace), and the wire to the board."""
    calibration = record.run.sensor.calibration if record.run.sensor else None
    current, voltage, per_a2 = Correction(), Correction(), 0.0
    if calibration is not None and record.path("power.parquet").exists() and _holds(record, calibration):
        current, voltage = calibration.current, calibration.voltage or Correction()
        per_a2 = calibration.heating.per_a2
    return {
        "current_gain": current.gain,
        "current_offset_a": current.offset,
        "voltage_gain": voltage.gain,
        "voltage_offset_v": voltage.offset,
        "heating_per_a2": per_a2,
        "wire_ohm": record.run.sensor.wire_ohm if record.run.sensor else 0.0,
    }


def _holds(record: RunRecord, calibration: SensorCalibration) -> bool:
    """Whether the calibration is valid for the trace; uses only the file's extremes if they decide it."""
    file = checked_metadata(record.path("power.parquet"))
    ends: dict[str, list[float]] = {"current_a": [], "voltage_v": []}
    for group in range(file.num_row_groups):
        for at in range(file.num_columns):
            column = file.row_group(group).column(at)
            if column.path_in_schema in ends and column.statistics and column.statistics.has_min_max:
                ends[column.path_in_schema] += [column.statistics.min, column.statistics.max]
    corrections = calibration.current, calibration.voltage or Correction()
    if all(
        len(values) == 2 * file.num_row_groups and correction.holds(pa.array(values).to_numpy())
        for values, correction in zip(ends.values(), corrections, strict=True)
    ):
        return True
    _, bounds = corrected_trace(record)
    return bounds is not None and bounds.calibration is not None
