"""Notices of a run that was not steady: repeats that disagree, unequal writes, and a busy computer.

A few repeats give a test little power, and a notice in every run would not be read. Each rule therefore has two
conditions: the p-value is below ALPHA, and the difference is large enough to matter. All rules but that of the bytes
assume normal scatter. Of those on the repeats' energy, the first that applies is stated.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

import numpy as np

from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Quantity
from opjoule.energy.budget import Budget
from opjoule.energy.operations.board_files import ComputerLoad
from opjoule.energy.repeats import chi_square_probability, student_probability
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.runs.evaluation.quantities.definition import Definition, Figures, Repeat
from opjoule.runs.evaluation.quantities.operations import operations
from opjoule.runs.record.phases import Phase

ALPHA: Final = 0.01
"""Probability with which a rule may name repeats that differ only by chance."""
MATERIAL: Final = 0.05
"""Least trend, distance of an outlier, or distance of two groups, relative to the mean."""
SPREAD_MIN: Final = 0.1
"""Least relative standard deviation of repeats that is stated. On a quiet computer repeats scatter by 1 to 6 %."""
BYTES_SPREAD_MIN: Final = 0.2
"""Least relative standard deviation of the bytes that repeats write which is stated."""
TREND_REPEATS: Final = 4
"""Fewest repeats with a trend: three lie on a line too easily."""
OUTLIER_REPEATS: Final = 4
"""Fewest repeats of which one may be called an outlier."""
GROUPS_REPEATS: Final = 6
"""Fewest repeats that may be called two groups."""
GROUP_MIN: Final = 2
"""Fewest repeats of a group; one alone is an outlier."""
DRAWS: Final = 9999
"""Number of normal samples with which two groups are compared."""
BUSY_SHARE: Final = 0.1
"""Share of the computer's processors taken by other programs that is stated. On two processors it is the load of 0.2
above which Go's benchmarks wait (golang.org/x/benchmarks, cmd/bench/idle_linux.go)."""
NOT_SHARED: Final = ("quantisation", "alignment", "loss", "baseline")
"""Parts of an energy's budget that each repeat has of its own."""


@dataclass(frozen=True)
class Repeated:
    """One figure in each repeat, or in each run of a cell."""

    name: str
    values: Sequence[float]
    own_u: Sequence[float]
    """Standard uncertainties from sources that repeats do not share."""
    noun: str = "repeat"

    @property
    def mean(self) -> float:
        """Mean over the repeats."""
        return fmean(self.values)

    @property
    def off(self) -> str:
        """Deviation of each repeat from the mean, in words."""
        away = (f"{100 * (value / self.mean - 1):+.0f}" for value in self.values)
        return f"{', '.join(away)} %".replace("-", "\N{MINUS SIGN}")


def stability_notices(headline: Definition, repeats: Sequence[Repeat], figures: Sequence[Figures]) -> list[Notice]:
    """Notices of repeats that disagree in their energy or in their writes; `figures`: those of each repeat, by path."""
    repeated = _headlines(headline, repeats, figures)
    return (repeat_notices(repeated) if repeated else []) + _bytes_notices(repeats)


def busy_notices(load: ComputerLoad | None, runs: Sequence[Phase]) -> list[Notice]:
    """One notice if other programs took a considerable share of the computer's processors during the repeats' work.

    `load`: of the computer behind a simulated board; None for a real board.
    """
    if load is None:
        return []
    shares = {run.repeat: load.others_share(run.start_board_ns, run.end_board_ns) for run in runs}
    if max(shares.values(), default=0.0) < BUSY_SHARE:
        return []
    taken = ", ".join(f"{100 * share:.0f}" for share in shares.values())
    which = f"repeats {min(shares)} to {max(shares)}" if len(shares) > 1 else "the run"
    line = (
        f"other programs took {taken} % of this computer's processors in {which}. The simulated board's programs share "
        "them, and may have run slower or written at other moments"
    )
    return [Notice(NoticeKind.BUSY, line, "measure when nothing else runs on this computer")]


