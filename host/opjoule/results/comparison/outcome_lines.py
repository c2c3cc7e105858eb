"""Lines on the outcome of some strata: the best group with its mean, the factors of the others, what is undecided."""

import math
from collections.abc import Sequence
from typing import Final

from opjoule.base.units import counted
from opjoule.energy.comparison import MORE_MAX, POWER
from opjoule.results.comparison.contrasts import Contrast
from opjoule.results.comparison.costs import cost_words, energy_words
from opjoule.results.comparison.ranking import Ranking, Undecided
from opjoule.results.comparison.sentences import chance_words, place_words, ratio_words
from opjoule.results.comparison.value_words import CELLS_MAX, NAMED, listed, noun, quantity_words, sentence_case
from opjoule.results.rounding import quantity_text

OWN_LINES_MAX: Final = 2
"""Number of strata above which one line summarises all of them."""
WHETHER: Final = "whether the board is on anyway or only for this work"

Outcome = tuple[Ranking, ...]
"""Rankings of one stratum with one outcome, which are told in one line: by one quantity, or by both costs."""


def outcome_lines(outcomes: Sequence[Outcome], count: int) -> list[str]:
    """Lines on some strata of all `count`."""
    if count <= OWN_LINES_MAX:
        return [_own_line(outcome) for outcome in outcomes]
    return [_common_line(outcomes, count)] if outcomes else []


def _what(outcome: Outcome) -> str:
    of = outcome[0].quantity
    return quantity_words(of) if len(outcome) == 1 else energy_words(of)


def _own_line(outcome: Outcome) -> str:
    first, what = outcome[0], _what(outcome)
    place = place_words(first.stratum, first.compared)
    if not first.best:
        either = ", above idle or in all" if len(outcome) > 1 else ""
        return sentence_case(f"{place}nothing can be concluded on {what}{either}: {first.why}.")
    aside = listed([first.words(name) for name in first.unjudged])
    single = f" Nothing can be concluded on {aside}: {first.why}." if aside else ""
    best, *alike = (first.words(name) for name in (first.best, *first.alike))
    if first.worse:
        text = f"{_apart(first)}{best} {_superlative(first)} {what}{_details(outcome, alike)}."
    elif alike:
        text = f"no difference in {what} was found between {listed([best, *alike])}{_sizes(outcome)}."
    else:
        text = f"it is undecided which {noun(first.compared.question.by)} {_superlative(first)} {what}."
    return sentence_case(f"{place}{text}{single}{_undecided([outcome])}")


def _apart(ranking: Ranking) -> str:
    """The undecided groups that may be better than the best, before its name."""
    names = [ranking.words(name) for name in ranking.better_but_undecided]
    return f"apart from {listed(names)}, " if names else ""


def _superlative(ranking: Ranking) -> str:
    """Verb phrase for the best group."""
    if ranking.is_rate:
        return "had the highest"
    return "used the least" if _verb(ranking) == "used" else "had the lowest"


def _verb(ranking: Ranking) -> str:
    return "used" if ranking.quantity.unit.startswith("J") else "had"


def _details(outcome: Outcome, alike: Sequence[str]) -> str:
    """Mean of the best group, the groups alike and the factors of the worse ones."""
    if len(outcome) == 1:
        mean = _mean_words(outcome[0])
        return f"{f', {mean}' if mean else ''}{_not_worse(alike)}: {_factors(outcome[0])}"
    parts = []
    for ranking in outcome:
        mean = _mean_words(ranking)
        parts.append(f"{cost_words(ranking.quantity)}{f' ({mean})' if mean else ''}, {_factors(ranking)}")
    return f", {WHETHER}{_not_worse(alike)}: {'; '.join(parts)}"


def _not_worse(alike: Sequence[str]) -> str:
    """The groups that were not found to differ from the best, after a comma; empty if there are none."""
    return f", with no difference found from {listed(alike)}" if alike else ""


def _mean_words(ranking: Ranking) -> str:
    """The mean of the best group; empty if a factor rests on some of its blocks only."""
    best = ranking.compared.group(ranking.best, ranking.stratum)
    sides = [contrast.side_a if ranking.is_rate else contrast.side_b for contrast in ranking.worse]
    if any(not math.isclose(float(side), float(best.means[ranking.quantity.key])) for side in sides):
        return ""
    return quantity_text(best.mean(ranking.quantity))


