"""Conclusions of a study's paper compared with records: the paper's ratio, the records' with its interval, a verdict.

Axes that a conclusion does not name are free: each of their combinations in which both cells were measured is an
answer. Ratios are compared as logarithms, within blocks where both cells were measured in several. All answers of one
call that can be judged are judged together, as contrasts are: differences by Holm's rule, intervals by Bonferroni's.

A conclusion is judged only where the paper says it: with its counts, and with the boards, media and settings that the
study's [said_of] names. What else the records are not is a caveat, and part of the verdict.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.table import Table

from opjoule.base.settings import MEDIUM
from opjoule.base.toml_file import matches
from opjoule.base.units import Quantity
from opjoule.energy.comparison import difference, log_limits, same_probability
from opjoule.results.comparison.cell import ComparedCell, by_block, paired
from opjoule.results.comparison.compared_run import ComparedRun, Place, apart_from
from opjoule.results.comparison.contrasts import LIMIT, SINGLE_RUNS, TOO_SHORT_RUNS, adjusted_together, why_not_judged
from opjoule.results.comparison.study_best import ONE_RUN, Winner, best_systems, winners
from opjoule.results.comparison.study_rows import KIND, StudyTable
from opjoule.runs.record.result import stand_in_caveat
from opjoule.runs.studies.definition import DEVICE, SCALE, PaperConclusion, StudyFolder

AGREED: Final = "agreed"
NOT_AGREED: Final = "not agreed"
OPEN: Final = "open: no difference found"
OPEN_PARTS: Final = "open"
SINGLE: Final = "open: single runs"
TOO_SHORT: Final = "open: runs too short"
NOT_MEASURED: Final = "not measured"
WIDE: Final = "open: interval too wide"
JOULES: Final = ("marginal_energy_per_operation_j", "energy_per_operation_j")
"""Measures of the cost of an operation, the preferred one first."""
WIDEST: Final = 10.0
"""Ratio of an interval's ends from which it says nothing about a factor: it would contain almost any."""
SIMULATED: Final = "SIMULATED"
ELSEWHERE: Final = "another computer than the paper's"
CACHED: Final = "the simulation did not drop the page cache"
_PAGE_CACHE: Final = "page_cache"
"""Key of the board's state."""
Logs = tuple[Quantity, Quantity]
"""Logarithms of one measure in the two cells of a conclusion."""
_NAMED: Final = {DEVICE: "board", MEDIUM: "medium", SCALE: "size"}
"""Setting -> its name in a verdict. A count is a size, and any other axis has its own name."""


@dataclass(frozen=True)
class PaperVerdict:
    """One answer."""

    conclusion: PaperConclusion
    place: Place
    """Values of the free axes."""
    sides: Logs | None = None
    """Logarithms of the measure in both cells; None if one was not measured."""
    joules: Logs | None = None
    """Logarithms of the energy per operation in both cells; None if one is unknown."""
    cannot: str = ""
    """Reason why it is not judged; empty if it is."""
    judged: int = 1
    """Number of answers that are judged together."""
    adjusted: float | None = None
    """p-value of a ratio other than 1, adjusted by Holm's rule over these answers; None if it is not judged."""
    caveats: tuple[str, ...] = ()
    """What the records are not: measured, of the paper's software, of its data, of its computer."""

    @property
    def word(self) -> str:
        """Verdict on the direction: AGREED, NOT_AGREED, or the reason for neither."""
        if self.sides is None:
            return NOT_MEASURED
        if self.cannot:
            return self.cannot
        if self.conclusion.about:
            return _about_one(self.limits, self.conclusion.about)
        if self.adjusted is None or self.adjusted >= LIMIT:
            return OPEN
        return AGREED if (self.ratio > 1) == (self.conclusion.paper > 1) else NOT_AGREED

    @property
    def probability(self) -> float | None:
        """p-value of the ratio if judged alone; 1 for a conclusion that it is about 1, None if it is not judged."""
        if self.sides is None or self.cannot:
            return None
        return 1.0 if self.conclusion.about else same_probability(*self.sides)

    @property
    def factor_word(self) -> str:
        """Verdict on the factor, with the same interval; empty if the paper gives none or nothing is judged."""
        paper = self.conclusion
        if self.sides is None or self.cannot or paper.only_direction or paper.about:
            return ""
        low, high = self.limits
        if not low <= paper.paper <= high:
            return NOT_AGREED
        return AGREED if high < WIDEST * low else WIDE

    @property
    def words(self) -> str:
        """The verdict in words, with its caveats."""
        factor = f"; factor {self.factor_word}" if self.factor_word else ""
        caveats = f" ({'; '.join(self.caveats)})" if self.caveats and self.sides else ""
        return f"{self.word}{factor}{caveats}"

    @property
    def simulated(self) -> bool:
        """Whether any of its records is simulated."""
        return SIMULATED in self.caveats

    @property
    def ratio(self) -> float:
        """Ratio from the records; nan if there is none."""
        return ratio_of(self.sides)

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of the ratio's interval, which holds together with all others; not a number if it is not judged."""
        return self.limits_of(self.sides)

    def limits_of(self, sides: Logs | None) -> tuple[float, float]:
        """Ends of the interval of one of its ratios; not a number if it is not judged."""
        if sides is None or self.cannot:
            return math.nan, math.nan
        return log_limits(*sides, LIMIT / self.judged)


