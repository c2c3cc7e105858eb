"""Results that the job of a study reports for its phases.

    from opjoule_study import Results

    results = Results(FILE)  # FILE: the value of --results
    results.add("load", operations=1000, answer=1000, mean_s=0.001)
    results.add("correlation", not_supported="the engine has no joins")

A job reports every phase of study.toml, or reports that it is not supported. docs/reference/studies.md explains the
fields. This module is copied to the board automatically. It needs only Python 3.7 and its standard library.
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
"""Least duration of a phase that only reads and can be repeated: ten samples of most meters."""


class RepeatedReading(NamedTuple):
    """Answers and duration of work that only reads."""

    answers: list[Any]
    """The first answer and, if the work was repeated, the last one."""
    total_s: float
    """Total duration of all calls, without the time between them."""
    times: int

    @property
    def mean_s(self) -> float:
        """Mean duration of the calls [s]; the joules of the marked phase belong to the same calls."""
        return self.total_s / self.times


def read_at_least(work: Callable[[], Any], least_s: float = LEAST_S) -> RepeatedReading:
    """Repeats work that only reads until it has taken at least `least_s` in total.

    Mark one phase around all calls and count the operations of all of them: a phase of a few milliseconds is too short
    to measure its joules.
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
    """Does a job's work and returns its exit status, with a line on stderr if the status is not 0.

    1: WrongAnswer; 2: it cannot be measured here; 3: any other exception of a database's client.

    Args:
        now: returns the name of the current phase.
        unusable: further exceptions with status 2.
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
    """A client's error message, shortened to one line."""
    return " ".join(str(error).split())[:300]


def _told(status: int, line: str) -> int:
    print(line, file=sys.stderr)
    return status


def parser(about: str, systems: Sequence[str]) -> argparse.ArgumentParser:
    """The command line of a job, with the options that all jobs have."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("system", choices=systems, metavar="SYSTEM", help=", ".join(systems))
    made.add_argument(
        "--storage", dest="folder", required=True, metavar="FOLDER", help="existing empty folder on the medium"
    )
    made.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the drawn data (default: 1)")
    made.add_argument("--results", metavar="FILE", help="file for a JSON line for each phase")
    made.add_argument("--check", action="store_true", help="only check whether it can be measured here")
    return made


def check_room(folder: str, needed: int, system: str, rows: int, advice: str) -> None:
    """Checks the free space of a folder, if it exists.

    Args:
        needed: space that the system needs for `rows` rows [B].
    Raises: Unmeasurable: less is free.
    """
    if not Path(folder).is_dir():
        return
    there = os.statvfs(folder)
    free = there.f_bavail * there.f_frsize
    if needed > free:
        raise Unmeasurable(
            f"{system} needs up to {needed / 1e6:,.0f} MB for {rows} rows, but {free / 1e6:,.0f} MB are free on "
            f"{folder}: {advice}"
        )


def emptied(folder: str) -> str:
    """Empties the folder, which removes the database of the previous run, and returns it."""
    if Path(folder).exists():
        shutil.rmtree(folder)
    Path(folder).mkdir(parents=True)
    return folder


def spread_s(seconds: Sequence[float]) -> dict[str, float]:
    """Mean, minimum and maximum of some durations [s], in the form of a phase's figures."""
    return {
        "mean_s": sum(seconds) / len(seconds),
        "least_s": min(seconds),
        "greatest_s": max(seconds),
    }


class Progress:
    """Reports the number of operations done, at most once a second."""

    def __init__(self, done: int = 0) -> None:
        self.done = done
        """Operations of the phases that have ended."""
        self.told_s = 0.0

    def tell(self, more: int = 0) -> None:
        """Reports that `more` operations are done in the current phase."""
        if time.monotonic() - self.told_s > 1.0:
            self.told_s = time.monotonic()
            print(json.dumps({"progress": {"operations": self.done + more}}), flush=True)


class Unmeasurable(Exception):
    """A system cannot be measured here; the message states what to do."""


class WrongAnswer(Exception):
    """The answer of a phase differs from plain Python's on the same data; the message states the difference."""


class Results:
    """A file of JSON lines, one for each phase in each cell."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # open as long as the job runs
        self._software: set[str] = set()

    def made_by(self, software: str, stand_in: str = "") -> None:
        """Reports the measured software with its version, for example "InfluxDB 1.6.7".

        Args:
            stand_in: name of the software that it stands in for, for example "MongoDB"; empty if it is no stand-in.
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
        """Reports one phase.

        Args:
            phase: name of the phase in study.toml.
            mark: name by which it was marked, if it is another one.
            cell: axis -> value, for axes that the job varies itself within one run.
            operations: number of operations done; if above 0, joules are reported per operation.
            answer: result of the phase, of any JSON type; equal for all systems except for rounding.
            not_supported: reason why the system cannot do the phase; it then has no figures.
            figures: numbers, with the unit at the end of the name (mean_s, stored_bytes).
        """
        line = {"phase": phase, "mark": mark or phase, "cell": dict(cell), "operations": operations}
        line.update(answer=answer, not_supported=not_supported, figures=figures)
        self._line(line)

    def _line(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
