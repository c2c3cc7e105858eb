"""What the job of a study tells of its phases. Comes along by itself: Python 3.7, standard library alone.

    from opjoule_study import Results

    results = Results(FILE)  # the one that the job was given behind --results
    results.add("load", operations=1000, answer=1000, mean_s=0.001)
    results.add("correlation", not_supported="the engine has no joins")

Every phase of study.toml is told, or said not to be supported. docs/reference/studies.md has the meanings.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

LEAST_S = 0.05
"""Least duration of a phase that only reads, where it can be done again: most meters see ten samples of that."""


class RepeatedReading(NamedTuple):
    """What came of work that only reads."""

    answers: list[Any]
    """The first and, where it was done again, the last."""
    total_s: float
    """How long all of them took together, without what lay between."""
    times: int

    @property
    def mean_s(self) -> float:
        """Mean duration of the calls [s]: of the same calls as the joules of the phase that they are marked by."""
        return self.total_s / self.times


def read_at_least(work: Callable[[], Any], least_s: float = LEAST_S) -> RepeatedReading:
    """Does work that only reads, whole, again and again until so much time has passed in all.

    One phase is marked around it, whose operations are those of all times: one of few milliseconds has no joules.
    """
    answers: list[Any] = []
    times, total_ns = 0, 0
    while not times or total_ns < least_s * 1e9:
        start_ns = time.monotonic_ns()
        answers[1:] = [work()]
        total_ns += time.monotonic_ns() - start_ns
        times += 1
    return RepeatedReading(answers, total_ns * 1e-9, times)


def ended(work: Callable[[], Any], system: str, now: Callable[[], str], unusable: Any = ()) -> int:
    """Does a job's work; gives its exit status, with a line on stderr where that is not 0.

    1 WrongAnswer; 2 it cannot be measured here; 3 whatever else a database's client raises.

    Args:
        now: says which phase runs.
        unusable: exceptions of 2.
    """
    try:
        work()
    except unusable as error:
        return _told(2, f"job.py: {one_line(error)}")
    except WrongAnswer as error:
        return _told(1, f"{system} gives wrong answers: {error}")
    except Exception as error:
        return _told(3, f"job.py: {system}, {now()}: {type(error).__name__}: {one_line(error)}")
    return 0


def one_line(error: BaseException) -> str:
    """What a client said, on one line that is not too long."""
    return " ".join(str(error).split())[:300]


def _told(status: int, line: str) -> int:
    print(line, file=sys.stderr)
    return status


class WrongAnswer(Exception):
    """A phase answered something else than plain Python does on the same data; says what."""


class Results:
    """A file of JSON lines, one for each phase in each cell."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # open as long as the job runs

    def add(
        self,
        phase: str,
        *,
        mark: str = "",
        cell: Any = (),
        operations: int = 0,
        answer: Any = None,
        not_supported: str = "",
        **figures: float,
    ) -> None:
        """Tells one phase.

        Args:
            phase: as study.toml names it.
            mark: the name that it was marked by, where that is another one.
            cell: axis -> value of what the job itself varies within one run.
            operations: that it did; joules are told per operation where there are any.
            answer: what it found, of any JSON type: the same for all systems, but for rounding.
            not_supported: why the system cannot do it; it then has no figures.
            figures: numbers, their unit last in the name (mean_s, stored_bytes).
        """
        line = {"phase": phase, "mark": mark or phase, "cell": dict(cell), "operations": operations}
        line.update(answer=answer, not_supported=not_supported, figures=figures)
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