def ratio_of(logs: Logs | None) -> float:
    """Ratio of two figures from their logarithms; nan without them."""
    return math.nan if logs is None else math.exp(float(difference(*logs)))


def _about_one(limits: tuple[float, float], about: float) -> str:
    low, high = limits
    least, most = 1 / (1 + about), 1 + about
    if least <= low and high <= most:
        return AGREED
    return NOT_AGREED if high < least or low > most else OPEN


def verdicts(study: StudyFolder, samples: Sequence[ComparedRun]) -> list[PaperVerdict]:
    """The answers of each of a study's conclusions, in order; a conclusion without measurements is NOT_MEASURED."""
    answers = [answer for conclusion in study.conclusions for answer in _answers(study, conclusion, samples)]
    adjusted = adjusted_together([answer.probability for answer in answers])
    judged = max(sum(probability is not None for probability in adjusted), 1)
    return [replace(answer, judged=judged, adjusted=of) for answer, of in zip(answers, adjusted, strict=True)]


def on_observation(number: str, answers: Sequence[PaperVerdict]) -> tuple[str, str]:
    """Verdict on an observation of the paper, which rests on the conclusions that name it: its word, and all words.

    It agrees if all of them do in their direction, and does not if one does not.
    """
    parts = [answer for answer in answers if answer.conclusion.observation == number]
    words = [answer.word for answer in parts]
    word = NOT_AGREED if NOT_AGREED in words else AGREED if {*words} == {AGREED} else OPEN_PARTS
    counted = f"{word}: {words.count(AGREED)} of {len(parts)} parts agreed, {words.count(NOT_AGREED)} did not"
    caveats = dict.fromkeys(caveat for answer in parts if answer.sides for caveat in answer.caveats)
    return word, f"{counted} ({'; '.join(caveats)})" if caveats else counted


def _answers(study: StudyFolder, of: PaperConclusion, samples: Sequence[ComparedRun]) -> list[PaperVerdict]:
    one = [sample for sample in samples if sample.phase == of.phase and matches(of.of, sample.cell)]
    other = [
        sample
        for sample in samples
        if sample.phase == (of.to_phase or of.phase) and matches({**of.of, **of.to}, sample.cell)
    ]
    named = {*of.of, *of.to}
    answers = []
    for place in dict.fromkeys(apart_from(named, sample.cell.items()) for sample in one):
        sides = [
            [sample for sample in side if apart_from(named, sample.cell.items()) == place] for side in (one, other)
        ]
        if logs := _logs(of.measure, *sides):
            both = [sample for side in sides for sample in side]
            joules = next((energies for name in JOULES if (energies := _logs(name, *sides))), None)
            unjudged = why_not_judged(*logs, too_short=any(sample.too_short for sample in both))
            cannot = _not_the_papers(study, of, both) or {SINGLE_RUNS: SINGLE, TOO_SHORT_RUNS: TOO_SHORT}.get(
                unjudged, ""
            )
            caveats = _caveats(study, of, both)
            answers.append(PaperVerdict(of, place, logs, joules, cannot, caveats=caveats))
    return answers or [PaperVerdict(of, ())]


def _logs(measure: str, one: Sequence[ComparedRun], other: Sequence[ComparedRun]) -> Logs | None:
    """Logarithms of a measure in two cells; None if a cell has no value, or one that is not above 0."""
    of = one[0].definition(measure)
    sides = [ComparedCell({}, cell).sides(of) for cell in (one, other)]
    if not all(sides) or min(float(side) for cell in sides for side in cell) <= 0:
        return None
    blocks = [{at: side.log for at, side in by_block(cell, of).items() if at[1]} for cell in (one, other)]
    if len(blocks[0].keys() & blocks[1].keys()) > 1:
        return paired(*blocks, is_log=True)
    a, b = (Quantity.mean([side.log for side in cell]) for cell in sides)
    return a, b


def _not_the_papers(study: StudyFolder, of: PaperConclusion, samples: Sequence[ComparedRun]) -> str:
    """Which setting of the records is not the one that the paper says the conclusion of; empty if all are.

    Settings that the conclusion names itself are the paper's.
    """
    said_of = {**study.said_of, **of.said_of}
    for sample in samples:
        known = {**_settings(sample), **sample.cell}
        for name, counts in study.counts.items():
            papers = [max(counts)] if of.largest == name else counts
            if name in known and name not in of.of and known[name] not in map(str, papers):
                return "not the paper's size"
        for name, of_paper in said_of.items():
            if name not in of.of and name in known and not matches({name: of_paper}, known):
                return f"not the paper's {_NAMED.get(name, name)}"
        if known[SCALE] != "1" and not all(name in sample.cell for name in study.counts):
            return "not the paper's size"
    return ""


