"""Whether the data can tell a part's energy at all, and why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from opjoule.attribution.activities import Intervals
from opjoule.attribution.fit import Fit
from opjoule.attribution.medium import Counters
from opjoule.trace.power_trace import BoolArray, Float64Array
from opjoule.units import COVERAGE_FACTOR

OWN_PART: Final = 0.5
"""A part is told if its interval is no wider to either side than this part of its own energy,"""
OF_WHOLE: Final = 0.05
"""... or, of an activity, than this part of the whole."""
INDEPENDENT_MIN: Final = 4.0
"""Stretches in which a part was at work differently from the others, at least."""
IN_STEP: Final = (
    "in step with the meter's samples, which see the current part of the time only: "
    "use a meter or mode that sees all of it, or another sampling rate"
)
"""Why a part is not told whose energy moves far where operations count as the meter saw them."""
COLLINEAR: Final = 0.98
"""Squared correlation from which on a part's variation is said to be that of the others."""
OWN_VARIATION_MIN: Final = 0.1
"""Of a column, so much is not that of the others: less, and all that the columns simplify outweighs it.
A variance inflation factor of 10; source: Kutner et al., Applied Linear Statistical Models (2005), 10.5."""
TRADED: Final = 0.5
"""Squared correlation of two parts' errors from which on each is mostly the other's."""


def verdicts(
    names: Sequence[str], kinds: int, parts: Float64Array, columns: Float64Array, found: Fit
) -> list[str]:
    """Why each part is not identifiable; an empty line where it is.

    What the data say alone counts, too, without the rule that nothing is negative.

    Args:
        names: of the parts, the first `kinds` of them kinds of operation, the last one all of those: for what one
            operation costs, a small part of the whole may still be anything.
        parts: 1 where a column belongs to a part, shape (q, p).
        columns: shape (n, p).
    """
    whole_j = float(np.abs(found.energy_j[:-1]).sum())
    drawn = columns @ (parts * found.coefficients).T
    traded = _traded(found, kinds)
    reasons = []
    for at, name in enumerate(names):
        width_j = COVERAGE_FACTOR * float(max(found.free_u_j[at], found.standard_u_j[at]))
        if found.independent[at] < INDEPENDENT_MIN:
            count = max(int(found.independent[at]) + 1, 1)
            reasons.append(f"too few windows: {name} rests on {count} stretches that differ from the others")
        elif traded[at].any():
            reasons.append(_together(name, [names[each] for each in np.flatnonzero(traded[at]).tolist()]))
        elif width_j <= max(OWN_PART * float(found.energy_j[at]), 0.0 if at < kinds else OF_WHOLE * whole_j):
            reasons.append("")
        else:
            own = range(kinds) if at == len(names) - 1 else [at]
            reasons.append(_why(name, own, names[:-1], drawn[:, :-1]))
    return reasons


def too_short(activities: Mapping[str, Intervals], counters: Counters | None) -> dict[str, str]:
    """The engine's work that writes and is over before the counters are read again, and why it is not told."""
    if (
        counters is None
        or counters.board_ns.size < 2
        or counters.written_bytes[-1] <= counters.written_bytes[0]
    ):
        return {}
    period_ns = float(np.median(np.diff(counters.board_ns)))
    return {
        name: f"too short: {name} takes less than the {period_ns * 1e-9:.2g} s between two readings of the board's "
        "counters, so what the medium draws for its bytes is not told from it"
        for name, of in activities.items()
        if name != "sync" and of.start_ns.size and np.mean(of.end_ns - of.start_ns) < period_ns
    }


def _traded(found: Fit, kinds: int) -> BoolArray:
    """Activities with hardly a course of their own whose error each part shares, shape (q, q).

    Kinds differ near by, whatever they have in common far from each other.
    """
    mixed = found.own_variation < OWN_VARIATION_MIN
    mixed[[*range(kinds), -1]] = False
    return np.asarray(mixed & (found.traded > TRADED))


def _together(name: str, others: Sequence[str]) -> str:
    with_it = [each for each in others if each != name] or ["the other parts"]
    return f"collinear: {name} always goes together with {' and '.join(with_it)}"


def _why(name: str, own: Sequence[int], names: Sequence[str], drawn: Float64Array) -> str:
    """The other parts that go together with one, or that it is lost in the scatter."""
    course = drawn[:, own].sum(axis=1)
    course = course - course.mean()
    left = [each for each in range(len(names)) if each not in own]
    others = drawn[:, left] - drawn[:, left].mean(axis=0)
    if course.any() and others.any():
        coefficients = np.linalg.lstsq(others, course, rcond=None)[0]
        explained = 1.0 - float(np.sum((course - others @ coefficients) ** 2) / np.sum(course**2))
        if explained > COLLINEAR:
            weight = np.abs(coefficients) * others.std(axis=0)
            return _together(
                name, [names[left[each]] for each in np.flatnonzero(weight > 0.2 * weight.max()).tolist()]
            )
    return f"too noisy: what {name} draws is lost in the scatter of the windows"
