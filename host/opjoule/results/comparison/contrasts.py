"""Runs compared by an axis: which runs may be compared, ratios with their intervals, and conclusions.

Runs with one value of the axis are repeats of one setting; each combination of the other axes of their index is a
separate stratum. Errors common to both sides of a ratio cancel (energy/comparison.py). All comparisons of one question
are judged together by Holm's rule. A question without quantities asks for both costs of the work (`costs`). What each
kind of operation costs all told is then shown beside them, and is not judged.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Self

from opjoule.base.errors import BadInput, DataFault
from opjoule.base.notices import Notice
from opjoule.base.units import NOT_STATED, Quantity, counted
from opjoule.energy.comparison import holm, ratio, ratio_limits, same_probability
from opjoule.results.comparison.cell import BEFORE, RIG_NAME, ComparedCell, Group, by_block, groups_by, paired
from opjoule.results.comparison.compared_run import (
    SHORT,
    SIDE,
    ComparedRun,
    check_comparable,
    costs,
    kind_of,
    time_beside,
    told_by,
)
from opjoule.results.comparison.run_warnings import marks_of, warnings_of
from opjoule.results.comparison.settings import RIG
from opjoule.results.comparison.value_words import listed, quantity_words
from opjoule.runs.evaluation.quantities.definition import ALL_TOLD, Definition

LIMIT: Final = 0.0455
"""Greatest p-value of a significant difference, in line with all stated intervals (95.45 %, k = 2)."""
TOO_SHORT_RUNS: Final = "the runs are too short"
SINGLE_RUNS: Final = "a side is a single run"
BESIDE: Final = "shown beside the costs that are judged"


@dataclass(frozen=True)
class Question:
    """A question that a comparison answers."""

    by: tuple[str, ...]
    """Axes, or groups of settings; (SIDE,) for before and after."""
    metrics: tuple[str, ...] = ()
    """Keys of quantities; empty for both costs of the work (`costs`)."""
    against: str = ""
    """Reference value of the axis; empty for every pair."""
    although: frozenset[str] = frozenset()
    """Groups of settings that may differ."""
    tolerance: float = 0.0
    """Relative change below which a difference does not count."""


@dataclass(frozen=True)
class Contrast:
    """Comparison of two groups by one quantity."""

    quantity: Definition
    a: Group
    b: Group
    side_a: Quantity = field(repr=False)
    side_b: Quantity = field(repr=False)
    probability: float | None = None
    """p-value of the difference under the null hypothesis; None if the contrast is not judged."""
    adjusted: float | None = None
    """p-value adjusted by Holm's rule over all contrasts."""
    judged: int = 1
    """Number of contrasts that were judged together."""
    left: int = 1
    """Number of those that do not differ significantly; Holm's rule multiplies the smallest of their p-values by it."""
    cannot: str = ""
    """Reason why the contrast is not judged: TOO_SHORT_RUNS, SINGLE_RUNS or BESIDE; empty if it is."""

    @property
    def stratum(self) -> Mapping[str, str]:
        """The values of the other axes of both groups."""
        return self.a.stratum

    @cached_property
    def ratio(self) -> Quantity | None:
        """a / b to first order; None unless both are above 0."""
        return ratio(self.side_a, self.side_b) if min(float(self.side_a), float(self.side_b)) > 0 else None

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Ends of the ratio's own interval, which contains 1 exactly if the two do not differ significantly."""
        return ratio_limits(self.side_a, self.side_b)

    @cached_property
    def limits_together(self) -> tuple[float, float] | None:
        """Simultaneous interval of the ratio (Bonferroni); None if the contrast is not judged."""
        if self.ratio is None or self.adjusted is None:
            return None
        return ratio_limits(self.side_a, self.side_b, LIMIT / self.judged)

    @property
    def turned(self) -> Self:
        """The same contrast with `b` as its first side."""
        return replace(self, a=self.b, b=self.a, side_a=self.side_b, side_b=self.side_a)

    @property
    def greater_first(self) -> Self:
        """The contrast with its greater side as `a`."""
        return self if float(self.side_a) >= float(self.side_b) else self.turned

    @property
    def differs_alone(self) -> bool:
        """Whether the two differ significantly if judged alone, but not among all contrasts."""
        return self.probability is not None and self.probability < LIMIT and not self.differs

    @property
    def differs(self) -> bool:
        """Whether the two differ significantly, by more than the tolerance."""
        return self.adjusted is not None and self.adjusted < LIMIT


