"""A kind of study's quantities, and its own words for its results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from opjoule.evaluation.quantities.definition import LAST, Quantities
from opjoule.record.groups import PER_OPERATION
from opjoule.record.run import Run

_VERSION_1: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "energy_j": {
            "meaning": "run and settle, idle power in it (result of schema version 1)",
            "line": ("energy", "run and settle, idle power in it"),
        },
        "energy_per_operation_j": {"meaning": "run and settle with idle power, over the operations"},
        "run_energy_j": {"line": None},
        "write_back_energy_j": {
            "key": "settle_energy_j",
            "label": "… in settle",
            "meaning": "drawn after the last operation, idle power in it",
            "headline": "",
            "column": "",
            "line": ("settle", "{settle_s} after the last operation"),
            "rank": {"table": LAST},
        },
        "settle_s": {"meaning": "last operation until dirty pages were written"},
    }
)
"""Fields of quantities as result.json of schema version 1 meant them, where that differs from today's."""


@functools.cache
def of_version(version: int, table: Quantities) -> Quantities:
    """A study's table as a result.json of this schema version means it."""
    return table.changed(_VERSION_1) if version == 1 else table


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
    """Its work is made of operations; if not, a result without any is not spoken of in terms of them."""

    def quantities_of(self, result: Mapping[str, Any]) -> Quantities:
        """The quantities of a result, as its schema version defines them."""
        table = of_version(result["schema"]["version"], self.quantities)
        counted = self.always_counted or (result.get("operations") or {}).get("value")
        return table if counted else table.without(PER_OPERATION)
