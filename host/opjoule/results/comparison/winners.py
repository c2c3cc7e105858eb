"""Conclusion of a comparison in a few lines: the best group with its mean, the factors of the others, what is
undecided, and what that depends on.

Where both costs of the work are asked for, a line is about both if they have the same outcome.
"""

import math
from collections.abc import Sequence
from typing import Final

from opjoule.base.units import counted
from opjoule.energy.comparison import MORE_MAX, POWER
from opjoule.results.comparison.compared_run import SIDE, ComparedRun, cost_words, costs_in, energy_words, is_above_idle
from opjoule.results.comparison.contrasts import TOO_SHORT_RUNS, Compared, Contrast
from opjoule.results.comparison.ranking import Ranking, Undecided, rankings
from opjoule.results.comparison.sentences import (
    RATES,
    deciding_lines,
    factor_words,
    judged_words,
    ratio_words,
    sentence,
)
from opjoule.results.comparison.value_words import CELLS_MAX, NAMED, listed, noun, quantity_words, sentence_case
from opjoule.results.rounding import quantity_text
from opjoule.runs.evaluation.quantities.definition import Definition

ON_ANYWAY: Final = "where the board is on anyway"
ON_FOR_THIS: Final = "where it is on only for this work"
OWN_LINES_MAX: Final = 2
"""Number of strata above which one line summarises all of them."""
NEAR_ONE: Final = 0.5
"""Difference from 1 below which a factor's digits are those of this difference."""
PLACES_MAX: Final = 4
"""Most decimal places of a factor."""
WHETHER: Final = "whether the board is on anyway or only for this work"

Outcome = tuple[Ranking, ...]
"""Rankings of one stratum with one outcome, which are told in one line: by one quantity, or by both costs."""


def conclusions(answers: Sequence[Compared]) -> list[str]:
    """Lines that answer the questions: the best group for each, then what it depends on; each line once."""
    winners = [line for answer in answers for line in winner_lines(answer)]
    return list(dict.fromkeys([*winners, *deciding_lines(answers)]))


def winner_lines(compared: Compared) -> list[str]:
    """The best group, with factor and interval: a line for each stratum, or one for all if there are many."""
    if compared.question.by == (SIDE,):
        return [sentence(contrast, compared) for contrast in compared.answering]
    if compared.judged == 0:
        nobody = f"No {noun(compared.question.by)} is named best"
        if any(contrast.cannot == TOO_SHORT_RUNS for contrast in compared.contrasts):
            return [f"{nobody}: the runs are too short for a conclusion."]
        why = "these are single runs, and how much runs differ is not known"
        return [f"{nobody}: {why}. Measure more of them (--repeats)."]
    both = costs_in(compared.quantities)
    ranked = {of.key: list(rankings(compared, of)) for of in compared.quantities}
    lines: list[str] = []
    for of in compared.quantities:
        if compared.question.against or not ranked[of.key]:
            lines += [sentence(contrast, compared) for contrast in compared.contrasts_of(of)]
        elif of not in both:
            lines += _outcome_lines([(ranking,) for ranking in ranked[of.key]], len(ranked[of.key]))
        elif of is both[0]:
            time = [of for of in compared.beside if of not in compared.told]
            above_idle, in_all = (ranked[cost.key] for cost in both)
            lines += _lines_of_both(above_idle, in_all, time)
    return lines


def _lines_of_both(above_idle: Sequence[Ranking], in_all: Sequence[Ranking], time: Sequence[Definition]) -> list[str]:
    """Lines on both costs: those with the same outcome once, then where the best groups differ, then each cost.

    `time`: the quantity that tells the time of the work, if it is known.
    """
    of_stratum = {tuple(ranking.stratum.items()): ranking for ranking in in_all}
    pairs: list[Outcome] = []
    for ranking in above_idle:
        other = of_stratum.pop(tuple(ranking.stratum.items()), None)
        pairs.append((ranking, other) if other else (ranking,))
    pairs += [(ranking,) for ranking in of_stratum.values()]
    if len(pairs) <= OWN_LINES_MAX:
        return [line for pair in pairs for line in _lines_of_pairs([pair], 1, time)]
    return _lines_of_pairs(pairs, len(pairs), time)


