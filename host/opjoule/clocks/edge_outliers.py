"""Pairs of edges that are off from what their neighbours say, for example late toggles."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.clocks.clock_map import Float64Array, Int64Array

OUTLIER: Final = 5.0
"""Pairs farther from their neighbours than this many typical distances are left out."""
PAUSE: Final = 10.0
"""Pairs farther apart than this many typical steps are no neighbours."""
NEIGHBOURS: Final = 4
"""Pairs on either side that a pair is compared with."""
END_SLACK: Final = 3.0
"""Neighbours on one side say several times less surely where a pair must be."""
FEWEST: Final = 5
"""Of fewer nothing can be told."""
CURVE_PER_S: Final = 2e-7
"""What a clock's rate may change by in a second: no reason to leave a pair out."""


def near_their_neighbours(
    source_ns: Int64Array, target_ns: Int64Array, u_ns: Float64Array, *, bends: bool
) -> npt.NDArray[np.bool_]:
    """False for pairs that are off from the lines through most pairs of their neighbours.

    Args:
        source_ns, target_ns: the pairs, shape (n,), increasing.
        u_ns: standard uncertainty of each [ns].
        bends: a clock has changed its rate at once: it is enough to agree with the neighbours on one side.
    """
    near = np.ones(source_ns.size, np.bool_)
    steps = np.diff(source_ns)
    # Across a pause neighbours say nothing: a late toggle at its end would be taken for a change of the rate.
    pauses = np.flatnonzero(steps > PAUSE * np.median(steps)) + 1 if steps.size else steps
    bounds = [0, *pauses.tolist(), source_ns.size]
    for first, last in itertools.pairwise(bounds):
        part = slice(first, last)
        near[part] = _near_in_a_row(source_ns[part], target_ns[part], u_ns[part], bends=bends)
    return near


def _near_in_a_row(
    source_ns: Int64Array, target_ns: Int64Array, u_ns: Float64Array, *, bends: bool
) -> npt.NDArray[np.bool_]:
    """The same for pairs without a pause between them."""
    size = source_ns.size
    if size < FEWEST:
        return np.ones(size, np.bool_)
    time = (source_ns - source_ns[0]).astype(np.float64)
    beyond = ((target_ns - target_ns[0]) - (source_ns - source_ns[0])).astype(np.float64)
    if size < 3 * NEIGHBOURS:
        return _near_in_few(time, beyond, u_ns)
    ways = range(1, NEIGHBOURS + 1)
    inner = np.arange(NEIGHBOURS, size - NEIGHBOURS)
    off, curve = _off(time, beyond, inner, [(-before, after) for before in ways for after in ways])
    typical = np.hypot(u_ns, 1.4826 * float(np.median(off)))
    near = np.zeros(size, np.bool_)
    near[inner] = off <= OUTLIER * typical[inner] + curve
    first = np.arange(size - 2 * NEIGHBOURS) if bends else np.arange(NEIGHBOURS)
    last = size - 1 - first
    for places, neighbours in (
        (first, [(close, close + far) for close in ways for far in ways]),
        (last, [(-close - far, -close) for close in ways for far in ways]),
    ):
        off, curve = _off(time, beyond, places, neighbours)
        near[places] |= off <= END_SLACK * OUTLIER * typical[places] + curve
    return near


def _near_in_few(time: Float64Array, beyond: Float64Array, u_ns: Float64Array) -> npt.NDArray[np.bool_]:
    """The same for few pairs: each against the lines through every two of the others."""
    off = np.empty(time.size)
    for at in range(time.size):
        one, other = np.array(list(itertools.combinations([x for x in range(time.size) if x != at], 2))).T
        slope = (beyond[other] - beyond[one]) / np.maximum(time[other] - time[one], 1.0)
        off[at] = abs(beyond[at] - float(np.median(beyond[one] + slope * (time[at] - time[one]))))
    typical = np.hypot(u_ns, 1.4826 * float(np.median(off)))
    return np.asarray(off <= END_SLACK * OUTLIER * typical, np.bool_)


def _off(
    time: Float64Array, beyond: Float64Array, places: npt.NDArray[np.intp], neighbours: list[tuple[int, int]]
) -> tuple[Float64Array, Float64Array]:
    """How far pairs are from the lines through two of their neighbours, and what a curved course explains of it."""
    said, curve = [], []
    for one, other in neighbours:
        low, high = places + one, places + other
        part = (time[places] - time[low]) / np.maximum(time[high] - time[low], 1.0)
        said.append(beyond[low] + part * (beyond[high] - beyond[low]))
        curve.append(np.abs((time[places] - time[low]) * (time[high] - time[places])))
    off = np.abs(beyond[places] - np.median(said, axis=0))
    return off, 0.5e-9 * CURVE_PER_S * np.median(curve, axis=0)