def _settings(run: ComparedRun) -> dict[str, str]:
    """Settings of a run besides its cell: board, medium, scale, and changes of the board's state."""
    known = {name: run.asked.get(name) for name in (DEVICE, MEDIUM)}
    known |= {SCALE: f"{float(run.asked.get(SCALE) or 1):g}"}
    known |= dict(change.partition("=")[::2] for change in run.asked.get("state") or ())
    return {name: str(value) for name, value in known.items() if value is not None}


def _caveats(study: StudyFolder, of: PaperConclusion, samples: Sequence[ComparedRun]) -> tuple[str, ...]:
    """What the records are not, the gravest first."""
    simulated = any(sample.simulated for sample in samples)
    said = [SIMULATED] if simulated else []
    said += [caveat for sample in samples for caveat in sample.caveats]
    said += [stand_in_caveat(of.stands_in)] if of.stands_in else []
    if simulated:
        known = {*of.to, *(of.of if of.to_phase else ())}
        said += [f"circular: {words}" for axis, words in study.circular.items() if axis in known]
        dropped = all(_settings(sample).get(_PAGE_CACHE) == "drop" for sample in samples if sample.simulated)
        said += [CACHED] if "disk" in of.measure and not dropped else []
    return tuple(dict.fromkeys([*said, *([] if {**study.said_of, **of.said_of, **of.of}.get(DEVICE) else [ELSEWHERE])]))


def name_of(run: ComparedRun) -> str:
    """Name of the workload study that a run belongs to; empty if there is none, or if the study is a job."""
    is_workload = run.asked.get("cell") and run.asked.get("study") != KIND
    return Path(str(run.asked.get("folder") or "")).name if is_workload else ""


RECORDS: Final = "records"
"""The count by which cells are counted apart."""


@dataclass(frozen=True)
class SameWinners:
    """Comparison of one figure with the records of one count, in cells that differ only in the figure's other axes."""

    figure: str
    place: Place
    """The count, and the axes that the figure does not have."""
    by_phase: Mapping[str, tuple[int, int]]
    """Phase -> number of cells with the same best system, number of cells compared."""
    single: bool
    """Whether the best of a cell is that of single runs."""


def same_winners(study: StudyTable, printed: Sequence[Winner]) -> list[SameWinners]:
    """The comparisons of all figures with a study's records, in the figures' order."""
    found: dict[tuple[str, Place], dict[str, list[tuple[bool, bool]]]] = {}
    bests = best_systems(study)
    for winner in printed:
        for best in bests:
            if winner.is_of(best.measure, best.phase, dict(best.place)):
                others = tuple((axis, value) for axis, value in best.place if axis not in winner.cell)
                key = winner.figure, ((RECORDS, winner.cell[RECORDS]), *others)
                cells = found.setdefault(key, {}).setdefault(winner.phase, [])
                cells.append((best.system == winner.system, best.single))
    return [
        SameWinners(
            figure,
            place,
            {phase: (sum(same for same, _ in cells), len(cells)) for phase, cells in phases.items()},
            any(single for cells in phases.values() for _, single in cells),
        )
        for (figure, place), phases in found.items()
    ]


def same_winners_table(study: StudyTable) -> Table | None:
    """A row for each figure and count, a column for each phase; None if the study prints no winners."""
    compared = same_winners(study, winners(study.definition.name))
    if not compared:
        return None
    phases = [phase for phase in study.definition.phases if any(phase in part.by_phase for part in compared)]
    subjects = ", ".join(sorted({_rig(run) for cell in study.runs for run in cell}))
    mark = " (SIMULATED)" if study.simulated else ""
    title = f"cells with the same best system as the paper's, on {subjects}{mark}"
    table = Table("figure", "here", *phases, "all", title=title, title_justify="left", box=None)
    for part in compared:
        single = f" {ONE_RUN}" if part.single else ""
        counts = [part.by_phase.get(phase) for phase in phases]
        total = [sum(numbers) for numbers in zip(*filter(None, counts), strict=True)]
        words = [f"{same} of {cells}" if cells else "-" for same, cells in (count or (0, 0) for count in counts)]
        here = ", ".join(f"{value} {axis}" if axis == RECORDS else value for axis, value in part.place)
        table.add_row(part.figure, here + single, *words, f"{total[0]} of {total[1]}")
    return table


def _rig(run: ComparedRun) -> str:
    """Board and medium of a run."""
    return ", ".join(filter(None, (run.asked.get(DEVICE), run.settings[MEDIUM].get(MEDIUM) or run.asked.get(MEDIUM))))
