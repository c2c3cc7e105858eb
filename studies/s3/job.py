"""Runs the study's phases on one system. Each is run and marked several times in a row; the first run is dropped.

    python3 job.py SYSTEM --storage FOLDER [--rows N,N] [--runs 6] [--dropped 1] [--dataset FILE] [--results FILE]

SYSTEM is berkeleydb, duckdb, postgresql or sqlite. Exit status 0: success; 1: an answer is wrong; 2: it cannot be
measured here; 3: a phase failed.
"""

import argparse
import json
import os
import signal
import sqlite3
import sys
from contextlib import nullcontext

import answers
from berkeley_db import BerkeleyDb
from opjoule_marks import phase
from opjoule_study import (
    LEAST_S,
    Progress,
    Results,
    Unmeasurable,
    WrongAnswer,
    check_room,
    ended,
    parser,
    read_at_least,
    spread_s,
)
from phases import ABOVE, COUNTED, LOOPED, PAIR, PHASES, K, Nothing, Parameters, PhaseWork, write_csv
from readings import DrawnReadings, SensorFile
from sql_systems import INSERT, Duckdb, Postgresql, Sqlite, client

SYSTEMS = {"berkeleydb": BerkeleyDb, "duckdb": Duckdb, "postgresql": Postgresql, "sqlite": Sqlite}
GETTING = {
    "berkeleydb": "install Debian 12's package python3-bsddb3, which works only with /usr/bin/python3, and put "
    "/usr/bin first on PATH, or see docs/reference/study-s3.md",
    "duckdb": "pip install duckdb",
}
SPACE = {
    "berkeleydb": (1_000_000, 400),
    "duckdb": (5_000_000, 600),
    "postgresql": (80_000_000, 2_500),
    "sqlite": (1_000_000, 400),
}
"""System -> (bytes before the first row, bytes for each row including its log and the file of a bulk load)."""


def main():
    """Measures one system. Returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = _arguments()
    try:
        needed = _needed(options)
        if options.check:
            calls = sum(all_calls(rows, options.runs) for rows in options.rows)
            print(json.dumps({"bytes": needed, "operations": calls}))
            return 0
        dataset = SensorFile(options.dataset) if options.dataset else DrawnReadings()
        folder = os.path.join(options.folder, "s3")
        system = SYSTEMS[options.system](options.server if options.system == "postgresql" else folder)
    except (Unmeasurable, ValueError, OSError) as error:
        print(f"job.py: {error}", file=sys.stderr)
        return 2
    now = ["starting"]
    return ended(lambda: _measure(system, dataset, options, now), options.system, lambda: now[0])


def _arguments():
    made = parser(__doc__, sorted(SYSTEMS))
    add = made.add_argument
    add("--rows", type=_counts, default=[1000], metavar="N,N", help="rows of each sample (default: 1000)")
    add("--runs", type=int, default=6, metavar="N", help="runs of each phase in a row (default: 6)")
    add("--dropped", type=int, default=1, metavar="N", help="first runs that do not count (default: 1)")
    add("--dataset", default="", metavar="FILE", help="the Intel Lab's file (default: drawn readings)")
    add("--server", default="", metavar="ADDRESS", help="PostgreSQL's address: postgresql://...")
    options = made.parse_args()
    if not 0 <= options.dropped < options.runs:
        made.error(f"--dropped {options.dropped} leaves no run of --runs {options.runs}")
    return options


def _counts(text):
    """Numbers of rows, separated by commas."""
    counts = [int(count) for count in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("must be at least 1 row")
    return counts


def _needed(options):
    """Maximum size of the largest sample [B], after a check of client, programs and space.

    Raises: Unmeasurable: something is missing.
    """
    try:
        if options.system == "postgresql":
            client()
        else:
            SYSTEMS[options.system](options.folder)
    except ImportError as error:
        raise Unmeasurable(
            f"{options.system}'s client is missing for {sys.executable} ({error}): {GETTING[options.system]}"
        ) from None
    before, for_row = SPACE[options.system]
    needed = before + max(options.rows) * for_row
    advice = "take fewer rows or another medium"
    check_room(options.folder, needed, options.system, max(options.rows), advice)
    return needed


def _measure(system, dataset, options, now):
    """Measures all samples, one after the other; now[0] always names the current phase."""
    results = Results(options.results) if options.results else None
    if results:
        results.made_by(f"{options.system} {system.version}")
    done = 0
    for rows in options.rows:
        sample = dataset.sample(rows, options.seed)
        asked = Parameters(sample, options.seed, options.runs, options.dropped)
        print(f"{options.system} {system.version}, {asked.rows} rows: {dataset.about()}", flush=True)
        now[0] = f"the answers by two computations, of {asked.rows} rows"
        verify(sample, options.seed)
        study = PhaseRuns(system, asked, options.folder, before=done, now=now)
        study.all()
        done += all_calls(asked.rows, options.runs)
        tell(system, asked, study, results)


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


if __name__ == "__main__":
    sys.exit(main())
