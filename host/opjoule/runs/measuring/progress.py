"""Progress on the terminal and in the record: the phase, its progress, elapsed and remaining time.

A phase that has occurred before takes as long as it did then. An idle phase and a run of a stated length take as long
as planned. A phase that counts its operations continues at its rate so far. If an upcoming phase has none of these, its
least length counts, and the remaining time is a lower bound.
"""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Final, Self

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.text import Text

from opjoule.base.terminal import terminal
from opjoule.energy.trace.power_history import PowerHistory
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.measuring.settling import QUIET_S
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


SHOWN_NS = 1_000_000_000  # averaging time of the power: single samples would flicker
NOTED_S = 2.0
"""Interval at which the remaining time is recorded during a phase."""
LINE_S = 60.0
"""Interval of the plain progress lines."""
PROGRESS: Final = "progress.jsonl"
"""Progress of the measurement, in its record's raw/, for any observer."""


def phase_title(name: str, repeat: int, repeats: int) -> str:
    """For example "run (1 of 3)"; a single repeat is not numbered."""
    return f"{name} ({repeat} of {repeats})" if repeats > 1 else name


class ProgressNotes:
    """Appends one JSON line for each note, with the time of the newest sample. Thread-safe.

    No result depends on the notes: one that cannot be written is left out.
    """

    def __init__(self, path: Path, history: PowerHistory) -> None:
        """`history`: power history of the trace that is being recorded."""
        self._file = path.open("x", encoding="utf-8")
        self._history = history
        self._lock = threading.Lock()

    def add(self, **entry: str | float) -> None:
        """Writes and flushes a line; does nothing after close()."""
        line = json.dumps({"meter_ns": self._history.end_ns, **entry}) + "\n"
        with self._lock, suppress(OSError, ValueError):
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        """Closes the file; it does not change afterwards."""
        with self._lock, suppress(OSError):
            self._file.close()


class PowerColumn(ProgressColumn):
    """Mean power of the last second from the meter; empty without a running meter."""

    history: PowerHistory | None = None

    def render(self, task: Task) -> Text:
        """For example "3.41 W"."""
        if self.history is None:
            return Text("")
        end_ns = self.history.end_ns
        blocks_w = self.history.blocks_w(end_ns - SHOWN_NS, end_ns)
        return Text(f"{blocks_w.mean():.2f} W" if blocks_w.size else "")


class PaceColumn(ProgressColumn):
    """Elapsed time of the measurement, and an estimate of the remaining time."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def render(self, task: Task) -> Text:
        """For example "0:01:12, about 3 min left"."""
        passed = str(timedelta(seconds=int(self._pace.elapsed_s)))
        left = self._pace.left
        return Text(f"{passed}, {left.words}" if left else passed, style="progress.remaining")


class PhaseProgress:
    """One bar per phase on stderr; if that is no terminal, a plain line at each phase and at intervals."""

    _notes: ProgressNotes | None = None

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = terminal(stderr=True, quiet=quiet)
        self._plain = not self._console.is_terminal
        self._power = PowerColumn()
        self._pace = Pace()
        self._title = ""
        self._line_s = self._noted_s = 0.0
        self._progress = Progress(
            TextColumn("{task.description:<22}", markup=False),
            BarColumn(bar_width=12),
            TaskProgressColumn(),
            PaceColumn(self._pace),
            self._power,
            console=self._console,
            disable=self._plain or quiet,
        )
        self._task = None if self._plain else self._progress.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def watch(self, history: PowerHistory | None) -> None:
        """Shows the newest power of a trace that is being recorded; None: of no trace any more."""
        self._power.history = history

    @contextmanager
    def noted(self, notes: ProgressNotes) -> Iterator[None]:
        """Context in which phases, operations and temperatures are also noted in the record."""
        with closing(notes):
            self._notes = notes
            try:
                yield
            finally:
                self._notes = None

    def write_down(self, **entry: str | float) -> None:
        """Notes the `operations` done, a `temperature_c`, or the `board_ns` at which a phase begins or ends."""
        if notes := self._notes:
            notes.add(**entry)

    def expect(self, phases: Sequence[Expected]) -> None:
        """Sets the upcoming phases; from now on the remaining time is shown."""
        self._pace.expect(phases)

    def phase(self, name: str, total: float | None, repeat: int = 1, repeats: int = 1) -> None:
        """Starts a phase of one of `repeats` repeats; `total` has the unit of advance_to(), None if unknown."""
        self._title = phase_title(name, repeat, repeats)
        self._pace.begin(name, total)
        self.write_down(phase=name, repeat=repeat, repeats=repeats)
        self._note_time()
        if self._task is None:
            self._print_line("")
            return
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(self._title, total=total)

    def advance_to(self, done: float) -> None:
        """Sets the phase's progress to `done`."""
        self._pace.stand(done)
        self._look()
        if self._task is not None:
            self._progress.update(self._task, completed=done)

    def wait_on(self, waited_s: float, remaining_s: float | None) -> None:
        """Shows a wait with the estimated remaining seconds, None without an estimate."""
        self._pace.wait(remaining_s)
        self._look()
        if self._task is not None:
            total_s = None if remaining_s is None else waited_s + remaining_s
            self._progress.update(self._task, completed=waited_s, total=total_s)

    def _look(self) -> None:
        """Reports the progress at intervals: in the record, and as a line if there is no bar."""
        now_s = time.monotonic()
        if now_s - self._noted_s >= NOTED_S:
            self._note_time()
        if self._task is None and now_s - self._line_s >= LINE_S:
            share = self._pace.share
            self._print_line("" if share is None else f" {share:.0%},")

    def _note_time(self) -> None:
        self._noted_s = time.monotonic()
        left = self._pace.left
        remaining = {} if left is None else {"remaining_s": round(left.remaining_s, 1), "is_least": left.is_least}
        self.write_down(host_ns=time.monotonic_ns(), elapsed_s=round(self._pace.elapsed_s, 1), **remaining)

    def _print_line(self, share: str) -> None:
        self._line_s = time.monotonic()
        passed, left = in_words(self._pace.elapsed_s), self._pace.left
        times = f"{passed} elapsed{f', {left.words}' if left else ''}"
        self._console.print(f"  {self._title}:{share} {times}", soft_wrap=True)

    def note(self, line: str) -> None:
        """Prints one line above the bar."""
        self._console.print(f"  {line}", soft_wrap=True)
