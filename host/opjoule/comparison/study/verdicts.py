"""Conclusions of a study's paper held against records: the paper's ratio, the records' with its interval, a verdict.

A conclusion compares one measure between two cells. Axes that it does not name are free: each of their combinations
that both cells were measured in is an answer. All answers of one call are judged together (Holm's rule).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opjoule.comparison.compared_run import ComparedRun
from opjoule.comparison.contrasts import SINGLE_RUNS, TOO_SHORT_RUNS, Contrast, judged
from opjoule.comparison.study.rows import PhaseRow, StudyTable
from opjoule.energy.comparison import Side
from opjoule.evaluation.quantities.definition import Definition, Topic
from opjoule.studies.paper import PaperConclusion
from opjoule.toml_entry import matches

AGREED: Final = "agreed"
NOT_AGREED: Final = "not agreed"
OPEN: Final = "open: no difference found"
SINGLE: Final = "open: single runs"
TOO_SHORT: Final = "open: runs too short"
NOT_MEASURED: Final = "not measured"
JOULES: Final = ("marginal_energy_per_operation_j", "energy_per_operation_j")
"""Measures of what an operation costs, the better one first."""

Place = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Sample:
    """What one record says of one cell: of a workload its result, of a job one phase."""

    cell: Mapping[str, str]
    phase: str
    sides: Mapping[str, Side]
    """Measure -> its value with its uncertainty."""
    simulated: bool
    too_short: bool = False


@dataclass(frozen=True)
class PaperVerdict:
    """One answer."""

    conclusion: PaperConclusion
    place: Place
    """Values of the free axes."""
    contrast: Contrast | None = None
    """None where one of the cells was not measured."""
    joules: Contrast | None = None
    """The same two cells by the energy of an operation; None where it is not known."""
    simulated: bool = False

    @property
    def word(self) -> str:
        """AGREED, NOT_AGREED, or why neither is said."""
        found, paper = self.contrast, self.conclusion
        if found is None:
            return NOT_MEASURED
        if found.cannot:
            return {SINGLE_RUNS: SINGLE, TOO_SHORT_RUNS: TOO_SHORT}[found.cannot]
        if paper.about:
            return _about_one(found.limits, paper.about)
        if not found.differs:
            return OPEN
        return AGREED if (self.ratio > 1) == (paper.paper > 1) else NOT_AGREED

    @property
    def ratio(self) -> float:
        """The records' own; nan where there is none."""
        found = self.contrast
        return found.side_a.value / found.side_b.value if found and found.side_b.value > 0 else math.nan

    @property
    def holds_the_papers(self) -> bool | None:
        """Does the interval hold the paper's own factor? None where either tells none."""
        if self.contrast is None or self.contrast.cannot or self.conclusion.only_direction:
            return None
        low, high = self.contrast.limits
        return low <= self.conclusion.paper <= high


def _about_one(limits: tuple[float, float], about: float) -> str:
    low, high = limits
    least, most = 1 / (1 + about), 1 + about
    if least <= low and high <= most:
        return AGREED
    return NOT_AGREED if high < least or low > most else OPEN


def verdicts(conclusions: Iterable[PaperConclusion], samples: Sequence[Sample]) -> list[PaperVerdict]:
    """Every conclusion's answers, in order; one that nothing was measured of is NOT_MEASURED."""
    found = [each for conclusion in conclusions for each in _answers(conclusion, samples)]
    own = iter(judged([each.contrast for each in found if each.contrast]))
    return [
        PaperVerdict(each.conclusion, each.place, next(own), each.joules, each.simulated)
        if each.contrast
        else each
        for each in found
    ]


def _answers(of: PaperConclusion, samples: Sequence[Sample]) -> list[PaperVerdict]:
    one = [each for each in samples if each.phase == of.phase and matches(of.of, each.cell)]
    other = [
        each
        for each in samples
        if each.phase == (of.to_phase or of.phase) and matches({**of.of, **of.to}, each.cell)
    ]
    named = {*of.of, *of.to}
    if of.largest:
        most = max((int(each.cell[of.largest]) for each in one if of.largest in each.cell), default=0)
        one = [each for each in one if int(each.cell.get(of.largest, 0)) == most]
    places = dict.fromkeys(_place(each, named) for each in one)
    answers = [
        _answer(of, place, *([each for each in own if _place(each, named) == place] for own in (one, other)))
        for place in places
    ]
    return [each for each in answers if each.contrast] or [PaperVerdict(of, ())]


def _place(sample: Sample, named: Iterable[str]) -> Place:
    return tuple((axis, value) for axis, value in sample.cell.items() if axis not in named)


def _answer(
    of: PaperConclusion, place: Place, one: Sequence[Sample], other: Sequence[Sample]
) -> PaperVerdict:
    contrast = _contrast(of.measure, one, other)
    joules = next((found for name in JOULES if (found := _contrast(name, one, other))), None)
    return PaperVerdict(of, place, contrast, joules, any(each.simulated for each in (*one, *other)))


def _contrast(measure: str, one: Sequence[Sample], other: Sequence[Sample]) -> Contrast | None:
    """The measure of the one cell beside that of the other; None where a cell has none, or none above 0."""
    sides = [[each.sides[measure] for each in own if measure in each.sides] for own in (one, other)]
    if not all(sides):
        return None
    a, b = (Side.mean(own) for own in sides)
    if min(a.value, b.value) <= 0:
        return None
    too_short = any(each.too_short for each in (*one, *other))
    single = not (a.repeated and b.repeated)
    cannot = TOO_SHORT_RUNS if too_short else SINGLE_RUNS if single else ""
    return Contrast(Definition(measure, a.unit, Topic.PART), {}, "", "", a, b, cannot=cannot)


def samples_of_job(table: StudyTable) -> list[Sample]:
    """What the records of a study that is a job say, phase by phase."""
    return [
        Sample(row.cell, row.phase, _sides(row), row.simulated) for row in table.rows if not row.not_supported
    ]


def _sides(row: PhaseRow) -> dict[str, Side]:
    return {name: row.side(name) for name in row.measures}


def samples_of_workload(runs: Iterable[ComparedRun], measures: Iterable[str]) -> list[Sample]:
    """What the records of a study that is a workload say."""
    names = dict.fromkeys([*measures, *JOULES])
    found = []
    for run in runs:
        cell: Mapping[str, Any] = run.asked.get("cell") or {}
        sides = {}
        for name in names:
            quantity = run.quantities.get(name)
            try:
                if quantity:
                    sides[name] = run.side(quantity)
            except ValueError:
                continue
        found.append(
            Sample(
                {axis: str(value) for axis, value in cell.items()}, "", sides, run.simulated, run.too_short
            )
        )
    return found


def name_of(run: ComparedRun) -> str:
    """The study that a run of a workload belongs to; empty for none."""
    return Path(str(run.asked.get("folder") or "")).name if run.asked.get("cell") else ""
