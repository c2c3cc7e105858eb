"""Figures that a fault makes wrong: they are not given, and the fault stands in their place.

A fault withholds groups of figures; run.json keeps for each group the first fault that did.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from opjoule.record.result import GROUPS as GROUPED
from opjoule.record.result import UNITS
from opjoule.units import Missing

ENERGY: Final = "energy"
"""Every energy and power of the run's windows."""
ABOVE_IDLE: Final = "above_idle"
"""Whatever idle power or the end of settle is part of."""
PER_OPERATION: Final = "per_operation"
"""Whatever is counted or divided by operations."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        ENERGY: (
            *("run_energy_j", "write_back_energy_j", "energy_j", "marginal_energy_j", "harness_energy_j"),
            *("energy_per_operation_j", "marginal_energy_per_operation_j", "power_w", "idle_power_w"),
            *("budget", "marginal_budget", "headline_budget", "by_sensor"),
        ),
        ABOVE_IDLE: (
            *("write_back_energy_j", "energy_j", "marginal_energy_j", "harness_energy_j", "idle_power_w"),
            *("energy_per_operation_j", "marginal_energy_per_operation_j"),
            *("budget", "marginal_budget", "headline_budget"),
        ),
        PER_OPERATION: (
            *("operations", "energy_per_operation_j", "marginal_energy_per_operation_j", "harness_energy_j"),
            *("throughput_per_s", "bandwidth_bytes_per_s", "latency_s", "by_operation", "headline_budget"),
        ),
    }
)
"""The keys of result.json that each group holds."""


def withhold(entries: Mapping[str, Any], withheld: Mapping[str, str]) -> dict[str, Any]:
    """The numbers of a run without those that its faults make wrong.

    Args:
        entries: as result.json takes them.
        withheld: group -> the fault, as run.json keeps it.
    """
    kept = dict(entries)
    by_repeat = dict(entries.get("by_repeat", {}))
    for group, fault in withheld.items():
        for key in GROUPS[group]:
            if key in kept:
                kept[key] = _withheld(key, f"withheld: {fault}")
            by_repeat = {path: each for path, each in by_repeat.items() if path.split(".")[0] != key}
    return kept | ({"by_repeat": by_repeat} if "by_repeat" in entries else {})


def _withheld(key: str, reason: str) -> Any:  # a Missing, or what stands for a group of them
    if key in {"by_sensor", "marginal_budget", "headline_budget"}:
        return None
    return Missing(reason, UNITS.get(key) or (GROUPED[key][1] if key in GROUPED else ""))
