"""The programs whose tables are known, and which column is the time, the current, the voltage and the power.

Units come from the header, or from the program that wrote the table; they are never guessed. If several columns fit,
the one that is named a mean is taken; else the user is asked.

Sources: the makers' own programs; docs/reference/meters.md, "Recorded traces of other programs", names them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from opjoule.base.errors import BadInput
from opjoule.energy.trace.imported.cell_values import looks_like_date, looks_like_moment
from opjoule.energy.trace.imported.text_table import TextTable

_BASE: Final = {"time": "s", "current": "A", "i": "A", "voltage": "V", "v": "V", "power": "W", "p": "W"}
"""Quantity, as programs that use base units alone name it -> unit."""
_JOULESCOPE: Final = re.compile(r"JS[0-9]{3}-.*\.")
_DEVLIB: Final = re.compile(
    r"(?:.*_)?(time|time_us|time_ms|time_ns|power|voltage|current|energy|temperature|percent|count)"
)
SMARTPOWER3: Final = (
    "time_ms",
    *(f"input_{unit}" for unit in ("mV", "mA", "mW", "on")),
    *(f"ch{number}_{unit}" for number in (0, 1) for unit in ("mV", "mA", "mW", "on", "interrupts")),
    "checksum_1",
    "checksum_2",
)
"""Columns of a SmartPower3's lines, which have no header."""
_SMARTPOWER3_ASIDE: Final = re.compile(r"input_.*|.*_interrupts|checksum_.*")
"""The input, and columns in hexadecimal: their `1a` is no ampere."""


@dataclass(frozen=True)
class Format:
    """The table of a known program."""

    name: str = "csv"
    units: Mapping[int, str] = field(default_factory=dict)
    """index of a column -> its unit, where the header does not state it"""
    main: str = ""
    """word in the names of the main channel's columns"""
    aside: frozenset[str] = frozenset()
    """names of columns that do not measure the board's supply, or are no numbers"""
    stamps: int | None = None
    """index of a column with the device's own stamps, which repeat (device_stamps.py)"""


def recognise(table: TextTable) -> Format:
    """The format of a table; `csv` if it is no known one. A SmartPower3's columns get their names."""
    if not table.header and _is_smartpower3(table.first_row):
        table.names[: len(SMARTPOWER3)] = SMARTPOWER3
    return next((form for make in _MAKERS if (form := make(table))), Format())


def _words(table: TextTable) -> list[str]:
    return [name.lower().replace(" ", "") for name in table.names]


def _powertool(table: TextTable) -> Format | None:
    return Format("powertool", main="main") if any("mainavgcurrent" in word for word in _words(table)) else None


def _pymonsoon(table: TextTable) -> Format | None:
    """Its column Time(ms) contains seconds."""
    if not {"time(ms)", "main(ma)"} <= set(_words(table)):
        return None
    return Format("pymonsoon", {_words(table).index("time(ms)"): "s"}, main="main")


def _ppk2(table: TextTable) -> Format | None:
    return Format("ppk2") if {"timestamp(ms)", "current(ua)"} <= set(_words(table)) else None


def _joulescope(table: TextTable) -> Format | None:
    """Statistics (`current`), waveforms (`JS220-1.i`) and pyjls' own export (`JS220-1.current`): base units."""
    words = [word.rpartition(".")[2] for word in _words(table)]
    if not (table.header.startswith("#time") or any(map(_JOULESCOPE.match, table.names))):
        return None
    units = {index: unit for index, word in enumerate(words) if (unit := _BASE.get(word))}
    return Format("joulescope", {**units, 0: "s"})


def _fnirsi(table: TextTable) -> Format | None:
    return Format("fnirsi") if "sample_in_packet" in table.names else None


