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
"""Fewest edges in which outliers can be detected."""
_Three = tuple[int, int, int]
_AROUND: Final[list[_Three]] = [
    offsets
    for offsets in itertools.combinations([*range(-NEIGHBOURS, 0), *range(1, NEIGHBOURS + 1)], 3)
    if offsets[0] < 0 < offsets[2]
]
"""Three neighbours, some before and some behind. A single late one is in 3 of 8 of them: the median stands."""
_BEHIND: Final[list[_Three]] = list(itertools.combinations(range(1, 2 * NEIGHBOURS + 1), 3))


def near_their_neighbours(
    source_ns: Int64Array, target_ns: Int64Array, u_ns: Float64Array, *, bends: bool
) -> npt.NDArray[np.bool_]:
    """Mask that is False for pairs away from the parabolas through most triples of their neighbours. A clock that warms
    up changes its rate by 2 ppm in a second: straight lines would reject its best pairs.

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
    """True for each pair near its neighbours, bool, shape (n,); there is no pause between the pairs."""
    size = source_ns.size
    if size < FEWEST:
        return np.ones(size, np.bool_)
    time = (source_ns - source_ns[0]).astype(np.float64)
    beyond = ((target_ns - target_ns[0]) - (source_ns - source_ns[0])).astype(np.float64)
    if size < 3 * NEIGHBOURS:
        return _near_in_few(time, beyond, u_ns)
    inner = np.arange(NEIGHBOURS, size - NEIGHBOURS)
    off = _off(time, beyond, inner, _AROUND)
    typical = np.hypot(u_ns, 1.4826 * float(np.median(off)))
    near = np.zeros(size, np.bool_)
    near[inner] = off <= OUTLIER * typical[inner]
    first = np.arange(size - 2 * NEIGHBOURS) if bends else np.arange(NEIGHBOURS)
    last = size - 1 - first
    for places, neighbours in ((first, _BEHIND), (last, [(-a, -b, -c) for a, b, c in _BEHIND])):
        off = _off(time, beyond, places, neighbours)
        near[places] |= off <= END_SLACK * OUTLIER * typical[places]
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
    time: Float64Array, beyond: Float64Array, places: npt.NDArray[np.intp], neighbours: list[_Three]
) -> Float64Array:
    """How far pairs are from the median of the parabolas through three of their neighbours [ns]."""
    said = []
    for three in neighbours:
        one, two, other = (time[places + offset] - time[places] for offset in three)
        share_one = two * other / _apart((one - two) * (one - other))
        share_two = one * other / _apart((two - one) * (two - other))
        share_other = one * two / _apart((other - one) * (other - two))
        near_one, near_two, near_other = (beyond[places + offset] for offset in three)
        said.append(share_one * near_one + share_two * near_two + share_other * near_other)
    return np.asarray(np.abs(beyond[places] - np.median(said, axis=0)), np.float64)


def _apart(product: Float64Array) -> Float64Array:
    """Distances multiplied, none of them 0: edges at the same time say nothing, and the median passes them over."""
    return np.where(product == 0.0, 1.0, product)
