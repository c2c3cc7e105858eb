"""Whether a part's energy is identifiable, and why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from opjoule.attribution.activities import Intervals
from opjoule.attribution.fit import Fit
from opjoule.attribution.windows import PERIODS_MIN
from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.units import Cause, Quantity, counted, missing
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import Float64Array

KIND_PART: Final = 0.2
"""A kind is identifiable if its half-interval is at most this fraction of its own energy,"""
OWN_PART: Final = 0.5
"""... an activity if it is at most this fraction of its own,"""
OF_WHOLE: Final = 0.05
"""... or, as for all kinds together, this fraction of the whole."""
INDEPENDENT_MIN: Final = 2.0
"""Least effective number of independent blocks for a part, unless it is known to be small: Student's t widens the
interval with so few."""
IN_STEP: Final = missing("use a meter or mode that converts all the time, or another sampling rate", "J", Cause.IN_STEP)
"""Reason for a part whose energy shifts strongly if operations are counted as the meter saw them."""
COLLINEAR: Final = 0.98
"""Squared multiple correlation from which a part counts as collinear with others."""
ALIKE: Final = 0.5
"""Fraction of a variance due to similar courses, from which similarity is given as the reason."""
ROUNDING: Final = 1e-9
"""Fraction of the whole up to which an energy counts as zero."""
LONGEST_S: Final = 3600.0
"""Longest run that is recommended [s]."""
BESIDE: Final = 0.2
"""Fraction of the best explanation of a part's course from which other parts are named with it."""


def identifiable_u_j(energy_j: float, whole_j: float, *, kind: bool) -> float:
    """Widest expanded uncertainty (k = 2) of an identifiable part [J]."""
    return KIND_PART * energy_j if kind else max(OWN_PART * energy_j, OF_WHOLE * whole_j)


def verdicts(
    names: Sequence[str],
    kinds: int,
    parts: Float64Array,
    columns: Float64Array,
    fit: Fit,
    lasted_s: float,
    beside_j: float = 0.0,
    *,
    written: bool = True,
) -> list[Quantity | None]:
    """Why each part is not identifiable; None if it is.

    Args:
        names: of the parts; the first `kinds` are kinds of operation, the last is all kinds together. A kind's limit is
            a fraction of its own energy: for the cost of one operation, a small part of the whole says nothing.
        parts: 1 where a column belongs to a part, shape (q, p).
        beside_j: rest of the whole: the medium's energy from its own sensor.
        written: whether anything was written to the medium.
    """
    whole_j = float(np.abs(fit.energy_j[:-1]).sum()) + beside_j
    drawn = columns @ (parts * fit.coefficients).T
    reasons: list[Quantity | None] = []
    for at, name in enumerate(names):
        own_j = float(fit.energy_j[at])
        limit_j, u_j = identifiable_u_j(own_j, whole_j, kind=at < kinds), float(fit.standard_u_j[at])
        small = at >= kinds and COVERAGE_FACTOR * u_j <= OF_WHOLE * whole_j
        if own_j <= ROUNDING * whole_j:
            most_j = own_j + COVERAGE_FACTOR * u_j
            reasons.append(missing(f"{name} drew less than {most_j:.2g} J, if anything", "J", Cause.NOT_FOUND))
        elif fit.independent[at] < INDEPENDENT_MIN and not small:
            count = max(int(fit.independent[at]) + 1, 1)
            varies = f"{name} varies independently of the other parts in only {counted(count, 'window')}"
            reasons.append(missing(varies, "J", Cause.FEW_WINDOWS))
        elif COVERAGE_FACTOR * u_j <= limit_j:
            reasons.append(None)
        else:
            if fit.model_u_j[at] ** 2 > ALIKE * fit.standard_u_j[at] ** 2:
                reasons.append(_model_decides(name, at, fit, written=written))
                continue
            alike = bool(fit.simplified_u_j[at] ** 2 > ALIKE * fit.standard_u_j[at] ** 2)
            chosen = range(kinds) if at == len(names) - 1 or (alike and at < kinds) else [at]
            together = _together(name, chosen, names[:-1], drawn[:, :-1], alike=alike)
            reasons.append(together or _too_wide(name, at, fit, limit_j, lasted_s))
    return reasons