def _sizes(outcome: Outcome) -> str:
    """The ratio of groups without a significant difference, for each cost; of several groups the greatest."""
    names = {outcome[0].best, *outcome[0].alike}
    parts = []
    for ranking in outcome:
        of_stratum = ranking.compared.contrasts_of(ranking.quantity, ranking.stratum)
        pairs = [of.greater_first for of in of_stratum if of.ratio and {of.a, of.b} <= names]
        greatest = max(pairs, key=lambda pair: float(pair.ratio) if pair.ratio else 0.0, default=None)
        if greatest is None:
            return ""
        which = f"{cost_words(ranking.quantity)} " if len(outcome) > 1 else ""
        sides = f"{ranking.words(greatest.a)} over {ranking.words(greatest.b)} "
        parts.append(f"{which}{sides if len(names) > 2 else ''}{ratio_words(greatest)}")
    return f" ({'greatest ' if len(names) > 2 else ''}ratio {'; '.join(parts)})"


def _factor(ranking: Ranking, name: str, than: str, factor: str, note: str, *, is_first: bool) -> str:
    """The factor by which a group is worse: "RocksDB used 1.5 times as much (95 %: 1.2 to 1.9)".

    `than`: the group that it is worse than, in words; empty for the best.
    """
    if ranking.is_rate:
        return f"{f'for {than} ' if than else ''}{factor} times that of {name} ({note})"
    times = f"{_verb(ranking)} {factor} times as much" if is_first else f"{factor} times"
    as_much = f"{' as' if is_first else ' as much as'} {than}" if than else ""
    return f"{name} {times}{as_much} ({note})"


def _than(ranking: Ranking, better: str) -> str:
    return "" if better == ranking.best else ranking.words(better)


def _factors(ranking: Ranking) -> str:
    parts: list[str] = []
    for worse, better, contrast in ranking.others:
        name, than, chance = ranking.words(worse), _than(ranking, better), chance_words(contrast)
        if contrast.ratio is None:
            parts.append(f"{name} {_verb(ranking)} more{than and f' than {than}'} ({chance})")
            continue
        value, _, interval = ratio_words(contrast).partition(", ")
        parts.append(_factor(ranking, name, than, value, f"{interval}; {chance}", is_first=not parts))
    return listed(parts)


def _undecided(outcomes: Sequence[Outcome]) -> str:
    """Sentences on the undecided groups of some strata, each with its ratio and interval, and a forecast."""
    by_cost: dict[str, list[tuple[Ranking, Undecided]]] = {}
    for outcome in outcomes:
        for ranking in outcome:
            which = f" {cost_words(ranking.quantity)}" if len(outcome) > 1 else ""
            by_cost.setdefault(which, []).extend((ranking, of) for of in ranking.undecided)
    several = len(outcomes) > 1
    words = [
        f" Undecided{which} {'is' if len(groups) == 1 else 'are'} {_undecided_words(groups, several=several)}."
        for which, groups in by_cost.items()
        if groups
    ]
    return "".join([*words, _forecast([of for groups in by_cost.values() for of in groups])])


def _undecided_words(groups: Sequence[tuple[Ranking, Undecided]], *, several: bool) -> str:
    words = []
    for ranking, of in groups[:CELLS_MAX]:
        place = place_words(ranking.stratum, ranking.compared).removesuffix(", ") if several else ""
        name, best = ranking.words(of.contrast.a), ranking.words(of.contrast.b)
        size, chance = "", chance_words(of.contrast)
        if of.contrast.ratio:
            value, _, interval = ratio_words(of.contrast).partition(", ")
            size, chance = f"{value} times that of ", f"{interval}; {chance}"
        words.append(f"{name}{place and f' {place}'}, {size or 'beside '}{best} ({chance})")
    more = len(groups) - CELLS_MAX
    return "; ".join([*words, *([f"{more} more"] if more > 0 else [])])


def _forecast(groups: Sequence[tuple[Ranking, Undecided]]) -> str:
    """Sentence with the number of further blocks that decide; empty if nothing is undecided."""
    if not groups:
        return ""
    counts = [of.more for _, of in groups]
    more = MORE_MAX if None in counts else max(count for count in counts if count is not None)
    units = {_repeated(ranking, of.contrast) for ranking, of in groups}
    unit = units.pop() if len(units) == 1 else "run"
    cases = f"in {10 * POWER:.0f} of 10 cases"
    if None in counts:
        return f" Forecast from the present spread: {more:,} more {unit}s would not decide it {cases}."
    each = " each" if len(groups) > 1 else " it"
    return f" Forecast from the present spread: {counted(max(more, 1), f'more {unit}')} would decide{each} {cases}."


def _repeated(ranking: Ranking, contrast: Contrast) -> str:
    """What there must be more of: blocks of a campaign, separate runs, or repeats of a run."""
    runs = ranking.compared.group(contrast.a, ranking.stratum).runs
    if len(runs) == 1:
        return "repeat"
    return "block" if runs[0].index else "run"


