"""`--until-u`: repeats until the headline's interval is narrow enough, or until more repeats cannot narrow it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from opjoule.energy.budget import Budget
from opjoule.errors import OpJouleError
from opjoule.record.run import UntilOutcome
from opjoule.record.run_record import RunRecord
from opjoule.units import Measured

_FLUSHED_S: Final = 1.5
"""Wait until the trace of the last repeat is on disk (trace/journal.py flushes once a second) [s]."""


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
            result = self.result()
        except OpJouleError:
            return self._ended(repeats, None, "the limit of repeats") if repeats >= self.limit else False
        headline, budget = result.get(self.headline), result.get("marginal_budget")
        if not isinstance(headline, Measured):
            return self._ended(repeats, None, str(getattr(headline, "reason", "there is no such figure")))
        reached = headline.relative_u
        if reached <= self.wanted:
            return self._ended(repeats, reached, "")
        shared = shared_u(budget) if isinstance(budget, Budget) else 0.0
        energy_j = abs(result["marginal_energy_j"].value)
        if shared > self.wanted * energy_j:
            why = f"the uncertainty that all repeats share is already ±{100 * shared / energy_j:.2g} %"
            return self._ended(repeats, reached, f"{why}; calibrate the sensor, or measure more work")
        return self._ended(repeats, reached, "the limit of repeats") if repeats >= self.limit else False

    def _ended(self, repeats: int, reached: float | None, why: str) -> bool:
        self.record.update(until_u=UntilOutcome(self.wanted, reached, repeats, why))
        return True


def shared_u(budget: Budget) -> float:
    """Part of the expanded uncertainty [J] that more repeats do not reduce."""
    return budget.with_part("repeats", 0.0).energy(0.0).u


def until_warnings(outcome: UntilOutcome | None) -> list[str]:
    """One line if --until-u was requested and not reached."""
    if outcome is None or not outcome.not_reached:
        return []
    reached = "no interval" if outcome.reached is None else f"±{100 * outcome.reached:.2g} %"
    return [
        f"--until-u {100 * outcome.asked:g}% was not reached: {reached} after {outcome.repeats} repeats "
        f"({outcome.not_reached})"
    ]
