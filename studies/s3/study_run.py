"""One run through all phases, marked and checked, and what several runs have found."""

import json
import time
from contextlib import nullcontext

import answers
from opjoule_marks import phase
from opjoule_study import LEAST_S, WrongAnswer, read_at_least
from phases import CALLS, CHANGES, PHASES, Nothing

BULK = "LOAD_BULK"


class Run:
    """One run: a new database, every phase, and a bulk load into another."""

    def __init__(self, system, asked, *, counted, before, now):
        """Nothing is run yet.

        Args:
            counted: its phases are marked by their names; without, it is one phase "dropped".
            before: calls of LOAD and READ in the runs before.
            now: list whose only entry is the phase that runs.
        """
        self._system, self._asked, self.counted = system, asked, counted
        self._done, self._now, self._told_s = before, now, 0.0
        self.seconds = {}
        """Phase -> its duration, where it is done several times that of the first."""
        self.times = {}
        """Phase -> how many times it is done within its mark: one that only reads, until it is long enough."""

    def all(self):
        """Raises: WrongAnswer: after all phases, if any answered wrongly."""
        with nullcontext() if self.counted else phase(f"dropped.{self._asked.rows}"):
            wrong = [f"{name}: {why}" for name, why in self._all() if why]
        if wrong:
            raise WrongAnswer("; ".join(wrong)[:400])

    def _all(self):
        """(phase, what is wrong with its answer), one after the other."""
        system, asked = self._system, self._asked
        for name in CALLS:
            self._timed(f"HARNESS_{name}", PHASES[name], Nothing())
        self._now[0] = "a new database"
        system.create()
        for name, ask in PHASES.items():
            found = self._timed(name, ask, system, self._progress)
            if name == "LOAD":
                found = [[(system.count(),)]]
            self._done += asked.rows if CALLS.get(name) == "rows" else 0
            for answer in found:
                yield name, answers.difference(answer, expected(name, system, asked))
        yield "rows after all phases", answers.difference(system.everything(), asked.rows_left)
        system.close()
        if hasattr(system, "insert_all"):
            system.create()
            self._timed(BULK, _bulk, system)
            yield BULK, answers.difference(system.everything(), sorted(asked.readings))
            system.close()

    def _timed(self, name, ask, system, progress=lambda more: None):
        self._now[0] = f"{name} with {self._asked.rows} rows"
        self._progress(0)
        once = name in (*CHANGES, BULK) or not self.counted
        with phase(mark(name, self._asked)) if self.counted else nullcontext():
            done = read_at_least(lambda: ask(system, self._asked, progress), least_s=0.0 if once else LEAST_S)
        self.seconds[name], self.times[name] = done.first_s, done.times
        return done.answers

    def _progress(self, more):
        """Says how many calls are done, at most once a second."""
        if time.monotonic() - self._told_s > 1.0:
            self._told_s = time.monotonic()
            print(json.dumps({"progress": {"operations": self._done + more}}), flush=True)


def _bulk(system, asked, progress):
    system.begin()
    system.insert_all(asked.readings)
    system.commit()


def mark(name, asked):
    """What a phase is marked by: of each number of rows another."""
    return f"{name}.{asked.rows}"


def expected(name, system, asked):
    """What a phase of a system has to answer."""
    own = name == "FULL_PROFILE" and system.own_profile
    return asked.newest_values if own else asked.expected[name]


def tell(system, asked, runs, results):
    """Says each phase's mean over the runs, the harness's beside it, and what it answered.

    Args:
        runs: those that count.
        results: gets the same; None for nobody.
    """
    for name in (*(f"HARNESS_{each}" for each in CALLS), *PHASES, BULK):
        cell = {"rows": str(asked.rows)}
        if name not in runs[0].seconds:
            why = "its Python client has no call that stores many rows at once"
            print(f"{name}: not supported: {why}", flush=True)
            if results:
                results.add(name, mark=mark(name, asked), cell=cell, not_supported=why)
            continue
        figures, calls = _figures(name, asked, runs), _calls(name, asked)
        answer = _answer(name, system, asked)
        if results:
            of_all = {"operations": calls * sum(run.times[name] for run in runs), "answer": answer}
            results.add(name, mark=mark(name, asked), cell=cell, **of_all, **figures)
        words = f"{figures['mean_s']:.6f} s ({figures['least_s']:.6f} to {figures['greatest_s']:.6f} s)"
        if calls > 1:
            words += f", {1e6 * figures['mean_s'] / calls:.2f} us a call"
        if "harness_s" in figures:
            words += f", of it {1e6 * figures['harness_s'] / calls:.2f} us harness"
        print(f"{name}: {words}{f'; answer {answer}' if answer else ''}", flush=True)


def _calls(name, asked):
    """Calls of a phase in one run; of a bulk load the rows."""
    if name == BULK:
        return asked.rows
    what = CALLS.get(name.replace("HARNESS_", ""))
    return getattr(asked, what) if what else 1


def _figures(name, asked, runs):
    """One phase's calls in a run; mean, least and greatest of its durations [s]; the mean of its harness alone."""
    each = [run.seconds[name] for run in runs]
    found = {"calls": _calls(name, asked), "mean_s": sum(each) / len(each)}
    found |= {"least_s": min(each), "greatest_s": max(each)}
    if name in CALLS:
        found["harness_s"] = sum(run.seconds[f"HARNESS_{name}"] for run in runs) / len(runs)
    return found


def _answer(name, system, asked):
    """Rows and digest; nothing where systems do not answer the same."""
    if name not in asked.expected or (name == "FULL_PROFILE" and system.own_profile):
        return None
    return f"{len(asked.expected[name])} rows {answers.digest(asked.expected[name])}"