def _powersensor3(table: TextTable) -> Format | None:
    if table.names[:4] != ["marker", "time", "dt_micro", "device_timestamp"]:
        return None
    words = [name.rstrip("0123456789").removesuffix("_total") for name in table.names]
    units = {index: unit for index, word in enumerate(words) if (unit := _BASE.get(word))}
    return Format("powersensor3", units, stamps=table.names.index("device_timestamp"))


def _smartpower3(table: TextTable) -> Format | None:
    if table.names[: len(SMARTPOWER3)] != list(SMARTPOWER3):
        return None
    return Format("smartpower3", aside=frozenset(filter(_SMARTPOWER3_ASIDE.fullmatch, SMARTPOWER3)))


def _is_smartpower3(row: list[str]) -> bool:
    """Whether it is a line of a SmartPower3; older firmware writes a check sum of 0 as 100 (meters/smartpower3.py)."""
    has_sums = bool(re.fullmatch("([0-9a-f]{2}|100),[0-9a-f]{2}", ",".join(row[15:17])))
    return has_sums and len(row) in (17, 18) and len(row[0]) == 10


def _arm_probe(table: TextTable) -> Format | None:
    if not any(line.lstrip("# ").startswith("configuration:") for line in table.before):
        return None
    return Format("arm-probe", {index: "s" for index, name in enumerate(table.names) if name == "time"})


def _devlib(table: TextTable) -> Format | None:
    kinds = [match.group(1) if (match := _DEVLIB.fullmatch(name)) else "" for name in table.names]
    if not all(kinds) or not table.names[0].startswith("timestamp_time"):
        return None
    return Format("devlib", {index: unit for index, kind in enumerate(kinds) if (unit := _BASE.get(kind))})


_MAKERS: Final[tuple[Callable[[TextTable], Format | None], ...]] = (
    *(_powertool, _pymonsoon, _ppk2, _joulescope, _fnirsi, _powersensor3, _smartpower3, _arm_probe, _devlib),
)


UNITS: Final[dict[str, dict[str, float]]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
    "current": {"A": 1.0, "mA": 1e-3, "uA": 1e-6, "nA": 1e-9},
    "voltage": {"V": 1.0, "mV": 1e-3, "uV": 1e-6},
    "power": {"kW": 1e3, "W": 1.0, "mW": 1e-3, "uW": 1e-6},
}
"""Role -> unit -> factor to the base unit."""
_WORDS: Final = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "millis": "ms", "milliseconds": "ms",
    "usec": "us", "micros": "us", "microseconds": "us", "nanoseconds": "ns", "amp": "A", "amps": "A", "ampere": "A",
    "amperes": "A", "milliamps": "mA", "volt": "V", "volts": "V", "millivolts": "mV", "watt": "W", "watts": "W",
    "milliwatts": "mW",
}  # fmt: skip
"""Names of units -> their symbols."""
_UNIT_IN_NAME: Final = re.compile(r"[(\[]\s*([^)\]]+?)\s*[)\]]\s*$|[_ /]([A-Za-zµμ]+)$|^([munµμ]?[sAVW])$")
_NAMES: Final = {
    "time": re.compile(r"^t(?![a-z])|time|stamp|elapsed|utc|date|epoch|unix|sec", re.IGNORECASE),
    "current": re.compile(r"curr|amp|intensity|^i(?![a-z])|ibus", re.IGNORECASE),
    "voltage": re.compile(r"volt|vbus|bus|^[uv](?![a-z])", re.IGNORECASE),
    "power": re.compile(r"pow|watt|^p(?![a-z])", re.IGNORECASE),
}
"""Role -> names of such a column. Only in them `min` and a small letter behind `_` are units, unlike in `channel_a`."""
_MEAN: Final = re.compile(r"(?<![a-z])(avg|average|mean)(?![a-z])")
_EXTREME: Final = re.compile(r"(?<![a-z])(min|minimum|max|maximum|peak|low|high|std|stddev|rms)(?![a-z])")
_NOT_THE_SUPPLY: Final = re.compile(
    r"shunt|(?<![a-z])(v?d[-+pnm]|data ?[-+]?|cc[12]?|sbu[12]?|set|setpoint|limit|threshold|target|cut-?off)(?![a-z])"
)
"""Names of columns that measure something else in the same unit: the shunt's voltage, USB's data lines, settings."""


