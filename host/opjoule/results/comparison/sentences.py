"""Sentences for contrasts, and for what rankings depend on: idle power, and energy after the last operation."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from opjoule.energy.comparison import difference
from opjoule.results.comparison.cell import Group
from opjoule.results.comparison.compared_run import SIDE, is_above_idle
from opjoule.results.comparison.contrasts import (
    BESIDE,
    TOO_SHORT_RUNS,
    Compared,
    Contrast,
    compared_sides,
    judged,
    why_not_judged,
)
from opjoule.results.comparison.value_words import CELLS_MAX, listed, quantity_words, sentence_case
from opjoule.results.rounding import chance_words, limits_words, rounded
from opjoule.runs.record.result import ABOVE_IDLE

RATES: Final = ("1/s", "B/s")
"""Units of quantities of which more is better."""
NO_DIFFERENCE: Final = "no difference found"
UNDECIDED: Final = "undecided"
SINGLE: Final = "single run: no conclusion"
SHORT: Final = "too short: no conclusion"
NOT_JUDGED: Final = "not judged"


def sentence(contrast: Contrast, compared: Compared) -> str:
    """One contrast as a complete sentence; its first side is the greater one unless there is a reference."""
    if not (compared.question.against or compared.question.by == (SIDE,)):
        contrast = contrast.greater_first
    place, a, b = place_words(contrast.a), contrast.a.words, contrast.b.words
    what = quantity_words(contrast.quantity)
    if contrast.adjusted is None:
        return sentence_case(f"{place}{_without_conclusion(contrast, a, b, what)}")
    text = (_difference if contrast.differs else _no_difference)(contrast, compared, a, b, what)
    return sentence_case(f"{place}{text}")


def _without_conclusion(contrast: Contrast, a: str, b: str, what: str) -> str:
    """Sentence for a contrast that is not judged."""
    if contrast.cannot == BESIDE:
        return f"{a} over {b}, the ratio of {what} is {ratio_words(contrast) or 'not known'}."
    size = f", {a} over {b}, is {contrast.ratio.value:.3g}" if contrast.ratio else " is not known"
    if contrast.cannot == TOO_SHORT_RUNS:
        return f"nothing can be concluded on {what}, because runs are too short. Their ratio{size}."
    return (
        f"nothing can be concluded on {what} from a single run of either side. The ratio{size}. "
        "Measure more runs (--repeats)."
    )


def _no_difference(contrast: Contrast, compared: Compared, a: str, b: str, what: str) -> str:
    tolerance = compared.question.tolerance
    beyond = f" of more than {100 * tolerance:g} %" if tolerance else ""
    size = f" (ratio {ratio_words(contrast)})" if contrast.ratio else ""
    pair = "before and after the change" if compared.question.by == (SIDE,) else f"{a} and {b}"
    if not contrast.differs_alone:
        return f"no difference{beyond} in {what} was found between {pair}{size}."
    return (
        f"a difference{beyond} in {what} between {pair} is undecided{size}: alone it is significant "
        f"(p = {contrast.probability:.2g}), among all {contrast.judged} it is not ({judged_words(contrast)})."
    )


def _difference(contrast: Contrast, compared: Compared, a: str, b: str, what: str) -> str:
    more = "more" if float(contrast.side_a) > float(contrast.side_b) else "less"
    beyond = f" by more than {100 * t:g} %" if (t := compared.question.tolerance) else ""
    if contrast.ratio is None:
        return f"{a} had {more} {what} than {b}{beyond}. A value is not above 0, so there is no ratio."
    value, interval = factor_words(contrast)
    if compared.question.by == (SIDE,):
        words = f"after the change the {what} was {value} times ({interval}) that before"
        return f"{words}: {more}{beyond}." if beyond else f"{words}."
    verb = "used" if contrast.quantity.unit.startswith("J") else "had"
    return f"{a} {verb} {value} times ({interval}) the {what} of {b}."


def factor_words(contrast: Contrast) -> tuple[str, str]:
    """The ratio and its interval: ("1.08", "95 %: 0.91 to 1.30"); both are empty without a ratio."""
    if contrast.ratio is None:
        return "", ""
    value, interval = limits_words(float(contrast.ratio), contrast.limits)
    return value, f"95 %: {interval}"


def ratio_words(contrast: Contrast) -> str:
    """The ratio with its interval: "1.08, 95 %: 0.91 to 1.30"; empty without one."""
    return ", ".join(filter(None, factor_words(contrast)))


def chance_name(judged: int) -> str:
    """Name of the p-value of one of some contrasts: it says so if the value is adjusted."""
    return "p (Holm)" if judged > 1 else "p"


def judged_words(contrast: Contrast) -> str:
    """The p-value with its name: "p (Holm) < 0.0001", "p = 0.012"; a dash if the contrast is not judged."""
    return chance_words(chance_name(contrast.judged), contrast.adjusted)


def follows_words(contrast: Contrast, side: str = "") -> str:
    """Conclusion from a contrast, for a column of a table; `side`: words for its first side (default: its name)."""
    if contrast.adjusted is None:
        return {TOO_SHORT_RUNS: SHORT, BESIDE: NOT_JUDGED}.get(contrast.cannot, SINGLE)
    if not contrast.differs:
        return UNDECIDED if contrast.differs_alone else NO_DIFFERENCE
    return f"{side or contrast.a.name} is {'more' if float(contrast.side_a) > float(contrast.side_b) else 'less'}"


def place_words(group: Group) -> str:
    """A group's stratum as the start of a sentence: "on SQLite, workload a, "; empty without other axes."""
    return group.where and f"{group.where}, "


def pair_labels(contrast: Contrast) -> tuple[str, str, str]:
    """Labels of a contrast: stratum and both sides, as ("LevelDB", "SD card", "eMMC")."""
    return ", ".join(contrast.a.place_labels.values()), contrast.a.label, contrast.b.label


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
