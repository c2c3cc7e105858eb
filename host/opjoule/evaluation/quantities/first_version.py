"""What quantities meant in result.json of schema version 1, where that differs from today's."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from opjoule.evaluation.quantities.definition import LAST, Quantities

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


@functools.cache
def of_version(version: int, table: Quantities) -> Quantities:
    """A study's table as a result.json of this schema version means it."""
    return table.changed(_VERSION_1) if version == 1 else table
