"""Which medium, which database costs least: the conclusion of a comparison in a line or two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from opjoule.comparison.comparable import SIDE
from opjoule.comparison.contrasts import TOO_SHORT_RUNS, Compared, Contrast, Group
from opjoule.comparison.sentences import (
    RATES,
    chance_words,
    noun_of,
    place_words,
    ratio_words,
    sentence,
    side_words,
)
from opjoule.comparison.value_words import NAMED, listed, noun, quantity_words, sentence_case
from opjoule.energy.comparison import Side
from opjoule.evaluation.quantities.definition import Definition
from opjoule.opened.quantities import quantity_text
from opjoule.units import from_json

OWN_LINES_MAX: Final = 2
"""With more strata than this one line says what holds in all of them."""
CELLS_MAX: Final = 3
"""Cells that a line names."""
RANKED: Final = ("J", "J/operation", "s")
"""Units of quantities of which less is better; of `RATES` more is."""
_ASIDE: Final = "single runs, or runs that are too short"


@dataclass(frozen=True)
class Ranking:
    """The groups of one stratum by one quantity, the best first."""

    quantity: Definition
    stratum: Mapping[str, str]
    best: str
    """Empty where nothing can be concluded."""
    alike: tuple[str, ...]
    """In which no difference from the best was found."""
    worse: tuple[Contrast, ...]
    """With the best as `b` (of a rate: as `a`)."""
    unjudged: tuple[str, ...]
    """Single runs, or too short ones: no contrast with them is judged."""


def winner_lines(compared: Compared) -> list[str]:
    """Which group is best, by what factor, how sure: a line for each stratum, or one for all where they are many."""
    if compared.question.by == (SIDE,):
        return [sentence(each, compared) for each in compared.contrasts]
    judged = [each for each in compared.contrasts if each.adjusted is not None]
    if not judged:
        return [_no_winner(compared)]
    lines: list[str] = []
    for quantity in compared.quantities:
        ranked = list(_rankings(compared, quantity))
        if not ranked or compared.question.against:
            lines += [sentence(each, compared) for each in compared.contrasts if each.quantity == quantity]
        elif len(ranked) <= OWN_LINES_MAX:
            lines += [_own_line(each, compared) for each in ranked]
        else:
            lines.append(_common_line(ranked, compared))
    return lines


def _no_winner(compared: Compared) -> str:
    if any(each.cannot == TOO_SHORT_RUNS for each in compared.contrasts):
        return f"No {noun_of(compared)} is named best: the runs are too short for a conclusion."
    return (
        f"No {noun_of(compared)} is named best: these are single runs, and how much runs differ is not known. "
        "Measure more of them (--repeats)."
    )


def _rankings(compared: Compared, quantity: Definition) -> Iterator[Ranking]:
    """One ranking for each stratum, in order; none if less of the quantity is neither better nor worse."""
    if quantity.unit not in (*RANKED, *RATES):
        return
    strata: dict[tuple[tuple[str, str], ...], list[tuple[Side, Group]]] = {}
    for at, group in enumerate(compared.groups):
        if side := compared.sides.get((quantity.key, at)):
            strata.setdefault(tuple(group.stratum.items()), []).append((side, group))
    own = {
        (tuple(each.stratum.items()), frozenset((each.a, each.b))): each
        for each in compared.contrasts
        if each.quantity.key == quantity.key
    }
    for stratum, found in strata.items():
        if len(found) < 2:
            continue
        ordered = sorted(found, key=lambda each: each[0].value, reverse=quantity.unit in RATES)
        yield _ranking(quantity, dict(stratum), [group.name for _, group in ordered], own)


def _ranking(
    quantity: Definition,
    stratum: Mapping[str, str],
    ordered: Sequence[str],
    contrasts: Mapping[tuple[tuple[tuple[str, str], ...], frozenset[str]], Contrast],
) -> Ranking:
    """One stratum; groups of which no contrast is judged are left aside.

    Args:
        ordered: names of its groups, the best mean first.
        contrasts: by stratum and pair of names.
    """
    where = tuple(stratum.items())
    judged = {pair: each for (place, pair), each in contrasts.items() if place == where and not each.cannot}
    known = [name for name in ordered if any(name in pair for pair in judged)]
    aside = tuple(name for name in ordered if name not in known)
    if not known:
        return Ranking(quantity, stratum, "", (), (), aside)
    best, *others = known
    held = {name: judged[pair] for name in others if (pair := frozenset((best, name))) in judged}
    rate = quantity.unit in RATES
    alike = tuple(name for name, each in held.items() if not each.differs)
    # the best stands on the side where the ratio is above 1
    worse = tuple(
        each if (each.a == best) is rate else each.turned() for each in held.values() if each.differs
    )
    return Ranking(quantity, stratum, best, alike, worse, aside)


def _own_line(found: Ranking, compared: Compared) -> str:
    place = place_words(found.stratum, compared)
    what = quantity_words(found.quantity)
    aside = listed([_words(each, found, compared) for each in found.unjudged])
    if not found.best:
        return sentence_case(f"{place}nothing can be concluded on {what}: {_ASIDE}.")
    single = f" Nothing can be concluded on {aside}: {_ASIDE}." if aside else ""
    names = [_words(each, found, compared) for each in (found.best, *found.alike)]
    if not found.worse:
        text = f"no difference in {what} was found between {listed(names)}{_size(found, compared)}."
        return sentence_case(f"{place}{text}{single}")
    alike = (
        f", with no difference found between {'them' if len(names) == 2 else 'these'}" if found.alike else ""
    )
    value = "" if found.alike else f", {_value(found, compared)}"
    text = f"{listed(names)} {_superlative(found)} {what}{value}{alike}: {_factors(found, compared)}."
    return sentence_case(f"{place}{text}{single}")


def _value(found: Ranking, compared: Compared) -> str:
    at = next(
        at
        for at, each in enumerate(compared.groups)
        if each.name == found.best and each.stratum == found.stratum
    )
    return quantity_text(from_json(compared.mean(found.quantity.key, at)))


def _superlative(found: Ranking) -> str:
    if found.quantity.unit in RATES:
        return "had the highest"
    return "used the least" if found.quantity.unit.startswith("J") else "had the lowest"


def _size(found: Ranking, compared: Compared) -> str:
    """The ratio of two groups that were not found different; several have theirs in the sentences."""
    own = [
        each
        for each in compared.contrasts
        if each.stratum == found.stratum
        and each.quantity.key == found.quantity.key
        and each.adjusted is not None
    ]
    return f" (ratio {ratio_words(own[0])})" if len(own) == 1 and own[0].ratio else ""


def _factors(found: Ranking, compared: Compared) -> str:
    """By what factor each of the others is worse."""
    rate = found.quantity.unit in RATES
    verb = "used" if found.quantity.unit.startswith("J") else "had"
    parts: list[str] = []
    for each in found.worse:
        name = _words(each.b if rate else each.a, found, compared)
        chance = chance_words(each.adjusted)
        if each.ratio is None:
            parts.append(f"{name} {verb} more ({chance})")
            continue
        value, _, interval = ratio_words(each).partition(", ")
        if rate:
            parts.append(f"{value} times that of {name} ({interval}; {chance})")
        else:
            start = f"{name} {value} times" if parts else f"{name} {verb} {value} times as much"
            parts.append(f"{start} ({interval}; {chance})")
    return listed(parts)


def _words(name: str, found: Ranking, compared: Compared) -> str:
    return side_words(name, found.stratum, compared)


def _common_line(ranked: Sequence[Ranking], compared: Compared) -> str:
    """All strata of one quantity in one sentence, those with the same best together."""
    what = quantity_words(ranked[0].quantity)
    alike: dict[tuple[tuple[str, ...], ...], list[Ranking]] = {}
    for each in ranked:
        best = tuple(_words(name, each, compared) for name in (each.best, *each.alike) if name)
        aside = tuple(sorted(_words(name, each, compared) for name in each.unjudged))
        same = () if each.worse else tuple(sorted(best))
        alike.setdefault((best if each.worse else (), same, aside), []).append(each)
    parts: list[str] = []
    for (best, same, aside), own in sorted(alike.items(), key=lambda each: (not each[0][0], -len(each[1]))):
        where = _places(own, len(ranked), compared)
        nowhere = where.replace("on every ", "on any ").replace("in all ", "in any of ")
        about = "" if parts else f" in {what}"
        left = f", {listed(aside)} left aside ({_ASIDE})" if aside else ""
        if best:
            said = f"{_superlative(own[0])} {what}" if not parts else "did so"
            parts.append(f"{listed(best)} {said} {where}{left}: {_spans(own, compared)}")
        elif same:
            parts.append(f"no difference{about} was found between {listed(same)} {nowhere}{left}")
        else:
            parts.append(f"nothing can be concluded{about.replace(' in ', ' on ')} {nowhere} ({_ASIDE})")
    return sentence_case(f"{'; '.join(parts)}.")


def _places(own: Sequence[Ranking], count: int, compared: Compared) -> str:
    """Where some rankings hold."""
    axes = tuple(own[0].stratum)
    if len(own) == count:
        return f"on every {noun(axes)}" if len(axes) == 1 and axes[0] in NAMED else f"in all {count} cases"
    words = [place_words(each.stratum, compared).removesuffix(", ") for each in own]
    return listed(words) if len(words) <= CELLS_MAX else f"in {len(own)} of {count} cases"


def _spans(own: Sequence[Ranking], compared: Compared) -> str:
    """By what factor the others are worse: the range over all strata, and the ends of all intervals."""
    rate = own[0].quantity.unit in RATES
    found: dict[str, list[Contrast]] = {}
    for ranking in own:
        for each in ranking.worse:
            found.setdefault(_words(each.b if rate else each.a, ranking, compared), []).append(each)
    verb = "used" if own[0].quantity.unit.startswith("J") else "had"
    words: list[str] = []
    for name, contrasts in found.items():
        ratios = [each.ratio.value for each in contrasts if each.ratio]
        if not ratios:
            words.append(f"{name} {verb} more")
            continue
        factors = " to ".join(dict.fromkeys(_two_digits(each(ratios)) for each in (min, max)))
        low, high = min(each.limits[0] for each in contrasts), max(each.limits[1] for each in contrasts)
        interval = f"{_two_digits(low)} {'or more' if math.isinf(high) else f'to {_two_digits(high)}'}"
        about = f"(95 % intervals: {interval})" if len(contrasts) > 1 else f"(95 %: {interval})"
        if rate:
            words.append(f"{factors} times that of {name} {about}")
        else:
            start = f"{name} {factors} times" if words else f"{name} {verb} {factors} times as much"
            words.append(f"{start} {about}")
    chance = chance_words(max(each.adjusted or 0.0 for one in found.values() for each in one))
    each_one = "each " if sum(map(len, found.values())) > 1 else ""
    return f"{listed(words)}, {each_one}{chance}"


def _two_digits(number: float) -> str:
    places = max(1 - math.floor(math.log10(number)), 0) if number > 0 else 0
    return f"{number:.{places}f}"
