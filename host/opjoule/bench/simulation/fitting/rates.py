"""The medium's sequential rates and flush latency, from the board's counters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.attribution.activities import Intervals
from opjoule.bench.simulation.fitting.estimate import Estimate, assumed, fitted_or_prior
from opjoule.bench.simulation.fitting.recorded import ActivityWindows, Recorded
from opjoule.energy.trace.power_trace import BoolArray, Float64Array

STREAK: Final = 3
"""Least number of consecutive windows for a sustained rate."""
ALIKE: Final = 0.15
"""Greatest relative difference between windows of one streak."""
NEAR_STEEPEST: Final = 0.75
"""Fraction of the steepest rate below which something else slowed a streak."""
RATE_U: Final = 0.01
"""Relative standard uncertainty of a rate in addition to its spread: requests complete in batches."""
SYNCS_MIN: Final = 8
CALL_U: Final = 0.01
"""Relative standard uncertainty of a flush in addition to its scatter: the call itself also takes time."""


@dataclass(frozen=True)
class _Streak:
    rate: float
    """[B/s]"""
    standard_u: float
    length_s: float


def write_rate(records: Sequence[Recorded], prior: float) -> Estimate:
    """The medium's sequential write rate [B/s]: growth of the written bytes while dirty pages wait for it."""
    streaks, fastest = [], 0.0
    for windows in (one.windows for one in records):
        streaks += _streaks(windows, windows.written_bytes, _waits(windows))
        fastest = max(fastest, float(np.max(windows.written_bytes / windows.span_s, initial=0.0)))
    why = f"dirty pages never kept it busy for {STREAK} windows in a row; the fastest was {fastest * 1e-6:.3g} MB/s"
    origin = "written bytes while dirty pages waited"
    return _rate("medium.write_bytes_per_s", streaks, prior, origin, why)


def read_rate(records: Sequence[Recorded], prior: float) -> Estimate:
    """The medium's sequential read rate [B/s]: the steepest sustained growth of the read bytes."""
    streaks = []
    for windows in (one.windows for one in records):
        streaks += _streaks(windows, windows.read_bytes, windows.written_bytes == 0)
    why = "nothing was read from the medium for long enough without writes beside it"
    return _rate("medium.read_bytes_per_s", streaks, prior, "fastest sustained rate of bytes read", why)


def _waits(windows: ActivityWindows) -> BoolArray:
    """Windows that have more dirty bytes at both ends than the medium wrote in them."""
    before = np.append(0.0, windows.dirty_bytes[:-1])
    joined = np.append(False, windows.end_ns[:-1] == windows.start_ns[1:])
    waiting = np.minimum(before, windows.dirty_bytes) > windows.written_bytes / 2
    return np.asarray(joined & waiting, np.bool_)


def _streaks(windows: ActivityWindows, moved: Float64Array, allowed: BoolArray) -> list[_Streak]:
    """Stretches of STREAK windows or more at one rate, without their first and last window."""
    rate = moved / windows.span_s
    made, first = [], 0
    works = allowed & (moved > 0)
    for at in range(len(windows) + 1):
        ends = at == len(windows) or not works[at] or (at > first and abs(rate[at] / rate[first:at].mean() - 1) > ALIKE)
        if not ends:
            continue
        inner = slice(first + 1, at - 1)
        count = at - first - 2
        if count >= STREAK:
            span_s = float(windows.span_s[inner].sum())
            mean = float(moved[inner].sum()) / span_s
            spread = float(rate[inner].std(ddof=1)) / math.sqrt(count)
            made.append(_Streak(mean, math.hypot(spread, RATE_U * mean), span_s))
        first = at if at < len(windows) and works[at] else at + 1
    return made


def _rate(key: str, streaks: Sequence[_Streak], prior: float, origin: str, why: str) -> Estimate:
    if not streaks:
        return assumed(key, prior, why)
    steepest = max(streak.rate for streak in streaks)
    fast = [streak for streak in streaks if streak.rate >= NEAR_STEEPEST * steepest]
    weight = np.array([streak.length_s for streak in fast])
    rates = np.array([streak.rate for streak in fast])
    mean = float(weight @ rates / weight.sum())
    inside = float(np.sqrt(weight**2 @ np.array([streak.standard_u for streak in fast]) ** 2) / weight.sum())
    between = float(np.sqrt(weight @ (rates - mean) ** 2 / weight.sum()) / math.sqrt(max(len(fast) - 1, 1)))
    u = math.hypot(inside, between, RATE_U * mean)
    words = f"{origin}, {weight.sum():.3g} s in {len(fast)} stretch{'es' if len(fast) > 1 else ''}"
    return fitted_or_prior(key, mean, u, words, prior)


def flush_latency(records: Sequence[Recorded], rate: Estimate, prior: float) -> Estimate:
    """Duration of a sync less its bytes at the medium's rate [s]: the median over windows with syncs."""
    key = "medium.flush_s"
    beyond = [_beyond_s(one.windows, one.syncs, rate.value) for one in records]
    beyond_s = np.concatenate([beyond_of for beyond_of, _ in beyond]) if beyond else np.zeros(0)
    count = sum(len(one.syncs) for one in records)
    if beyond_s.size < SYNCS_MIN:
        return assumed(key, prior, f"{count} syncs were recorded, {beyond_s.size} with few bytes")
    doubt_s = float(np.mean(np.concatenate([bytes_of for _, bytes_of in beyond])))
    middle_s = float(np.median(beyond_s))
    spread_s = 1.4826 * float(np.median(np.abs(beyond_s - middle_s)))
    relative = (rate.u or 0.5 * rate.value) / 2 / rate.value
    scatter_s = 1.2533 * spread_s / math.sqrt(beyond_s.size)
    u = math.hypot(scatter_s, relative * doubt_s, 0.1 * doubt_s, CALL_U * middle_s)
    origin = f"{beyond_s.size} syncs minus the time of their bytes at the medium's rate"
    return fitted_or_prior(key, max(middle_s, 0.0), u, origin, prior)


def _beyond_s(windows: ActivityWindows, syncs: Intervals, rate: float) -> tuple[Float64Array, Float64Array]:
    """Length of each sync less the time of its bytes, and that time [s]; only for syncs that are mostly latency.

    A window's bytes are divided equally among its syncs.
    """
    if not len(syncs):
        return np.zeros(0), np.zeros(0)
    first = np.searchsorted(windows.end_ns, syncs.start_ns, "right")
    last = np.searchsorted(windows.end_ns, syncs.end_ns, "left")
    inside = (last < len(windows)) & (first < len(windows))
    first, last = first[inside], last[inside]
    count = np.maximum(np.bincount(first, minlength=len(windows)), 1)
    summed = np.append(0.0, np.cumsum(windows.written_bytes))
    sync_bytes = (summed[last + 1] - summed[first]) / count[first]
    lasted_s = (syncs.end_ns - syncs.start_ns)[inside] * 1e-9
    bytes_s = sync_bytes / rate
    few = bytes_s < 0.5 * lasted_s
    return lasted_s[few] - bytes_s[few], bytes_s[few]
