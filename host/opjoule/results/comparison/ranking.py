"""Ranking of the groups of one stratum by one quantity: which is best, which is worse, and what is undecided."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from opjoule.energy.comparison import more_to_differ
from opjoule.results.comparison.cell import Group
from opjoule.results.comparison.contrasts import LIMIT, Compared, Contrast
from opjoule.results.comparison.sentences import RATES
from opjoule.runs.evaluation.quantities.definition import Definition

RANKED: Final = ("J", "J/operation", "s")
"""Units of quantities of which less is better; for `RATES` more is better."""
_ASIDE: Final = "single runs, or runs that are too short"
_ASIDE_ON_RIGS: Final = "single runs, runs that are too short, or fewer than two blocks in common on one rig"
_CIRCLE: Final = "each is significantly worse than another in the blocks that both have"


@dataclass(frozen=True)
class Undecided:
    """A group of which the data do not say whether it is as good as the best."""

    contrast: Contrast
    """Its contrast with the best, with the group itself as `a`."""
    more: int | None
    """Forecast: number of further blocks (or runs, or repeats) of each group that decide; None if too many."""


@dataclass(frozen=True)
class Ranking:
    """Groups of one stratum ranked by one quantity, the best first."""

    quantity: Definition
    groups: Mapping[str, Group]
    """Name -> group, the best mean first."""
    contrasts: tuple[Contrast, ...]
    """Those of the groups by the quantity."""
    best: str = ""
    """The group with the best mean of those that no contrast finds worse and that are not undecided; empty if nothing
    can be concluded."""
    alike: tuple[str, ...] = ()
    """Groups that do not differ significantly from the best and are near it: on this side of each worse group."""
    worse: tuple[Contrast, ...] = ()
    """One contrast for each worse group, with that group as `a` (for a rate: as `b`): with the best if it is worse than
    that, else with another."""
    undecided: tuple[Undecided, ...] = ()
    unjudged: tuple[str, ...] = ()
    """Groups about which nothing can be concluded."""
    why: str = ""
    """Reason why nothing can be concluded about the unjudged groups, or about any; empty if something can be."""
    is_rate: bool = False
    """Whether more of the quantity is better."""

    def words(self, name: str) -> str:
        """A group in words."""
        return self.groups[name].words

    @property
    def stratum(self) -> Mapping[str, str]:
        """The values of the axes that are alike in all its groups."""
        return next(iter(self.groups.values())).stratum

    @property
    def where(self) -> str:
        """Its stratum in words; empty without other axes."""
        return next(iter(self.groups.values())).where

    @property
    def winners(self) -> frozenset[str]:
        """The best and those alike; empty if no group is found worse."""
        return frozenset((self.best, *self.alike) if self.worse else ())

    @property
    def better_but_undecided(self) -> list[str]:
        """Undecided groups whose mean is better than that of the best."""
        return [of.contrast.a.name for of in self.undecided if _is_better(of.contrast, self.is_rate)]

    @property
    def others(self) -> list[tuple[str, str, Contrast]]:
        """Worse groups, each with the group that it is worse than and their contrast."""
        if self.is_rate:
            return [(contrast.b.name, contrast.a.name, contrast) for contrast in self.worse]
        return [(contrast.a.name, contrast.b.name, contrast) for contrast in self.worse]


def rankings(compared: Compared, quantity: Definition) -> Iterator[Ranking]:
    """One ranking for each stratum, in order; none if less of the quantity is neither better nor worse."""
    if quantity.unit not in (*RANKED, *RATES):
        return
    known = [group for group in compared.groups if group.side(quantity)]
    for stratum, members in itertools.groupby(known, lambda of: of.stratum):
        groups = list(members)
        if len(groups) > 1:
            contrasts = compared.contrasts_of(quantity, stratum)
            yield ranked(quantity, groups, contrasts, is_rate=quantity.unit in RATES)


def ranked(quantity: Definition, of: Sequence[Group], contrasts: Sequence[Contrast], *, is_rate: bool) -> Ranking:
    """Ranks groups of one stratum, each of which has a mean, by their contrasts.

    On several rigs a contrast is within common blocks, so its sides may be in another order than the means of all runs,
    and a group may have no contrast with the best.
    """
    by_mean = sorted(of, key=lambda group: float(group.side(quantity) or 0.0), reverse=is_rate)
    groups = {group.name: group for group in by_mean}
    empty = Ranking(quantity, groups, tuple(contrasts), is_rate=is_rate)
    pairs = {frozenset((of.a.name, of.b.name)): of.greater_first for of in contrasts if not of.cannot}
    lost: dict[str, dict[str, Contrast]] = {name: {} for pair in pairs for name in pair}
    for contrast in pairs.values():
        more, less = contrast.a.name, contrast.b.name
        better, worse = (more, less) if is_rate else (less, more)
        if contrast.differs:
            lost[worse][better] = contrast
    known = [name for name in groups if name in lost]
    left = [name for name in known if not lost[name]]
    if known and not left:
        return replace(empty, why=_CIRCLE)
    beaten = [name for name in known if lost[name]]
    best, alike, undecided = _best(is_rate, left, beaten, pairs)
    worse_by = [next(lost[name][by] for by in (best, *known) if by in lost[name]) for name in beaten]
    there = {best, *alike, *beaten, *(of.contrast.a.name for of in undecided)}
    aside = tuple(name for name in groups if name not in there)
    is_whole = len(contrasts) == math.comb(len(groups), 2) and not lost.keys() & {*aside}
    why = "" if not aside else _ASIDE if is_whole else _ASIDE_ON_RIGS
    return replace(
        empty,
        best=best,
        alike=tuple(alike),
        worse=tuple(worse_by),
        undecided=tuple(undecided),
        unjudged=aside,
        why=why,
    )


def _best(
    is_rate: bool, left: Sequence[str], beaten: Sequence[str], pairs: Mapping[frozenset[str], Contrast]
) -> tuple[str, list[str], list[Undecided]]:
    """The best of the groups that are not worse than another, those alike, and the undecided ones.

    The others are compared with the one of the best mean that is better than another group, because a group that is
    better than none may only be noisier. One that differs significantly if judged alone is undecided, and so is one
    whose interval reaches past the nearest worse group: it may be on either side of that.

    `left`: the groups that are not worse than another, the best mean first.
    """
    better = {name for pair in pairs.values() if pair.differs for name in (pair.a.name, pair.b.name)} - {*beaten}
    first = next((name for name in left if name in better), next(iter(left), ""))
    with_first = {name: _against(first, name, pairs) for name in (*left, *beaten)}
    nearest = [ratio for name in beaten if (ratio := _factor(with_first[name], is_rate)) > 1.0]
    limit = min(nearest, default=math.inf)
    alike, undecided = [], []
    for name in left:
        contrast = with_first[name]
        if contrast is None:
            continue
        if _is_near(contrast, is_rate, limit):
            alike.append(name)
        else:
            undecided.append(Undecided(contrast, _more(contrast, is_rate, limit)))
    best, *rest = [name for name in left if name == first or name in alike] or [""]
    return best, rest, undecided


def _against(first: str, name: str, pairs: Mapping[frozenset[str], Contrast]) -> Contrast | None:
    """A group's contrast with another, the group itself as `a`; None for the other itself, or if there is none."""
    contrast = pairs.get(frozenset((first, name)))
    if contrast is None or name == first:
        return None
    return contrast if contrast.a.name == name else contrast.turned


