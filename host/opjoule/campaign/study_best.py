"""The best system of each cell of a study, by each measure that the study names."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from opjoule.campaign.study_rows import ENERGIES, PhaseRow, StudyTable

BEST_TABLE: Final = "best.csv"
_OF_ENERGY: Final = tuple(name.removesuffix("_j") for name in ENERGIES)

Place = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Best:
    """The best system of one cell by one measure."""

    measure: str
    phase: str
    place: Place
    system: str
    value: float
    u: float | None
    """Expanded uncertainty (k = 2), where all of its runs state one."""
    told_apart: bool | None
    """From the second best, by their intervals; None where nobody can say."""
    too_short: tuple[tuple[str, float], ...] = ()
    """System -> how long its phase lasts [s], of those that were too quick for joules: any of them may be better."""


def best_systems(study: StudyTable) -> list[Best]:
    """For each measure of the study's [best], phase and cell: the best system by the mean over its runs.

    A system that tells no answer where others do has done something else, and is not held against them.
    """
    found = []
    answered = {(row.phase, row.place) for row in study.rows if row.answer is not None}
    cells: dict[tuple[str, Place], list[PhaseRow]] = {}
    for row in study.rows:
        same_work = row.answer is not None or (row.phase, row.place) not in answered
        if same_work and not row.not_supported and row.phase not in study.unranked:
            cells.setdefault((row.phase, row.place), []).append(row)
    for measure, which in study.best.items():
        bests = [_best(measure, which, rows) for rows in cells.values()]
        found += [best for best in bests if best]
    return found


def _best(measure: str, which: str, rows: Sequence[PhaseRow]) -> Best | None:
    """Of one cell; None where no system has the measure."""
    by_system: dict[str, list[PhaseRow]] = {}
    for row in rows:
        if measure in row.measures:
            by_system.setdefault(row.system, []).append(row)
    if not by_system:
        return None
    ordered = sorted(
        ((fmean(row.measures[measure] for row in own), system) for system, own in by_system.items()),
        key=lambda each: each[0],
        reverse=which == "most",
    )
    value, system = ordered[0]
    u, apart = _interval(measure, by_system[system]), None
    too_short = (
        _too_short([row for row in rows if row.system not in by_system]) if _is_energy(measure) else ()
    )
    if len(ordered) > 1:
        second, other = ordered[1][0], _interval(measure, by_system[ordered[1][1]])
        apart = None if u is None or other is None else abs(second - value) > math.hypot(u, other)
    return Best(measure, rows[0].phase, rows[0].place, system, value, u, apart, too_short)


def _interval(measure: str, rows: Sequence[PhaseRow]) -> float | None:
    us = [row.u[measure] for row in rows if measure in row.u]
    return max(us) if len(us) == len(rows) else None


def _is_energy(measure: str) -> bool:
    return measure.startswith(_OF_ENERGY)


def _too_short(rows: Sequence[PhaseRow]) -> tuple[tuple[str, float], ...]:
    """Systems without joules for being quick, the quickest first."""
    lengths: dict[str, list[float]] = {}
    for row in rows:
        if row.short_s is not None:
            lengths.setdefault(row.system, []).append(row.short_s)
    return tuple(sorted(((name, fmean(each)) for name, each in lengths.items()), key=lambda each: each[1]))


def best_csv(study: StudyTable) -> str:
    """The best systems as a table: measure, phase, cell, system, its value and interval, those too quick for it."""
    found = best_systems(study)
    axes = list(dict.fromkeys(axis for each in found for axis, _ in each.place))
    sink = io.StringIO()
    table = csv.writer(sink, lineterminator="\n")
    table.writerow(
        ["measure", "phase", *axes, "system", "value", "u", "told_apart", "too_short_s", "simulated"]
    )
    apart = {None: "", True: "yes", False: "no"}
    for each in found:
        place = dict(each.place)
        u = "" if each.u is None else f"{each.u:.3g}"
        short = "; ".join(f"{system} {length_s:.3g}" for system, length_s in each.too_short)
        own = [each.system, f"{each.value:.9g}", u, apart[each.told_apart], short]
        simulated = "SIMULATED" if study.simulated else ""
        table.writerow([each.measure, each.phase, *(place.get(axis, "") for axis in axes), *own, simulated])
    return sink.getvalue()
