"""What a kind of study says of its results: its quantities, and the words for what only it can name."""

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
