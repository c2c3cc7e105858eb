"""Whether the board is back at rest, after the tail of a flash card, a drive or the engine.

Only the meter is used, so that the check itself does nothing on the board. At rest means: for the last five seconds,
each second's mean power is within the tolerance of the idle power measured before. The tolerance combines its noise,
its standard uncertainty, and the wander that an idle phase of that length cannot show.
"""

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR, student_t
from opjoule.energy.trace.power_history import BLOCKS_PER_SECOND, PowerHistory
from opjoule.energy.trace.power_trace import Float64Array

QUIET_S: Final = 5
"""Number of consecutive seconds that must be at rest."""
JUDGED_S: Final = 20
"""Number of seconds, if available, that classify a power that did not come to rest."""
DEVIATIONS: Final = 3.0
"""Standard deviations of a second's mean that count as noise."""
FLOOR: Final = 1e-3
"""Fraction of the power below which a difference may be due to the steps of a 12-bit sensor: an INA219's 4 mV are
0.08 % of 5 V, and its 10 uV are 0.02 % of the current of an idle board (SBOS448G, 7.5)."""
UNSEEN: Final = 2e-3
"""Assumed standard deviation of idle wander within ten seconds, as a fraction of the power: ripple that beats
with the voltage's readings, regulators, daemons. Chosen; validation/settle_trials.py shows its cost."""
SHOWN_S: Final = 10.0
"""Length of an idle phase that shows its wander by itself."""
_BLOCKS_MIN: Final = 3
_GROUPS_MIN: Final = 3


@dataclass(frozen=True)
class Rest:
    """Power at rest, with its uncertainty."""

    mean_w: float
    noise_w: float
    """Standard deviation of the mean of one second [W], widened if estimated from few seconds."""
    mean_u_w: float
    """Standard uncertainty of mean_w [W], including the wander that a phase of its length cannot show."""

    @classmethod
    def of(cls, history: PowerHistory, start_meter_ns: int, end_meter_ns: int) -> Self | None:
        """Rest power from a stretch of a trace; None if fewer than three tenths of a second have samples."""
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
        """Tolerance of the mean of a second at rest, about mean_w [W]."""
        return max(DEVIATIONS * math.hypot(self.noise_w, self.mean_u_w), FLOOR * abs(self.mean_w))


@dataclass(frozen=True)
class Calm:
    """Comparison of the newest seconds with rest."""

    quiet: bool
    """Whether each of the newest five is within the tolerance of rest."""
    above_w: float
    """Mean of the newest twenty less that of rest [W]."""
    steady: bool
    """Whether the newest twenty change from their first half to their second by no more than their scatter: a new level
    or recurring bursts, not a falling tail."""
    in_bursts: bool
    """Whether more than half of the newest twenty are within the tolerance of rest: the excess comes in bursts."""


def calm(history: PowerHistory, rest: Rest, since_meter_ns: int) -> Calm | None:
    """Compares the newest seconds of a trace with rest; None if fewer than five have passed since `since_meter_ns`."""
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
