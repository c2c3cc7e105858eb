"""Phases with the roles that every study gives to phases of these names."""

from __future__ import annotations

from typing import Any

from opjoule.runs.record.phases import Phase, Role

ROLES = {
    "load": Role.PREPARE,
    "load-settle": Role.DRAIN,
    "idle-before": Role.BASELINE,
    "run": Role.WORK,
    "mix": Role.MIX,
    "blocks": Role.BLOCKS,
    "settle": Role.DRAIN,
    "idle-after": Role.BASELINE,
    "harness": Role.CONTROL,
    "signature": Role.CONTROL,
}


def usual_phase(name: str, *fields: Any, **more: Any) -> Phase:
    """A phase with the usual role of its name."""
    return Phase(name, *fields, role=ROLES[name], **more)
