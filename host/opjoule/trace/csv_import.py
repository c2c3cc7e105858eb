"""Import of traces that other programs have recorded and exported as CSV.

Supported are PowerTool (Monsoon), PyMonsoon, nRF Connect Power Profiler (PPK2), Joulescope, and any table whose columns
can be named. Units come from the header or from the user and are never guessed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from opjoule.errors import BadInput
from opjoule.trace.power_trace import BoolArray, Float64Array, Gap, Int64Array
from opjoule.units import counted

GAP_STEPS: Final = 1.5
"""Distance of two rows, in periods, above which samples are missing between them."""
ROWS_MAX: Final = 1e9
"""Largest number of rows of a trace, including missing ones."""
SPAN_MAX_S: Final = 1e9
"""Longest span of a trace; a longer one shows times in another unit. 64 bits of nanoseconds hold 9 times as much."""
MISSING: Final = "missing in the imported file"
LOST_ROWS_MAX: Final = 1_000_000
"""Maximum number of consecutive rows that count as missing; a longer stretch is a pause of the recording."""
PAUSE: Final = "pause in the imported file"
VOLTAGE_MAX_V: Final = 1000.0
CURRENT_MAX_A: Final = 1000.0
"""Limits that no board's supply comes near; a value beyond them shows a column in another unit."""
UNITS: Final[dict[str, dict[str, float]]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "current": {"A": 1.0, "mA": 1e-3, "uA": 1e-6, "nA": 1e-9},
    "voltage": {"V": 1.0, "mV": 1e-3, "uV": 1e-6},
    "power": {"W": 1.0, "mW": 1e-3, "uW": 1e-6},
}
"""Role -> unit -> factor to the base unit."""
HEAD_LINES: Final = 60
LINE_MAX: Final = 1 << 16
"""Maximum number of characters of a line."""
_BRACKETED: Final = re.compile(r"[(\[]\s*([^)\]]+?)\s*[)\]]\s*$")
_DECIMAL_COMMA: Final = re.compile(r"(?:^|[;\t])\s*\"?(-?[0-9]+,[0-9]+)\"?\s*(?=[;\t]|$)")
_SUFFIX: Final = re.compile(r"_([A-Za-zµμ]+)$")
_JOULESCOPE: Final = {"time": "s", "current": "A", "voltage": "V", "power": "W"}
"""The Joulescope's own exports state no units; they use the base units."""


@dataclass(frozen=True)
class Column:
    """A column that is read."""

    index: int
    name: str
    factor: float
    """factor to s, A, V or W"""


@dataclass(frozen=True)
class Layout:
    """Format of a file, and its columns to read."""

    kind: str
    """'powertool', 'pymonsoon', 'ppk2', 'joulescope' or 'csv'"""
    separator: str
    header_line: int
    """number of lines before the first row of data, including the header"""
    columns: dict[str, Column]
    """role -> column"""
    width: int


def find_layout(path: Path, mapping: Mapping[str, str]) -> Layout:
    """The layout of a file; `mapping`: role -> NAME or NAME:UNIT, for columns or units missing in the header.

    Raises: BadInput: unreadable, no header, a missing column, or a unit stated neither by the header nor by the user.
    """
    lines = _head(path)
    for number, line in enumerate(lines):
        separator = max(",;\t", key=line.count)
        names = [cell.strip().strip('"') for cell in line.lstrip("#").split(separator)]
        if len(names) < 2 or is_number(names[0]) or number + 1 >= len(lines):
            continue
        if is_number(lines[number + 1].split(separator)[0].strip().strip('"')):
            columns = _columns(path, names, mapping, bare_units=line.startswith("#time"))
            return Layout(_kind(names, line), separator, number + 1, columns, len(names))
    raise BadInput(_why_none(path, lines))


def _why_none(path: Path, lines: list[str]) -> str:
    """Error message for a file without a header; a decimal comma is the usual reason."""
    for number, line in enumerate(lines, start=1):
        if (";" in line or "\t" in line) and (match := _DECIMAL_COMMA.search(line)):
            return f"{path}: line {number}: '{match.group(1)}' has a decimal comma: export it with a decimal point"
    return f"{path}: no header line followed by a line of numbers in its first {HEAD_LINES} lines"


def _head(path: Path) -> list[str]:
    """The first lines of the file. Raises: BadInput: it cannot be read, or has a line that is too long."""
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{path}: not a file: give the CSV file that the other program wrote")
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            lines = [file.readline(LINE_MAX) for _ in range(HEAD_LINES)]
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    for number, line in enumerate(lines, start=1):
        if len(line) == LINE_MAX:
            raise BadInput(f"{path}: line {number} is longer than {LINE_MAX} characters: not a CSV file")
    return [line.rstrip("\r\n") for line in lines if line]