@dataclass(frozen=True)
class Column:
    """A column that is read."""

    index: int
    name: str
    factor: float
    """factor to s, A, V or W; 0 if each cell states its unit, or is a date or a time of day"""
    date: int | None = None
    """index of the column with the date, if this one has the time of day"""

    @property
    def indices(self) -> tuple[int, ...]:
        """Indices of all columns that are read for it."""
        return (self.index,) if self.date is None else (self.date, self.index)


def find_columns(table: TextTable, form: Format, mapping: Mapping[str, str]) -> dict[str, list[Column]]:
    """Role -> its column; several for time, whose values decide, and for power, if it is only a check of the others.

    `mapping`: role -> NAME or NAME:UNIT, as the user wrote it.
    Raises: BadInput: a column is missing or lacks a unit, or several fit; says what to write.
    """
    fitting = {role: [_mapped(table, form, role, text)] for role, text in mapping.items()}
    unclear = {}
    for role in UNITS:
        if role in fitting:
            continue
        all_of_role = [column for column in _of_role(table, form, role) if column.name not in form.aside]
        fitting[role] = all_of_role if role == "time" else _preferred(all_of_role, form)
        alone = len(fitting[role]) == 1 and not _EXTREME.search(_plain(fitting[role][0]))
        if fitting[role] and not alone and role != "time":
            unclear[role] = fitting[role]
    if all(len(fitting[role]) == 1 for role in ("current", "voltage")):
        unclear.pop("power", None)
    if unclear:
        raise BadInput(f"{table.path}: {_question(unclear)}")
    return {role: columns for role, columns in fitting.items() if columns}


def _question(unclear: Mapping[str, list[Column]]) -> str:
    shown = "; ".join(f"{role}: {', '.join(column.name for column in columns)}" for role, columns in unclear.items())
    answers = " ".join(f"--columns {shlex.quote(f'{role}={columns[0].name}')}" for role, columns in unclear.items())
    return f"it is not clear which column is the board's supply ({shown}): say which, for example {answers}"


def missing_columns(table: TextTable, columns: Iterable[str], *, has_rate: bool) -> None:
    """Raises: BadInput: no column of time, or none of current and power, and how to name one."""
    missing, remedy = "", ""
    if "time" not in columns and not has_rate:
        missing, remedy = "time", "time=NAME:s or, if there are N evenly spaced rows a second, --rate N"
    elif not {"current", "power"} & set(columns):
        missing, remedy = "current or power", "current=NAME:mA"
    if missing:
        what = "" if table.header else "no header line, and "
        listed = ", ".join(table.names) if table.header else f"columns 1 to {len(table.names)}"
        raise BadInput(f"{table.path}: {what}no column with a unit of {missing} ({listed}): add --columns {remedy}")


def _preferred(columns: list[Column], form: Format) -> list[Column]:
    """The columns that may be the supply's: means before all others, and extremes only if there is nothing else."""
    of_supply = [column for column in columns if not _NOT_THE_SUPPLY.search(_plain(column))]
    plain = [column for column in of_supply if not _EXTREME.search(_plain(column))] or of_supply
    means = [column for column in plain if _MEAN.search(_plain(column))] or plain
    main = [column for column in means if form.main and form.main in _plain(column)]
    return main or means


