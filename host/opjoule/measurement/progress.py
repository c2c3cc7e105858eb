"""Progress on the terminal: the phase, how far it is, the time that remains, and the power of the board just now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from opjoule.measurement.progress_notes import ProgressNotes
from opjoule.trace.power_history import PowerHistory

SHOWN_NS = 1_000_000_000  # the mean of so much of the trace: single samples would flicker


class PowerColumn(ProgressColumn):
    """Mean power of the last second that the meter sent; nothing without a meter that runs."""

    history: PowerHistory | None = None

    def render(self, task: Task) -> Text:
        """For example "3.41 W"."""
        if self.history is None:
            return Text("")
        end_ns = self.history.end_ns
        blocks_w = self.history.blocks_w(end_ns - SHOWN_NS, end_ns)
        return Text(f"{blocks_w.mean():.2f} W" if blocks_w.size else "")


class RemainingColumn(TimeRemainingColumn):
    """Time that remains, as the phase tells it or from how far its bar has come."""

    def render(self, task: Task) -> Text:
        """For example "0:01:12"."""
        remaining_s = task.fields.get("remaining_s")
        if remaining_s is None:
            return super().render(task)
        return Text(str(timedelta(seconds=round(remaining_s))), style="progress.remaining")


class PhaseProgress:
    """One bar a phase on stderr; on something that is no terminal, one plain line a phase."""

    _notes: ProgressNotes | None = None

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False, markup=False)
        self._plain = not self._console.is_terminal
        self._power = PowerColumn()
        self._progress = Progress(
            TextColumn("{task.description:<28}", markup=False),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            RemainingColumn(),
            self._power,
            console=self._console,
            disable=self._plain or quiet,
        )
        self._task = None if self._plain else self._progress.add_task("starting", total=None)

    def __enter__(self) -> PhaseProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def watch(self, history: PowerHistory | None) -> None:
        """Shows the newest power of a trace that is being recorded; None: of none any more."""
        self._power.history = history

    @contextmanager
    def noted(self, notes: ProgressNotes) -> Iterator[None]:
        """Inside the block phases, operations and temperatures are noted in the record too."""
        with closing(notes):
            self._notes = notes
            try:
                yield
            finally:
                self._notes = None

    def _note(self, **entry: str | float) -> None:
        if notes := self._notes:
            notes.add(**entry)

    def operations(self, done: float) -> None:
        """So many operations of the phase are done."""
        self._note(operations=done)

    def temperature(self, celsius: float) -> None:
        """The board has this temperature."""
        self._note(temperature_c=celsius)

    def phase(self, description: str, total: float | None) -> None:
        """A new phase begins; `total` in whatever unit advance_to() is given, None where it is not known."""
        self._note(phase=description)
        if self._task is None:
            self._console.print(f"  {description}")
            return
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(description, total=total)

    def advance_to(self, done: float) -> None:
        """The phase stands at `done`."""
        if self._task is not None:
            self._progress.update(self._task, completed=done)

    def wait_on(self, waited_s: float, remaining_s: float | None) -> None:
        """A wait whose end is told by what is waited for: the seconds that remain, None where nothing tells them."""
        if self._task is not None:
            total_s = None if remaining_s is None else waited_s + remaining_s
            self._progress.update(self._task, completed=waited_s, total=total_s, remaining_s=remaining_s)

    def note(self, line: str) -> None:
        """One line above the bar."""
        self._console.print(f"  {line}", soft_wrap=True)
