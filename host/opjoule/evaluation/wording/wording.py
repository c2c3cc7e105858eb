"""What a kind of study says of its results: its quantities, and the words for what only it can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opjoule.evaluation.quantities.definition import Quantities
from opjoule.evaluation.quantities.first_version import of_version
from opjoule.record.groups import PER_OPERATION
from opjoule.record.run import Run


@dataclass(frozen=True)
class Wording:
    """Words for one kind of study; its functions are given run.json."""

    quantities: Quantities
    """The first of its answer is the headline: what --until-u is about, and whose absence is explained."""
    subject: Callable[[Run], str]
    """What was measured, in a word or a command line."""
    work: Callable[[Run], str]
    """What was run on it, in a line."""
    more: Callable[[Run], str]
    """What a user asks for who wants more of it measured."""
    longer: Callable[[Run, float, float, float], str]
    """What to ask for where a run was too short; given run.json, how many times as long it has to be, its length [s],
    and its operations."""
    notes: Callable[[Run], list[str]] = lambda run: []
    """What has to stand above the figures."""
    apart: Callable[[Run], str] = lambda run: ""
    """What to ask for who wants kinds of operation told apart that the run could not tell; empty for nothing."""
    always_counted: bool = True
    """Its work is made of operations; if not, a result without any is not spoken of in terms of them."""

    def quantities_of(self, result: Mapping[str, Any]) -> Quantities:
        """What one of its results has, as result.json of that version means it."""
        table = of_version(result["schema"]["version"], self.quantities)
        counted = self.always_counted or (result.get("operations") or {}).get("value")
        return table if counted else table.without(PER_OPERATION)