def repeat_notices(repeated: Repeated) -> list[Notice]:
    """At most one notice of the scatter of the repeats."""
    said = scatter(repeated)
    return [Notice(NoticeKind.UNSTEADY, said)] if said else []


def scatter(repeated: Repeated) -> str:
    """The trend, the outlier, the two groups or the scatter beyond what the values explain; empty without any."""
    if len(repeated.values) < 2 or repeated.mean <= 0.0:
        return ""
    rules = (_trend, _outlier, _groups, _spread)
    return next(filter(None, (rule(repeated) for rule in rules)), "")


def bytes_notices(written: Sequence[float], lump: float) -> list[Notice]:
    """One notice if repeats of the same work wrote unequal amounts.

    Bytes go to a medium in lumps. If these come by chance, the variance of their sum is its mean times the mean lump,
    each weighted by its size (a compound Poisson process).

    Args:
        written: bytes that each repeat wrote in run and settle, in proportion to equal numbers of operations.
        lump: mean lump [B].
    """
    if not unequal(written):
        return []
    mean = fmean(written)
    chi_square = sum((each - mean) ** 2 for each in written) / (mean * lump)
    if chi_square_probability(chi_square, len(written) - 1) >= ALPHA:
        return []
    amounts = ", ".join(f"{each / 1e6:.3g}" for each in written)
    line = (
        f"for equal numbers of operations the repeats wrote {amounts} MB to the medium, more unequal than by chance; "
        "the energy of each contains what it wrote"
    )
    return [Notice(NoticeKind.UNSTEADY, line)]


def unequal(written: Sequence[float]) -> bool:
    """Whether the amounts scatter by BYTES_SPREAD_MIN or more."""
    return len(written) > 1 and stdev(written) >= BYTES_SPREAD_MIN * fmean(written) > 0.0


def _headlines(headline: Definition, repeats: Sequence[Repeat], figures: Sequence[Figures]) -> Repeated | None:
    """The headline of each repeat; None if one lacks it."""
    values, own_u = [], []
    for repeat, of_repeat in zip(repeats, figures, strict=True):
        figure, marginal = of_repeat.get(headline.key), repeat.energy.marginal
        if not figure or figure.value is None or marginal is None or not marginal.energy.value:
            return None
        values.append(figure.value)
        own_u.append(_own_u_j(marginal.budget) * abs(figure.value / marginal.energy.value))
    return Repeated(headline.label, values, own_u)


def _own_u_j(budget: Budget) -> float:
    return math.hypot(*(budget.parts.get(name, 0.0) for name in NOT_SHARED))


def _bytes_notices(repeats: Sequence[Repeat]) -> list[Notice]:
    """Notices of the bytes that the repeats wrote, by the board's counter."""
    lumps: list[Float64Array] = []
    for repeat in repeats:
        if isinstance(repeat.samples, Quantity):
            return []
        samples = repeat.samples
        counted = samples.table.column("device_written_bytes").to_numpy().astype(np.float64)
        lumps.append(np.diff(counted[samples.first : samples.settled + 1]))
    counts = [operations(repeat).value or 1.0 for repeat in repeats]
    written = [float(of.sum()) * fmean(counts) / count for of, count in zip(lumps, counts, strict=True)]
    every = np.concatenate(lumps)
    return bytes_notices(written, float((every**2).sum() / every.sum())) if every.any() else []


def _trend(repeated: Repeated) -> str:
    """A steady rise or fall, by Student's t of a straight line's slope.

    The scatter around the line counts as no less than the repeats' own uncertainties.
    """
    values = np.array(repeated.values)
    if values.size < TREND_REPEATS:
        return ""
    at = np.arange(values.size) - (values.size - 1) / 2
    slope = float(at @ values / (at @ at))
    change = slope * (values.size - 1) / repeated.mean
    freedom = values.size - 2
    left = values - values.mean() - slope * at
    variance = max(float(left @ left) / freedom, float(np.mean(np.square(repeated.own_u))))
    error = math.sqrt(variance / float(at @ at))
    chance = student_probability(slope / error, freedom) if error else 0.0
    if abs(change) < MATERIAL or chance >= ALPHA:
        return ""
    went = "rose" if change > 0 else "fell"
    size = f"{100 * abs(change):.0f} %"
    return f"the {repeated.name} {went} by {size} from the first {repeated.noun} to the last ({_p(chance)})"