def _columns(
    path: Path, names: list[str], mapping: Mapping[str, str], *, bare_units: bool
) -> dict[str, Column]:
    chosen = {role: _mapped(path, role, text, names) for role, text in mapping.items()}
    for index, name in enumerate(names):
        role, factor = _role(name, bare_units=bare_units)
        # If there are several channels, the main channel counts, else the first one.
        better = role not in chosen or ("main" in name.lower() and "main" not in chosen[role].name.lower())
        if role and factor and role not in mapping and better:
            chosen[role] = Column(index, name, factor)
    missing, remedy = "time", "time=NAME:s"
    if "time" in chosen:
        missing, remedy = "current or power", "current=NAME:mA"
    if "time" not in chosen or not chosen.keys() & {"current", "power"}:
        listed = ", ".join(names)
        raise BadInput(f"{path}: no column with a unit of {missing} ({listed}): add --columns {remedy}")
    return chosen


def _role(name: str, *, bare_units: bool) -> tuple[str, float]:
    """(role, factor) of a column from the unit in its name; ("", 0.0) if the name has no unit."""
    if bare_units and (unit := _JOULESCOPE.get(name.lower())):
        return name.lower(), UNITS[name.lower()][unit]
    match = _BRACKETED.search(name) or _SUFFIX.search(name)
    if not match:
        return "", 0.0
    for role, units in UNITS.items():
        if factor := _factor(units, match.group(1)):
            return role, factor
    return "", 0.0


def _factor(units: Mapping[str, float], text: str) -> float | None:
    plain = text.replace("µ", "u").replace("μ", "u")
    by_lower = {unit.lower(): factor for unit, factor in units.items()}
    return units.get(plain) or by_lower.get(plain.lower())


def _mapped(path: Path, role: str, text: str, names: list[str]) -> Column:
    if role not in UNITS:
        raise BadInput(f"--columns {role}={text}: unknown role, known are {', '.join(UNITS)}")
    name, _, unit = text.rpartition(":") if text not in names and ":" in text else (text, "", "")
    if name not in names:
        raise BadInput(f"{path}: no column '{name}'; its columns are {', '.join(names)}")
    factor = _factor(UNITS[role], unit) if unit else _role(name, bare_units=False)[1]
    if not factor:
        known = ", ".join(UNITS[role])
        raise BadInput(
            f"--columns {role}={text}: column '{name}' has no unit of {role}; write {role}={name}:UNIT with {known}"
        )
    return Column(names.index(name), name, factor)


def _kind(names: list[str], line: str) -> str:
    lower = [name.lower().replace(" ", "") for name in names]
    if "mainavgcurrent" in "".join(lower):
        return "powertool"
    if "time(ms)" in lower and "main(ma)" in lower:
        return "pymonsoon"
    if "timestamp(ms)" in lower and "current(ua)" in lower:
        return "ppk2"
    if line.startswith("#time") or "joulescope" in line.lower():
        return "joulescope"
    return "csv"


