"""Progress on the terminal: the phase, how far it is, and the time that remains."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class PhaseProgress:
    """One bar a phase on stderr; on something that is no terminal, one plain line a phase."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False, markup=False)
        self._plain = not self._console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description:<28}", markup=False),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
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

    def phase(self, description: str, total: float | None) -> None:
        """A new phase begins; `total` in whatever unit advance_to() is given, None where it is not known."""
        if self._task is None:
            self._console.print(f"  {description}")
            return
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(description, total=total)

    def advance_to(self, done: float) -> None:
        """The phase stands at `done`."""
        if self._task is not None:
            self._progress.update(self._task, completed=done)

    def note(self, line: str) -> None:
        """One line above the bar."""
        self._console.print(f"  {line}", soft_wrap=True)
