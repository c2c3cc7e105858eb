"""Clock map from the edges of the sync line, recorded by the board and by the meter.

The line toggles at pseudo-random intervals, so that a stretch of edges fits only one place of the other list.
Matching starts from stretches that agree on both clocks. It tracks each candidate over the neighbouring edges, with the
rate of those just matched, and keeps the candidate that explains the most edges.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import AlignmentError
from opjoule.clocks.clock_map import ClockMap, Float64Array, Int64Array
from opjoule.clocks.edge_tracking import TOLERANCE_NS, Edges, EdgeTrack, IndexArray, StretchIndex, track
from opjoule.clocks.wandering_clock import follow

PAIRS_MIN: Final = 4
MATCHED_MIN: Final = 0.5
"""Fraction of the edges with a possible partner that must match."""
RIVAL_MAX: Final = 0.5
"""Fraction of the pairs above which a second place makes the match ambiguous."""
BEGINS: Final = 100
"""Number of places in the source list at which stretches begin."""
RIVAL_BEGINS: Final = 20
"""Number of places at which a rival match is searched for."""
ACCIDENTS_MAX: Final = 1e-3
"""Expected number of such matches between two unrelated lists above which a match is rejected."""
OUTLIER: Final = 5.0
"""Distance of a pair from its neighbours, in typical distances, above which it is left out."""
PAUSE: Final = 10.0
"""Distance of two pairs, in typical steps, above which they are not neighbours."""
NEIGHBOURS: Final = 4
"""Number of pairs on either side that a pair is compared with."""
END_SLACK: Final = 3.0
"""Factor of the tolerance at the ends, where neighbours on only one side predict less well."""
FEWEST: Final = 5
"""Fewest edges in which outliers can be detected."""
_Three = tuple[int, int, int]
_AROUND: Final[list[_Three]] = [
    offsets
    for offsets in itertools.combinations([*range(-NEIGHBOURS, 0), *range(1, NEIGHBOURS + 1)], 3)
    if offsets[0] < 0 < offsets[2]
]
"""Triples of neighbours on both sides. A single late one is in 3 of 8 of them: the median is not affected."""
_BEHIND: Final[list[_Three]] = list(itertools.combinations(range(1, 2 * NEIGHBOURS + 1), 3))


@dataclass(frozen=True)
class EdgePairs:
    """Edges matched one to one, each array of shape (n,), increasing."""

    source_ns: Int64Array
    target_ns: Int64Array
    source_index: IndexArray
    """Indices of the pairs in the source list."""
    target_index: IndexArray
    """Indices of the pairs in the target list."""
    unmatched_source: int
    """Edges of the source list without a partner (missed by the target)."""
    unmatched_target: int
    """Edges of the target list without a partner (spurious or duplicated)."""
    rate_changes: int
    """Number of sudden changes of one clock's rate, as in a clock that is slewed."""


def match_edges(
    source_ns: Int64Array,
    source_level: npt.NDArray[np.int8],
    target_ns: Int64Array,
    target_level: npt.NDArray[np.int8],
) -> EdgePairs:
    """Pairs the edges of two clocks with unknown offset; their rates differ by up to 9000 ppm and wander.

    Missing, spurious and duplicated edges on either side remain unmatched; an inverting input is recognised. Each
    clock's times may be in any order, with their levels, 0 or 1. Raises: AlignmentError: no match, or more than one.
    """
    source, target = Edges.of(source_ns, source_level), Edges.of(target_ns, target_level)
    if min(source.ns.size, target.ns.size) < PAIRS_MIN:
        raise AlignmentError(
            f"sync edges: {source.ns.size} and {target.ns.size} on the two clocks, at least {PAIRS_MIN} "
            "are needed on each: check the sync line"
        )
    best = _the_only_track(source, target)
    if best is None:
        raise AlignmentError(
            f"sync edges: nowhere do the {source.ns.size} edges of one clock match the {target.ns.size} of "
            "the other; check that both come from one run and that the sync line is connected"
        )
    return EdgePairs(
        source.ns[best.source],
        target.ns[best.target],
        source.index[best.source],
        target.index[best.target],
        int(source_ns.size) - best.source.size,
        int(target_ns.size) - best.target.size,
        best.changes,
    )


def fit_edges(
    pairs: EdgePairs,
    source: str,
    target: str,
    u_edge_ns: float | Float64Array = 1000.0,
    u_delay_ns: float = 500.0,
) -> ClockMap:
    """Map through matched edges, with knots where the rate wandered.

    Args:
        u_edge_ns: standard uncertainty of each edge's times, a scalar or shape (n,) [ns].
        u_delay_ns: standard uncertainty of the delay from toggling to capture, common to all edges [ns].
    Raises: AlignmentError: fewer than 3 pairs.
    """
    count = pairs.source_ns.size
    if count < 3:
        raise AlignmentError(f"{source} to {target} clock: {count} pairs of sync edges, at least 3 are needed")
    u_ns = np.maximum(np.broadcast_to(np.asarray(u_edge_ns, np.float64), (count,)), 1.0)
    near = near_their_neighbours(pairs.source_ns, pairs.target_ns, u_ns, bends=pairs.rate_changes > 0)
    course = follow(pairs.source_ns[near], pairs.target_ns[near], u_ns[near])
    return course.clock_map(source, target, "sync-edges", u_delay_ns)


