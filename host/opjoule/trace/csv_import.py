"""Traces that other programs have recorded, read from their CSV exports.

PowerTool (Monsoon), PyMonsoon, nRF Connect Power Profiler (PPK2), Joulescope, and any table whose columns can be named.
Units come from the header or from the user, never from a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from opjoule.errors import BadInput
from opjoule.trace.csv_columns import Layout, find_layout, is_number
from opjoule.trace.power_trace import Float64Array, Gap, Int64Array

GAP_STEPS: Final = 1.5
"""A distance of more than this many periods holds samples that are not in the file."""
ROWS_MAX: Final = 1e9
"""Rows, missing ones among them, that a trace may have."""
MISSING: Final = "missing in the imported file"
LOST_ROWS_MAX: Final = 1_000_000
"""Rows in a row that count as missing; a longer stretch is a pause of the recording."""
PAUSE: Final = "pause in the imported file"
VOLTAGE_MAX_V: Final = 1000.0
CURRENT_MAX_A: Final = 1000.0
"""No board's supply comes near these: a column of another unit does."""


@dataclass
class ImportedTrace:
    """Contents of a file; arrays of shape (n,)."""

    layout: Layout
    meter_ns: Int64Array
    """from 0 at the first row"""
    current_a: Float64Array
    voltage_v: Float64Array
    notes: list[str] = field(default_factory=list)
    """what had to be assumed, for the record"""
    voltage_stated: bool = False
    """the voltage is what the user said, not what was measured"""

    def parts(self) -> Iterator[Gap | slice]:
        """Stretches of samples, and the gaps between them, in order."""
        good = np.flatnonzero(~(np.isnan(self.current_a) | np.isnan(self.voltage_v)))
        period_ns = float(np.median(np.diff(self.meter_ns)))
        steps = np.diff(self.meter_ns[good])
        first = 0
        for cut in [
            *np.flatnonzero((steps > GAP_STEPS * period_ns) | (np.diff(good) > 1)).tolist(),
            good.size - 1,
        ]:
            yield slice(int(good[first]), int(good[cut]) + 1)
            first = cut + 1
            if first < good.size:
                around = int(self.meter_ns[good[cut]]), int(self.meter_ns[good[first]])
                yield _gap(*around, round(period_ns))


