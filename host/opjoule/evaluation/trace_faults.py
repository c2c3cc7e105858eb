"""What in the trace under a repeat's windows makes its figures wrong, or has to be known before they are believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from opjoule.energy.baseline import IdlePower
from opjoule.energy.window import EnergyResult
from opjoule.evaluation.quantities.repeat import RepeatEnergy
from opjoule.record.groups import ABOVE_IDLE

LOST_MAX: Final = 0.01
"""Share of a window's time whose samples may be lost without a word above the figures."""


@dataclass(frozen=True)
class TraceFault:
    """One line, and the groups of figures (evaluation/withheld.py) that it makes wrong."""

    line: str
    withholds: tuple[str, ...] = ()


def trace_faults(repeat: int, energy: RepeatEnergy) -> list[TraceFault]:
    """The faults of one repeat's windows."""
    windows = {"run": energy.run, "run and settle": energy.whole}
    lost = [_lost(repeat, name, window) for name, window in windows.items()]
    clipped = [_clipped(repeat, name, window) for name, window in windows.items()]
    first = [next((fault for fault in faults if fault), None) for faults in (lost, clipped)]
    return [fault for fault in [*first, _idle_clipped(repeat, energy.idle)] if fault]


def _clipped(repeat: int, name: str, window: EnergyResult) -> TraceFault | None:
    if not window.clipped_samples:
        return None
    return TraceFault(
        f"repeat {repeat}, {name}: {window.clipped_samples} samples ({window.clipped_s:.3g} s) at the end of the "
        "meter's range: energies are lower bounds"
    )


def _idle_clipped(repeat: int, idle: IdlePower | None) -> TraceFault | None:
    if idle is None or not idle.clipped_samples:
        return None
    return TraceFault(
        f"repeat {repeat}, idle: {idle.clipped_samples} samples at the end of the meter's range: idle is unknown",
        (ABOVE_IDLE,),
    )


def _lost(repeat: int, name: str, window: EnergyResult) -> TraceFault | None:
    share = window.lost_s / window.window.duration_s
    if share <= LOST_MAX:
        return None
    return TraceFault(
        f"repeat {repeat}, {name}: {100 * share:.1f} % of the time has no sample ({window.lost_samples} lost, limit "
        f"{100 * LOST_MAX:g} %); check the meter's cable and the host's load"
    )
