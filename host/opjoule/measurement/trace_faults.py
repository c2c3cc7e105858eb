"""What in the trace under a repeat's windows makes its figures wrong, or has to be known before they are believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from opjoule.energy.window import EnergyResult
from opjoule.measurement.result import RepeatEnergy

LOST_MAX: Final = 0.01
"""Share of a window's time whose samples may be lost without a word above the figures."""


@dataclass(frozen=True)
class TraceFault:
    """One line, and the groups of figures (record/withheld.py) that it makes wrong."""

    line: str
    withholds: tuple[str, ...] = ()


def trace_faults(repeat: int, energy: RepeatEnergy) -> list[TraceFault]:
    """The faults of one repeat's windows."""
    lost = [
        _lost(repeat, name, window)
        for name, window in (("run", energy.run), ("run and settle", energy.whole))
    ]
    return [fault for fault in lost if fault][:1]


def _lost(repeat: int, name: str, window: EnergyResult) -> TraceFault | None:
    share = window.lost_s / window.window.duration_s
    if share <= LOST_MAX:
        return None
    return TraceFault(
        f"repeat {repeat}, {name}: {100 * share:.1f} % of the time has no sample ({window.lost_samples} lost, limit "
        f"{100 * LOST_MAX:g} %); check the meter's cable and the host's load"
    )
