"""Quantities and wording of a kind of study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opjoule.evaluation.quantities.definition import Quantities
from opjoule.record.groups import PER_OPERATION
from opjoule.record.run import Run


@dataclass(frozen=True)
class Wording:
    """Wording for one kind of study; the functions take run.json."""

    quantities: Quantities
    """The table's first quantity is the headline: --until-u refers to it, and its absence is explained."""
    subject: Callable[[Run], str]
    """The subject of the measurement, in a word or a command line."""
    work: Callable[[Run], str]
    """The work that was run, in a line."""
    more: Callable[[Run], str]
    """Options for a longer run."""
    longer: Callable[[Run, float, float, float], str]
    """Options after a run that was too short; takes run.json, the factor by which it must be longer, its length [s] and
    its number of operations."""
    notes: Callable[[Run], list[str]] = lambda run: []
    """Notes above the figures."""
    apart: Callable[[Run], str] = lambda run: ""
    """Option that makes kinds of operation identifiable; empty if there is none."""
    always_counted: bool = True
    """Whether the work consists of operations; if not, a result without operations does not mention them."""

    def quantities_of(self, result: Mapping[str, Any]) -> Quantities:
        """The quantities of one of its results."""
        counted = self.always_counted or (result.get("operations") or {}).get("value")
        return self.quantities if counted else self.quantities.without(PER_OPERATION)
