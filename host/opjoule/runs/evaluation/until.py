"""`--until-u`: repeats until the headline's interval is narrow enough, or until more repeats cannot narrow it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from opjoule.base.errors import OpJouleError
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Quantity
from opjoule.energy.budget import Budget
from opjoule.runs.record.run import UntilOutcome
from opjoule.runs.record.run_record import RunRecord

REPEATS_MIN: Final = 8
"""A narrow interval ends a measurement after this many repeats at the earliest; fewer may agree by chance."""
_FLUSHED_S: Final = 1.5
"""Wait until the trace of the last repeat is on disk (energy/trace/journal.py flushes once a second) [s]."""


@dataclass(frozen=True)
class Until:
    """Decides after each repeat; the reason for the end is in run.json under `until_u`."""

    record: RunRecord
    headline: str
    """Key of the study's headline in result.json."""
    wanted: float
    """Target for the headline's relative expanded uncertainty."""
    limit: int
    """Greatest number of repeats."""
    result: Callable[[], Mapping[str, Any]]
    """Function that gives the numbers of all repeats so far, as build_result() does."""

    def __call__(self, repeats: int) -> bool:
        """Whether `repeats` are enough."""
        time.sleep(_FLUSHED_S)
        try:
            result: Mapping[str, Any] | None = self.result()
        except OpJouleError:
            result = None
        reached = outcome(result, self.headline, self.wanted, repeats, self.limit)
        if reached is not None:
            self.record.update(until_u=reached)
        return reached is not None


def outcome(
    result: Mapping[str, Any] | None,
    headline_key: str,
    wanted: float,
    repeats: int,
    limit: int,
    least: int = REPEATS_MIN,
) -> UntilOutcome | None:
    """Outcome if the repeats so far are enough, or if more cannot help; None if another one is needed.

    Args:
        result: numbers of all repeats so far; None if there are none yet.
        headline_key: key of the study's headline.
        wanted: target for the headline's relative expanded uncertainty.
        repeats: number of repeats so far.
        limit: greatest number of repeats.
        least: number of repeats after which a narrow interval ends the measurement at the earliest.
    """
    reached = None
    if result is not None:
        headline: Quantity | None = result.get(headline_key)
        budget = result.get("marginal_budget")
        if headline is None or headline.u is None:
            return UntilOutcome(wanted, None, repeats, headline.reason if headline else "there is no such figure")
        reached = headline.relative_u
        if reached <= wanted:
            return UntilOutcome(wanted, reached, repeats) if repeats >= min(least, limit) else None
        shared = shared_u(budget) if isinstance(budget, Budget) else 0.0
        energy_j = abs(float(result["marginal_energy_j"]))
        if shared > wanted * energy_j:
            why = f"the uncertainty that all repeats share is already ±{100 * shared / energy_j:.2g} %"
            return UntilOutcome(wanted, reached, repeats, f"{why}; calibrate the sensor, or measure more work")
    return UntilOutcome(wanted, reached, repeats, "the limit of repeats") if repeats >= limit else None


def shared_u(budget: Budget) -> float:
    """Part of the expanded uncertainty [J] that more repeats do not reduce."""
    return budget.with_part("repeats", 0.0).energy(0.0).u or 0.0


def until_notices(outcome: UntilOutcome | None) -> list[Notice]:
    """One notice if --until-u was requested and not reached."""
    if outcome is None or not outcome.not_reached:
        return []
    reached = "no interval" if outcome.reached is None else f"±{100 * outcome.reached:.2g} %"
    line = (
        f"--until-u {100 * outcome.asked:g}% was not reached: {reached} after {outcome.repeats} repeats "
        f"({outcome.not_reached})"
    )
    return [Notice(NoticeKind.NOT_REACHED, line)]
