"""Which table of quantities a result.json has: by its study (YCSB's alone today), and by its schema version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from opjoule.record.definition import LAST, Definition, Quantities, Role
from opjoule.record.operation_quantities import KEY_VALUE, OPERATIONS
from opjoule.record.quantities import COMMON, SENSORS

YCSB: Final = Quantities((*COMMON, *OPERATIONS, *KEY_VALUE, *SENSORS))
"""Of a YCSB workload."""


def of_version_1(table: Quantities) -> Quantities:
    """The table with what its keys meant in results of schema version 1."""

    def known(key: str) -> Definition:
        found = table.get(key)
        assert found is not None, key
        return found

    energy_words = "run and settle, idle power in it"
    return table.replaced(
        {
            "energy_j": replace(
                known("energy_j"),
                meaning=f"{energy_words} (result of schema version 1)",
                line=("energy", energy_words),
            ),
            "energy_per_operation_j": replace(
                known("energy_per_operation_j"),
                meaning="run and settle with idle power, over the operations",
            ),
            "run_energy_j": replace(known("run_energy_j"), line=None),
            "write_back_energy_j": Definition(
                "settle_energy_j",
                "J",
                Role.ENERGY,
                "… in settle",
                "drawn after the last operation, idle power in it",
                line=("settle", "{settle_s} after the last operation"),
                rank={"table": LAST},
            ),
            "settle_s": replace(known("settle_s"), meaning="last operation until dirty pages were written"),
        }
    )


def table_of(result: Mapping[str, Any]) -> Quantities:
    """The table for a result.json, of its schema version."""
    return of_version_1(YCSB) if (result.get("schema") or {}).get("version") == 1 else YCSB