def _lines_of_pairs(pairs: Sequence[Outcome], count: int, time: Sequence[Definition]) -> list[str]:
    same = [pair for pair in pairs if len(pair) > 1 and _is_same(*pair)]
    apart = [pair for pair in pairs if pair not in same]
    lines = _outcome_lines(same, count)
    lines += _opposite_lines([pair for pair in apart if len(pair) > 1 and _is_opposite(*pair)], time)
    for is_first in (True, False):
        alone = [(of,) for pair in apart for of in pair if is_above_idle(of.quantity) is is_first]
        lines += _outcome_lines(alone, count)
    return lines


def _is_same(one: Ranking, other: Ranking) -> bool:
    """Whether two rankings name the same best group, or both none."""

    def named(of: Ranking) -> tuple[object, ...]:
        best = of.best if of.worse else ""
        return best, frozenset((of.best, *of.alike)), frozenset(of.better_but_undecided), of.unjudged, of.why

    return named(one) == named(other)


def _is_opposite(one: Ranking, other: Ranking) -> bool:
    """Whether both rankings name winners, no group wins by both, and no undecided one may be better."""
    unsure = one.better_but_undecided or other.better_but_undecided
    return bool(one.winners and other.winners) and not (unsure or one.winners & other.winners)


def _opposite_lines(pairs: Sequence[Outcome], time: Sequence[Definition]) -> list[str]:
    """A line for each two winners that are not the same: "SQLite used the least ..., LevelDB ...", and the time."""
    by_winners: dict[tuple[str, str], list[Outcome]] = {}
    for pair in pairs:
        names = [" or ".join(of.words(name) for name in (of.best, *of.alike)) for of in pair]
        by_winners.setdefault((names[0], names[1]), []).append(pair)
    lines = []
    for (on_anyway, on_for_this), of_winners in by_winners.items():
        places = [pair[0].where for pair in of_winners]
        place = f"{listed(places)}, " if any(places) else ""
        what = energy_words(of_winners[0][0].quantity)
        text = f"{on_anyway} used the least {what} {ON_ANYWAY}, {on_for_this} {ON_FOR_THIS}"
        lines.append(sentence_case(f"{place}{text}{_time(of_winners, time)}."))
    return lines


def _time(pairs: Sequence[Outcome], time: Sequence[Definition]) -> str:
    """How much longer the better one above idle took than the better one in all, after a colon; empty if unknown."""
    ratios = []
    for one, other in pairs:
        for of in time:
            means = [one.groups[name].mean(of).value or 0.0 for name in (one.best, other.best)]
            if all(means):
                ratios.append(means[1] / means[0] if of.unit in RATES else means[0] / means[1])
    if len(ratios) < len(pairs) or any(of.alike for pair in pairs for of in pair):
        return ""
    return f": {pairs[0][0].words(pairs[0][0].best)} took {_range(ratios)} times as long"


def _outcome_lines(outcomes: Sequence[Outcome], count: int) -> list[str]:
    """Lines on some strata of all `count`: one for each, or if there are many, one for all, with a sentence for each
    outcome."""
    if count <= OWN_LINES_MAX or not outcomes:
        return [_sentence([outcome], count) for outcome in outcomes]
    alike: dict[object, list[Outcome]] = {}
    for outcome in outcomes:
        alike.setdefault(_told(outcome[0]), []).append(outcome)
    in_order = sorted(alike.values(), key=lambda of: (not of[0][0].worse, -len(of)))
    return [" ".join(_sentence(of, count) for of in in_order)]


def _told(of: Ranking) -> tuple[object, ...]:
    """What a sentence says of a ranking, without its numbers."""
    names = [of.words(name) for name in (of.best, *sorted(of.alike)) if name]
    aside = sorted(of.words(name) for name in of.unjudged)
    return bool(of.worse), *(names if of.worse else sorted(names)), *aside, of.why, _apart(of)


def _what(outcome: Outcome) -> str:
    of = outcome[0].quantity
    return quantity_words(of) if len(outcome) == 1 else energy_words(of)


