"""Conclusion of a comparison in a few lines: the medium or database with the least use, and what that depends on.

Where both costs of the work are asked for (costs.py), a line is about both if they have the same outcome.
"""

from collections.abc import Sequence
from typing import Final

from opjoule.results.comparison.compared_run import SIDE
from opjoule.results.comparison.contrasts import TOO_SHORT_RUNS, Compared
from opjoule.results.comparison.costs import costs_in, energy_words, is_above_idle
from opjoule.results.comparison.deciding import deciding_lines
from opjoule.results.comparison.outcome_lines import OWN_LINES_MAX, Outcome, outcome_lines, two_digits
from opjoule.results.comparison.ranking import Ranking, rankings
from opjoule.results.comparison.sentences import RATES, place_words, sentence
from opjoule.results.comparison.value_words import listed, noun, sentence_case

ON_ANYWAY: Final = "where the board is on anyway"
ON_FOR_THIS: Final = "where it is on only for this work"


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
            lines += outcome_lines([(ranking,) for ranking in ranked[of.key]], len(ranked[of.key]))
        elif of is both[0]:
            lines += _lines_of_both(*(ranked[cost.key] for cost in both))
    return lines


def _lines_of_both(above_idle: Sequence[Ranking], in_all: Sequence[Ranking]) -> list[str]:
    """Lines on both costs: those with the same outcome once, then where the best groups differ, then each cost."""
    of_stratum = {tuple(ranking.stratum.items()): ranking for ranking in in_all}
    pairs: list[Outcome] = []
    for ranking in above_idle:
        other = of_stratum.pop(tuple(ranking.stratum.items()), None)
        pairs.append((ranking, other) if other else (ranking,))
    pairs += [(ranking,) for ranking in of_stratum.values()]
    if len(pairs) <= OWN_LINES_MAX:
        return [line for pair in pairs for line in _lines_of_pairs([pair], 1)]
    return _lines_of_pairs(pairs, len(pairs))


def _lines_of_pairs(pairs: Sequence[Outcome], count: int) -> list[str]:
    same = [pair for pair in pairs if len(pair) > 1 and _is_same(*pair)]
    apart = [pair for pair in pairs if pair not in same]
    lines = outcome_lines(same, count)
    lines += _opposite_lines([pair for pair in apart if len(pair) > 1 and _is_opposite(*pair)])
    for is_first in (True, False):
        alone = [(of,) for pair in apart for of in pair if is_above_idle(of.quantity) is is_first]
        lines += outcome_lines(alone, count)
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


def _opposite_lines(pairs: Sequence[Outcome]) -> list[str]:
    """A line for each two winners that are not the same: "SQLite used the least ..., LevelDB ...", and the time."""
    by_winners: dict[tuple[str, str], list[Outcome]] = {}
    for pair in pairs:
        names = [" or ".join(of.words(name) for name in (of.best, *of.alike)) for of in pair]
        by_winners.setdefault((names[0], names[1]), []).append(pair)
    lines = []
    for (on_anyway, on_for_this), of_winners in by_winners.items():
        places = [place_words(pair[0].stratum, pair[0].compared).removesuffix(", ") for pair in of_winners]
        place = f"{listed(places)}, " if any(places) else ""
        what = energy_words(of_winners[0][0].quantity)
        text = f"{on_anyway} used the least {what} {ON_ANYWAY}, {on_for_this} {ON_FOR_THIS}"
        lines.append(sentence_case(f"{place}{text}{_time(of_winners)}."))
    return lines


def _time(pairs: Sequence[Outcome]) -> str:
    """How much longer the better one above idle took than the better one in all, after a colon; empty if unknown."""
    ratios = []
    for one, other in pairs:
        compared = one.compared
        for of in (of for of in compared.beside if of not in compared.told):
            means = [compared.group(name, one.stratum).mean(of).value or 0.0 for name in (one.best, other.best)]
            if all(means):
                ratios.append(means[1] / means[0] if of.unit in RATES else means[0] / means[1])
    if len(ratios) < len(pairs) or any(of.alike for pair in pairs for of in pair):
        return ""
    factors = " to ".join(dict.fromkeys(two_digits(extreme(ratios)) for extreme in (min, max)))
    return f": {pairs[0][0].words(pairs[0][0].best)} took {factors} times as long"
