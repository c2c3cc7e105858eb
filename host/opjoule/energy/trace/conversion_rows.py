"""Stamps of conversions that follow each other in rows, made better after the run.

A chip that converts the current by itself does so without a pause: within a row, between two readings of the bus
voltage or losses, its conversions end at even distances. The meter learns these times from polls of a flag, and knows
them worst at a row's beginning. After the run each row has its later conversions, and neighbours with the same period:

* The period comes from the rows around, since a chip's clock hardly changes within a second. Longer rows keep their
  stamps: their conversions take so long that the meter knows the end of each well enough.
* The row's place comes from its samples, each weighted by its number in the row.

A row that is not even, or that would move by half a distance between two samples, keeps its stamps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.energy.trace.power_trace import Float64Array, Gap, Int64Array, PowerTrace

IndexArray = npt.NDArray[np.intp]
NEIGHBOURS_MAX: Final = 16
"""Greatest number of rows on either side that share the period of a row."""
STEADY_NS: Final = 1_000_000_000
"""Time on either side of a row in which the period counts as the same."""
EVEN_SHARE: Final = 0.5
"""Part of the distance of two samples by which no stamp moves, so that their order stays."""
_TOGETHER: Final = 512
"""Rows per step of the calculation, to save memory."""


def evenly_stamped(trace: PowerTrace) -> PowerTrace:
    """The trace with even distances within each row of conversions, and its gaps and lost samples moved along.

    Unchanged if the trace has no bus readings between its samples: then nothing says that it is made of such rows.
    """
    lost = np.flatnonzero(~trace.good)
    stamps_ns = np.delete(trace.meter_ns, lost) if lost.size else trace.meter_ns
    if trace.bus is None or stamps_ns.size < 2:
        return trace
    first = _rows(trace, stamps_ns, lost)
    length_ns = float(np.median(np.diff(stamps_ns[first], append=stamps_ns[-1])))
    near = int(min(NEIGHBOURS_MAX, STEADY_NS / max(length_ns, 1.0)))
    if not near:
        return trace
    made_ns = np.empty_like(stamps_ns)
    bounds = np.append(first, stamps_ns.size)
    for low in range(0, first.size, _TOGETHER):
        high = min(low + _TOGETHER, first.size)
        around = slice(max(low - near, 0), min(high + near, first.size))
        start, end = bounds[around.start], bounds[around.stop]
        made = _even(stamps_ns[start:end], first[around] - start, near)
        made_ns[bounds[low] : bounds[high]] = made[bounds[low] - start : bounds[high] - start]
    return _moved(trace, lost, stamps_ns, made_ns)


def _rows(trace: PowerTrace, stamps_ns: Int64Array, lost: IndexArray) -> IndexArray:
    """Place of the first sample of each row among the good samples; `lost`: places of the lost ones in the trace."""
    readings_ns = trace.bus.meter_ns if trace.bus else np.zeros(0, np.int64)
    gaps_ns = np.array([gap.start_meter_ns for gap in trace.gaps], np.int64)
    apart = np.searchsorted(stamps_ns, np.concatenate([readings_ns, gaps_ns]))
    first = np.unique(np.concatenate([[0], apart, lost - np.arange(lost.size)]))
    return first[first < stamps_ns.size].astype(np.intp)


def _even(stamps_ns: Int64Array, first: IndexArray, near: int) -> Int64Array:
    """Even stamps of rows of samples, shape (n,).

    Args:
        first: place of each row's first sample, shape (r,), from 0.
        near: number of rows on either side that share a period.
    """
    counts = np.diff(np.append(first, stamps_ns.size))
    base_ns = np.repeat(stamps_ns[first], counts)
    after_ns = (stamps_ns - base_ns).astype(np.float64)
    number = (np.arange(stamps_ns.size) - np.repeat(first, counts) + 1).astype(np.float64)

    def summed(values: Float64Array) -> Float64Array:
        return np.add.reduceat(values, first)

    weight = summed(number)
    centred = number - np.repeat(summed(number * number) / weight, counts)
    middle_ns = summed(number * after_ns) / weight
    spread, slope_ns = summed(number * centred**2), summed(number * centred * after_ns)
    with np.errstate(invalid="ignore", divide="ignore"):
        own_ns = np.repeat(slope_ns / spread, counts)
        uneven = _beyond(centred * own_ns + np.repeat(middle_ns, counts) - after_ns, stamps_ns, first)
        spread[uneven], slope_ns[uneven] = 0.0, 0.0
        period_ns = np.repeat(_around(slope_ns, near) / _around(spread, near), counts)
        shift_ns = centred * period_ns + np.repeat(middle_ns, counts) - after_ns
    shift_ns[np.repeat(uneven | _beyond(shift_ns, stamps_ns, first), counts)] = 0.0
    return stamps_ns + np.rint(shift_ns).astype(np.int64)


def _beyond(shift_ns: Float64Array, stamps_ns: Int64Array, first: IndexArray) -> npt.NDArray[np.bool_]:
    """True for rows with a sample that would move too far, or that has no place, shape (r,)."""
    far_ns = [np.iinfo(np.int64).max]
    distance_ns = np.concatenate([far_ns, np.diff(stamps_ns), far_ns])
    least_ns = np.minimum(distance_ns[:-1], distance_ns[1:])
    return ~np.logical_and.reduceat(np.abs(shift_ns) < EVEN_SHARE * least_ns, first)


def _around(sums: Float64Array, near: int) -> Float64Array:
    """Sum over each row and `near` rows on either side, same shape."""
    running = np.concatenate([[0.0], np.cumsum(sums)])
    rows = np.arange(sums.size)
    around: Float64Array = running[np.minimum(rows + near + 1, sums.size)] - running[np.maximum(rows - near, 0)]
    return around


def _moved(trace: PowerTrace, lost: IndexArray, stamps_ns: Int64Array, made_ns: Int64Array) -> PowerTrace:
    """The trace with other stamps of its good samples; what lies between two of them moves in proportion."""

    def moved(at_ns: Int64Array) -> Int64Array:
        after = np.clip(np.searchsorted(stamps_ns, at_ns), 1, stamps_ns.size - 1)
        before_ns, after_ns = stamps_ns[after - 1], stamps_ns[after]
        share = np.clip((at_ns - before_ns) / (after_ns - before_ns), 0.0, 1.0)
        shift_ns = (1 - share) * (made_ns[after - 1] - before_ns) + share * (made_ns[after] - after_ns)
        moved_ns: Int64Array = at_ns + np.rint(shift_ns).astype(np.int64)
        return moved_ns

    meter_ns = made_ns
    if lost.size:
        meter_ns = np.insert(made_ns, lost - np.arange(lost.size), moved(trace.meter_ns[lost]))
    starts_ns = moved(np.array([gap.start_meter_ns for gap in trace.gaps], np.int64)).tolist()
    ends_ns = moved(np.array([gap.end_meter_ns for gap in trace.gaps], np.int64)).tolist()
    gaps = tuple(_between(*one) for one in zip(trace.gaps, starts_ns, ends_ns, strict=True))
    return replace(trace, meter_ns=meter_ns, gaps=gaps)


def _between(gap: Gap, start_ns: int, end_ns: int) -> Gap:
    """The gap with other bounds, at least 1 ns apart, and the same mean current."""
    end_ns = max(end_ns, start_ns + 1)
    charge_c = None if gap.charge_c is None else gap.charge_c * (end_ns - start_ns) / gap.duration_ns
    return replace(gap, start_meter_ns=start_ns, end_meter_ns=end_ns, charge_c=charge_c)