@dataclass(frozen=True)
class Compared:
    """The answer to a question."""

    question: Question
    simulated: bool
    groups: tuple[Group, ...]
    contrasts: tuple[Contrast, ...]
    """Contrasts by each quantity; those by quantities beside have a ratio and no p-value."""
    quantities: tuple[Definition, ...]
    """Quantities by which the groups are judged."""
    beside: tuple[Definition, ...]
    """Quantities that are shown beside them and not judged, if both costs are asked for: what each kind of operation
    costs all told, and the time of the work."""
    notes: tuple[str, ...]
    """Notes for the reader, one line each."""

    @property
    def axes(self) -> list[str]:
        """Axes of the strata."""
        return list(self.groups[0].stratum)

    @property
    def shown(self) -> tuple[Definition, ...]:
        """All quantities whose means are shown."""
        return (*self.quantities, *self.beside)

    @property
    def told(self) -> list[Definition]:
        """What each kind of operation costs all told, of the quantities beside."""
        return [of for of in self.beside if of.key.endswith(ALL_TOLD)]

    @property
    def with_ratios(self) -> list[Definition]:
        """All quantities by which two groups are compared."""
        return [of for of in self.shown if self.contrasts_of(of)]

    @property
    def answering(self) -> list[Contrast]:
        """Contrasts by the quantities that are asked for."""
        return [contrast for contrast in self.contrasts if contrast.cannot != BESIDE]

    @property
    def judged(self) -> int:
        """Number of its contrasts that are judged."""
        return sum(contrast.adjusted is not None for contrast in self.contrasts)

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of the runs."""
        return warnings_of(group.runs for group in self.groups)

    def marks(self, contrast: Contrast) -> list[str]:
        """Warnings of both sides of a contrast, in one or two words each."""
        sides = sorted((contrast.a, contrast.b), key=self.groups.index)
        return list(dict.fromkeys(mark for group in sides for mark in marks_of(group.runs)))

    def contrasts_of(self, quantity: Definition, stratum: Mapping[str, str] | None = None) -> list[Contrast]:
        """The contrasts of a quantity, in one stratum or in all."""
        of_quantity = (contrast for contrast in self.contrasts if contrast.quantity.key == quantity.key)
        return [contrast for contrast in of_quantity if stratum in (None, contrast.stratum)]


def compare(runs: Sequence[ComparedRun], question: Question, sides: Mapping[int, str] | None = None) -> Compared:
    """Compares the runs; `sides`: number of the run -> BEFORE or AFTER, if the question is by side.

    Raises: BadInput: nothing to compare, or runs that are not comparable. DataFault: no two groups have the quantity.
    """
    groups = groups_by(question.by, runs, sides)
    known = sorted({group.name for group in groups})
    if question.against and question.against not in known:
        raise BadInput(f"--against {question.against}: there are {', '.join(known)}")
    strata = [[group.runs for group in members] for _, members in itertools.groupby(groups, lambda of: of.stratum)]
    notes = check_comparable(strata, question.by, question.although)
    quantities, left_out = _quantities(runs, question.metrics), list[str]()
    contrasts = _all_contrasts(groups, quantities, question, left_out)
    notes += left_out
    if not contrasts:
        why = next(iter(left_out), "no two groups of runs have it")
        names = ", ".join(map(quantity_words, quantities))
        raise DataFault(f"{names}: nothing to compare: {why}")
    energies = [contrast for contrast in contrasts if "_j" in contrast.quantity.key]
    if not all(contrast.side_a.shared and contrast.side_b.shared for contrast in energies):
        notes.append(
            "the meter's gain error does not cancel in the ratios of energies, because its sensor has no "
            "name: give it one with label= behind its port (docs/how-to/calibrate.md)"
        )
    told = [] if question.metrics else told_by(runs)
    contrasts += [replace(contrast, cannot=BESIDE) for contrast in _all_contrasts(groups, told, question, [])]
    notes += [line for of in told for line in _without_interval(groups, of)]
    time = None if question.metrics else time_beside(runs[0].quantities)
    return Compared(
        question,
        any(run.simulated for run in runs),
        tuple(groups),
        tuple(judged(contrasts, question.tolerance)),
        tuple(quantities),
        tuple(of for of in (*told, *([time] if time else [])) if _is_known(runs, of)),
        tuple(dict.fromkeys(notes)),
    )


def judged_together(answers: Sequence[Compared]) -> list[Compared]:
    """Several answers, with their comparisons judged together as for one question."""
    contrasts = [contrast for answer in answers for contrast in answer.contrasts]
    tolerance = max((answer.question.tolerance for answer in answers), default=0.0)
    together = iter(judged(contrasts, tolerance))
    return [replace(answer, contrasts=tuple(next(together) for _ in answer.contrasts)) for answer in answers]


def _all_contrasts(
    groups: Sequence[Group], quantities: Sequence[Definition], question: Question, notes: list[str]
) -> list[Contrast]:
    """Contrasts by each quantity of all pairs that have it, not yet judged; a run that lacks it has a note."""
    notes += [
        f"{run.place} ({group.name}) is left out: no {quantity_words(of)}: {side.reason or NOT_STATED}"
        for of, group in itertools.product(quantities, groups)
        for run in group.runs
        if not (side := run.side(of)).has_interval
    ]
    return [
        contrast
        for quantity in quantities
        for a, b in _pairs(groups, question)
        if a.sides(quantity) and b.sides(quantity)
        for contrast in _contrasts(quantity, a, b, question, notes)
    ]


def _without_interval(groups: Sequence[Group], told: Definition) -> Iterator[str]:
    """A line for each reason why runs that have a kind of operation do not state what it costs all told."""
    by_reason: dict[str, list[str]] = {}
    for group in groups:
        of_kind = [run.number(told.key) for run in group.runs if kind_of(told) in run.kinds]
        lacking = [of for of in of_kind if of.u is None]
        if lacking:
            name = " ".join(group.runs[0].condition.values()) or group.name
            words = f"{name} ({len(lacking)} of {counted(len(group.runs), 'run')})"
            by_reason.setdefault(lacking[0].reason, []).append(words)
    for reason, names in by_reason.items():
        yield f"{quantity_words(told)} has no interval in {listed(names)}: {reason}"


def _contrasts(quantity: Definition, a: Group, b: Group, question: Question, notes: list[str]) -> list[Contrast]:
    """Contrast of two groups; empty without a block in common on several rigs."""
    if not (sides := compared_sides(quantity, a, b, question)):
        notes.append(
            f"{a.name} and {b.name} are left out: no block has both on one rig, so a difference could "
            f"be that of the rigs; --although {RIG} compares them anyway"
        )
        return []
    short = SHORT not in question.although and any(run.too_short for run in (*a.runs, *b.runs))
    cannot = why_not_judged(*sides, too_short=short)
    return [Contrast(quantity, a, b, *sides, cannot=cannot)]


def compared_sides(quantity: Definition, a: Group, b: Group, question: Question) -> tuple[Quantity, Quantity] | None:
    """The means of two groups; within blocks if they were measured on several rigs. None if a group has no mean, or
    without a common block."""
    apart = {SIDE, RIG, "device"} & set(question.by) or RIG in question.although
    if not apart and len({run.asked.get(RIG_NAME) for run in (*a.runs, *b.runs)}) > 1:
        return paired(by_block(a.runs, quantity), by_block(b.runs, quantity))
    one, other = a.side(quantity), b.side(quantity)
    return (one, other) if one and other else None


def why_not_judged(a: Quantity, b: Quantity, *, too_short: bool) -> str:
    """TOO_SHORT_RUNS or SINGLE_RUNS; empty for two sides that can be judged."""
    if too_short:
        return TOO_SHORT_RUNS
    return "" if a.is_repeated and b.is_repeated else SINGLE_RUNS


def _pairs(groups: Sequence[Group], question: Question) -> list[tuple[Group, Group]]:
    """Pairs (a, b) of groups of one stratum in the groups' order; if there is a reference group, `b` is that."""
    pairs = [(a, b) for a, b in itertools.combinations(groups, 2) if a.stratum == b.stratum]
    reference = BEFORE if question.by == (SIDE,) else question.against
    if not reference:
        return pairs
    return [(b, a) if a.name == reference else (a, b) for a, b in pairs if reference in (a.name, b.name)]


