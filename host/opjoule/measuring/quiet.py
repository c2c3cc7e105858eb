"""Is the board back at rest: the tail that a flash card, a drive or the engine draws after the last write.

The meter alone answers, so that nothing is done on the board to find out. At rest means that the power of the last five
seconds, second by second, lies as near to the idle power measured before as that is known: its noise, its standard
uncertainty, and what an idle phase of that length cannot show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.energy.repeats import student_t
from opjoule.trace.power_history import BLOCKS_PER_SECOND, PowerHistory
from opjoule.trace.power_trace import Float64Array
from opjoule.units import COVERAGE_FACTOR

QUIET_S: Final = 5
"""Seconds in a row that have to be at rest."""
JUDGED_S: Final = 20
"""Seconds, if there are so many, by which a power that did not come to rest is judged."""
DEVIATIONS: Final = 3.0
"""Standard deviations of a second's mean that count as noise."""
FLOOR: Final = 1e-3
"""Share of the power below which a difference is not told from the steps of a 12-bit sensor: an INA219's 4 mV are
0.08 % of 5 V, and its 10 uV are 0.02 % of the current of an idle board (SBOS448G, 7.5)."""
UNSEEN: Final = 2e-3
"""Standard deviation, as a share of the power, by which idle is taken to wander within ten seconds: ripple that beats
with the voltage's readings, regulators, daemons. Chosen; validation/settle_trials.py shows what it costs."""
SHOWN_S: Final = 10.0
"""An idle phase of this length shows its wander by itself."""
_BLOCKS_MIN: Final = 3
_GROUPS_MIN: Final = 3


@dataclass(frozen=True)
class Rest:
    """Power at rest, and how well it is known."""

    mean_w: float
    noise_w: float
    """Standard deviation of the mean of one second [W], widened where few seconds show it."""
    mean_u_w: float
    """Standard uncertainty of mean_w [W], with the wander that its length could not show."""

    @classmethod
    def of(cls, history: PowerHistory, start_meter_ns: int, end_meter_ns: int) -> Rest | None:
        """The rest that a stretch of a trace shows; None where fewer than three tenths of a second have samples."""
        blocks_w = history.blocks_w(start_meter_ns, end_meter_ns)
        if blocks_w.size < _BLOCKS_MIN:
            return None
        seconds = _known(history.seconds_w(start_meter_ns, end_meter_ns))
        widened = student_t(blocks_w.size - 1) / COVERAGE_FACTOR
        noise_w = widened * float(blocks_w.std(ddof=1)) / math.sqrt(BLOCKS_PER_SECOND)
        if seconds.size >= _GROUPS_MIN:
            widened = student_t(seconds.size - 1) / COVERAGE_FACTOR
            noise_w = max(noise_w, float(seconds.std(ddof=1)) * widened)
        mean_w, length_s = float(blocks_w.mean()), (end_meter_ns - start_meter_ns) * 1e-9
        unseen_w = UNSEEN * abs(mean_w) * math.sqrt(max(1.0 - length_s / SHOWN_S, 0.0))
        return cls(mean_w, noise_w, math.hypot(noise_w / math.sqrt(max(length_s, 1.0)), unseen_w))

    @property
    def tolerance_w(self) -> float:
        """How far the mean of a second at rest may lie from mean_w [W]."""
        return max(DEVIATIONS * math.hypot(self.noise_w, self.mean_u_w), FLOOR * abs(self.mean_w))


@dataclass(frozen=True)
class Calm:
    """How the newest seconds compare with rest."""

    quiet: bool
    """Each of the newest five lies within the tolerance of rest."""
    above_w: float
    """Mean of the newest twenty less that of rest [W]."""
    steady: bool
    """The newest twenty do not change from their first half to their second by more than they scatter: another level or
    bursts that come again, and no tail that falls."""
    in_bursts: bool
    """More than half of the newest twenty lie within the tolerance of rest: what is above comes in bursts."""


def calm(history: PowerHistory, rest: Rest, since_meter_ns: int) -> Calm | None:
    """The newest seconds of a trace against rest; None while fewer than five have passed since a time."""
    end_ns = history.end_ns
    start_ns = max(since_meter_ns, end_ns - JUDGED_S * 1_000_000_000)
    seconds = history.seconds_w(start_ns, end_ns)
    newest, seconds = seconds[-QUIET_S:], _known(seconds)
    if newest.size < QUIET_S or not np.isfinite(newest).all():
        return None
    half = seconds.size // 2
    first, last = seconds[:half], seconds[-half:]
    moved_w = abs(float(last.mean() - first.mean()))
    scatter_w = math.hypot(float(first.std(ddof=1)), float(last.std(ddof=1))) / math.sqrt(half)
    off = np.abs(seconds - rest.mean_w)
    return Calm(
        bool(np.all(np.abs(newest - rest.mean_w) <= rest.tolerance_w)),
        float(seconds.mean()) - rest.mean_w,
        moved_w <= max(rest.tolerance_w, DEVIATIONS * scatter_w),
        float(np.median(off)) <= rest.tolerance_w,
    )


def _known(seconds_w: Float64Array) -> Float64Array:
    return seconds_w[np.isfinite(seconds_w)]
