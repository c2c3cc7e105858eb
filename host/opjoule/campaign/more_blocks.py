"""`until` of a campaign: more blocks until every contrast's interval is narrow enough, or a limit is reached."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from opjoule.base.units import counted
from opjoule.campaign.axes import UntilNarrow
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.conclusion import answers_of
from opjoule.results.comparison.contrasts import Compared, Contrast
from opjoule.results.comparison.power import BLOCKS_MIN, Spread
from opjoule.runs.evaluation.until import REPEATS_MIN


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
