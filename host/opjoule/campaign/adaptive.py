"""What a campaign decides by its own runs: one rate for all conditions with the same work, and the last block.

The rate is a part of what the slowest condition reaches. Engines that run as fast as they can are compared at different
rates, and some of them while their medium holds them up. With `until`, more blocks follow until every contrast's
interval is narrow enough, or a limit is reached. How many that takes, and which differences a number of blocks finds,
follows from the spread of the runs.

Source: Box, Hunter, Hunter, Statistics for Experimenters, 2nd edition, chapter 4; sample size of a t-test by the sum of
the two quantiles of Student's t.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Self

from opjoule.base.errors import BadInput, Interrupted, OpJouleError, RigFault, of_system
from opjoule.base.units import counted
from opjoule.campaign.axes import UntilNarrow
from opjoule.campaign.past_times import RATES
from opjoule.energy.comparison import POWER, DifferenceUncertainty
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.conclusion import answers_of
from opjoule.results.comparison.contrasts import LIMIT, Compared, Contrast
from opjoule.results.rounding import percent
from opjoule.runs.evaluation.until import REPEATS_MIN
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.record.directory import free_directory
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.run_record import RunRecord

EQUAL_RATE: Final = "rate.json"
"""File in the campaign's folder with the rate that all conditions have."""
KEPT_UP: Final = 0.5
"""Part of the rate of a short run at which engine and medium keep up: such a run still writes into empty memory."""
Measure = Callable[[Plan, Path], tuple[int, Path]]


def at_equal_rate(folder: Path, plans: Sequence[Plan], measure_one: Measure) -> Measure:
    """The measurement of a plan, at the rate that all plans of its work have.

    Finds the rates first if the folder does not have them.
    Raises: RigFault: no condition's own rate can be measured. BadInput: the folder's file does not have a rate.
    """
    wanting = [plan for plan in plans if plan.study.equal_rate_group]
    if not wanting:
        return measure_one
    path = folder / EQUAL_RATE
    known = _read(path) if path.exists() else {}
    lacking = [plan for plan in wanting if plan.study.equal_rate_group not in known]
    own_per_s: dict[str, dict[str, float]] = {}
    for number, plan in enumerate(lacking, 1):
        print(f"rate of {plan.condition_name} ({number} of {len(lacking)})", file=sys.stderr)
        of_group = own_per_s.setdefault(plan.study.equal_rate_group, {})
        try:
            of_group[plan.condition_name] = _own_rate_per_s(plan, folder / RATES, measure_one)
        except Interrupted:
            raise
        except (OpJouleError, OSError) as error:  # its cells will fail, too; the others go on
            why = str(error) if isinstance(error, OpJouleError) else of_system(error)
            print(f"rate of {plan.condition_name} not found: {why}", file=sys.stderr)
    if lost := [group for group, own in own_per_s.items() if not own]:
        raise RigFault(f"the rate of no condition of {', '.join(lost)} is known; set one with rate = ")
    for group, own in own_per_s.items():
        slowest = min(own, key=lambda name: own[name])
        per_s = max(float(f"{KEPT_UP * own[slowest]:.2g}"), 1.0)
        known[group] = {"operations_per_s": per_s, "slowest": slowest, "own_operations_per_s": own}
    if own_per_s:
        write_json(path, known)
    for group, found in known.items():
        print(f"{group}: all run at {found['operations_per_s']:,.0f} operations per second", file=sys.stderr)

    def at(plan: Plan, place: Path) -> tuple[int, Path]:
        group = plan.study.equal_rate_group
        if not group:
            return measure_one(plan, place)
        return measure_one(replace(plan, study=plan.study.at_rate(known[group]["operations_per_s"])), place)

    return at


def _read(path: Path) -> dict[str, Any]:
    """Rates by the work that they are of. Raises: BadInput: the file has none."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if all(float(found["operations_per_s"]) > 0.0 for found in known.values()):
            return dict(known)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise BadInput(f"{path} does not have the rate of the campaign's runs: measure into another --out")


def _own_rate_per_s(plan: Plan, folder: Path, measure_one: Measure) -> float:
    """Operations per second that a condition reaches, from a short run of its own.

    A record of an earlier, interrupted search serves if its run has ended; else the run is measured again beside it.
    """
    place = folder / plan.condition_name.replace(" ", "-").replace("/", "-")
    if place.exists() and (per_s := _rate_in(place)):
        return per_s
    ranging = replace(plan, study=plan.study.ranging(), repeats=1, idle_s=0.0)
    _, place = measure_one(ranging, free_directory(place))
    if per_s := _rate_in(place):
        return per_s
    raise RigFault(f"its record {place} has no run")


def _rate_in(place: Path) -> float | None:
    """Operations per second of a record's run; None if it did not end."""
    with suppress(OpJouleError):
        summary = RunRecord.open(place).run.loader.get("run-1")
        if summary and summary.operations and summary.duration_s:
            return summary.operations / summary.duration_s
    return None


