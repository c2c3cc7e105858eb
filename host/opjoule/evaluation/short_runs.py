"""A run that is too short to stand for anything, and what would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from opjoule.record.phases import Phase
from opjoule.record.result import TOO_SHORT

SHORTEST_S: Final = 1.0
FEWEST_SAMPLES: Final = 500
_SPARE: Final = 1.5
"""Runs differ: what is advised lies this much above what would just do."""


def short_run_warnings(
    runs: Sequence[Phase], period_ns: int, longer: Callable[[float, float], str]
) -> list[str]:
    """One line if the shortest run is too short for a figure to be trusted, none otherwise.

    Args:
        period_ns: distance of the meter's samples [ns].
        longer: what the user is to ask for, given how many times as long a run has to be, and its length [s].
    """
    shortest_s = min(run.duration_s for run in runs)
    samples = shortest_s * 1e9 / max(period_ns, 1)
    if shortest_s >= SHORTEST_S and samples >= FEWEST_SAMPLES:
        return []
    times = _SPARE * max(SHORTEST_S / shortest_s, FEWEST_SAMPLES / samples)
    return [
        f"the run is {TOO_SHORT}: it took {shortest_s:.3g} s, {samples:.0f} samples. At least "
        f"{SHORTEST_S:g} s and {FEWEST_SAMPLES} samples are needed: {longer(times, shortest_s)}"
    ]
