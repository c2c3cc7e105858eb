"""Conclusions of a study's paper compared with records: the paper's ratio, the records' with its interval, a verdict.

Axes that a conclusion does not name are free: each of their combinations in which both cells were measured is an
answer. All answers of one call are judged together (Holm's rule).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from opjoule.comparison.cell_mean import comparison_side
from opjoule.comparison.compared_run import ComparedRun
from opjoule.comparison.contrasts import SINGLE_RUNS, TOO_SHORT_RUNS, Contrast, judged, why_not_judged
from opjoule.comparison.study.rows import KIND, Place, StudyTable, apart_from
from opjoule.energy.comparison import Side
from opjoule.evaluation.quantities.definition import Definition, Topic
from opjoule.studies.definition import PaperConclusion
from opjoule.toml_file import matches

AGREED: Final = "agreed"
NOT_AGREED: Final = "not agreed"
OPEN: Final = "open: no difference found"
SINGLE: Final = "open: single runs"
TOO_SHORT: Final = "open: runs too short"
NOT_MEASURED: Final = "not measured"
JOULES: Final = ("marginal_energy_per_operation_j", "energy_per_operation_j")
"""Measures of the cost of an operation, the preferred one first."""


@dataclass(frozen=True)
class Sample:
    """One record's contribution to one cell: a workload's result, or one phase of a job."""

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
    """None if one of the cells was not measured."""
    joules: Contrast | None = None
    """Contrast of the same two cells by energy per operation; None if unknown."""
    simulated: bool = False

    @property
    def word(self) -> str:
        """AGREED, NOT_AGREED, or the reason for neither."""
        contrast, paper = self.contrast, self.conclusion
        if contrast is None:
            return NOT_MEASURED
        if contrast.cannot:
            return {SINGLE_RUNS: SINGLE, TOO_SHORT_RUNS: TOO_SHORT}[contrast.cannot]
        if paper.about:
            return _about_one(contrast.limits, paper.about)
        if not contrast.differs:
            return OPEN
        return AGREED if (self.ratio > 1) == (paper.paper > 1) else NOT_AGREED

    @property
    def ratio(self) -> float:
        """Ratio from the records; nan if there is none."""
        if self.contrast is None or self.contrast.side_b.value <= 0:
            return math.nan
        return self.contrast.side_a.value / self.contrast.side_b.value

    @property
    def holds_the_papers(self) -> bool | None:
        """Whether the interval contains the paper's factor; None if there is no interval or no factor."""
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
    """The answers of every conclusion, in order; a conclusion without measurements is NOT_MEASURED."""
    answers = [answer for conclusion in conclusions for answer in _answers(conclusion, samples)]
    judged_contrasts = iter(judged([answer.contrast for answer in answers if answer.contrast]))
    return [
        replace(answer, contrast=next(judged_contrasts)) if answer.contrast else answer for answer in answers
    ]


def _answers(of: PaperConclusion, samples: Sequence[Sample]) -> list[PaperVerdict]:
    one = [sample for sample in samples if sample.phase == of.phase and matches(of.of, sample.cell)]
    other = [
        sample
        for sample in samples
        if sample.phase == (of.to_phase or of.phase) and matches({**of.of, **of.to}, sample.cell)
    ]
    named = {*of.of, *of.to}
    if of.largest:
        most = max((int(sample.cell[of.largest]) for sample in one if of.largest in sample.cell), default=0)
        one = [sample for sample in one if int(sample.cell.get(of.largest, 0)) == most]
    answers = []
    for place in dict.fromkeys(apart_from(named, sample.cell.items()) for sample in one):
        sides = [
            [sample for sample in side if apart_from(named, sample.cell.items()) == place]
            for side in (one, other)
        ]
        if contrast := _contrast(of.measure, *sides):
            joules = next((energies for name in JOULES if (energies := _contrast(name, *sides))), None)
            simulated = any(sample.simulated for side in sides for sample in side)
            answers.append(PaperVerdict(of, place, contrast, joules, simulated))
    return answers or [PaperVerdict(of, ())]


def _contrast(measure: str, one: Sequence[Sample], other: Sequence[Sample]) -> Contrast | None:
    """Contrast of two cells by a measure; None if a cell has no value, or none above 0."""
    sides = [
        [sample.sides[measure] for sample in samples if measure in sample.sides] for samples in (one, other)
    ]
    if not all(sides):
        return None
    a, b = (Side.mean(side) for side in sides)
    if min(a.value, b.value) <= 0:
        return None
    cannot = why_not_judged(a, b, too_short=any(sample.too_short for sample in (*one, *other)))
    return Contrast(Definition(measure, a.unit, Topic.PART), {}, "", "", a, b, cannot=cannot)


def samples_of_job(table: StudyTable) -> list[Sample]:
    """Samples from the records of a study that is a job, phase by phase."""
    return [
        Sample(row.cell, row.phase, {name: row.side(name) for name in row.measures}, row.simulated)
        for row in table.rows
        if not row.not_supported
    ]


def samples_of_workload(runs: Iterable[ComparedRun], measures: Iterable[str]) -> list[Sample]:
    """Samples from the records of a study that is a workload."""
    names = dict.fromkeys([*measures, *JOULES])
    samples = []
    for run in runs:
        cell: Mapping[str, Any] = run.asked.get("cell") or {}
        sides = {}
        for name in names:
            quantity = run.quantities.get(name)
            try:
                if quantity:
                    sides[name] = comparison_side(run.numbers, quantity)
            except ValueError:
                continue
        values = {axis: str(value) for axis, value in cell.items()}
        samples.append(Sample(values, "", sides, run.simulated, run.too_short))
    return samples


def name_of(run: ComparedRun) -> str:
    """Name of the workload study that a run belongs to; empty if there is none, or if the study is a job."""
    is_workload = run.asked.get("cell") and run.asked.get("study") != KIND
    return Path(str(run.asked.get("folder") or "")).name if is_workload else ""
