"""Runs the study's tests on one system several times and marks each test.

    python3 job.py SYSTEM --storage FOLDER [--transactions row|batch] [--sync none|postgresql|sqlserver] [--runs 5]

SYSTEM is sqlite, sqlite-odbc, zen or zen-odbc. Exit status 0: success; 1: an answer is wrong; 2: it cannot be measured
here; 3: a test failed.
"""

import json
import os
import signal
import statistics
import sys

import zen
from opjoule_marks import phase
from opjoule_study import Progress, Results, Unmeasurable, WrongAnswer, check_room, ended, parser, read_at_least
from phases import COUNTS, LOOPS, READS, TESTS, UNCHANGING, AskedRows, NoTable, digest
from sql_systems import OdbcTable, SqliteOdbcTable, SqliteTable, has_driver, postgresql_string

SYSTEMS = ("sqlite", "sqlite-odbc", "zen", "zen-odbc")
SERVERS = ("none", "postgresql", "sqlserver")
BYTES = {
    "sqlite": (1_000_000, 600),
    "sqlite-odbc": (1_000_000, 600),
    "zen": (5_000_000, 1_500),
    "zen-odbc": (0, 0),
}
"""System -> (bytes before the first row, bytes for each row including its log). Zen's ODBC database is elsewhere."""
SERVER_BYTES = (80_000_000, 4_000)
"""The same for a PostgreSQL that the rig has started on the medium."""
NOBODY = "postgresql://nobody@127.0.0.1:1/none"
DURABLE = ("SET synchronous_commit TO on",)
"""Setting of a PostgreSQL that the rig has started: a commit waits for the log, as in PostgreSQL's default settings."""


def main():
    """Measures one system. Returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = _arguments()
    try:
        given = _connections(options.connections)
        for name in (options.system, options.sync):
            if name in ("zen-odbc", "sqlserver") and name not in given:
                raise Unmeasurable(
                    f"{name}: give its ODBC connection string, as '{name} = ...' in the file of --connections"
                )
        needed = _needed(options, given)
        if options.check:
            _check(options, given)
            rows = sum(getattr(options, count) for count in COUNTS.values())
            print(json.dumps({"bytes": needed, "operations": rows * options.runs}))
            return 0
        counts = options.opens, options.rows, options.by_state, options.by_zip
        asked = AskedRows(*counts, options.seed, batch=options.transactions == "batch")
        system, server = _system(options, given), _server(options, given)
    except (Unmeasurable, OSError) as error:
        print(f"job.py: {error}", file=sys.stderr)
        return 2
    now = ["starting"]
    return ended(lambda: _measure(system, server, asked, options, now), options.system, lambda: now[0])


def _arguments():
    made = parser(__doc__, SYSTEMS)
    add = made.add_argument
    transactions = "one transaction for each row, or one for each test"
    add("--transactions", choices=("row", "batch"), default="row", help=transactions)
    add("--sync", choices=SERVERS, default="none", help="server to which each transaction is carried")
    add("--server", default="", metavar="ADDRESS", help="address of a PostgreSQL for --sync: postgresql://...")
    connections = "file with a line NAME = ODBC connection string, or library, for each"
    add("--connections", default="", metavar="FILE", help=connections)
    add("--opens", type=int, default=250, metavar="N", help="connections of T1 (default: 250)")
    add("--rows", type=int, default=25_000, metavar="N", help="rows of the table (default: 25000)")
    add("--by-state", type=int, default=10_000, metavar="N", help="rows found by state (default: 10000)")
    add("--by-zip", type=int, default=5_000, metavar="N", help="rows found by zip (default: 5000)")
    add("--runs", type=int, default=5, metavar="N", help="runs of all tests (default: 5)")
    options = made.parse_args()
    if min(options.opens, options.by_state, options.by_zip, options.runs) < 1:
        made.error("--opens, --by-state, --by-zip and --runs must be at least 1")
    if options.rows < options.by_state + options.by_zip:
        marked = options.by_state + options.by_zip
        made.error(f"--rows {options.rows} is less than the {marked} rows that the filters find: take a larger scale")
    return options


def _connections(path):
    """Name -> connection that the user has given. Raises: OSError: the file cannot be read."""
    if not path:
        return {}
    with open(path, encoding="utf-8") as lines:
        pairs = [line.strip().partition("=") for line in lines if line.strip() and not line.startswith("#")]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _needed(options, given):
    """Maximum space that the run needs [B]. Raises: Unmeasurable: less is free, or the folder does not exist."""
    before, for_row = BYTES[options.system]
    needed = before + options.rows * for_row
    if not options.check and not os.path.isdir(options.folder):
        raise Unmeasurable(f"--storage {options.folder}: no such folder")
    if options.sync == "postgresql" and options.sync not in given:
        needed += SERVER_BYTES[0] + options.rows * SERVER_BYTES[1]
    advice = "take a smaller scale or another medium"
    check_room(options.folder, needed, options.system, options.rows, advice)
    return needed


def _check(options, given):
    """Checks that client, driver and the user's server, if any, are there; the rig starts its own server later.

    Raises: Unmeasurable: one of them is missing.
    """
    if options.system == "sqlite-odbc":
        string = given.get(options.system, SqliteOdbcTable.DEFAULT)
        has_driver(options.system, string.replace("{file}", ":memory:"))
    elif options.system != "sqlite":
        _system(options, given)
    if options.sync in given:
        _server(options, given)
    elif options.sync == "postgresql":
        has_driver(options.sync, postgresql_string(options.server or NOBODY))


def _system(options, given):
    """The system to be measured. Raises: Unmeasurable: it is missing."""
    folder = os.path.join(options.folder, "opjoule-s5")
    string = given.get(options.system, "")
    if options.system == "sqlite":
        return SqliteTable(folder)
    if options.system == "sqlite-odbc":
        return SqliteOdbcTable(folder, string or SqliteOdbcTable.DEFAULT)
    if options.system == "zen-odbc":
        return OdbcTable(options.system, string)
    return zen.ZenTable(folder, string)


def _server(options, given):
    """The table on the server; None if there is no server. Raises: Unmeasurable: it cannot be reached."""
    if options.sync == "none":
        return None
    if options.sync in given:
        return OdbcTable(options.sync, given[options.sync])
    if not options.server:
        raise Unmeasurable("--server is missing: the address of a running PostgreSQL, postgresql://...")
    return OdbcTable(options.sync, postgresql_string(options.server), DURABLE)


def _measure(system, server, asked, options, now):
    """Measures all runs, one after the other; now[0] always names the current test."""
    results = Results(options.results) if options.results else None
    if results:
        results.made_by(system.version + (f", carried to {server.version}" if server else ""))
    transactions = f"one transaction for each {'test' if asked.batch else 'row'}"
    print(f"{system.version}, {asked.rows} SYNTHETIC contacts, {transactions}", flush=True)
    if server:
        print(f"each transaction is carried to {server.version}", flush=True)
    done, runs = 0, []
    for number in range(options.runs):
        print(f"run {number + 1} of {options.runs}", flush=True)
        run = ContactRun(system, server, asked, before=done, now=now, harness=not runs)
        run.all()
        done += sum(asked.count(test) for test in TESTS)
        runs.append(run)
    tell(asked, runs, results)
    system.drop()
    if server:
        server.drop()


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


if __name__ == "__main__":
    sys.exit(main())
