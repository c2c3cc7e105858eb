"""Runs all phases on one system, several times in a row each, marks and checks them, and reports the results."""

import os
import sqlite3
from contextlib import nullcontext

import answers
from opjoule_marks import phase
from opjoule_study import LEAST_S, Progress, WrongAnswer, read_at_least, spread_s
from phases import ABOVE, COUNTED, LOOPED, PAIR, PHASES, K, Nothing, Parameters, PhaseWork, write_csv
from sql_systems import INSERT, Sqlite

NO_ROWS = "its LOAD is a put for each row: it has no call for many"


class PhaseRuns:
    """All phases on one sample; each is run several times in a row, and the first runs are dropped."""

    def __init__(self, system, asked, folder, *, before=0, now=None):
        """Prepares the phases without running them.

        Args:
            folder: folder for the CSV file.
            before: number of calls of the earlier samples.
            now: list whose only entry is the current phase.
        """
        self._system, self._asked = system, asked
        self._path = os.path.join(folder, "sample.csv")
        self.progress, self._now = Progress(before), now or [""]
        self.seconds = {}
        """Phase -> mean duration of the calls [s] in each run that counts."""
        self.operations = {}
        """Phase -> number of calls in all runs that count, including repetitions."""
        self.calls = {}
        """Phase -> number of calls of one run."""

    def all(self):
        """Runs all phases. Raises: WrongAnswer: after all phases, if any answer was wrong."""
        wrong = [f"{name}: {why}" for name, why in self.steps() if why]
        if wrong:
            raise WrongAnswer("; ".join(wrong)[:400])

    def steps(self):
        """Runs the phases one after the other. Yields: (phase, difference from the expected answer)."""
        system, asked = self._system, self._asked
        write_csv(asked.readings, self._path)
        harness = PhaseWork(Nothing(), asked, self._path)
        for name in LOOPED:
            harness.prepare(name, 0)
            self._run(f"HARNESS_{name}", name, harness, LEAST_S)
        work = PhaseWork(system, asked, self._path)
        work.progress = self.progress.tell
        for name in [name for name in PHASES if name != "LOAD_ROWS" or system.has_bulk]:
            for number in range(asked.times(name)[0]):
                yield from self._one(name, number, work)
        yield "rows after all phases", answers.difference(system.plain(system.everything()), asked.left)
        system.close()
        os.remove(self._path)

    def _one(self, name, number, work):
        """Prepares, does and checks one run of a phase."""
        system, asked = self._system, self._asked
        self._now[0] = f"{name}, run {number + 1}, of {asked.rows} rows"
        work.prepare(name, number)
        counted = number >= asked.times(name)[1]
        least_s = LEAST_S if counted and not PHASES[name].changes else 0.0
        results = self._run(name, name, work, least_s, counted=counted)
        if name in ("LOAD", "LOAD_ROWS"):
            results = [[(system.count(),)]]
        self.progress.done += asked.rows if name in COUNTED else 0
        wanted = expected(name, number, system, asked)
        for answer in results:
            yield name, answers.difference(system.plain(answer), wanted)

    def _run(self, shown, name, work, least_s, *, counted=True):
        """Does a phase and marks it by the name `shown`."""
        self.progress.tell()
        with phase(mark(shown, self._asked)) if counted else nullcontext():
            done = read_at_least(lambda: PHASES[name].ask(work), least_s)
        if counted:
            self.calls[shown] = PHASES[name].calls(work)
            self.seconds.setdefault(shown, []).append(done.mean_s)
            self.operations[shown] = self.operations.get(shown, 0) + self.calls[shown] * done.times
        return done.answers


def all_calls(rows, runs):
    """Number of calls of all runs, as counted by the progress."""
    return sum(rows * min(runs, PHASES[name].most_runs) for name in COUNTED)


def mark(name, asked):
    """Name by which a phase is marked; different for each number of rows."""
    return f"{name}.{asked.rows}"


def expected(name, number, system, asked):
    """Expected answer of a run of a phase on a system."""
    answer = asked.expected(name, number)
    if name == "FULL_PROFILE" and system.own_profile:
        return answers.newest_values(asked.expected_of["LAST_READINGS"])
    return answer


def tell(system, asked, study, results):
    """Prints each phase's mean over the runs, its harness and its answer, and adds them to the results, if any."""
    for name in (*(f"HARNESS_{looped}" for looped in LOOPED), *PHASES):
        cell = {"rows": str(asked.rows)}
        if name not in study.seconds:
            print(f"{name}: not supported: {NO_ROWS}", flush=True)
            if results:
                results.add(name, mark=mark(name, asked), cell=cell, not_supported=NO_ROWS)
            continue
        calls = study.calls[name]
        figures, answer = _figures(name, calls, study), _answer(name, system, asked)
        if results:
            of_all = {"operations": study.operations[name], "answer": answer}
            results.add(name, mark=mark(name, asked), cell=cell, **of_all, **figures)
        words = f"{figures['mean_s']:.6f} s ({figures['least_s']:.6f} to {figures['greatest_s']:.6f} s)"
        if calls > 1:
            words += f", {1e6 * figures['mean_s'] / calls:.2f} us a call"
        if calls and "harness_s" in figures:
            words += f", including {1e6 * figures['harness_s'] / calls:.2f} us harness"
        print(f"{name}: {words}{f'; answer {answer}' if answer else ''}", flush=True)


def _figures(name, calls, study):
    """Figures of one phase: calls of a run, mean, minimum and maximum duration [s], and the harness's mean [s]."""
    figures = {"calls": calls, **spread_s(study.seconds[name])}
    if name in LOOPED:
        figures["harness_s"] = spread_s(study.seconds[f"HARNESS_{name}"])["mean_s"]
    return figures


def _answer(name, system, asked):
    """Number of rows and digest of the answer; empty if the answer depends on the system."""
    if name not in asked.expected_of or (name == "FULL_PROFILE" and system.own_profile):
        return None
    rows = asked.expected_of[name]
    return f"{len(rows)} rows {answers.digest(rows)}"


class InMemory(Sqlite):
    """SQLite without a file."""

    def __init__(self, rows):
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._execute = self._connection.execute
        self._execute(self.time_sql.table())
        self._connection.executemany(INSERT, map(self.row, rows))


def verify(readings, seed):
    """Compares the two computations. Raises: WrongAnswer: they differ."""
    asked = Parameters(readings, seed)
    system = InMemory(readings)
    questions = {
        "LAST_READINGS": system.last_readings,
        "AVG_SENSOR": system.avg_sensor,
        "HOT_SENSORS": lambda: system.hot_sensors(ABOVE, asked.at_least, K),
        "ANOMALIES": system.anomalies,
        "DAILY_SUMMARY": system.daily_summary,
        "OUTAGES": system.outages,
        "TOPK_SENSORS": lambda: system.topk_sensors(K),
        "COMPARE_TWO": lambda: system.compare_two(*PAIR),
    }
    for name, ask in questions.items():
        why = answers.difference(system.plain(ask()), asked.expected(name, 0))
        if why:
            raise WrongAnswer(f"{name} by SQL and by plain Python: {why}")
    system.close()