def _gap(last_ns: int, next_ns: int, period_ns: int) -> Gap:
    """The gap between two rows: missing rows, or a pause if it is too long for that."""
    lost = max(round((next_ns - last_ns) / period_ns) - 1, 1)
    if lost <= LOST_ROWS_MAX:
        return Gap.between(last_ns, next_ns, lost, MISSING)
    return Gap(last_ns + period_ns // 2, next_ns - period_ns // 2, 0, None, PAUSE)


def import_csv(path: Path, mapping: Mapping[str, str], supply_v: float | None = None) -> ImportedTrace:
    """Reads a trace.

    Args:
        mapping: role (time, current, voltage, power) -> NAME or NAME:UNIT, for what the header does not say.
        supply_v: voltage [V] where the file has none.
    Raises: BadInput: unreadable, without a unit or a voltage, or with time that goes back.
    """
    layout = find_layout(path, mapping)
    values = _read(path, layout)
    notes: list[str] = []
    if any(np.all(np.isnan(column)) for column in values.values()) or values["time"].size < 2:
        raise BadInput(f"{path}: fewer than two rows of numbers")
    time_s = _sound_time(path, layout, values["time"], notes)
    voltage_v = values.get("voltage")
    if voltage_v is None and {"current", "power"} <= values.keys():
        with np.errstate(divide="ignore", invalid="ignore"):
            voltage_v = values["power"] / values["current"]
        notes.append("voltage from power and current")
    if voltage_v is None:
        if supply_v is None:
            raise BadInput(f"{path}: no voltage: state the supply's with --voltage VOLTS")
        voltage_v = np.full(time_s.size, supply_v)
        notes.append(f"voltage {supply_v:g} V as stated by the user, not measured")
    with np.errstate(divide="ignore", invalid="ignore"):
        current_a = values["current"] if "current" in values else values["power"] / voltage_v
    if "voltage" in values:
        _check_range(path, layout, "voltage", voltage_v, 0.0, VOLTAGE_MAX_V)
    _check_range(path, layout, "current", current_a, -CURRENT_MAX_A, CURRENT_MAX_A)
    meter_ns = np.rint((time_s - time_s[0]) * 1e9).astype(np.int64)
    stated = "voltage" not in values and not {"current", "power"} <= values.keys()
    return ImportedTrace(layout, meter_ns, current_a, voltage_v, notes, stated)


def _check_range(
    path: Path, layout: Layout, role: str, values: Float64Array, least: float, most: float
) -> None:
    """Raises BadInput for a number that no supply of a board has; names its line."""
    wrong = (values < least) | (values > most)
    if wrong.any():
        row = int(np.argmax(wrong))
        unit = "V" if role == "voltage" else "A"
        raise BadInput(
            f"{path}: line {row + layout.header_line + 1}: {role} of {values[row]:.6g} {unit}, expected "
            f"{least:g} to {most:g}: check the unit, and state it with --columns {role}=NAME:UNIT"
        )


def _first_bad(path: Path, layout: Layout) -> str:
    """Words for the first cell that is no number, with its line."""
    wanted = {column.index: column.name for column in layout.columns.values()}
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            cells = line.rstrip("\r\n").split(layout.separator)
            if number <= layout.header_line or not line.strip():
                continue
            if len(cells) != layout.width:
                return f"line {number} has {len(cells)} columns, the header {layout.width}"
            for index, name in wanted.items():
                cell = cells[index].strip().strip('"')
                if cell and not is_number(cell):
                    comma = ": write decimals with a point" if is_number(cell.replace(",", ".")) else ""
                    return f"line {number}: {name} is '{cell:.40}', not a number{comma}"
    return ""


def _read(path: Path, layout: Layout) -> dict[str, Float64Array]:
    """Columns in base units."""
    names = [f"c{index}" for index in range(layout.width)]
    wanted = {role: names[column.index] for role, column in layout.columns.items()}
    try:
        table = pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(column_names=names, skip_rows=layout.header_line),
            parse_options=pacsv.ParseOptions(delimiter=layout.separator),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(dict.fromkeys(wanted.values())),
                column_types=dict.fromkeys(wanted.values(), pa.float64()),
                null_values=["", "nan", "NaN", "NAN"],
            ),
        )
    except (pa.ArrowException, ValueError) as error:
        raise BadInput(f"{path}: {_first_bad(path, layout) or str(error).splitlines()[0]}") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    return {
        role: table.column(name).to_numpy() * layout.columns[role].factor for role, name in wanted.items()
    }


def _sound_time(path: Path, layout: Layout, time_s: Float64Array, notes: list[str]) -> Float64Array:
    """Times that increase: PyMonsoon's are made anew, any other file's must be right."""
    if layout.kind == "pymonsoon":
        # Its column Time(ms) holds seconds, and all rows of a packet share one stamp of the host.
        span_s = (time_s[-1] - time_s[0]) / layout.columns["time"].factor
        notes.append(
            "time from the row number: several rows of the file share one time stamp, and lost rows do "
            "not show"
        )
        return np.asarray(np.arange(time_s.size) * (span_s / (time_s.size - 1)), np.float64)
    steps = np.diff(time_s)
    if not bool(np.all(steps > 0)):
        row = int(np.argmin(steps > 0)) + 1
        raise BadInput(
            f"{path}: time does not increase at row {row + 1} of data "
            f"({time_s[row - 1]:.9g} s, then {time_s[row]:.9g} s): export it with more digits, "
            "or map another column with --columns time=NAME:UNIT"
        )
    rows = (time_s[-1] - time_s[0]) / float(np.median(steps))
    if not rows < ROWS_MAX:
        raise BadInput(
            f"{path}: it spans {rows:.3g} sampling periods, and most of them have no row: split it into parts"
        )
    return time_s
