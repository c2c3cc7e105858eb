"""Conclusion of a comparison in a few lines: the medium or database with the least use, and what that depends on."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from opjoule.comparison.cell_mean import sides_of
from opjoule.comparison.compared_run import SIDE
from opjoule.comparison.contrasts import (
    TOO_SHORT_RUNS,
    Compared,
    Contrast,
    Group,
    compared_sides,
    judged,
    why_not_judged,
)
from opjoule.comparison.sentences import RATES, chance_words, place_words, ratio_words, sentence, side_words
from opjoule.comparison.value_words import NAMED, listed, noun, quantity_words, sentence_case
from opjoule.energy.comparison import Side, difference
from opjoule.evaluation.quantities.definition import Definition
from opjoule.opened.quantities import quantity_text
from opjoule.opened.rounding import rounded
from opjoule.record.groups import ABOVE_IDLE
from opjoule.units import from_json

OWN_LINES_MAX: Final = 2
"""Number of strata above which one line summarises all of them."""
CELLS_MAX: Final = 3
"""Greatest number of cells named in a line."""
RANKED: Final = ("J", "J/operation", "s")
"""Units of quantities of which less is better; for `RATES` more is better."""
_ASIDE: Final = "single runs, or runs that are too short"
_ASIDE_ON_RIGS: Final = "single runs, runs that are too short, or fewer than two blocks in common on one rig"
_CIRCLE: Final = "each is significantly worse than another in the blocks that both have"


@dataclass(frozen=True)
class Ranking:
    """Groups of one stratum ranked by one quantity, the best first."""

    compared: Compared
    quantity: Definition
    stratum: Mapping[str, str]
    best: str
    """The group with the best mean of those that no contrast finds worse; empty if nothing can be concluded."""
    alike: tuple[str, ...]
    """Groups that no contrast finds worse, and that do not differ significantly from the best."""
    worse: tuple[Contrast, ...]
    """One contrast for each worse group, with that group as `a` (for a rate: as `b`): with the best if it is worse than
    that, else with another."""
    unjudged: tuple[str, ...]
    """Groups about which nothing can be concluded."""
    why: str
    """Reason why nothing can be concluded about the unjudged groups, or about any; empty if something can be."""

    def words(self, name: str) -> str:
        """A group in words."""
        return side_words(name, self.stratum, self.compared)

    def than(self, better: str) -> str:
        """A group that another is worse than, in words; empty for the best."""
        return "" if better == self.best else self.words(better)

    @property
    def is_rate(self) -> bool:
        """Whether more of the quantity is better."""
        return self.quantity.unit in RATES

    @property
    def verb(self) -> str:
        """Verb for the quantity."""
        return "used" if self.quantity.unit.startswith("J") else "had"

    @property
    def superlative(self) -> str:
        """Verb phrase for the best group."""
        if self.is_rate:
            return "had the highest"
        return "used the least" if self.verb == "used" else "had the lowest"

    @property
    def others(self) -> list[tuple[str, str, Contrast]]:
        """Worse groups, each with the group that it is worse than and their contrast."""
        if self.is_rate:
            return [(contrast.b, contrast.a, contrast) for contrast in self.worse]
        return [(contrast.a, contrast.b, contrast) for contrast in self.worse]

    def factor(self, name: str, than: str, factor: str, note: str, *, is_first: bool) -> str:
        """The factor by which a group is worse: "RocksDB used 1.5 times as much (95 %: 1.2 to 1.9)".

        `than`: the group that it is worse than, in words; empty for the best.
        """
        if self.is_rate:
            return f"{f'for {than} ' if than else ''}{factor} times that of {name} ({note})"
        times = f"{self.verb} {factor} times as much" if is_first else f"{factor} times"
        as_much = f"{' as' if is_first else ' as much as'} {than}" if than else ""
        return f"{name} {times}{as_much} ({note})"


def winner_lines(compared: Compared) -> list[str]:
    """The best group, with factor and interval: a line for each stratum, or one for all if there are many."""
    if compared.question.by == (SIDE,):
        return [sentence(contrast, compared) for contrast in compared.contrasts]
    if all(contrast.adjusted is None for contrast in compared.contrasts):
        nobody = f"No {noun(compared.question.by)} is named best"
        if any(contrast.cannot == TOO_SHORT_RUNS for contrast in compared.contrasts):
            return [f"{nobody}: the runs are too short for a conclusion."]
        why = "these are single runs, and how much runs differ is not known"
        return [f"{nobody}: {why}. Measure more of them (--repeats)."]
    lines: list[str] = []
    for quantity in compared.quantities:
        ranked = list(_rankings(compared, quantity))
        if not ranked or compared.question.against:
            lines += [sentence(contrast, compared) for contrast in compared.contrasts_of(quantity)]
        elif len(ranked) <= OWN_LINES_MAX:
            lines += [_own_line(ranking) for ranking in ranked]
        else:
            lines.append(_common_line(ranked))
    return lines


def _rankings(compared: Compared, quantity: Definition) -> Iterator[Ranking]:
    """One ranking for each stratum, in order; none if less of the quantity is neither better nor worse."""
    if quantity.unit not in (*RANKED, *RATES):
        return
    key = quantity.key
    known = (group for group in compared.groups if key in group.means)
    for stratum, groups in itertools.groupby(known, lambda group: group.stratum):
        members = list(groups)
        if len(members) > 1:
            members.sort(key=lambda group: group.means[key].value, reverse=quantity.unit in RATES)
            yield _ranking(compared, quantity, stratum, [group.name for group in members])


def _ranking(
    compared: Compared, quantity: Definition, stratum: Mapping[str, str], ordered: Sequence[str]
) -> Ranking:
    """Ranks one stratum by its contrasts, which have the greater side as `a`.

    `ordered`: the groups' names, the best mean first. On several rigs a contrast is within common blocks, so its sides
    may be in another order than the means of all runs, and a group may have no contrast with the best.
    """
    contrasts = compared.contrasts_of(quantity, stratum)
    judged_pairs = {
        frozenset((contrast.a, contrast.b)): contrast for contrast in contrasts if not contrast.cannot
    }
    lost: dict[str, dict[str, Contrast]] = {name: {} for pair in judged_pairs for name in pair}
    for contrast in judged_pairs.values():
        more, less = contrast.a, contrast.b
        better, worse = (more, less) if quantity.unit in RATES else (less, more)
        if contrast.differs:
            lost[worse][better] = contrast
    known = [name for name in ordered if name in lost]
    best = next((name for name in known if not lost[name]), "")
    if known and not best:
        return Ranking(compared, quantity, stratum, "", (), (), (), _CIRCLE)
    beaten = [name for name in known if lost[name]]
    contrasts_lost = [next(lost[name][by] for by in (best, *known) if by in lost[name]) for name in beaten]
    alike = [name for name in known if name not in beaten and frozenset((best, name)) in judged_pairs]
    aside = [name for name in ordered if name not in {best, *alike, *beaten}]
    is_whole = len(contrasts) == math.comb(len(ordered), 2) and not lost.keys() & {*aside}
    why = "" if not aside else _ASIDE if is_whole else _ASIDE_ON_RIGS
    return Ranking(compared, quantity, stratum, best, tuple(alike), tuple(contrasts_lost), tuple(aside), why)


def _own_line(ranking: Ranking) -> str:
    place = place_words(ranking.stratum, ranking.compared)
    what = quantity_words(ranking.quantity)
    aside = listed([ranking.words(name) for name in ranking.unjudged])
    if not ranking.best:
        return sentence_case(f"{place}nothing can be concluded on {what}: {ranking.why}.")
    single = f" Nothing can be concluded on {aside}: {ranking.why}." if aside else ""
    best, *alike = (ranking.words(name) for name in (ranking.best, *ranking.alike))
    if not ranking.worse:
        text = f"no difference in {what} was found between {listed([best, *alike])}{_size(ranking)}."
        return sentence_case(f"{place}{text}{single}")
    text = (
        f"{best} {ranking.superlative} {what}{_mean_words(ranking)}{_not_worse(alike)}: {_factors(ranking)}."
    )
    return sentence_case(f"{place}{text}{single}")


def _not_worse(alike: Sequence[str]) -> str:
    """The groups that were not found to differ from the best, after a comma; empty if there are none."""
    return f", with no difference found from {listed(alike)}" if alike else ""


def _mean_words(ranking: Ranking) -> str:
    """The mean of the best group, after a comma; empty if a factor rests on some of its blocks only."""
    best = ranking.compared.group(ranking.best, ranking.stratum)
    sides = [contrast.side_a if ranking.is_rate else contrast.side_b for contrast in ranking.worse]
    if any(not math.isclose(side.value, best.means[ranking.quantity.key].value) for side in sides):
        return ""
    return f", {quantity_text(from_json(best.mean(ranking.quantity)))}"


def _size(ranking: Ranking) -> str:
    """The ratio of two groups without a significant difference; for more groups, the sentences give the ratios."""
    of_pair = ranking.compared.contrasts_of(ranking.quantity, ranking.stratum)
    contrasts = [contrast for contrast in of_pair if contrast.adjusted is not None]
    return f" (ratio {ratio_words(contrasts[0])})" if len(contrasts) == 1 and contrasts[0].ratio else ""


def _factors(ranking: Ranking) -> str:
    parts: list[str] = []
    for worse, better, contrast in ranking.others:
        name, chance = ranking.words(worse), chance_words(contrast.adjusted)
        than = ranking.than(better)
        if contrast.ratio is None:
            parts.append(f"{name} {ranking.verb} more{than and f' than {than}'} ({chance})")
            continue
        value, _, interval = ratio_words(contrast).partition(", ")
        parts.append(ranking.factor(name, than, value, f"{interval}; {chance}", is_first=not parts))
    return listed(parts)


def _common_line(ranked: Sequence[Ranking]) -> str:
    """All strata of one quantity in one sentence, those with the same best group together."""
    what = quantity_words(ranked[0].quantity)
    alike: dict[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str], list[Ranking]] = {}
    for ranking in ranked:
        names = (ranking.best, *sorted(ranking.alike))
        best = tuple(ranking.words(name) for name in names if name)
        aside = tuple(sorted(ranking.words(name) for name in ranking.unjudged))
        same = () if ranking.worse else tuple(sorted(best))
        key = (best if ranking.worse else (), same, aside, ranking.why)
        alike.setdefault(key, []).append(ranking)
    parts: list[str] = []
    for (best, same, aside, why), rankings in sorted(
        alike.items(), key=lambda item: (not item[0][0], -len(item[1]))
    ):
        where = _places(rankings, len(ranked))
        nowhere = where.replace("on every ", "on any ").replace("in all ", "in any of ")
        about = "" if parts else f" in {what}"
        left = f", {listed(aside)} left aside ({why})" if aside else ""
        if best:
            phrase = f"{rankings[0].superlative} {what}" if not parts else "did so"
            parts.append(f"{best[0]} {phrase} {where}{_not_worse(best[1:])}{left}: {_spans(rankings)}")
        elif same:
            parts.append(f"no difference{about} was found between {listed(same)} {nowhere}{left}")
        else:
            parts.append(f"nothing can be concluded{about.replace(' in ', ' on ')} {nowhere} ({why})")
    return sentence_case(f"{'; '.join(parts)}.")


def _places(rankings: Sequence[Ranking], count: int) -> str:
    axes = tuple(rankings[0].stratum)
    if len(rankings) == count:
        return f"on every {noun(axes)}" if len(axes) == 1 and axes[0] in NAMED else f"in all {count} cases"
    words = [place_words(ranking.stratum, ranking.compared).removesuffix(", ") for ranking in rankings]
    return listed(words) if len(words) <= CELLS_MAX else f"in {len(rankings)} of {count} cases"


def _spans(rankings: Sequence[Ranking]) -> str:
    """Factors by which the others are worse: their range over all strata, and the outermost ends of the intervals."""
    by_name: dict[tuple[str, str], list[Contrast]] = {}
    for ranking in rankings:
        for worse, better, contrast in ranking.others:
            names = ranking.words(worse), ranking.than(better)
            by_name.setdefault(names, []).append(contrast)
    words: list[str] = []
    for (name, than), contrasts in by_name.items():
        ratios = [contrast.ratio.value for contrast in contrasts if contrast.ratio]
        if not ratios:
            words.append(f"{name} {rankings[0].verb} more{than and f' than {than}'}")
            continue
        factors = " to ".join(dict.fromkeys(_two_digits(extreme(ratios)) for extreme in (min, max)))
        lows, highs = zip(*(contrast.limits for contrast in contrasts), strict=True)
        end = "or more" if math.isinf(max(highs)) else f"to {_two_digits(max(highs))}"
        intervals = "95 % intervals" if len(contrasts) > 1 else "95 %"
        note = f"{intervals}: {_two_digits(min(lows))} {end}"
        words.append(rankings[0].factor(name, than, factors, note, is_first=not words))
    everything = [contrast for contrasts in by_name.values() for contrast in contrasts]
    chance = chance_words(max(contrast.adjusted or 0.0 for contrast in everything))
    return f"{listed(words)}, {'each ' if len(everything) > 1 else ''}{chance}"


def _two_digits(number: float) -> str:
    places = max(1 - math.floor(math.log10(number)), 0) if number > 0 else 0
    return f"{number:.{places}f}"


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
        and any(ABOVE_IDLE in of.rests_on and "marginal" in of.key for of in answer.quantities)
    ]
    tails = next(filter(None, map(_tail_line, about)), "")
    return [line for line in (_idle_line(about), tails) if line]


def _idle_line(answers: Sequence[Compared]) -> str:
    """The greatest significant difference in idle power of the first answer that has one. All pairs of all answers are
    judged together."""
    pairs = [(compared, contrast) for compared in answers for contrast in _idle_contrasts(compared)]
    together = judged([contrast for _, contrast in pairs])
    differing = [
        (pair[0], contrast) for pair, contrast in zip(pairs, together, strict=True) if contrast.differs
    ]
    if not differing:
        return ""
    compared = differing[0][0]
    power, contrast = max(
        ((difference(c.side_a, c.side_b), c) for of, c in differing if of is compared),
        key=lambda entry: entry[0].value,
    )
    more, less = (side_words(name, contrast.stratum, compared) for name in (contrast.a, contrast.b))
    a = compared.group(contrast.a, contrast.stratum)
    place = place_words(a.stratum, compared)
    length, count = (_number(a, key) for key in ("duration_s", "operations"))
    per_operation = ""
    if length and count:
        energy = rounded(power.value * length / count, None, "J", 2)
        per_operation = f", which is {energy} per operation at its pace"
    size = rounded(power.value, power.u, power.unit)
    return sentence_case(
        f"energy above idle leaves out idle power: {place}the board drew {size} more at idle with {more} than with "
        f"{less}{per_operation}."
    )


def _idle_contrasts(compared: Compared) -> Iterator[Contrast]:
    """Contrasts of idle power between any two groups of one stratum, with the greater side as `a`."""
    known = [(group, side) for group in compared.groups if (side := _mean(group, IDLE_POWER))]
    for (a, mean_a), (b, mean_b) in itertools.combinations(known, 2):
        of = a.runs[0].quantities.get(IDLE_POWER)
        if a.stratum != b.stratum or of is None:
            continue
        if sides := compared_sides(of, a, b, (mean_a, mean_b), compared.question):
            cannot = why_not_judged(*sides, too_short=False)
            yield Contrast(of, a.stratum, a.name, b.name, *sides, cannot=cannot).greater_first()


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
        place = place_words(group.stratum, compared).removesuffix(", ")
        cell = f"{side_words(group.name, group.stratum, compared)} {place}".strip()
        named.append(f"{cell} ({100 * share:.0f} %)")
    more = [f"{len(shares) - CELLS_MAX} more"] if len(shares) > CELLS_MAX else []
    return (
        f"Most of the energy above idle was drawn after the last operation with {listed([*named, *more])}. Such a tail "
        "weighs less in a longer run, so more operations can change the ranking."
    )


def _mean(group: Group, key: str) -> Side | None:
    of = group.runs[0].quantities.get(key)
    sides = sides_of([run.numbers for run in group.runs], of) if of else []
    return Side.mean(sides) if sides else None


def _number(group: Group, key: str) -> float | None:
    mean = _mean(group, key)
    return None if mean is None else mean.value


def conclusions(answers: Sequence[Compared]) -> list[str]:
    """Lines that answer the questions: the best group for each, then what it depends on; each line once."""
    winners = [line for answer in answers for line in winner_lines(answer)]
    return list(dict.fromkeys([*winners, *deciding_lines(answers)]))
