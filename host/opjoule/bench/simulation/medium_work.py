"""State of a simulated medium over time, to the nanosecond, and the FIFO by which its work is reported."""

import os
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Self


class LineFifo:
    """A FIFO that this process reads line by line without blocking, no matter what its writers do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        # Open for writing too, so that a writer's exit is not read as the end of the file.
        self.descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._partial = b""

    def lines(self) -> list[str]:
        """Complete lines that have arrived."""
        try:
            data = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:
            return []
        *whole, self._partial = (self._partial + data).split(b"\n")
        return [line.decode("ascii", "replace") for line in whole]

    def close(self) -> None:
        """Stops reading and removes the FIFO."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)


class MediumMode(Enum):
    """The mode of a medium at an instant."""

    IDLE = "idle"
    WRITING = "write"
    READING = "read"
    FLUSHING = "flush"
    """Emptying its own cache, as a sync requests."""
    TAIL = "tail"
    """Drawing more than idle power for a while after being busy."""


BUSY = {mode.value: mode for mode in (MediumMode.WRITING, MediumMode.READING, MediumMode.FLUSHING)}


@dataclass(frozen=True)
class MediumStretch:
    """An interval in which the medium is in one mode."""

    start_ns: int
    end_ns: int
    mode: MediumMode

    def within(self, start_ns: int, end_ns: int) -> Self:
        """The part of the stretch between two times."""
        return replace(self, start_ns=max(self.start_ns, start_ns), end_ns=min(self.end_ns, end_ns))


class MediumWork:
    """Busy stretches that `medium-sim serve` reports, each as soon as it is over. Only one thread may read them."""

    def __init__(self, path: Path) -> None:
        """Creates the FIFO at `path` that medium-sim writes to."""
        self.fifo = LineFifo(path)
        self.ended = False
        """Whether medium-sim has ended: the medium does no more work."""
        self._known_ns = 0
        self._busy: deque[MediumStretch] = deque()

    @property
    def known_ns(self) -> int:
        """Time up to which the medium's work is known [board_ns]."""
        return sys.maxsize if self.ended else self._known_ns

    def carry(self) -> None:
        """Reads what medium-sim wrote."""
        while lines := self.fifo.lines():
            for line in lines:
                self._take(line.split())

    def _take(self, words: Sequence[str]) -> None:
        if len(words) == 3 and words[0] == "q":
            self._known_ns = max(self._known_ns, int(words[1]))
        elif len(words) == 5 and words[0] == "m" and words[3] in BUSY:
            self._busy.append(MediumStretch(int(words[1]), int(words[2]), BUSY[words[3]]))

    def until(self, end_ns: int) -> list[MediumStretch]:
        """Removes and returns the busy stretches up to `end_ns`, in order of time; a stretch across it is cut there."""
        stretches = []
        while self._busy and self._busy[0].start_ns < end_ns:
            stretch = self._busy.popleft()
            stretches.append(stretch.within(stretch.start_ns, end_ns))
            if stretch.end_ns > end_ns:
                self._busy.appendleft(stretch.within(end_ns, stretch.end_ns))
        return stretches


class MediumCourse:
    """Mode of one medium over time: busy, then in its tail, then idle."""

    def __init__(self, tail_s: float) -> None:
        """`tail_s`: length of the tail after the medium was busy."""
        self._tail_ns = round(tail_s * 1e9)
        self._busy_until_ns: int | None = None

    def between(self, start_ns: int, end_ns: int, busy: Iterable[MediumStretch]) -> list[MediumStretch]:
        """The medium's modes from `start_ns`, where the last call ended, to `end_ns`, without gaps.

        `busy`: stretches up to `end_ns`, in order of time. One before `start_ns` is too late and has only a tail.
        """
        stretches: list[MediumStretch] = []
        at_ns = start_ns
        for stretch in busy:
            if stretch.end_ns > at_ns:
                begins_ns = max(stretch.start_ns, at_ns)
                stretches += self._at_rest(at_ns, begins_ns)
                stretches.append(stretch.within(begins_ns, end_ns))
                at_ns = stretches[-1].end_ns
            self._busy_until_ns = max(self._busy_until_ns or 0, stretch.end_ns)
        return stretches + self._at_rest(at_ns, end_ns)

    def _at_rest(self, start_ns: int, end_ns: int) -> list[MediumStretch]:
        """Tail and idle, from the end of the last busy stretch."""
        stretches = []
        ended_ns = self._busy_until_ns
        if ended_ns is not None and (tail_ends_ns := min(ended_ns + self._tail_ns, end_ns)) > start_ns:
            stretches.append(MediumStretch(start_ns, tail_ends_ns, MediumMode.TAIL))
            start_ns = tail_ends_ns
        return stretches + ([MediumStretch(start_ns, end_ns, MediumMode.IDLE)] if end_ns > start_ns else [])
