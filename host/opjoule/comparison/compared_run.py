"""One run as input of a comparison: its settings and its result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opjoule.comparison.settings import RIG, Settings, kept, settings_of, value_bytes
from opjoule.comparison.value_words import label
from opjoule.errors import RecordFault
from opjoule.evaluation.quantities.definition import Definition, Quantities
from opjoule.opened.answer import Banner, open_answer
from opjoule.record.run_record import RunRecord
from opjoule.studies.definition import SYSTEM


@dataclass(frozen=True)
class ComparedRun:
    """One record with a result."""

    place: Path
    simulated: bool
    condition: Mapping[str, str]
    """Axis -> value, from its index; empty for a record outside a campaign."""
    index: Path | None
    """The folder whose index lists it."""
    rank: int
    """Place of its condition among those of the index, in the requested order."""
    subject: str
    """Subject of the run, in the wording of its study: a database, a command line."""
    status: str
    started_utc: str
    """ISO 8601; empty if the record does not state it."""
    trace_only: bool
    """Whether no workload was run."""
    asked: Mapping[str, Any] = field(repr=False)
    settings: Settings = field(repr=False)
    numbers: Mapping[str, Any] = field(repr=False)
    """result.json."""
    quantities: Quantities = field(repr=False)
    repeats: int | None = None
    """Number of complete cycles behind its mean numbers."""
    too_short: bool = False
    """Whether the run's own warning says that it allows no conclusion."""
    warnings: tuple[Banner, ...] = ()
    """Banners about its end, its faults and its notes."""

    def value(self, axis: str) -> str:
        """The run's value of an axis, or of a group of settings, as text."""
        if axis in self.condition:
            return self.condition[axis]
        known = self.settings.get(axis, {})
        if axis == RIG:  # `rig` of the options is a file
            return " ".join(known.values()) or "default"
        if axis == "value_size" and known:
            return value_bytes(known)
        if (asked := self.asked.get(axis)) is not None and not isinstance(asked, list | bool):
            return str(asked) if "," not in str(asked) else " ".join(known.values())
        return " ".join(known.values()) or "default"

    def words(self, axis: str) -> str:
        """The value for a figure: full names of databases and media, empty if nothing was stated."""
        if axis in ("db", SYSTEM):
            return self.subject
        known = self.value(axis)
        return "" if known == "default" and axis not in self.condition else label(axis, known)

    @property
    def compared(self) -> list[Definition]:
        """Quantities that its study compares, the headline first."""
        headline = self.quantities.headline.key
        return sorted(self.quantities.shown("compared"), key=lambda quantity: quantity.key != headline)


def read_compared(
    record: RunRecord, condition: Mapping[str, str] | None = None, rank: int = 0
) -> ComparedRun:
    """Reads a record for comparisons; `condition` and `rank` come from its index, None and 0 without one.

    Raises: RecordFault: unreadable, changed since it ended, or without a result.
    """
    answer = open_answer(record)
    if not answer.result:
        raise RecordFault("; ".join(record.faults) or answer.problem)
    return ComparedRun(
        record.directory,
        record.simulated,
        condition or {},
        None if condition is None else record.directory.parent,
        rank,
        answer.wording.subject(record.run),
        record.status,
        record.run.found.started_utc or "",
        answer.trace_only,
        kept(record.document.get("asked", {})),
        settings_of(record.document),
        kept(answer.result),
        answer.quantities,
        answer.concluded.repeats,
        answer.concluded.too_short,
        tuple(answer.warnings),
    )
