"""Comparison of two groups of runs that were measured on several rigs, within blocks that both have on one rig.

Effects of a rig on both groups (board, meter, room) are then neither in the difference nor in its spread, which is the
spread of the differences between blocks.
Source: Box, Hunter, Hunter, Statistics for Experimenters, 2nd edition, chapter 3 (paired comparisons).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import stdev
from typing import Any

from opjoule.comparison.cell_mean import sides_of
from opjoule.comparison.compared_run import ComparedRun
from opjoule.energy.comparison import Side
from opjoule.evaluation.quantities.definition import Definition

RIG_NAME = "rig_name"
"""Key in `asked` of runs of a fleet."""
_Block = tuple[Path | None, int, str]
"""Folder of the campaign, number of the block, rig."""


def sides_within_blocks(
    a: Sequence[ComparedRun], b: Sequence[ComparedRun], quantity: Definition
) -> tuple[Side, Side] | None:
    """Means of both groups over the blocks that both have on one rig; None without such a block.

    The spread of their difference, and of their ratio, is that between blocks, with one degree of freedom less than the
    number of blocks: each side has half of the variance and half of those degrees.
    """
    of_a, of_b = _by_block(a, quantity), _by_block(b, quantity)
    blocks = [block for block in of_a if block in of_b]
    if not blocks:
        return None
    side_a, side_b = (Side.mean([of[block] for block in blocks]) for of in (of_a, of_b))
    if len(blocks) == 1:
        return side_a, side_b
    pairs = [(of_a[block].value, of_b[block].value) for block in blocks]
    if min(min(pair) for pair in pairs) > 0:
        spread_u = _error([math.log(one / other) for one, other in pairs])
        spreads_u = abs(side_a.value) * spread_u, abs(side_b.value) * spread_u
    else:
        spreads_u = (_error([one - other for one, other in pairs]),) * 2
    return _spread(side_a, spreads_u[0], len(blocks)), _spread(side_b, spreads_u[1], len(blocks))


def _by_block(runs: Sequence[ComparedRun], quantity: Definition) -> dict[_Block, Side]:
    """Mean of each block, over the runs that have the quantity."""
    by_block: dict[_Block, list[Mapping[str, Any]]] = {}
    for run in runs:
        block = run.index, int(run.asked.get("block") or 0), str(run.asked.get(RIG_NAME) or "")
        by_block.setdefault(block, []).append(run.numbers)
    known = {block: sides_of(results, quantity) for block, results in by_block.items()}
    return {block: Side.mean(sides) for block, sides in known.items() if sides}


def _error(differences: Sequence[float]) -> float:
    return stdev(differences) / math.sqrt(len(differences))


def _spread(side: Side, spread_u: float, blocks: int) -> Side:
    """The side with its half of the differences' spread."""
    common_u = math.sqrt(max(side.standard_u**2 - side.spread_u**2, 0.0))
    half_u = spread_u / math.sqrt(2)
    return replace(side, standard_u=math.hypot(common_u, half_u), spread_u=half_u, freedom=(blocks - 1) / 2)
