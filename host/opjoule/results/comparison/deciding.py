"""What the ranking of some runs depends on: idle power, and energy after the last operation."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from opjoule.energy.comparison import difference
from opjoule.results.comparison.compared_run import SIDE
from opjoule.results.comparison.contrasts import (
    Compared,
    Contrast,
    Group,
    compared_sides,
    judged,
    why_not_judged,
)
from opjoule.results.comparison.costs import is_above_idle
from opjoule.results.comparison.sentences import place_words
from opjoule.results.comparison.value_words import CELLS_MAX, listed, sentence_case
from opjoule.results.rounding import rounded
from opjoule.runs.record.groups import ABOVE_IDLE

TAIL_SHARE: Final = 0.5
"""Share of the energy drawn after the last operation from which it is reported as decisive."""
IDLE_POWER: Final = "idle_power_w"
ABOVE: Final = "marginal_energy_j"
AFTERWARDS: Final = "write_back_energy_j"


def deciding_lines(answers: Sequence[Compared]) -> list[str]:
    """Factors that the rankings of some runs depend on, each once: idle power, and energy after the last operation."""
    about = [
        answer
        for answer in answers
        if answer.question.by != (SIDE,)
        and any(ABOVE_IDLE in of.rests_on and is_above_idle(of) for of in answer.quantities)
    ]
    tails = next(filter(None, map(_tail_line, about)), "")
    return [line for line in (_idle_line(about), tails) if line]


def _idle_line(answers: Sequence[Compared]) -> str:
    """The greatest significant difference in idle power of the first answer that has one. All pairs of all answers are
    judged together."""
    pairs = [(compared, contrast) for compared in answers for contrast in _idle_contrasts(compared)]
    together = judged([contrast for _, contrast in pairs])
    differing = [(pair[0], contrast) for pair, contrast in zip(pairs, together, strict=True) if contrast.differs]
    if not differing:
        return ""
    compared = differing[0][0]
    power, contrast = max(
        ((difference(c.side_a, c.side_b), c) for of, c in differing if of is compared),
        key=lambda entry: float(entry[0]),
    )
    more, less, place = contrast.a.words, contrast.b.words, place_words(contrast.a)
    length, count = (_number(contrast.a, key) for key in ("duration_s", "operations"))
    per_operation = ""
    if length and count:
        energy = rounded(float(power) * length / count, None, "J", 2)
        per_operation = f", which is {energy} per operation at its pace"
    size = rounded(float(power), power.u, power.unit)
    return sentence_case(
        f"energy above idle leaves out idle power: {place}the board drew {size} more at idle with {more} than with "
        f"{less}{per_operation}."
    )


def _idle_contrasts(compared: Compared) -> Iterator[Contrast]:
    """Contrasts of idle power between any two groups of one stratum, with the greater side as `a`."""
    for a, b in itertools.combinations(compared.groups, 2):
        of = a.runs[0].quantities.get(IDLE_POWER)
        if a.stratum == b.stratum and of and (sides := compared_sides(of, a, b, compared.question)):
            yield Contrast(of, a, b, *sides, cannot=why_not_judged(*sides, too_short=False)).greater_first


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
    named = []
    for share, group in shares[:CELLS_MAX]:
        named.append(f"{f'{group.words} {group.where}'.strip()} ({100 * share:.0f} %)")
    more = [f"{len(shares) - CELLS_MAX} more"] if len(shares) > CELLS_MAX else []
    return (
        f"Most of the energy above idle was drawn after the last operation with {listed([*named, *more])}. Such a tail "
        "weighs less in a longer run, so more operations can change the ranking."
    )


def _number(group: Group, key: str) -> float | None:
    """The value of a mean with an interval."""
    mean = group.number(key)
    return mean.value if mean.has_interval else None