@dataclass(frozen=True)
class Standing:
    """How far a campaign's contrasts are known."""

    compared: Sequence[Compared]
    """Answers by each axis."""
    half_widths: Sequence[tuple[float | None, Contrast]]
    """Of each contrast: half of its ratio's interval (95.45 %) over the ratio, or None without a spread or a ratio."""
    refused: str = ""
    """Reason why nothing is compared; empty if something is."""

    @classmethod
    def of(cls, runs: Sequence[ComparedRun]) -> Self:
        """The standing after some runs."""
        answers = answers_of(runs)
        contrasts = [contrast for compared in answers.compared for contrast in compared.answering]
        widths = [(_half_width(contrast), contrast) for contrast in contrasts]
        return cls(answers.compared, widths, "" if widths else next(iter(answers.troubles), "no run has a result"))

    def narrow(self, wanted: float) -> int:
        """Number of contrasts whose interval is narrow enough."""
        return sum(width is not None and width <= wanted for width, _ in self.half_widths)

    def is_narrow(self, wanted: float) -> bool:
        """Whether the intervals of all contrasts are narrow enough."""
        return bool(self.half_widths) and self.narrow(wanted) == len(self.half_widths)

    @property
    def undecided(self) -> list[Contrast]:
        """Contrasts in which no difference was found."""
        return [contrast for _, contrast in self.half_widths if not contrast.differs]

    def deciding_blocks(self, blocks: int) -> int:
        """Number of further blocks that are expected to decide, if the ratios so far are the true ones.

        At most as many as there are: a ratio near 1 would need any number. 0 if every contrast has a difference.
        """
        spread, count, limit = Spread.of(self.compared), len(self.half_widths), 2 * max(blocks, 1)
        needed = [
            spread.blocks_to_find(abs(float(contrast.ratio) - 1), count, limit) if contrast.ratio else None
            for contrast in self.undecided
        ]
        return max((max((limit if of is None else of) - blocks, 1) for of in needed), default=0)

    def widest_words(self) -> str:
        """The widest interval with its contrast: "±8.3 % (the SD card / the eMMC, on LevelDB)"."""
        width, contrast = max(self.half_widths, key=lambda entry: float("inf") if entry[0] is None else entry[0])
        a, b, place = contrast.a.words, contrast.b.words, contrast.a.where
        size = "unknown" if width is None else f"±{100 * width:.2g} %"
        return f"{size} ({a} / {b}{f', {place}' if place else ''})"


def _half_width(contrast: Contrast) -> float | None:
    """Half of the ratio's interval over the ratio; infinite if the interval has no upper end."""
    if contrast.ratio is None or not (contrast.side_a.is_repeated and contrast.side_b.is_repeated):
        return None
    low, high = contrast.limits
    return (high - low) / 2 / float(contrast.ratio)


def asks_for_more(until: UntilNarrow, runs: Sequence[ComparedRun], blocks: int) -> bool:
    """Whether another block is needed; says on stderr where the campaign stands.

    Few blocks may agree by chance, so a narrow interval ends a campaign after REPEATS_MIN blocks at the earliest.
    """
    standing = Standing.of(runs)
    target = f"until ±{100 * until.half_width:g} %"
    if standing.refused:
        print(f"{target}: no more blocks, because nothing can be compared: {standing.refused}", file=sys.stderr)
        return False
    is_narrow, least = standing.is_narrow(until.half_width), min(REPEATS_MIN, until.blocks_limit)
    if is_narrow:
        rest = "" if blocks >= least else f"; {least} blocks at least, because few may agree by chance"
    elif blocks >= until.blocks_limit:
        rest = "; NOT REACHED: this is the limit of blocks (blocks_limit)"
    else:
        rest = f"; {_needed_words(until, standing, blocks)}"
    print(f"{target}: {_reached_words(until, standing, blocks)}{rest}", file=sys.stderr)
    return blocks < (least if is_narrow else until.blocks_limit)


def _reached_words(until: UntilNarrow, standing: Standing, blocks: int) -> str:
    count = len(standing.half_widths)
    return (
        f"after {counted(blocks, 'block')} {standing.narrow(until.half_width)} of {counted(count, 'contrast')} "
        f"reached; the widest is {standing.widest_words()}"
    )


def _needed_words(until: UntilNarrow, standing: Standing, blocks: int) -> str:
    """How many blocks are expected to be needed, by the spread of all cells so far."""
    if blocks < BLOCKS_MIN:
        return f"a spread needs at least {BLOCKS_MIN} blocks"
    needed = Spread.of(standing.compared).blocks_for(until.half_width, until.blocks_limit)
    if needed is None:
        return f"by the mean spread of the cells even {counted(until.blocks_limit, 'block')}, the limit, are too few"
    return f"by the mean spread of the cells about {max(needed, blocks + 1)} blocks are needed"


TYPICAL_SPREAD: Final = 0.1
"""Spread of the runs of a cell that is assumed before any is measured (docs/how-to/run-a-campaign.md)."""
BLOCKS_MIN: Final = 2
"""Fewest blocks with a spread."""


