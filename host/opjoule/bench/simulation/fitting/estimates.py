"""Fitted parameters with their intervals, and those that the board's counters give: rates and flush latency."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from opjoule.attribution.activities import Intervals
from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.bench.simulation.fitting.recorded import ActivityWindows, Recorded
from opjoule.energy.trace.power_trace import BoolArray, Float64Array

LEAST_W: Final = 0.02
_CORES_RUN: Final = "a run that keeps 1, 2, ... all cores busy: host/measure.py twin prints it"
_TAIL_RUN: Final = "a run that writes, then rests for longer than the tail: host/measure.py twin prints it"
_WRITE_RUN: Final = "a run that writes for seconds: host/measure.py twin prints it"
_READ_RUN: Final = "a run that reads for seconds: host/measure.py twin prints it"
_SYNC_RUN: Final = "a synced workload: -p durability=sync, or the run that host/measure.py twin prints"
_SUPPLY_RECORD: Final = "a record with a meter that measures voltage and current of an ordinary supply"


class Parameter(NamedTuple):
    """Properties of a parameter that do not depend on the records."""

    unit: str
    needed_run: str
    least: float = 0.0
    """Absolute width of an interval up to which it counts as identified, even if its value is smaller."""


PARAMETERS: Final = {
    "board.busy_cores_w": Parameter("W", _CORES_RUN, LEAST_W),
    "board.busy_cores_w.0": Parameter("W", "a run with --idle 30", LEAST_W),
    "medium.idle_w": Parameter("W", "a further sensor in the medium's supply"),
    "medium.active_w": Parameter("W", _WRITE_RUN, LEAST_W),
    "medium.tail_w": Parameter("W", _TAIL_RUN, LEAST_W),
    "medium.tail_s": Parameter("s", _TAIL_RUN),
    "medium.write_bytes_per_s": Parameter("B/s", _WRITE_RUN),
    "medium.read_bytes_per_s": Parameter("B/s", _READ_RUN),
    "medium.flush_s": Parameter("s", _SYNC_RUN),
    "supply.open_voltage_v": Parameter("V", _SUPPLY_RECORD),
    "supply.resistance_ohm": Parameter("ohm", _SUPPLY_RECORD, 0.02),
}
"""Parameters by key; the powers with one busy core and more have one entry."""


@dataclass(frozen=True)
class Estimate:
    """A parameter of the twin."""

    key: str
    """Place in the profile, such as `medium.active_w`."""
    value: float
    """Value for the profile: fitted, or assumed if the record does not determine it."""
    u: float | None
    """Expanded uncertainty (k = 2), in the value's unit; None: not identifiable."""
    origin: str
    """The data of the fit, or the reason why the parameter is not identifiable."""

    @property
    def unit(self) -> str:
        """Unit of the value."""
        return _parameter(self.key).unit

    @property
    def needed_run(self) -> str:
        """The run that would determine it; empty if it is identified."""
        return "" if self.identified else _parameter(self.key).needed_run

    @property
    def identified(self) -> bool:
        """Whether the records determine it."""
        return self.u is not None

    @property
    def low(self) -> float:
        """Lower end of the interval; the value itself if there is none."""
        return self.value - (self.u or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval; the value itself if there is none."""
        return self.value + (self.u or 0.0)

    def holds(self, truth: float) -> bool:
        """Whether the interval contains a known true value; False without an interval."""
        return self.u is not None and self.low <= truth <= self.high


def _parameter(key: str) -> Parameter:
    return PARAMETERS.get(key) or PARAMETERS[key.rpartition(".")[0]]


def assumed(key: str, value: float, why: str) -> Estimate:
    """A parameter that the records do not determine: the prior is kept."""
    return Estimate(key, value, None, f"not identifiable: {why}")


def fitted_or_prior(key: str, value: float, standard_u: float, origin: str, prior: float) -> Estimate:
    """A fitted parameter, or the prior if the interval is wider than both the value and the parameter's `least`."""
    u = COVERAGE_FACTOR * standard_u
    if u <= max(abs(value), _parameter(key).least):
        return Estimate(key, value, u, origin)
    return assumed(key, prior, f"the record gives {value:.3g} ± {u:.2g}")


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
