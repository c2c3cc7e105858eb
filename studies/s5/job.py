"""Runs the study's tests on one system several times and marks each test.

    python3 job.py SYSTEM --storage FOLDER [--transactions row|batch] [--sync none|postgresql|sqlserver] [--runs 5]

SYSTEM is sqlite, sqlite-odbc, zen or zen-odbc. Exit status 0: success; 1: an answer is wrong; 2: it cannot be measured
here; 3: a test failed.
"""

import json
import os
import signal
import sys

import odbc
import zen
from opjoule_study import Results, Unmeasurable, check_room, ended, parser
from phases import COUNTS, TESTS, AskedRows
from sql_systems import OdbcTable, SqliteOdbcTable, SqliteTable
from study_run import ContactRun, tell

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
        odbc.has_driver(options.system, string.replace("{file}", ":memory:"))
    elif options.system != "sqlite":
        _system(options, given)
    if options.sync in given:
        _server(options, given)
    elif options.sync == "postgresql":
        odbc.has_driver(options.sync, odbc.postgresql_string(options.server or NOBODY))


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
    return OdbcTable(options.sync, odbc.postgresql_string(options.server), DURABLE)


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


if __name__ == "__main__":
    sys.exit(main())