def _quantities(runs: Sequence[ComparedRun], keys: Sequence[str]) -> list[Definition]:
    """Raises: BadInput: a key that a study of the runs does not have."""
    first = runs[0].quantities
    if not keys:
        headline, *in_all = costs(first)
        return [headline, *(of for of in in_all if _is_known(runs, of))]
    quantities = []
    for key in dict.fromkeys(keys):
        named = first.named(key)
        if named is None:
            known = [of.key for of in first.shown("compared")]
            raise BadInput(f"--metric {key}: there is no such quantity; for example {', '.join(known[:4])}")
        quantities.append(named)
    return quantities


def _is_known(runs: Sequence[ComparedRun], of: Definition) -> bool:
    return ComparedCell({}, runs).mean(of).value is not None


def judged(contrasts: Sequence[Contrast], tolerance: float = 0.0) -> list[Contrast]:
    """Contrasts with their p-values, unadjusted and adjusted over all judged contrasts (Holm's rule)."""
    alone = [
        None if contrast.cannot else _probability(contrast.side_a, contrast.side_b, tolerance) for contrast in contrasts
    ]
    adjusted = adjusted_together(alone)
    together = [probability for probability in adjusted if probability is not None]
    left = sum(probability >= LIMIT for probability in together)
    return [
        contrast
        if contrast.cannot == BESIDE
        else replace(
            contrast,
            probability=of,
            adjusted=with_others,
            judged=len(together),
            left=left,
        )
        for contrast, of, with_others in zip(contrasts, alone, adjusted, strict=True)
    ]


def adjusted_together(alone: Sequence[float | None]) -> list[float | None]:
    """p-values adjusted by Holm's rule over all that are judged together; None for what is not judged."""
    adjusted = iter(holm([probability for probability in alone if probability is not None]))
    return [None if probability is None else next(adjusted) for probability in alone]


def _probability(a: Quantity, b: Quantity, tolerance: float) -> float | None:
    """p-value of a difference beyond the tolerance, a part of b; 1 within it."""
    apart = float(a) - float(b)
    probability = same_probability(a, b.scale(1 + math.copysign(tolerance, apart * float(b))))
    within = tolerance > 0 and abs(apart) <= tolerance * abs(float(b))
    return 1.0 if within and probability is not None else probability
