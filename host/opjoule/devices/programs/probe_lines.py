"""The lines that a probe says: what each is, whatever a board sends in their place.

A board may be broken or hostile: a line that the probe would not say is passed over, and nothing grows with what comes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from opjoule.errors import DeviceFault
from opjoule.operations.board_files import PHASE_BEGIN, PhaseMark

LINE_MAX: Final = 1 << 18
"""Bytes of the longest line, the answer that repeats a signature; longer ones come in parts, which are no lines."""
TEXT_MAX: Final = 500
"""Letters that are kept of what the board says in words."""
HELLO: Final = "probe"
"""Key of its first line."""
WORDS: Final = (HELLO, "clock", "pending", "files", "signature", "steering", "drain")
_INT64: Final = 1 << 63


@dataclass(frozen=True)
class ProbeAnswer:
    """What the probe says to a request."""

    word: str
    """The request's word."""
    entry: dict[str, Any]


def probe_line(line: bytes) -> PhaseMark | ProbeAnswer | str | None:
    """What one line says, of what has gone wrong on the board its words; None where it is none of the probe's."""
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            return None
        if "mark" in entry:
            begins = entry["mark"] == PHASE_BEGIN
            return PhaseMark(number(entry, "board_ns"), str(entry["name"])[:TEXT_MAX], begins)
        if "fault" in entry:
            return str(entry["fault"])[:TEXT_MAX]
        word = _word(entry)
        return ProbeAnswer(word, entry) if word in WORDS else None
    except (ValueError, KeyError, RecursionError, DeviceFault):
        return None


def _word(entry: dict[str, Any]) -> str:
    """The request that an entry answers. An answer of "error" repeats it: it is for whoever sent that."""
    if HELLO in entry:
        return HELLO
    said = str(entry["answer"])
    return str(entry["line"]).partition(" ")[0] if said == "error" else said


def number(entry: dict[str, Any], key: str) -> int:
    """A whole number that the probe says. Raises: DeviceFault: the entry has none there, or one beyond 63 bits."""
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not -_INT64 <= value < _INT64:
        raise DeviceFault(f"the probe's answer has no whole number '{key}': is another program in its place?")
    return value
