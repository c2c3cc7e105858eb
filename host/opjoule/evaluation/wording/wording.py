"""A kind of study's quantities, and its own words for its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opjoule.evaluation.quantities.definition import Quantities
from opjoule.record.groups import PER_OPERATION
from opjoule.record.run import Run


@dataclass(frozen=True)
class Wording:
    """Words for one kind of study; its functions are given run.json."""

    quantities: Quantities
    """The first of its answer is the headline: what --until-u is about, and whose absence is explained."""
    subject: Callable[[Run], str]
    """The subject of the measurement, in a word or a command line."""
    work: Callable[[Run], str]
    """The work that was run, in a line."""
    more: Callable[[Run], str]
    """Options for a longer run."""
    longer: Callable[[Run, float, float, float], str]
    """Options after a run that was too short; given run.json, the factor by which it must be longer, its length [s],
    and its operations."""
    notes: Callable[[Run], list[str]] = lambda run: []
    """Notes to be shown above the figures."""
    apart: Callable[[Run], str] = lambda run: ""
    """Option that makes kinds of operation identifiable; empty if none does."""
    always_counted: bool = True
    """True if the work is made of operations; if not, a result without any is not spoken of in terms of them."""

    def quantities_of(self, result: Mapping[str, Any]) -> Quantities:
        """The quantities that one of its results has."""
        counted = self.always_counted or (result.get("operations") or {}).get("value")
        return self.quantities if counted else self.quantities.without(PER_OPERATION)