def _factor(contrast: Contrast | None, is_rate: bool) -> float:
    """Factor by which the group is worse than the best; 0 without a ratio."""
    if contrast is None or contrast.ratio is None:
        return 0.0
    return 1.0 / float(contrast.ratio) if is_rate else float(contrast.ratio)


def _is_better(contrast: Contrast, is_rate: bool) -> bool:
    return (float(contrast.side_a) > float(contrast.side_b)) is is_rate


def _is_near(contrast: Contrast, is_rate: bool, limit: float) -> bool:
    """Whether the group is on the best's side of the nearest worse group, and not different if judged alone."""
    if contrast.differs_alone:
        return False
    if contrast.ratio is None or math.isinf(limit):
        return True
    low, high = contrast.limits
    return low > 1.0 / limit if is_rate else high < limit


def _more(contrast: Contrast, is_rate: bool, limit: float) -> int | None:
    """Forecast of the further blocks that show the group to be worse than the best, or better than the worse group."""
    forecasts = [more_to_differ(contrast.side_a, contrast.side_b, LIMIT / contrast.left)]
    if _factor(contrast, is_rate) < limit < math.inf:
        far = contrast.side_b.scale(1.0 / limit if is_rate else limit)
        forecasts.append(more_to_differ(contrast.side_a, far, LIMIT))
    return min((more for more in forecasts if more is not None), default=None)
