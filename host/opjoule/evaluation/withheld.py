"""Figures that a fault makes wrong: they are not given, and the fault stands in their place.

A fault withholds groups of figures; run.json keeps for each group the first fault that did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opjoule.evaluation.quantities.definition import Quantities
from opjoule.units import Missing


def withhold(
    entries: Mapping[str, Any], withheld: Mapping[str, str], quantities: Quantities
) -> dict[str, Any]:
    """The numbers of a run without those that its faults make wrong.

    Args:
        entries: as result.json takes them.
        withheld: group -> the fault, as run.json keeps it.
        quantities: what the study has, and what each rests on.
    """
    kept = dict(entries)
    by_repeat = dict(entries.get("by_repeat", {}))
    for group, fault in withheld.items():
        for key in quantities.resting_on(group):
            if key in kept:
                kept[key] = _withheld(key, f"withheld: {fault}", quantities)
            by_repeat = {path: values for path, values in by_repeat.items() if path.split(".")[0] != key}
    return kept | ({"by_repeat": by_repeat} if "by_repeat" in entries else {})


def _withheld(key: str, reason: str, quantities: Quantities) -> Any:  # a Missing, or what stands for a group
    group = quantities.below(key)
    if not any(definition.required for definition in group):
        return None
    return Missing(reason, "" if "*" in group[0].key else group[0].unit)
