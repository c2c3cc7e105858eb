"""What the job of a study tells of its phases. Comes along by itself: Python 3.7, standard library alone.

    from opjoule_study import Results

    results = Results(FILE)  # the one that the job was given behind --results
    results.add("load", operations=1000, answer=1000, mean_s=0.001)
    results.add("correlation", not_supported="the engine has no joins")

Every phase of study.toml is told, or said not to be supported. docs/reference/studies.md has the meanings.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
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


def parser(about: str, systems: Sequence[str]) -> argparse.ArgumentParser:
    """The command line of a job, with the options that all jobs have."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("system", choices=systems, metavar="SYSTEM", help=", ".join(systems))
    made.add_argument("--storage", required=True, metavar="FOLDER", help="on the medium, there and empty")
    made.add_argument("--seed", type=int, default=1, metavar="N", help="of what is drawn (default: 1)")
    made.add_argument("--results", metavar="FILE", help="gets a JSON line for each phase")
    made.add_argument("--check", action="store_true", help="only see whether it can be measured here")
    return made


def check_room(folder: str, needed: int, system: str, rows: int, advice: str) -> None:
    """Raises: Unmeasurable: a folder that is there has less room than a system takes for so many rows [B]."""
    if not Path(folder).is_dir():
        return
    there = os.statvfs(folder)
    free = there.f_bavail * there.f_frsize
    if needed > free:
        raise Unmeasurable(
            f"{system} takes up to {needed / 1e6:,.0f} MB for {rows} rows, and {free / 1e6:,.0f} MB are free on "
            f"{folder}: {advice}"
        )


def emptied(folder: str) -> str:
    """The folder, new and empty: the database of the run before is gone."""
    if Path(folder).exists():
        shutil.rmtree(folder)
    Path(folder).mkdir(parents=True)
    return folder


def spread_s(seconds: Sequence[float]) -> dict[str, float]:
    """Mean, least and greatest of some durations [s], as figures of a phase."""
    return {
        "mean_s": sum(seconds) / len(seconds),
        "least_s": min(seconds),
        "greatest_s": max(seconds),
    }


class Progress:
    """Tells how many operations are done, at most once a second."""

    def __init__(self, done: int = 0) -> None:
        self.done = done
        """In the phases that have ended."""
        self.told_s = 0.0

    def tell(self, more: int = 0) -> None:
        """So many more are done in the phase that runs."""
        if time.monotonic() - self.told_s > 1.0:
            self.told_s = time.monotonic()
            print(json.dumps({"progress": {"operations": self.done + more}}), flush=True)


class Unmeasurable(Exception):
    """A system cannot be measured here; says what to do."""


class WrongAnswer(Exception):
    """A phase answered something else than plain Python does on the same data; says what."""


class Results:
    """A file of JSON lines, one for each phase in each cell."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # open as long as the job runs
        self._software: set[str] = set()

    def made_by(self, software: str, stand_in: str = "") -> None:
        """Tells what is measured, with its version: "InfluxDB 1.6.7".

        Args:
            stand_in: what it stands in for, if it is not that itself: "MongoDB".
        """
        if software not in self._software:
            self._software.add(software)
            self._line({"software": software, "stand_in": stand_in})

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
        self._line(line)

    def _line(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
