"""What a ranking depends on: idle power, which energy above idle excludes, and the energy after the last operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opjoule.comparison.cell_mean import sides_of
from opjoule.comparison.comparable import SIDE
from opjoule.comparison.contrasts import Compared, Group
from opjoule.comparison.sentences import place_words, side_words
from opjoule.comparison.value_words import listed, sentence_case
from opjoule.energy.comparison import Side, differ, difference
from opjoule.opened.rounding import rounded
from opjoule.record.groups import ABOVE_IDLE
from opjoule.units import Measured

TAIL_SHARE: Final = 0.5
"""From this share on what is drawn after the last operation is said to decide."""
CELLS_MAX: Final = 3
"""Cells that a line names."""
IDLE_POWER: Final = "idle_power_w"
ABOVE: Final = "marginal_energy_j"
AFTERWARDS: Final = "write_back_energy_j"


def deciding_lines(answers: Sequence[Compared]) -> list[str]:
    """What the rankings of some runs depend on, each line once.

    That is idle power, which energy above idle leaves out, and what is drawn after the last operation.
    """
    about = [
        answer
        for answer in answers
        if answer.question.by != (SIDE,)
        and any(ABOVE_IDLE in of.rests_on and "marginal" in of.key for of in answer.quantities)
    ]
    lines = (next(filter(None, map(line, about)), "") for line in (_idle_line, _tail_line))
    return [line for line in lines if line]


def _idle_line(compared: Compared) -> str:
    """The greatest difference in idle power that was found between two groups of one stratum."""
    differences: list[tuple[Measured, Group, Group]] = []
    known = [(group, side) for group in compared.groups if (side := _mean(group, IDLE_POWER))]
    for a, side_a in known:
        for b, side_b in known:
            if a.stratum == b.stratum and side_a.value > side_b.value and differ(side_a, side_b):
                differences.append((difference(side_a, side_b), a, b))
    if not differences:
        return ""
    power, a, b = max(differences, key=lambda entry: entry[0].value)
    more, less = (side_words(group.name, group.stratum, compared) for group in (a, b))
    place = place_words(a.stratum, compared)
    length, count = (_number(a, key) for key in ("duration_s", "operations"))
    per_operation = (
        f", which is {rounded(power.value * length / count, None, 'J', 2)} per operation at its pace"
        if length and count
        else ""
    )
    size = rounded(power.value, power.u, power.unit)
    return sentence_case(
        f"energy above idle leaves out idle power: {place}the board drew {size} more at idle with {more} than with "
        f"{less}{per_operation}."
    )


def _tail_line(compared: Compared) -> str:
    """The cells in which most of the energy above idle was drawn after the last operation."""
    shares: list[tuple[float, Group]] = []
    for group in compared.groups:
        after, whole = _number(group, AFTERWARDS), _number(group, ABOVE)
        if after is not None and whole and whole > 0 and after / whole >= TAIL_SHARE:
            shares.append((min(after / whole, 1.0), group))
    if not shares:
        return ""
    shares.sort(key=lambda entry: -entry[0])
    named = [f"{_cell_words(group, compared)} ({100 * share:.0f} %)" for share, group in shares[:CELLS_MAX]]
    more = [f"{len(shares) - CELLS_MAX} more"] if len(shares) > CELLS_MAX else []
    return (
        f"Most of the energy above idle was drawn after the last operation with {listed([*named, *more])}. Such a tail "
        "weighs less in a longer run, so more operations can change the ranking."
    )


def _cell_words(group: Group, compared: Compared) -> str:
    place = place_words(group.stratum, compared).removesuffix(", ")
    side = side_words(group.name, group.stratum, compared)
    return f"{side} {place}" if place else side


def _mean(group: Group, key: str) -> Side | None:
    """Mean of a quantity over the runs of a group that have it."""
    of = group.runs[0].quantities.get(key)
    sides = sides_of([run.numbers for run in group.runs], of) if of else []
    return Side.mean(sides) if sides else None


def _number(group: Group, key: str) -> float | None:
    mean = _mean(group, key)
    return None if mean is None else mean.value
