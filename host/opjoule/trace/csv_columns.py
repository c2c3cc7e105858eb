"""Columns and units of time, current, voltage and power in a CSV file, read from its header."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opjoule.errors import BadInput

UNITS: Final[dict[str, dict[str, float]]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "current": {"A": 1.0, "mA": 1e-3, "uA": 1e-6, "nA": 1e-9},
    "voltage": {"V": 1.0, "mV": 1e-3, "uV": 1e-6},
    "power": {"W": 1.0, "mW": 1e-3, "uW": 1e-6},
}
"""Role -> unit -> factor to the base unit."""
HEAD_LINES: Final = 60
LINE_MAX: Final = 1 << 16
"""Letters of a line."""
_BRACKETED: Final = re.compile(r"[(\[]\s*([^)\]]+?)\s*[)\]]\s*$")
_DECIMAL_COMMA: Final = re.compile(r"(?:^|[;\t])\s*\"?(-?[0-9]+,[0-9]+)\"?\s*(?=[;\t]|$)")
_SUFFIX: Final = re.compile(r"_([A-Za-zµμ]+)$")
_JOULESCOPE: Final = {"time": "s", "current": "A", "voltage": "V", "power": "W"}
"""The Joulescope's own exports name no units: they are the base units."""


@dataclass(frozen=True)
class Column:
    """One column that is used."""

    index: int
    name: str
    factor: float
    """to s, A, V or W"""


@dataclass(frozen=True)
class Layout:
    """How a file is read."""

    kind: str
    """'powertool', 'pymonsoon', 'ppk2', 'joulescope' or 'csv'"""
    separator: str
    header_line: int
    """lines before the first row of data, the header among them"""
    columns: dict[str, Column]
    """role -> column"""
    width: int


def find_layout(path: Path, mapping: Mapping[str, str]) -> Layout:
    """The layout of a file.

    Args:
        mapping: role -> NAME or NAME:UNIT, for what the header does not say.
    Raises: BadInput: unreadable, no header, a column that is not there, or a unit that nobody names.
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
    """Words for a file without a header: a decimal comma is the usual reason."""
    for number, line in enumerate(lines, start=1):
        if (";" in line or "\t" in line) and (match := _DECIMAL_COMMA.search(line)):
            return f"{path}: line {number}: '{match.group(1)}' has a decimal comma: export it with a decimal point"
    return f"{path}: no header line with columns above numbers in its first {HEAD_LINES} lines"


def _head(path: Path) -> list[str]:
    """The first lines of the file. Raises: BadInput: it is not text, cannot be read, or has a line without end."""
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
        # The main channel counts if there are several, else the first one.
        better = role not in chosen or ("main" in name.lower() and "main" not in chosen[role].name.lower())
        if role and factor and role not in mapping and better:
            chosen[role] = Column(index, name, factor)
    if "time" not in chosen:
        raise BadInput(
            f"{path}: no column with a unit of time ({', '.join(names)}): add --columns time=NAME:s"
        )
    if not chosen.keys() & {"current", "power"}:
        raise BadInput(
            f"{path}: no column with a unit of current or power ({', '.join(names)}): add --columns current=NAME:mA"
        )
    return chosen


def _role(name: str, *, bare_units: bool) -> tuple[str, float]:
    """Role and factor of a column by the unit in its name; empty and 0 if it names none."""
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
        raise BadInput(f"--columns {role}={text}: there are {', '.join(UNITS)}")
    name, _, unit = text.rpartition(":") if text not in names and ":" in text else (text, "", "")
    if name not in names:
        raise BadInput(f"{path}: no column '{name}'; there are {', '.join(names)}")
    factor = _factor(UNITS[role], unit) if unit else _role(name, bare_units=False)[1]
    if not factor:
        known = ", ".join(UNITS[role])
        raise BadInput(
            f"--columns {role}={text}: column '{name}' names no unit of {role}; write {role}={name}:UNIT with {known}"
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
    """Is this a number as programs write it, with a point?"""
    try:
        float(text)
    except ValueError:
        return False
    return True