def _sentence(alike: Sequence[Outcome], count: int) -> str:
    """The sentence on the strata of one outcome, and those on what is left aside or undecided there."""
    first, what = alike[0][0], _what(alike[0])
    where = _places([outcome[0] for outcome in alike], count)
    place = where and f"{where}, "
    if not first.best:
        either = ", above idle or in all" if len(alike[0]) > 1 else ""
        return sentence_case(f"{place}nothing can be concluded on {what}{either}: {first.why}.")
    aside = listed([first.words(name) for name in first.unjudged])
    single = f" Nothing can be concluded on {aside}: {first.why}." if aside else ""
    best, *same = (first.words(name) for name in (first.best, *first.alike))
    if first.worse:
        text = f"{_apart(first)}{best} {_superlative(first)} {what}{_details(alike, same)}."
    elif same:
        text = f"no difference in {what} was found between {listed([best, *same])}{_sizes(alike)}."
    else:
        text = f"it is undecided which {noun(first.groups[first.best].by)} {_superlative(first)} {what}."
    return sentence_case(f"{place}{text}{single}{_undecided(alike)}")


def _places(found: Sequence[Ranking], count: int) -> str:
    axes = tuple(found[0].stratum)
    if len(found) == count > 1:
        return f"on every {noun(axes)}" if len(axes) == 1 and axes[0] in NAMED else f"in all {count} cases"
    words = [ranking.where for ranking in found]
    return listed(words) if len(words) <= CELLS_MAX else f"in {len(found)} of {count} cases"


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


def _details(alike: Sequence[Outcome], same: Sequence[str]) -> str:
    """Mean of the best group in a single stratum, the groups alike and the factors of the worse ones, for each cost."""
    columns = [*zip(*alike, strict=True)]
    means = [_mean_words(column[0]) if len(column) == 1 else "" for column in columns]
    factors = [_factors(column[0]) if len(column) == 1 else _spans(column) for column in columns]
    if len(columns) == 1:
        return f"{f', {means[0]}' if means[0] else ''}{_not_worse(same)}: {factors[0]}"
    parts = [
        f"{cost_words(column[0].quantity)}{f' ({mean})' if mean else ''}, {words}"
        for column, mean, words in zip(columns, means, factors, strict=True)
    ]
    return f", {WHETHER}{_not_worse(same)}: {'; '.join(parts)}"


def _not_worse(alike: Sequence[str]) -> str:
    """The groups that were not found to differ from the best, after a comma; empty if there are none."""
    return f", with no difference found from {listed(alike)}" if alike else ""


def _mean_words(ranking: Ranking) -> str:
    """The mean of the best group; empty if a factor rests on some of its blocks only."""
    best = ranking.groups[ranking.best]
    sides = [contrast.side_a if ranking.is_rate else contrast.side_b for contrast in ranking.worse]
    if any(not math.isclose(float(side), float(best.mean(ranking.quantity))) for side in sides):
        return ""
    return quantity_text(best.mean(ranking.quantity))


def _sizes(alike: Sequence[Outcome]) -> str:
    """The ratio of groups without a significant difference in one stratum, for each cost; of several groups the
    greatest."""
    outcome = alike[0]
    if len(alike) > 1:
        return ", neither above idle nor in all" if len(outcome) > 1 else ""
    names = {outcome[0].best, *outcome[0].alike}
    parts = []
    for ranking in outcome:
        pairs = [of.greater_first for of in ranking.contrasts if of.ratio and {of.a.name, of.b.name} <= names]
        greatest = max(pairs, key=lambda pair: float(pair.ratio) if pair.ratio else 0.0, default=None)
        if greatest is None:
            return ""
        which = f"{cost_words(ranking.quantity)} " if len(outcome) > 1 else ""
        sides = f"{greatest.a.words} over {greatest.b.words} "
        parts.append(f"{which}{sides if len(names) > 2 else ''}{ratio_words(greatest)}")
    return f" ({'greatest ' if len(names) > 2 else ''}ratio {'; '.join(parts)})"


def _worse(found: Sequence[Ranking]) -> dict[tuple[str, str], list[Contrast]]:
    """Worse group and the one that it is worse than, in words (the latter empty for the best) -> their contrasts."""
    by_name: dict[tuple[str, str], list[Contrast]] = {}
    for ranking in found:
        for worse, better, contrast in ranking.others:
            names = ranking.words(worse), "" if better == ranking.best else ranking.words(better)
            by_name.setdefault(names, []).append(contrast)
    return by_name


