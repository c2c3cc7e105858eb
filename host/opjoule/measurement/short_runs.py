"""A run that is too short to stand for anything, and how many operations would do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from opjoule.record.phases import Phase

SHORTEST_S: Final = 1.0
FEWEST_SAMPLES: Final = 500
_COMFORTABLE_S: Final = 30
_SPARE: Final = 1.5
"""Runs differ: what is advised lies this much above what would just do."""


def short_run_warnings(
    runs: Sequence[Phase],
    period_ns: int,
    operations: float,
    run_s: float | None = None,
    *,
    counted: bool = True,
) -> list[str]:
    """One line if the shortest run is too short for a figure to be trusted, none otherwise.

    Args:
        period_ns: distance of the meter's samples [ns].
        operations: mean operations of a run.
        run_s: what --seconds asked for; None where operations were asked for.
        counted: the operations, or the seconds, are the user's to choose.
    """
    shortest_s = min(run.duration_s for run in runs)
    samples = shortest_s * 1e9 / max(period_ns, 1)
    if shortest_s >= SHORTEST_S and samples >= FEWEST_SAMPLES:
        return []
    longer = _SPARE * max(SHORTEST_S / shortest_s, FEWEST_SAMPLES / samples)
    seconds = max(math.ceil(shortest_s * longer), _COMFORTABLE_S)
    more = "" if run_s else f", or --operations {_rounded_up(operations * longer)}"
    remedy = f"--seconds {seconds}{more}" if counted else f"let it work {longer:.2g} times as long"
    return [
        f"the run took {shortest_s:.3g} s with {samples:.0f} samples: too short to stand for more than itself; at "
        f"least {SHORTEST_S:g} s and {FEWEST_SAMPLES} samples are needed: {remedy}"
    ]


def _rounded_up(number: float) -> int:
    """To two digits, upwards."""
    step = int(10 ** max(math.floor(math.log10(max(number, 1.0))) - 1, 0))
    return math.ceil(number / step) * step
