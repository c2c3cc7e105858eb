"""Progress of a measurement: the elapsed time, and an estimate of the remaining time.

A phase that has occurred before takes as long as it did then. An idle phase and a run of a stated length take as long
as planned. A phase that counts its operations continues at its rate so far. If an upcoming phase has none of these, its
least length counts, and the remaining time is a lower bound.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from opjoule.runs.measuring.plan import Plan
from opjoule.runs.measuring.quiet import QUIET_S
from opjoule.runs.record.phases import WORKED, Role
from opjoule.runs.studies.interface import Step

TELLING_SHARE: Final = 0.02
TELLING_S: Final = 2.0
"""Time after which a phase's own rate gives an estimate of its length."""


@dataclass(frozen=True)
class Expected:
    """An upcoming phase."""

    name: str
    """Phases of one name take about equally long."""
    shown: str
    """Name of the phase in the progress: all idle phases are "idle" there, all drains "settle"."""
    length_s: float | None = None
    """Planned length [s], if there is one."""
    least_s: float = 0.0
    """Shortest possible length of a phase without a planned one [s]."""


@dataclass(frozen=True)
class TimeLeft:
    """Remaining time until the end of the last phase."""

    remaining_s: float
    is_least: bool
    """Whether some upcoming phases, whose length is unknown, are included with their least length."""

    @property
    def words(self) -> str:
        """For example "about 3 min left"."""
        return f"{'at least' if self.is_least else 'about'} {in_words(self.remaining_s)} left"


def expected_phases(plan: Plan) -> list[Expected]:
    """The phases of a plan, in order."""
    phases = [Expected("rest", "rest", plan.idle_s), *(_expected(plan, step) for step in plan.all_steps())]
    return [phase for phase in phases if phase.length_s != 0.0]


def _expected(plan: Plan, step: Step) -> Expected:
    if step.role is Role.BASELINE:
        return Expected("idle", "idle", plan.idle_s)
    if step.role is Role.DRAIN:
        return Expected(step.name, "settle", least_s=min(QUIET_S, plan.settle_limit_s) if plan.idle_s else 0.0)
    if step.role in WORKED:
        length_s = plan.study.to_json().get("run_s")  # of the studies that have this setting
        return Expected(step.name, step.name, length_s or None)
    return Expected(step.name, step.name)


class Pace:
    """Follows the phases of one measurement, or one phase of a known length."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._began_s = clock_s()
        self._to_come: Sequence[Expected] = ()
        self._current: Expected | None = None
        self._phase_s = self._began_s
        self._total: float | None = None
        self._done = 0.0
        self._stated_s: float | None = None
        self._took_s: dict[str, list[float]] = defaultdict(list)

    def expect(self, phases: Sequence[Expected]) -> None:
        """Sets the upcoming phases."""
        self._to_come = list(phases)

    def begin(self, shown: str, total: float | None) -> None:
        """Starts a phase; of the expected phases, it is the next that is shown under this name."""
        now_s = self._clock_s()
        if self._current:
            self._took_s[self._current.name].append(now_s - self._phase_s)
        places = [place for place, phase in enumerate(self._to_come) if phase.shown == shown]
        self._current = None
        if places:
            self._current, self._to_come = self._to_come[places[0]], self._to_come[places[0] + 1 :]
        self._phase_s, self._total, self._done, self._stated_s = now_s, total, 0.0, None

    def stand(self, done: float) -> None:
        """Sets the phase's progress to `done` of its total."""
        self._done = done

    def wait(self, remaining_s: float | None) -> None:
        """The phase waits for something with an estimated remaining time [s], or without one."""
        self._total, self._stated_s = None, remaining_s

    @property
    def elapsed_s(self) -> float:
        """Time since the start [s]."""
        return self._clock_s() - self._began_s

    @property
    def share(self) -> float | None:
        """Completed fraction of the phase, 0 to 1; None if unknown."""
        return min(self._done / self._total, 1.0) if self._total else None

    @property
    def left(self) -> TimeLeft | None:
        """Remaining time; None if unknown."""
        lengths = [self._of_current(), *map(self._length_s, self._to_come)]
        unknown = [phase for phase in self._to_come if self._length_s(phase) is None]
        known = [length for length in lengths if length is not None]
        remaining_s = sum(known) + sum(phase.least_s for phase in unknown)
        return TimeLeft(remaining_s, len(known) < len(lengths)) if known or remaining_s else None

    def _of_current(self) -> float | None:
        in_it_s = self._clock_s() - self._phase_s
        share = self.share
        if share is not None and share >= TELLING_SHARE and in_it_s >= TELLING_S:
            return in_it_s * (1.0 - share) / share
        length_s = self._length_s(self._current) if self._current else None
        return self._stated_s if length_s is None else max(length_s - in_it_s, 0.0)

    def _length_s(self, phase: Expected) -> float | None:
        took_s = self._took_s.get(phase.name)
        return fmean(took_s) if took_s else phase.length_s


def in_words(length_s: float) -> str:
    """A duration, roughly: "40 s", "3 min", "2 h 10 min"."""
    if length_s < 90:
        return f"{length_s:.0f} s"
    minutes = round(length_s / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
