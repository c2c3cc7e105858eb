"""The best system of each cell of a study, by each measure that the study names."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from opjoule.comparison.study.rows import ENERGIES, PhaseRow, Place, StudyTable
from opjoule.energy.comparison import Side, differ
from opjoule.files import csv_text

BEST_TABLE: Final = "best.csv"
_OF_ENERGY: Final = (*(name.removesuffix("_j") for name in ENERGIES), "phase_energy")


@dataclass(frozen=True)
class Best:
    """The best system of one cell by one measure."""

    measure: str
    phase: str
    place: Place
    system: str
    value: float
    u: float | None
    """Expanded uncertainty, if all of its runs have one."""
    differs: bool | None
    """Whether it differs significantly from the second best; None if either is a single run."""
    single: bool
    """Whether a system has a single run; then no winner is named."""
    too_short: tuple[tuple[str, float], ...] = ()
    """System -> length of its phase [s], for those too quick for joules: any of them may be better."""


def best_systems(study: StudyTable) -> list[Best]:
    """The best system by the mean over its runs, for each measure of the study's [best], phase and cell.

    A system without an answer where others have one did something else, and is not compared with them.
    """
    all_bests = []
    answered = {(row.phase, row.place) for row in study.rows if row.answer is not None}
    cells: dict[tuple[str, Place], list[PhaseRow]] = {}
    for row in study.rows:
        same_work = row.answer is not None or (row.phase, row.place) not in answered
        if same_work and not row.not_supported and row.phase not in study.unranked:
            cells.setdefault((row.phase, row.place), []).append(row)
    for measure, which in study.best.items():
        bests = [_best(measure, which, rows) for rows in cells.values()]
        all_bests += [best for best in bests if best]
    return all_bests


def _best(measure: str, which: str, rows: Sequence[PhaseRow]) -> Best | None:
    """The best system of one cell; None if no system has the measure."""
    by_system: dict[str, list[PhaseRow]] = {}
    for row in rows:
        if measure in row.measures:
            by_system.setdefault(row.system, []).append(row)
    if not by_system:
        return None
    sides = {name: Side.mean([row.side(measure) for row in of]) for name, of in by_system.items()}
    ordered = sorted(sides, key=lambda name: sides[name].value, reverse=which == "most")
    system, apart = ordered[0], None
    value, u = mean_with_u([row.side(measure) for row in by_system[system]])
    left_out = [row for row in rows if row.system not in by_system]
    too_short = _too_short(left_out) if measure.startswith(_OF_ENERGY) else ()
    if len(ordered) > 1:
        apart = differ(sides[system], sides[ordered[1]])
    best = measure, rows[0].phase, rows[0].place, system, value, u
    return Best(*best, apart, len(ordered) > 1 and apart is None, too_short)


def mean_with_u(records: Sequence[Side]) -> tuple[float, float | None]:
    """Mean of the records of one cell; a value without an uncertainty is exact in its own record.

    Returns: the mean and its expanded uncertainty, None for a single record without one.
    """
    side = Side.mean(records)
    return side.value, side.expanded_u if side.repeated or side.standard_u > 0 else None


def _too_short(rows: Sequence[PhaseRow]) -> tuple[tuple[str, float], ...]:
    """Systems whose phase was too quick for joules, the quickest first."""
    lengths: dict[str, list[float]] = {}
    for row in rows:
        if row.short_s is not None:
            lengths.setdefault(row.system, []).append(row.short_s)
    means = [(name, fmean(lengths_s)) for name, lengths_s in lengths.items()]
    return tuple(sorted(means, key=lambda mean: mean[1]))


def best_csv(study: StudyTable) -> str:
    """The best systems as CSV: measure, phase, cell, system, its value and interval, and systems too quick for it."""
    bests = best_systems(study)
    axes = list(dict.fromkeys(axis for best in bests for axis, _ in best.place))
    last = ["system", "value", "u", "differs_from_second", "too_short_s", "simulated"]
    rows: list[list[object]] = [["measure", "phase", *axes, *last]]
    apart = {None: "single run", True: "yes", False: "no"}
    several = len(study.systems) > 1
    for best in bests:
        place = dict(best.place)
        u = "" if best.u is None else f"{best.u:.3g}"
        short = "; ".join(f"{system} {length_s:.3g}" for system, length_s in best.too_short)
        cells = [best.system, f"{best.value:.9g}", u, apart[best.differs] if several else "", short]
        simulated = "SIMULATED" if study.simulated else ""
        rows.append([best.measure, best.phase, *(place.get(axis, "") for axis in axes), *cells, simulated])
    return csv_text(rows)


TABLE: Final = "study.csv"


def as_csv(study: StudyTable) -> str:
    """All rows as CSV: cell, phase, measures with their uncertainties."""
    axes = list(dict.fromkeys(axis for row in study.rows for axis in row.cell))
    measures = list(dict.fromkeys(name for row in study.rows for name in row.measures))
    stated = [name for name in measures if any(name in row.u for row in study.rows)]
    columns = [part for name in measures for part in ((name, f"{name}.u") if name in stated else (name,))]
    last = ["not_supported", "without_joules", "simulated", "record", "software", "warnings"]
    rows: list[list[object]] = [["study", *axes, "phase", "block", "operations", *columns, *last]]
    for row in study.rows:
        values = {**row.measures, **{f"{name}.u": value for name, value in row.u.items()}}
        cells = [f"{values[name]:.9g}" if name in values else "" for name in columns]
        axis_values = [row.cell.get(axis, "") for axis in axes]
        simulated = "SIMULATED" if row.simulated else ""
        more = [row.not_supported, row.why, simulated, row.record.name, row.software, "; ".join(row.warnings)]
        rows.append([row.study, *axis_values, row.phase, row.block, row.operations, *cells, *more])
    return csv_text(rows)
