"""Clock map from the edges of the sync line, seen by the board and by the meter.

The line toggles at pseudo-random intervals, so that a stretch of edges fits only one place of the other list.
Matching starts from single intervals that are equal on both clocks, grows each such beginning over the
neighbouring edges while it refines the rate, and keeps the one that explains the most edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.line_fit import Float64Array, Int64Array, LineFit, fit_line
from opjoule.errors import AlignmentError

TOLERANCE_NS: Final = 200_000
"""Two edges this close on one clock can be the same edge (a toggle in user space may be late)."""
DRIFTS_MAX: Final = (300e-6, 6e-3)
"""Rates tried: crystals first, then the ceramic resonators of small boards."""
PAIRS_MIN: Final = 4
MATCHED_MIN: Final = 0.5
"""Part of the edges that could match which must."""
RIVAL_MAX: Final = 0.5
"""A second place that explains more than this part of the pairs makes the match ambiguous."""
SEEDS: Final = 100
SKIP_MAX: Final = 3
"""Intervals over so many edges are tried, so that one missing edge does not spoil a beginning."""
SPREAD_NS: Final = 5_000_000
"""A beginning grows no faster than its prediction stays within this."""


@dataclass(frozen=True)
class EdgePairs:
    """Edges matched one to one, each array of shape (n,), increasing."""

    source_ns: Int64Array
    target_ns: Int64Array
    source_index: npt.NDArray[np.intp]
    """Places of the pairs in the source list."""
    target_index: npt.NDArray[np.intp]
    """Places of the pairs in the target list."""
    unmatched_source: int
    """Edges of the source list without a partner (missed by the target)."""
    unmatched_target: int
    """Edges of the target list without a partner (spurious or duplicated)."""


@dataclass(frozen=True)
class _Edges:
    ns: Int64Array
    level: npt.NDArray[np.int8]
    index: npt.NDArray[np.intp]


@dataclass(frozen=True)
class _Match:
    source: npt.NDArray[np.intp]
    target: npt.NDArray[np.intp]
    fit: LineFit
    possible: int
    """Edges of the shorter list inside the stretch that both lists cover."""


def match_edges(
    source_ns: Int64Array,
    source_level: npt.NDArray[np.int8],
    target_ns: Int64Array,
    target_level: npt.NDArray[np.int8],
) -> EdgePairs:
    """Pairs the edges of two clocks of unknown offset and rate (up to 300 ppm apart, at worst 6000).

    Missing, spurious and duplicated edges on either side are left over; an inverting input is recognised.

    Raises: AlignmentError: no match, or more than one.
    """
    source, target = _ordered(source_ns, source_level), _ordered(target_ns, target_level)
    if min(source.ns.size, target.ns.size) < PAIRS_MIN:
        raise AlignmentError(
            f"sync edges: {source.ns.size} and {target.ns.size} on the two clocks, at least {PAIRS_MIN} "
            "are needed on each: check the sync line"
        )
    for drift_max in DRIFTS_MAX:
        if matches := _matches(source, target, drift_max):
            best = _the_only_one(matches, source)
            return _pairs(source, target, best, int(source_ns.size), int(target_ns.size))
    raise AlignmentError(
        f"sync edges: no place where the {source.ns.size} edges of one clock fit the {target.ns.size} of the "
        "other: check that both come from one run and that the sync line is connected"
    )


def fit_edges(
    pairs: EdgePairs,
    source: str,
    target: str,
    u_edge_ns: float | Float64Array = 1000.0,
    u_delay_ns: float = 500.0,
) -> ClockMap:
    """Straight line through matched edges by least squares.

    Args:
        u_edge_ns: standard uncertainty of each edge's times, one for all or shape (n,) [ns].
        u_delay_ns: standard uncertainty of the delay from toggling to capture, common to all edges [ns].
    Raises: AlignmentError: fewer than 3 pairs.
    """
    count = pairs.source_ns.size
    if count < 3:
        raise AlignmentError(
            f"{source} to {target} clock: {count} pairs of sync edges, at least 3 are needed"
        )
    u_ns = np.maximum(np.broadcast_to(np.asarray(u_edge_ns, np.float64), (count,)), 1.0)
    fit = fit_line(pairs.source_ns, pairs.target_ns, u_ns)
    return ClockMap(
        source=source,
        target=target,
        source_ref_ns=fit.source_ref_ns,
        target_ref_ns=fit.target_ref_ns,
        rate=fit.rate,
        u_offset_ns=math.hypot(fit.u_offset_ns, u_delay_ns),
        u_rate=fit.u_rate,
        method="sync-edges",
        residual_ns=fit.residual_ns,
        n=int(fit.used.sum()),
    )


def _ordered(ns: Int64Array, level: npt.NDArray[np.int8]) -> _Edges:
    """Edges by time, each once."""
    order = np.argsort(ns, kind="stable")
    ordered_ns, ordered_level = ns[order], level[order]
    new = np.ones(ns.size, np.bool_)
    new[1:] = (ordered_ns[1:] != ordered_ns[:-1]) | (ordered_level[1:] != ordered_level[:-1])
    return _Edges(ordered_ns[new], ordered_level[new], order[new])


def _seeds(source: _Edges, target: _Edges, drift_max: float) -> Iterator[tuple[int, int, float, float, bool]]:
    """Pairs of edges that begin intervals of equal length: (source, target, rate, its bound, inverted)."""
    intervals = [target.ns[skip:] - target.ns[:-skip] for skip in range(1, SKIP_MAX + 1)]
    length_ns = np.concatenate(intervals)
    first = np.concatenate([np.arange(part.size) for part in intervals])
    order = np.argsort(length_ns)
    length_ns, first = length_ns[order], first[order]
    begins = np.unique(np.linspace(0, source.ns.size - 2, SEEDS).astype(int))
    for begin in begins.tolist():
        for end in range(begin + 1, min(begin + SKIP_MAX, source.ns.size)):
            wanted_ns = int(source.ns[end] - source.ns[begin])
            slack_ns = 2 * TOLERANCE_NS + round(drift_max * wanted_ns)
            low, high = np.searchsorted(length_ns, [wanted_ns - slack_ns, wanted_ns + slack_ns])
            for place in range(int(low), int(high)):
                at = int(first[place])
                rate = float(length_ns[place]) / wanted_ns
                inverted = bool(source.level[begin] != target.level[at])
                yield begin, at, rate, 2 * TOLERANCE_NS / wanted_ns, inverted


def _matches(source: _Edges, target: _Edges, drift_max: float) -> list[_Match]:
    """All matches, each place once."""
    found: list[_Match] = []
    for begin, at, rate, rate_bound, inverted in _seeds(source, target, drift_max):
        begin_ns, at_ns = int(source.ns[begin]), int(target.ns[at])
        if any(abs(_target_at(match.fit, begin_ns) - at_ns) <= TOLERANCE_NS for match in found):
            continue
        match = _grow(source, target, begin, at, rate, rate_bound, inverted)
        if match is not None and abs(match.fit.rate - 1.0) <= 1.5 * drift_max:
            found.append(match)
    return found


def _grow(
    source: _Edges, target: _Edges, begin: int, at: int, rate: float, rate_bound: float, inverted: bool
) -> _Match | None:
    """The match that a seed leads to; None as soon as too few of the edges around it fit."""
    anchor_ns = int(source.ns[begin])
    line = LineFit(anchor_ns, int(target.ns[at]), rate, 0.0, 0.0, 0.0, np.ones(0, np.bool_))
    reach_ns = round(SPREAD_NS / max(rate_bound, 1e-6))
    while True:
        inside = np.flatnonzero(np.abs(source.ns - anchor_ns) <= reach_ns)
        tolerance_ns = TOLERANCE_NS + rate_bound * np.abs(source.ns[inside] - anchor_ns)
        match = _assign(source, target, line, inside, tolerance_ns, inverted)
        if match is None:
            return None
        line = match.fit
        evidence = 2 * TOLERANCE_NS / max(float(np.ptp(source.ns[match.source])), 1.0)
        if inside.size == source.ns.size and evidence > 0.9 * rate_bound:
            return match
        rate_bound = min(rate_bound, evidence)
        reach_ns = max(2 * reach_ns, round(SPREAD_NS / rate_bound))


def _assign(
    source: _Edges,
    target: _Edges,
    line: LineFit,
    inside: npt.NDArray[np.intp],
    tolerance_ns: Float64Array,
    inverted: bool,
) -> _Match | None:
    """Nearest target edge of the right level for some source edges, each used once."""
    distance_in = source.ns[inside] - line.source_ref_ns
    predicted_ns = (
        line.target_ref_ns + distance_in + np.rint(distance_in * (line.rate - 1.0)).astype(np.int64)
    )
    wanted_level = source.level[inside] ^ 1 if inverted else source.level[inside]
    nearest, distance_ns = _nearest(target, predicted_ns, wanted_level)
    order = np.argsort(distance_ns, kind="stable")
    _, once = np.unique(nearest[order], return_index=True)
    chosen = order[once]
    chosen = np.sort(chosen[distance_ns[chosen] <= tolerance_ns[chosen]])
    within = (predicted_ns >= target.ns[0] - SPREAD_NS) & (predicted_ns <= target.ns[-1] + SPREAD_NS)
    covered_ns = predicted_ns[within]
    if chosen.size < 2 or covered_ns.size < 2:
        return None
    seen = np.searchsorted(target.ns, [covered_ns[0] - SPREAD_NS, covered_ns[-1] + SPREAD_NS])
    possible = int(min(covered_ns.size, seen[1] - seen[0]))
    if chosen.size < MATCHED_MIN * possible:
        return None
    rows, columns = inside[chosen], nearest[chosen]
    fit = fit_line(source.ns[rows], target.ns[columns], np.full(rows.size, TOLERANCE_NS / 4.0))
    return _Match(rows, columns, fit, possible)


def _nearest(
    target: _Edges, wanted_ns: Int64Array, wanted_level: npt.NDArray[np.int8]
) -> tuple[npt.NDArray[np.intp], Float64Array]:
    """Index of the nearest target edge of the wanted level for each time, and its distance [ns]."""
    nearest = np.zeros(wanted_ns.size, np.intp)
    distance_ns = np.full(wanted_ns.size, np.inf)
    for level in (0, 1):
        mine, theirs = np.flatnonzero(wanted_level == level), np.flatnonzero(target.level == level)
        if mine.size == 0 or theirs.size == 0:
            continue
        after = np.searchsorted(target.ns[theirs], wanted_ns[mine])
        for candidate in (np.clip(after - 1, 0, None), np.clip(after, None, theirs.size - 1)):
            apart = np.abs(target.ns[theirs[candidate]] - wanted_ns[mine]).astype(np.float64)
            closer = apart < distance_ns[mine]
            nearest[mine[closer]] = theirs[candidate[closer]]
            distance_ns[mine[closer]] = apart[closer]
    return nearest, distance_ns


def _the_only_one(matches: list[_Match], source: _Edges) -> _Match:
    """The match that explains the most edges.

    Raises: AlignmentError: too few pairs, or another place explains nearly as many.
    """
    best = max(matches, key=lambda match: match.source.size)
    if best.source.size < PAIRS_MIN:
        raise AlignmentError(
            f"sync edges: only {best.source.size} edges fit, at least {PAIRS_MIN} must: run longer"
        )
    middle_ns = int(source.ns[best.source[best.source.size // 2]])
    place_ns = _target_at(best.fit, middle_ns)
    rivals = [
        m.source.size for m in matches if abs(_target_at(m.fit, middle_ns) - place_ns) > 2 * TOLERANCE_NS
    ]
    if rivals and max(rivals) > RIVAL_MAX * best.source.size:
        raise AlignmentError(
            f"sync edges fit in more than one place ({best.source.size} and {max(rivals)} pairs): "
            "the intervals are too regular or too few edges were recorded"
        )
    return best


def _target_at(fit: LineFit, source_ns: int) -> int:
    distance = source_ns - fit.source_ref_ns
    return fit.target_ref_ns + distance + round(distance * (fit.rate - 1.0))


def _pairs(source: _Edges, target: _Edges, match: _Match, sources: int, targets: int) -> EdgePairs:
    """The pairs that lie on the final line."""
    rows, columns = match.source, match.target
    close = np.abs(match.fit.distance_ns(source.ns[rows], target.ns[columns])) <= TOLERANCE_NS
    rows, columns = rows[close], columns[close]
    return EdgePairs(
        source.ns[rows],
        target.ns[columns],
        source.index[rows],
        target.index[columns],
        sources - rows.size,
        targets - rows.size,
    )
