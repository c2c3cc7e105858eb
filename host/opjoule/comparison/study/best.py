"""The best system of each cell of a study, by each measure that the study names."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from opjoule.comparison.study.rows import ENERGIES, PhaseRow, StudyTable
from opjoule.energy.comparison import Side, differ
from opjoule.units import COVERAGE_FACTOR

BEST_TABLE: Final = "best.csv"
_OF_ENERGY: Final = (*(name.removesuffix("_j") for name in ENERGIES), "phase_energy")

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
    """Expanded uncertainty, where all of its runs state one."""
    differs: bool | None
    """Is it different from the second best? None where a single run of either does not say."""
    single: bool
    """It rests on a single run of a system: no winner."""
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
    """The best system of one cell; None where no system has the measure."""
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
    system = ordered[0][1]
    best, apart = _side(measure, by_system[system]), None
    value, u = mean_with_u([(row.measures[measure], row.u.get(measure)) for row in by_system[system]])
    too_short = (
        _too_short([row for row in rows if row.system not in by_system]) if _is_energy(measure) else ()
    )
    if len(ordered) > 1:
        apart = differ(best, _side(measure, by_system[ordered[1][1]]))
    return Best(
        measure,
        rows[0].phase,
        rows[0].place,
        system,
        value,
        u,
        apart,
        len(ordered) > 1 and apart is None,
        too_short,
    )


def _side(measure: str, rows: Sequence[PhaseRow]) -> Side:
    """The mean over records; a measure that states no uncertainty is exact in each of them."""
    return Side.mean([row.side(measure) for row in rows])


def mean_with_u(records: Sequence[tuple[float, float | None]]) -> tuple[float, float | None]:
    """Mean over the records of one cell with its expanded uncertainty, as a comparison has them.

    Args:
        records: (value, u or None) of each. A value without an uncertainty counts as exact in its own record.
    Returns: the mean and u; u is None where a single record states none.
    """
    side = Side.mean([Side(value, (u or 0.0) / COVERAGE_FACTOR, "") for value, u in records])
    stated = side.repeated or all(u is not None for _, u in records)
    return side.value, side.expanded_u if stated else None


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
        ["measure", "phase", *axes, "system", "value", "u", "differs_from_second", "too_short_s", "simulated"]
    )
    apart = {None: "single run", True: "yes", False: "no"}
    several = len(study.systems) > 1
    for each in found:
        place = dict(each.place)
        u = "" if each.u is None else f"{each.u:.3g}"
        short = "; ".join(f"{system} {length_s:.3g}" for system, length_s in each.too_short)
        own = [
            each.system,
            f"{each.value:.9g}",
            u,
            apart[each.differs] if several else "",
            short,
        ]
        simulated = "SIMULATED" if study.simulated else ""
        table.writerow([each.measure, each.phase, *(place.get(axis, "") for axis in axes), *own, simulated])
    return sink.getvalue()