def _outlier(repeated: Repeated) -> str:
    """One repeat far from the others. Source: F. E. Grubbs, Technometrics 11 (1969), 1-21; Bonferroni's bound."""
    values = np.array(repeated.values)
    count = values.size
    if count < OUTLIER_REPEATS or not values.std():
        return ""
    far = int(np.argmax(np.abs(values - values.mean())))
    distance = abs(float(values[far] - values.mean())) / float(values.std(ddof=1))
    left = (count - 1) ** 2 - count * distance**2
    t = distance * math.sqrt(count * (count - 2) / left) if left > 0.0 else math.inf
    chance = min(count * student_probability(t, count - 2), 1.0) if math.isfinite(t) else 0.0
    others = float(np.delete(values, far).mean())
    away = float(values[far]) / others - 1 if others else math.inf
    if abs(away) < MATERIAL or chance >= ALPHA:
        return ""
    side = "above" if away > 0 else "below"
    return (
        f"the {repeated.name} of {repeated.noun} {far + 1} is {100 * abs(away):.0f} % {side} the mean of the others "
        f"({_p(chance)}); it counts like them"
    )


def _groups(repeated: Repeated) -> str:
    """Two groups with a gap between them. Source: Engelman and Hartigan, J. Am. Stat. Assoc. 64 (1969), 1647-1648."""
    order = np.argsort(repeated.values, kind="stable")
    values = np.array(repeated.values)[order]
    if values.size < GROUPS_REPEATS or not values.std():
        return ""
    shares = _between_shares(values[None])
    low = int(np.argmax(shares[0])) + GROUP_MIN
    apart = float(values[low:].mean() - values[:low].mean()) / repeated.mean
    if apart < MATERIAL:
        return ""
    chance = (1 + int(np.count_nonzero(_shares_of_chance(values.size) >= shares.max()))) / (1 + DRAWS)
    if chance >= ALPHA:
        return ""
    lower, upper = (", ".join(map(str, sorted(rows + 1))) for rows in (order[:low], order[low:]))
    return (
        f"the {repeated.name} has two levels: in {repeated.noun}s {upper} it is {100 * apart:.0f} % of the mean "
        f"higher than in {repeated.noun}s {lower} ({_p(chance)})"
    )


def _spread(repeated: Repeated) -> str:
    """More scatter than the repeats' own uncertainties explain. Source: chi-square of the weighted deviations."""
    own_u = np.array(repeated.own_u)
    if not own_u.all() or stdev(repeated.values) < SPREAD_MIN * repeated.mean:
        return ""
    values, weight = np.array(repeated.values), 1.0 / own_u**2
    centre = float(weight @ values / weight.sum())
    chance = chi_square_probability(float(weight @ (values - centre) ** 2), values.size - 1)
    if chance >= ALPHA:
        return ""
    return (
        f"the {repeated.name} of the {repeated.noun}s differs by more than their own uncertainties explain: "
        f"{repeated.off} from the mean"
    )


def _between_shares(samples: Float64Array) -> Float64Array:
    """Share of the sum of squares between two groups, for each way to cut a sorted sample, by sample."""
    count = samples.shape[1]
    low = np.arange(GROUP_MIN, count - GROUP_MIN + 1)
    deviation = samples - samples.mean(axis=1, keepdims=True)
    below = np.cumsum(deviation, axis=1)[:, low - 1]
    between = below**2 * (1.0 / low + 1.0 / (count - low))
    return np.asarray(between / np.sum(deviation**2, axis=1, keepdims=True), np.float64)


@functools.cache
def _shares_of_chance(count: int) -> Float64Array:
    """Greatest share between two groups in each of many normal samples."""
    drawn = np.sort(np.random.default_rng(count).normal(size=(DRAWS, count)), axis=1)
    return np.asarray(_between_shares(drawn).max(axis=1), np.float64)


def _p(chance: float) -> str:
    return f"p = {chance:.1g}" if chance >= 1e-4 else "p < 0.0001"