def _the_only_track(source: Edges, target: Edges) -> EdgeTrack | None:
    """The track that explains the most edges, if any. Raises: AlignmentError: another place explains nearly as many."""
    index = StretchIndex(target)
    tracks: list[EdgeTrack] = []
    more = RIVAL_BEGINS
    for begin in _spread(source.ns.size - PAIRS_MIN + 1):
        more -= bool(tracks)
        if more < 0:
            break
        for like in index.like(source, np.array([begin]), source.ns.size):
            place = like.source[0], like.target[0]
            if any(_explains(one, source, target, *place) for one in tracks):
                continue
            one = track(source, target, like)
            if one is not None and _holds(one, source, target):
                tracks.append(one)
                _refuse_rivals(tracks)
    return max(tracks, key=lambda one: one.source.size, default=None)


def _spread(count: int) -> list[int]:
    """Up to BEGINS numbers below `count`, in an order that starts with distant ones."""
    places = np.unique(np.linspace(0, count - 1, min(BEGINS, count)).astype(int)).tolist()
    return [place for start in range(7) for place in places[start::7]]


def _explains(one: EdgeTrack, source: Edges, target: Edges, begin: int, at: int) -> bool:
    """Whether a track already maps an edge of the source to about this place."""
    rows, columns = one.source, one.target
    near = min(max(int(np.searchsorted(rows, begin)), 1), rows.size - 1)
    ours = source.ns[rows[near - 1 : near + 1]]
    theirs = target.ns[columns[near - 1 : near + 1]]
    rate = float(theirs[1] - theirs[0]) / float(ours[1] - ours[0])
    distance = float(source.ns[begin] - ours[0])
    off_ns = float(target.ns[at] - theirs[0]) - distance * rate
    return abs(off_ns) <= 3 * TOLERANCE_NS + 2e-3 * min(abs(distance), abs(float(source.ns[begin] - ours[1])))


def _holds(one: EdgeTrack, source: Edges, target: Edges) -> bool:
    """Whether a track explains enough edges, and more than unrelated lists would by chance."""
    pairs = one.source.size
    if pairs < PAIRS_MIN or pairs < MATCHED_MIN * one.possible:
        return False
    span_ns = max(float(target.ns[one.target[-1]] - target.ns[one.target[0]]), 1.0)
    density = max(one.possible, pairs) / span_ns
    by_accident = min(4 * TOLERANCE_NS * density, 1.0)
    ways = math.log(float(source.ns.size) * target.ns.size)
    ways += math.log(math.comb(max(one.possible, pairs), pairs))
    return ways + (pairs - 2) * math.log(by_accident) < math.log(ACCIDENTS_MAX)


def _refuse_rivals(tracks: list[EdgeTrack]) -> None:
    best, *others = sorted((one.source.size for one in tracks), reverse=True)
    if others and others[0] > RIVAL_MAX * best:
        raise AlignmentError(
            f"sync edges fit in more than one place ({best} and {others[0]} pairs): "
            "the intervals are too regular or too few edges were recorded"
        )


def near_their_neighbours(
    source_ns: Int64Array, target_ns: Int64Array, u_ns: Float64Array, *, bends: bool
) -> npt.NDArray[np.bool_]:
    """Mask that is False for pairs away from the parabolas through most triples of their neighbours. A clock that warms
    up changes its rate by 2 ppm in a second: straight lines would reject its best pairs.

    `bends`: a clock has suddenly changed its rate: agreement with the neighbours on one side is sufficient.
    """
    near = np.ones(source_ns.size, np.bool_)
    steps = np.diff(source_ns)
    # Neighbours across a pause are not used: a late toggle at its end would look like a change of the rate.
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
    """The same mask for few pairs: each is compared with the lines through every two of the others."""
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
    """Distance of pairs from the median of the parabolas through three of their neighbours [ns]."""
    predictions = []
    for three in neighbours:
        one, two, other = (time[places + offset] - time[places] for offset in three)
        share_one = two * other / _apart((one - two) * (one - other))
        share_two = one * other / _apart((two - one) * (two - other))
        share_other = one * two / _apart((other - one) * (other - two))
        near_one, near_two, near_other = (beyond[places + offset] for offset in three)
        predictions.append(share_one * near_one + share_two * near_two + share_other * near_other)
    return np.asarray(np.abs(beyond[places] - np.median(predictions, axis=0)), np.float64)


def _apart(product: Float64Array) -> Float64Array:
    """Products of distances, with 1 for 0: the median ignores the invalid parabolas of simultaneous edges."""
    return np.where(product == 0.0, 1.0, product)
