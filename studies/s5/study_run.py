"""One run of all tests, marked and checked, and the results of several runs."""

import statistics

from opjoule_marks import phase
from opjoule_study import Progress, WrongAnswer, read_at_least
from phases import LOOPS, READS, TESTS, UNCHANGING, NoTable, digest

HARNESS = "HARNESS_"
"""Prefix of the names of the loops without a database."""


class ContactRun:
    """One run of every test on a new database."""

    def __init__(self, system, server, asked, *, before, now, harness=False):
        """Prepares the tests without running them.

        Args:
            server: server to which each transaction is carried, or None.
            before: number of rows processed by the earlier runs.
            now: list whose only entry is the current test.
            harness: True if the loops without a database come first.
        """
        self._system, self._server, self._asked = system, server, asked
        self.progress, self._now, self._harness = Progress(before), now, harness
        self.seconds = {}
        """Phase -> duration [s]; for a repeated phase, the mean of all times, to which its joules also belong."""
        self.times = {}
        """Phase -> number of times; a phase that changes nothing is repeated until it is long enough for its joules."""

    def all(self):
        """Runs all tests. Raises: WrongAnswer: after a test whose rows differ from plain Python's."""
        asked, system, server = self._asked, self._system, self._server
        nothing = NoTable(asked)
        for test in LOOPS if self._harness else ():
            self._timed(HARNESS + test, TESTS[test], nothing, None, lambda done: None)
        self._now[0] = "a new database"
        system.create()
        self._test("T1", None)
        system.open()
        if server:
            server.create()
            server.open()
        for test in [name for name in TESTS if name != "T1"]:
            answers = self._test(test, server)
            for answer in answers if test in READS else [system.everything()]:
                self._check(test, answer)
            if server and test not in READS:
                self._check(f"{test}, on the server", server.everything(), test)
        system.close()
        if server:
            server.close()

    def _test(self, test, server):
        answers = self._timed(test, TESTS[test], self._system, server, self.progress.tell)
        self.progress.done += self._asked.count(test)
        return answers

    def _timed(self, name, run, system, server, progress):
        self._now[0] = name
        again = name in UNCHANGING or name.startswith(HARNESS)
        least = {} if again else {"least_s": 0.0}
        with phase(name):
            done = read_at_least(lambda: run(system, self._asked, server, progress), **least)
        self.seconds[name], self.times[name] = done.mean_s, done.times
        return done.answers

    def _check(self, words, rows, test=""):
        """Compares rows with the expected ones. Raises: WrongAnswer: they differ."""
        rows, expected = sorted(map(tuple, rows)), sorted(self._asked.expected[test or words])
        if len(rows) != len(expected):
            raise WrongAnswer(f"{words}: {len(rows)} rows, not {len(expected)}")
        for one, other in zip(rows, expected, strict=True):
            if one != tuple(other):
                raise WrongAnswer(f"{words}: {one}, not {tuple(other)}")


def answer_of(test, asked):
    """Expected answer of every system: the rows that a test finds, or leaves in the table."""
    if test == "T1":
        return f"{asked.opens} connections"
    expected = asked.expected[test]
    return f"{len(expected)} rows {digest(expected)}"


def tell(asked, runs, results):
    """Prints each test's median over the runs, its harness and its answer, and adds them to the results, if any."""
    for name in (*(HARNESS + test for test in LOOPS), *TESTS):
        test = name.replace(HARNESS, "")
        count, answer = asked.count(test), answer_of(test, asked) if name == test else None
        figures = _figures(name, count, runs)
        if results:
            times = sum(run.times.get(name, 0) for run in runs)
            results.add(name, operations=count * times, answer=answer, **figures)
        words = f"{figures['per_row_us']:.2f} us a row"
        words += f" ({figures['least_per_row_us']:.2f} to {figures['greatest_per_row_us']:.2f})"
        if "harness_per_row_us" in figures:
            words += f", including {figures['harness_per_row_us']:.2f} us harness"
        print(f"{name}: {words}{f'; answer {answer}' if answer else ''}", flush=True)


def _figures(name, count, runs):
    """Figures of one phase: rows of a run; median, minimum, maximum and mean time of a row [us]; harness's median."""
    times_us = _per_row_us(name, count, runs)
    figures = {"calls": count, "per_row_us": statistics.median(times_us)}
    figures |= {"least_per_row_us": min(times_us), "greatest_per_row_us": max(times_us)}
    figures["mean_per_row_us"] = statistics.fmean(times_us)
    if name in LOOPS:
        figures["harness_per_row_us"] = statistics.median(_per_row_us(HARNESS + name, count, runs))
    return figures


def _per_row_us(name, count, runs):
    """Time of a row [us] in each run that had the phase."""
    return [1e6 * run.seconds[name] / count for run in runs if name in run.seconds]