@dataclass(frozen=True)
class Spread:
    """How uncertain the runs of a cell are, relative to their mean; each is a standard deviation."""

    relative: float
    """Between the runs of one cell."""
    fixed: float = 0.0
    """Part of a cell's mean that more blocks do not reduce."""
    runs: int = 0
    """Number of runs that show it; 0 if it is assumed."""

    @classmethod
    def of(cls, compared: Sequence[Compared]) -> Self:
        """The spread of the compared runs, pooled over their cells; the typical one if no cell has two runs."""
        sides = [
            (side, len(group.runs))
            for answer in compared[:1]  # each answer has all runs
            for group in answer.groups
            for of in (*answer.quantities, *answer.told)
            if len(group.runs) > 1 and (side := group.side(of)) and float(side) > 0
        ]
        freedom = sum(runs - 1 for _, runs in sides)
        if not freedom:
            return cls(TYPICAL_SPREAD)
        squares = sum((runs - 1) * runs * (side.spread_u / float(side)) ** 2 for side, runs in sides)
        fixed = math.sqrt(fmean((side.own_u / float(side)) ** 2 for side, _ in sides))
        return cls(math.sqrt(squares / freedom), fixed, sum(runs for _, runs in sides))

    def half_width(self, blocks: int) -> float:
        """Expected half-width of the interval (95.45 %) of the ratio of two alike cells."""
        return self._difference(blocks).half_width()

    def difference_found(self, blocks: int, contrasts: int = 1) -> float:
        """Relative difference of two cells that is found with probability POWER; infinite if none is.

        Args:
            contrasts: number of contrasts that are judged together, each of them by the strictest of Holm's limits.
        """

        def is_found(difference: float) -> bool:
            uncertainty = self._difference(blocks, 1.0 + difference)
            return difference >= uncertainty.half_width(LIMIT / contrasts) + uncertainty.half_width(2 * (1 - POWER))

        low, high = 0.0, _DIFFERENCE_MAX
        if not is_found(high):
            return math.inf
        if is_found(low):  # runs without a spread
            return low
        while high - low > _CLOSE * high:
            middle = (low + high) / 2
            low, high = (low, middle) if is_found(middle) else (middle, high)
        return high

    def blocks_for(self, half_width: float, limit: int) -> int | None:
        """Fewest blocks that make the interval of a ratio this narrow; None if the limit's blocks do not."""
        return next((n for n in range(BLOCKS_MIN, limit + 1) if self.half_width(n) <= half_width), None)

    def blocks_to_find(self, difference: float, contrasts: int, limit: int) -> int | None:
        """Fewest blocks with which a relative difference is found; None if the limit's blocks do not find it."""
        counts = range(BLOCKS_MIN, limit + 1)
        return next((n for n in counts if self.difference_found(n, contrasts) <= difference), None)

    def _difference(self, blocks: int, ratio: float = 1.0) -> DifferenceUncertainty:
        """Uncertainties of the difference of two cells of this ratio, over the smaller one.

        The degrees of freedom are those that Welch and Satterthwaite's formula gives on average: where two estimated
        spreads differ by chance, it gives fewer than for the true ones, by a factor of n / (n + 1) for n blocks, but
        no fewer than those of one side.
        """
        if blocks < BLOCKS_MIN:
            raise ValueError(f"{counted(blocks, 'block')}: a spread needs at least {BLOCKS_MIN}")
        both, alone = math.hypot(1.0, ratio), blocks - 1.0
        freedom = max(alone * both**4 / (1.0 + ratio**4) * blocks / (blocks + 1), alone)
        return DifferenceUncertainty(self.fixed * both, self.relative / math.sqrt(blocks) * both, freedom)


_DIFFERENCE_MAX: Final = 100.0
"""Largest relative difference that is looked for."""
_CLOSE: Final = 1e-4
"""Resolution of the difference that is found, relative to it."""


def contrast_count(conditions: Iterable[Mapping[str, str]]) -> int:
    """Number of contrasts in a campaign's answer: the pairs of values of each axis, in each stratum."""
    known = [tuple(condition.items()) for condition in conditions]
    return sum(
        math.comb(values, 2)
        for axis in dict.fromkeys(axis for condition in known for axis, _ in condition)
        for values in Counter(tuple(item for item in condition if item[0] != axis) for condition in known).values()
    )


def power_words(spread: Spread, blocks: int, contrasts: int) -> str:
    """What a number of blocks finds, and the spread from which that follows."""
    if blocks < BLOCKS_MIN:
        return f"no difference is found with {counted(blocks, 'block')}: a spread needs at least {BLOCKS_MIN}"
    found = 100 * spread.difference_found(blocks, contrasts)
    size = f"differences of about {found:.2g} %" if found < 10 else f"differences of about {found:.0f} %"
    size = size if math.isfinite(found) else "no differences"
    together = f"; {contrasts} contrasts are judged together" if contrasts > 1 else ""
    known = f"that of {spread.runs} runs so far" if spread.runs else "assumed, as no cell has two runs yet"
    return (
        f"with {counted(blocks, 'block')} {size} are found in about {100 * POWER:.0f} "
        f"of 100 campaigns (spread of the runs {percent(spread.relative)}, {known}{together})"
    )