def _common_line(outcomes: Sequence[Outcome], count: int) -> str:
    """Strata of one outcome in one sentence, those with the same best group together."""
    what, both = _what(outcomes[0]), len(outcomes[0]) > 1
    whether = f", {WHETHER}" if both else ""
    alike: dict[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str, str], list[Outcome]] = {}
    for outcome in outcomes:
        ranking = outcome[0]
        names = (ranking.best, *sorted(ranking.alike))
        best = tuple(ranking.words(name) for name in names if name)
        aside = tuple(sorted(ranking.words(name) for name in ranking.unjudged))
        same = () if ranking.worse else tuple(sorted(best))
        key = (best if ranking.worse else (), same, aside, ranking.why, _apart(ranking))
        alike.setdefault(key, []).append(outcome)
    parts: list[str] = []
    for (best, same, aside, why, apart), of_key in sorted(
        alike.items(), key=lambda item: (not item[0][0], -len(item[1]))
    ):
        firsts = [outcome[0] for outcome in of_key]
        where = _places(firsts, count)
        nowhere = where.replace("on every ", "on any ").replace("in all ", "in any of ")
        about = "" if parts else f" in {what}"
        left = f", {listed(aside)} left aside ({why})" if aside else ""
        if best:
            phrase = f"{_superlative(firsts[0])} {what}" if not parts else "did so"
            head = f"{apart}{best[0]} {phrase} {where}{'' if parts else whether}{_not_worse(best[1:])}{left}"
            parts.append(f"{head}: {_spans_of(of_key)}")
        elif len(same) > 1:
            neither = ", neither above idle nor in all" if both and not parts else ""
            parts.append(f"no difference{about} was found between {listed(same)} {nowhere}{left}{neither}")
        elif same:
            best_words = "is the best" if parts else f"{_superlative(firsts[0])} {what}"
            parts.append(f"it is undecided {where} which {noun(firsts[0].compared.question.by)} {best_words}")
        else:
            parts.append(f"nothing can be concluded{about.replace(' in ', ' on ')} {nowhere} ({why})")
    return sentence_case(f"{'; '.join(parts)}.{_undecided(outcomes)}")


def _places(found: Sequence[Ranking], count: int) -> str:
    axes = tuple(found[0].stratum)
    if len(found) == count:
        return f"on every {noun(axes)}" if len(axes) == 1 and axes[0] in NAMED else f"in all {count} cases"
    words = [place_words(ranking.stratum, ranking.compared).removesuffix(", ") for ranking in found]
    return listed(words) if len(words) <= CELLS_MAX else f"in {len(found)} of {count} cases"


def _spans_of(outcomes: Sequence[Outcome]) -> str:
    """Factors by which the others are worse, for each cost."""
    columns = list(zip(*outcomes, strict=True))
    if len(columns) == 1:
        return _spans(columns[0])
    return "; ".join(f"{cost_words(column[0].quantity)}, {_spans(column)}" for column in columns)


def _spans(found: Sequence[Ranking]) -> str:
    """Factors by which the others are worse: their range over all strata, and the outermost ends of the intervals."""
    by_name: dict[tuple[str, str], list[Contrast]] = {}
    for ranking in found:
        for worse, better, contrast in ranking.others:
            names = ranking.words(worse), _than(ranking, better)
            by_name.setdefault(names, []).append(contrast)
    words: list[str] = []
    for (name, than), contrasts in by_name.items():
        ratios = [float(contrast.ratio) for contrast in contrasts if contrast.ratio]
        if not ratios:
            words.append(f"{name} {_verb(found[0])} more{than and f' than {than}'}")
            continue
        factors = " to ".join(dict.fromkeys(two_digits(extreme(ratios)) for extreme in (min, max)))
        lows, highs = zip(*(contrast.limits for contrast in contrasts), strict=True)
        end = "or more" if math.isinf(max(highs)) else f"to {two_digits(max(highs))}"
        intervals = "95 % intervals" if len(contrasts) > 1 else "95 %"
        note = f"{intervals}: {two_digits(min(lows))} {end}"
        words.append(_factor(found[0], name, than, factors, note, is_first=not words))
    everything = [contrast for contrasts in by_name.values() for contrast in contrasts]
    chance = chance_words(max(everything, key=lambda contrast: contrast.adjusted or 0.0))
    return f"{listed(words)}, {'each ' if len(everything) > 1 else ''}{chance}"


def two_digits(number: float) -> str:
    """A factor, rounded to two digits."""
    places = max(1 - math.floor(math.log10(number)), 0) if number > 0 else 0
    return f"{number:.{places}f}"