def is_number(text: str) -> bool:
    """Whether a text is a number with a decimal point."""
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass
class ImportedTrace:
    """Contents of a file; arrays of shape (n,)."""

    layout: Layout
    meter_ns: Int64Array
    """from 0 at the first row"""
    current_a: Float64Array
    voltage_v: Float64Array
    notes: list[str] = field(default_factory=list)
    """assumptions made, for the record"""
    voltage_stated: bool = False
    """True if the voltage was stated by the user, not measured"""

    def parts(self) -> Iterator[Gap | slice]:
        """Stretches of samples, and the gaps between them, in order."""
        good = np.flatnonzero(~(np.isnan(self.current_a) | np.isnan(self.voltage_v)))
        period_ns = float(np.median(np.diff(self.meter_ns)))
        steps = np.diff(self.meter_ns[good])
        first, cuts = 0, np.flatnonzero((steps > GAP_STEPS * period_ns) | (np.diff(good) > 1)).tolist()
        for cut in [*cuts, good.size - 1]:
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
        mapping: role (time, current, voltage, power) -> NAME or NAME:UNIT, for columns or units missing in the header.
        supply_v: supply voltage [V], used if the file has none.
    Raises: BadInput: the file is unreadable, lacks a unit or a voltage, or its time goes back.
    """
    layout = find_layout(path, mapping)
    values = _read(path, layout)
    notes: list[str] = []
    if any(np.all(np.isnan(column)) for column in values.values()) or values["time"].size < 2:
        raise BadInput(f"{path}: fewer than two rows of numbers")
    time_s = _sound_time(path, layout, values["time"], notes)
    stated = "voltage" not in values and not {"current", "power"} <= values.keys()
    if stated:
        if supply_v is None:
            raise BadInput(f"{path}: no voltage: state the supply's with --voltage VOLTS")
        values["voltage"] = np.full(time_s.size, supply_v)
        notes.append(f"voltage {supply_v:g} V as stated by the user, not measured")
    for role, least, most in (("voltage", 0.0, VOLTAGE_MAX_V), ("current", -CURRENT_MAX_A, CURRENT_MAX_A)):
        if role in values:
            _check_range(path, layout, role, values[role], least, most)
    if not {"voltage", "current"} <= values.keys():
        values |= _by_power(path, layout, time_s, values, notes)
        _check_range(path, layout, "current", values["current"], -CURRENT_MAX_A, CURRENT_MAX_A)
    current_a, voltage_v = values["current"], values["voltage"]
    if np.count_nonzero(np.isfinite(current_a) & np.isfinite(voltage_v)) < 2:
        raise BadInput(f"{path}: fewer than two rows of numbers")
    return ImportedTrace(layout, _from_first_ns(path, time_s), current_a, voltage_v, notes, stated)


def _from_first_ns(path: Path, time_s: Float64Array) -> Int64Array:
    """Times from the first one [ns]. Raises: BadInput: they span too long, or follow each other too closely."""
    span_s = float(time_s[-1] - time_s[0])
    remedy = "check the unit, and state it with --columns time=NAME:UNIT"
    if not span_s < SPAN_MAX_S:
        raise BadInput(f"{path}: it spans {span_s:.3g} s, more than {SPAN_MAX_S:.0e} s: {remedy}")
    meter_ns = np.rint((time_s - time_s[0]) * 1e9).astype(np.int64)
    if not bool(np.all(np.diff(meter_ns) > 0)):
        row = int(np.argmin(np.diff(meter_ns) > 0)) + 1
        raise BadInput(
            f"{path}: rows {row} and {row + 1} of data are less than 1 ns apart, or time goes back: {remedy}"
        )
    return np.asarray(meter_ns, np.int64)


def _by_power(
    path: Path, layout: Layout, time_s: Float64Array, values: Mapping[str, Float64Array], notes: list[str]
) -> dict[str, Float64Array]:
    """Voltage and current from power and one of both; in each row their product is the power.

    A row whose current is 0, or rounded so that the quotient is no voltage of a supply, has the voltage of the nearest
    row. Raises: BadInput: no row gives a voltage, or most give one that no board's supply has.
    """
    power_w, current_a = values["power"], values.get("current")
    with np.errstate(divide="ignore", invalid="ignore"):
        voltage_v = values["voltage"] if current_a is None else power_w / current_a
    known = (voltage_v > 0.0) & (voltage_v <= VOLTAGE_MAX_V)
    if current_a is None:
        lacking = (voltage_v == 0.0) & (power_w != 0.0)
    else:
        notes.append("voltage from power and current")
        lacking = ~known & ~np.isnan(power_w) & ~np.isnan(current_a)
        beyond = np.where(lacking & np.isfinite(voltage_v), voltage_v, 0.0)
        if np.count_nonzero(known) < np.count_nonzero(beyond):
            _check_range(path, layout, "voltage", beyond, 0.0, VOLTAGE_MAX_V)
    if lacking.any():
        voltage_v = _nearest(path, time_s, voltage_v, known, lacking)
        notes.append(f"voltage of {counted(int(lacking.sum()), 'row')} from the nearest row that gives one")
    with np.errstate(divide="ignore", invalid="ignore"):  # no power is no current, if the row has a voltage
        quotient_a = np.where(power_w == 0.0, 0.0 * voltage_v, power_w / voltage_v)
    return {
        "voltage": voltage_v,
        "current": quotient_a if current_a is None else np.where(lacking, quotient_a, current_a),
    }


def _nearest(
    path: Path, time_s: Float64Array, values: Float64Array, known: BoolArray, lacking: BoolArray
) -> Float64Array:
    """The values, in `lacking` rows those of the `known` row nearest in time. Raises: BadInput: no row is known."""
    if not known.any():
        raise BadInput(f"{path}: no row gives a voltage above 0 V: add --columns voltage=NAME:UNIT")
    rows = np.flatnonzero(known)
    nearest = np.rint(np.interp(time_s[lacking], time_s[rows], np.arange(rows.size))).astype(np.int64)
    filled = values.copy()
    filled[lacking] = values[rows[nearest]]
    return filled


def _check_range(
    path: Path, layout: Layout, role: str, values: Float64Array, least: float, most: float
) -> None:
    """Checks the values of a role. Raises: BadInput: a number that no board's supply has; names its line."""
    wrong = (values < least) | (values > most)
    if wrong.any():
        row = int(np.argmax(wrong))
        unit = "V" if role == "voltage" else "A"
        raise BadInput(
            f"{path}: line {row + layout.header_line + 1}: {role} of {values[row]:.6g} {unit}, expected "
            f"{least:g} to {most:g}: check the unit, and state it with --columns {role}=NAME:UNIT"
        )


def _first_bad(path: Path, layout: Layout) -> str:
    """Description of the first cell that is not a number, with its line."""
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
    """Role -> column in base units."""
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
    factors = {role: column.factor for role, column in layout.columns.items()}
    return {role: table.column(name).to_numpy() * factors[role] for role, name in wanted.items()}


def _sound_time(path: Path, layout: Layout, time_s: Float64Array, notes: list[str]) -> Float64Array:
    """Increasing times: PyMonsoon's are computed from the row numbers, other files' are checked."""
    if layout.kind == "pymonsoon":
        # Its column Time(ms) contains seconds, and all rows of a packet share one stamp of the host.
        span_s = (time_s[-1] - time_s[0]) / layout.columns["time"].factor
        shared = "several rows of the file share one time stamp, and lost rows do not show"
        notes.append(f"time from the row number: {shared}")
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