def too_short(activities: Mapping[str, Intervals], period_ns: int) -> dict[str, Quantity]:
    """Activities that are shorter than a window, and why they are not identifiable."""
    window_s = PERIODS_MIN * period_ns * NS
    reasons = {}
    for name, intervals in activities.items():
        mean_s = float(np.mean(intervals.end_ns - intervals.start_ns)) * NS
        if mean_s < window_s:
            words = f"{name} lasts {mean_s:.2g} s on average, ten samples take {window_s:.2g} s"
            reasons[name] = missing(words, "J", Cause.TOO_BRIEF)
    return reasons


def _together(
    name: str, chosen: Sequence[int], names: Sequence[str], drawn: Float64Array, *, alike: bool
) -> Quantity | None:
    """The reason that names the parts that explain a part's course, if they explain enough or are known to be alike."""
    course = drawn[:, chosen].sum(axis=1)
    course = course - course.mean()
    left = [place for place in range(len(names)) if place not in chosen]
    others = drawn[:, left] - drawn[:, left].mean(axis=0)
    if not (course.any() and others.any()):
        return None
    coefficients = np.linalg.lstsq(others, course, rcond=None)[0]
    explained = 1.0 - float(np.sum((course - others @ coefficients) ** 2) / np.sum(course**2))
    if explained <= COLLINEAR and not alike:
        return None
    weight = np.abs(coefficients) * others.std(axis=0)
    beside = [names[left[place]] for place in np.flatnonzero(weight > BESIDE * weight.max()).tolist()]
    return missing(f"{name} always goes together with {' and '.join(beside)}", "J", Cause.COLLINEAR)


def _model_decides(name: str, at: int, fit: Fit, *, written: bool) -> Quantity:
    """Reason for a part whose interval comes from the medium's models; it names writes only if there were any."""
    energy_j, u_j = float(fit.energy_j[at]), COVERAGE_FACTOR * float(fit.standard_u_j[at])
    drew = f"{name} drew {max(energy_j - u_j, 0.0):.3g} to {energy_j + u_j:.3g} J"
    if not written:
        depends = "whether that tail continues between reads"
    else:
        depends = "when bytes were written and whether the medium's tail continues between transfers"
    why = f"{drew}, depending on {depends}; a sensor in the medium's supply would show it"
    return missing(why, "J", Cause.MODEL_ONLY if written else Cause.TAIL_OF_READS)


def _too_wide(name: str, at: int, fit: Fit, limit_j: float, lasted_s: float) -> Quantity:
    """Reason for a part with a wide interval, with the length of a run that would narrow it."""
    energy_j, u_j, scatter_u_j = (float(figures[at]) for figures in (fit.energy_j, fit.standard_u_j, fit.scatter_u_j))
    allowed_j2 = (limit_j / COVERAGE_FACTOR) ** 2 - max(u_j**2 - scatter_u_j**2, 0.0)
    wanted_s = lasted_s * scatter_u_j**2 / allowed_j2 if allowed_j2 > 0.0 else 0.0
    full_u_j = COVERAGE_FACTOR * u_j
    drew = f"{energy_j:.3g} ± {full_u_j:.2g} J"
    if energy_j <= full_u_j:
        drew = f"at most {energy_j + full_u_j:.2g} J"
    longer = f"; measure for about {float(f'{wanted_s:.1g}'):.0f} s" if 0.0 < wanted_s <= LONGEST_S else ""
    return missing(f"{name} drew {drew}, and must be known to ± {limit_j:.2g} J{longer}", "J", Cause.TOO_WIDE)