def _factor(ranking: Ranking, names: tuple[str, str], factor: str, note: str, *, is_first: bool) -> str:
    """The factor by which a group is worse: "RocksDB used 1.5 times as much (95 %: 1.2 to 1.9)"; empty without one."""
    name, than = names
    noted = note and f" ({note})"
    if not factor:
        return f"{name} {_verb(ranking)} more{than and f' than {than}'}{noted}"
    if ranking.is_rate:
        return f"{than and f'for {than} '}{factor} times that of {name}{noted}"
    times = f"{_verb(ranking)} {factor} times as much" if is_first else f"{factor} times"
    as_much = f"{' as' if is_first else ' as much as'} {than}" if than else ""
    return f"{name} {times}{as_much}{noted}"


def _factors(ranking: Ranking) -> str:
    """Factors by which the others are worse, each with its interval and p."""
    parts: list[str] = []
    for names, contrasts in _worse([ranking]).items():
        for contrast in contrasts:
            value, interval = factor_words(contrast)
            note = "; ".join(filter(None, (interval, judged_words(contrast))))
            parts.append(_factor(ranking, names, value, note, is_first=not parts))
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
        place = ranking.where if several else ""
        name, best = of.contrast.a.words, of.contrast.b.words
        value, interval = factor_words(of.contrast)
        note = "; ".join(filter(None, (interval, judged_words(of.contrast))))
        size = f"{value} times that of" if value else "beside"
        words.append(f"{name}{place and f' {place}'}, {size} {best} ({note})")
    more = len(groups) - CELLS_MAX
    return "; ".join([*words, *([f"{more} more"] if more > 0 else [])])


def _forecast(groups: Sequence[tuple[Ranking, Undecided]]) -> str:
    """Sentence with the number of further blocks that decide; empty if nothing is undecided."""
    if not groups:
        return ""
    counts = [of.more for _, of in groups]
    more = MORE_MAX if None in counts else max(count for count in counts if count is not None)
    units = {_repeated(of.contrast.a.runs) for _, of in groups}
    unit = units.pop() if len(units) == 1 else "run"
    cases = f"in {10 * POWER:.0f} of 10 cases"
    if None in counts:
        return f" Forecast from the present spread: {more:,} more {unit}s would not decide it {cases}."
    each = " each" if len(groups) > 1 else " it"
    return f" Forecast from the present spread: {counted(max(more, 1), f'more {unit}')} would decide{each} {cases}."


def _repeated(runs: Sequence[ComparedRun]) -> str:
    """What there must be more of: blocks of a campaign, separate runs, or repeats of a run."""
    if len(runs) == 1:
        return "repeat"
    return "block" if runs[0].index else "run"


def _spans(found: Sequence[Ranking]) -> str:
    """Factors by which the others are worse: their range over all strata, and the outermost ends of the intervals."""
    words: list[str] = []
    by_name = _worse(found)
    for names, contrasts in by_name.items():
        with_ratio = [contrast for contrast in contrasts if contrast.ratio]
        ratios = [float(contrast.ratio) for contrast in with_ratio if contrast.ratio]
        note = ""
        if ratios:
            lows, highs = zip(*(contrast.limits for contrast in with_ratio), strict=True)
            end = "or more" if math.isinf(max(highs)) else f"to {_two_digits(max(highs))}"
            intervals = "95 % intervals" if len(with_ratio) > 1 else "95 %"
            note = f"{intervals}: {_two_digits(min(lows))} {end}"
        words.append(_factor(found[0], names, (ratios and _range(ratios)) or "", note, is_first=not words))
    everything = [contrast for contrasts in by_name.values() for contrast in contrasts]
    chance = judged_words(max(everything, key=lambda contrast: contrast.adjusted or 0.0))
    return f"{listed(words)}, {'each ' if len(everything) > 1 else ''}{chance}"


def _range(factors: Sequence[float]) -> str:
    """The least and the greatest factor; one if they are alike."""
    return " to ".join(dict.fromkeys(_two_digits(extreme(factors)) for extreme in (min, max)))


def _two_digits(factor: float) -> str:
    """A factor with two digits; if it is near 1, its difference from 1 has two, as 1.034."""
    size = abs(factor - 1) if abs(factor - 1) < NEAR_ONE else factor
    places = max(1 - math.floor(math.log10(size)), 0) if size > 0 else 1
    return f"{factor:.{min(places, PLACES_MAX)}f}"
