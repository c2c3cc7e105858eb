"""What a time chart marks besides its tracks: phases, lost samples, background work; seconds on the record's axis."""

from __future__ import annotations

from dataclasses import dataclass

from opjoule.drawing.packing import Floats


@dataclass(frozen=True)
class PhaseSpan:
    """A phase [s]."""

    name: str
    repeat: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class LostStretch:
    """A stretch without samples [s]; lost_samples is 0 where the meter could not tell."""

    start_s: float
    end_s: float
    lost_samples: int
    reason: str


@dataclass(frozen=True)
class Lane:
    """Background work of one kind: stretches [s] that do not overlap, shape (n,)."""

    name: str
    start_s: Floats
    end_s: Floats


def phase_kind(name: str) -> str:
    """What a phase's colour stands for: "idle-before" is idle, "blocks" is run, others are their own kind."""
    return "run" if name == "blocks" else next((kind for kind in ("idle", "settle") if kind in name), name)