def _plain(column: Column) -> str:
    """The name in small letters, with a blank between words."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column.name)
    return apart.replace("_", " ").lower()


def _of_role(table: TextTable, form: Format, role: str) -> list[Column]:
    found = []
    for index, name in enumerate(table.names):
        factor = _factor_by_name(form, role, index, name)
        cell = table.first_row[index]
        stated = factor is not None or unit_of_cell(role, cell)
        if role == "time" and looks_like_moment(cell):
            found.append(_moment(table, index))
        elif stated and not looks_like_date(cell):
            found.append(Column(index, name, factor or 0.0))
        elif role == "time" and _NAMES["time"].search(name) and (epoch := epoch_factor(cell)):
            found.append(Column(index, name, epoch))
    return found


def _moment(table: TextTable, index: int) -> Column:
    """A column of times of day, with the date if that is the column before it."""
    has_date = index > 0 and looks_like_date(table.first_row[index - 1])
    return Column(index, table.names[index], 0.0, index - 1 if has_date else None)


def epoch_factor(cell: str) -> float | None:
    """Factor to seconds of a number that counts from 1970 and lies in 2001 to 2096; None if it is none.

    Seconds, milliseconds, microseconds and nanoseconds of such times cannot be mistaken for each other.
    """
    try:
        count = float(cell)
    except ValueError:
        return None
    return next((factor for factor in (1.0, 1e-3, 1e-6, 1e-9) if 1e9 <= count * factor < 4e9), None)


def unit_of_cell(role: str, cell: str) -> bool:
    """Whether a cell has a unit of the role behind its number."""
    match = re.search(r"[0-9]\s*([A-Za-zµμ]+)$", cell)
    return bool(match and _factor(role, match.group(1)) is not None)


def cell_units(role: str) -> dict[str, float]:
    """Unit behind a number -> factor, for the cells of a role."""
    return UNITS[role] | {unit.replace("u", letter): UNITS[role][unit] for unit in UNITS[role] for letter in "µμ"}


def _factor_by_name(form: Format, role: str, index: int, name: str) -> float | None:
    """Factor of a column of this role to the base unit, from its name; None if it is none of this role."""
    if (stated := form.units.get(index)) is not None:
        return UNITS[role].get(stated)
    match = _UNIT_IN_NAME.search(name)
    unit = (match and (match.group(1) or match.group(2) or match.group(3))) or _WORDS.get(name.lower())
    if not unit:
        return None
    is_word = unit == "min" or (match and match.group(2) and len(unit) == 1 and unit.islower())
    return None if is_word and not _NAMES[role].search(name) else _factor(role, unit)


def _factor(role: str, text: str) -> float | None:
    """Factor of a unit as written; None if it is no unit of this role."""
    plain = text.replace("µ", "u").replace("μ", "u")
    plain = _WORDS.get(plain.lower(), plain)
    by_lower = {unit.lower(): factor for unit, factor in UNITS[role].items()}
    return UNITS[role].get(plain) or by_lower.get(plain.lower())


def _mapped(table: TextTable, form: Format, role: str, text: str) -> Column:
    if role not in UNITS:
        raise BadInput(f"--columns {role}={text}: unknown role, known are {', '.join(UNITS)}")
    names = table.names
    name, _, unit = text.rpartition(":") if text not in names and ":" in text else (text, "", "")
    if name not in names and name.isdigit() and 1 <= int(name) <= len(names):
        name = names[int(name) - 1]
    if name not in names:
        raise BadInput(f"{table.path}: no column '{name}'; its columns are {', '.join(names)}, or their numbers from 1")
    index = names.index(name)
    factor = _factor(role, unit) if unit else _factor_by_name(form, role, index, name)
    cell = table.first_row[index]
    if role == "time" and looks_like_moment(cell):
        return _moment(table, index)
    if role == "time" and factor is None:
        factor = epoch_factor(cell)
    if factor is None and not unit and unit_of_cell(role, cell):
        factor = 0.0
    if factor is None:
        known = ", ".join(UNITS[role])
        raise BadInput(
            f"--columns {role}={text}: column '{name}' has no unit of {role}; write {role}={name}:UNIT with {known}"
        )
    return Column(index, name, factor)
