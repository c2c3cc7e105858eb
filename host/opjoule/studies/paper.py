"""What a study.toml says of the paper that it repeats: its figures and tables, and its conclusions as questions.

Reference: docs/reference/studies.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from opjoule.errors import BadInput
from opjoule.toml_entry import check_keys, check_match, tables

EXACT: Final = "exact"
NEAR: Final = "near"
MISSING: Final = "missing"
STATES: Final = (EXACT, NEAR, MISSING)
_CONCLUSION_KEYS: Final = (
    *("question", "where", "measure", "of", "to", "paper", "about", "phase", "to_phase", "largest"),
)


@dataclass(frozen=True)
class Counterpart:
    """A figure or table of the paper, and what stands for it here."""

    paper: str
    """Its name in the paper: Figure 2."""
    shows: str
    state: str
    """EXACT, NEAR (`differs` says in what) or MISSING (`differs` says why)."""
    command: str = ""
    """Command that measures it."""
    axes: str = ""
    groups: str = ""
    units: str = ""
    differs: str = ""
    drawn: tuple[str, ...] = ()
    """Name patterns of the figures that runs.py draws for it."""
    media: tuple[str, ...] = ()
    """Patterns of the media that stand for the paper's. Records on other media are not drawn. Empty: any medium."""
    phases: tuple[str, ...] = ()
    """Phases that its figures show. Empty: all."""


@dataclass(frozen=True)
class PaperConclusion:
    """What the paper concludes, as a ratio of one measure between two cells."""

    question: str
    where: str
    """Section or figure of the paper."""
    measure: str
    of: Mapping[str, Any]
    """Axis -> value of the first cell. Other axes are free; each combination of their values gives an answer."""
    to: Mapping[str, Any]
    """Axis -> value of the second cell, for the axes in which it differs from the first."""
    paper: float
    """The paper's ratio."""
    about: float = 0.0
    """Relative tolerance about 1 within which the paper sees no difference; 0 if it concludes that there is one."""
    phase: str = ""
    to_phase: str = ""
    """Phase of the second cell, if it differs from the first cell's."""
    largest: str = ""
    """Name of a count. Only its greatest measured value is compared."""
    only_direction: bool = field(default=False)
    """The paper gives the direction and no factor."""


def counterparts_of(entry: Mapping[str, Any]) -> tuple[Counterpart, ...]:
    """[[counterparts]]. Raises: BadInput: an unknown key, or one that is missing."""
    return tuple(_counterpart(part) for part in tables(entry, "counterparts"))


def _counterpart(entry: Mapping[str, Any]) -> Counterpart:
    check_keys(entry, [key.name for key in fields(Counterpart)])
    _needs("counterparts", entry, ("paper", "shows", "state"))
    if entry["state"] not in STATES:
        raise BadInput(f"[[counterparts]] {entry['paper']}: state is one of {', '.join(STATES)}")
    if entry["state"] != EXACT and not entry.get("differs"):
        raise BadInput(f"[[counterparts]] {entry['paper']}: differs says in what, or why it is missing")
    lists = {name: tuple(entry.get(name, ())) for name in ("drawn", "media", "phases")}
    return Counterpart(**{**entry, **lists})


def conclusions_of(
    entry: Mapping[str, Any], axes: Mapping[str, Sequence[str]], phases: Mapping[str, str]
) -> tuple[PaperConclusion, ...]:
    """[[conclusions]]. Raises: BadInput: an unknown key, axis, value or phase."""
    return tuple(_conclusion(conclusion, axes, phases) for conclusion in tables(entry, "conclusions"))


def _conclusion(
    entry: Mapping[str, Any], axes: Mapping[str, Sequence[str]], phases: Mapping[str, str]
) -> PaperConclusion:
    check_keys(entry, _CONCLUSION_KEYS)
    _needs("conclusions", entry, ("question", "where", "measure", "paper"))
    if not entry.get("to") and not entry.get("to_phase"):
        raise BadInput(
            f"[[conclusions]] {entry['question']!r}: give to, or to_phase: what it is compared with"
        )
    for match in (entry.get("of"), entry.get("to")):
        if match:
            check_match(match, axes)
    for phase in (entry.get("phase"), entry.get("to_phase")):
        if phase and phase not in phases:
            raise BadInput(f"[[conclusions]] {entry['question']!r}: no phase {phase}")
    words = {"more": 2.0, "less": 0.5}
    claim = entry["paper"]
    if claim not in words and not isinstance(claim, int | float):
        raise BadInput(f"[[conclusions]] {entry['question']!r}: paper is a ratio, more or less")
    return PaperConclusion(
        **{"of": {}, "to": {}, **entry, "paper": words.get(claim, claim)}, only_direction=claim in words
    )


def _needs(key: str, entry: Mapping[str, Any], names: Sequence[str]) -> None:
    for name in names:
        if name not in entry:
            raise BadInput(f"[[{key}]] {entry.get('paper', entry.get('question', ''))}: it needs {name}")
