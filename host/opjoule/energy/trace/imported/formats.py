"""Programs whose tables are known: by what a table is recognised, and the units that its header does not state.

Sources: the makers' own programs; docs/reference/meters.md, "Recorded traces of other programs", names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

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


@dataclass(frozen=True)
class Format:
    """The table of a known program."""

    name: str = "csv"
    units: Mapping[int, str] = field(default_factory=dict)
    """index of a column -> its unit, where the header does not state it"""
    main: str = ""
    """word in the names of the main channel's columns"""
    aside: frozenset[str] = frozenset()
    """names of columns that do not measure the board's supply"""


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
    return Format("powersensor3", {index: unit for index, word in enumerate(words) if (unit := _BASE.get(word))})


def _smartpower3(table: TextTable) -> Format | None:
    if table.names[: len(SMARTPOWER3)] != list(SMARTPOWER3):
        return None
    return Format("smartpower3", aside=frozenset(name for name in SMARTPOWER3 if name.startswith("input_")))


def _is_smartpower3(row: list[str]) -> bool:
    checksums = row[15:17]
    return len(row) in (17, 18) and len(row[0]) == 10 and all(re.fullmatch("[0-9a-f]{2}", cell) for cell in checksums)


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
