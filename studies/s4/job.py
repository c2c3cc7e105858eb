"""Runs the study on one time-series database: inserts points, then runs three queries, each cold and then repeated.

    python3 job.py SYSTEM --storage FOLDER --server COMMANDS [--points N] [--repeats 5] [--dataset FILE]

SYSTEM is influxdb, questdb or mongodb. Exit status 0: success; 1: an answer is wrong; 2: it cannot be measured here;
3: a phase failed.
"""

import csv
import io
import itertools
import json
import os
import signal
import sys

import points
from opjoule_marks import phase
from opjoule_server import Server, ServerFault
from opjoule_study import (
    LEAST_S,
    Progress,
    Results,
    WrongAnswer,
    ended,
    one_line,
    parser,
    read_at_least,
    spread_s,
)
from points import QUERIES, ROWS, agrees, digest, expected, rows_of
from systems import PLAIN, TIME_SERIES, InfluxDb, MongoDb, QuestDb, batch

SYSTEMS = {"influxdb": InfluxDb, "questdb": QuestDb, "mongodb": MongoDb}
BATCH = 10_000
SPACE = {"influxdb": (5_000_000, 40), "questdb": (300_000_000, 80), "mongodb": (400_000_000, 250)}
"""System -> (maximum bytes before the first point, maximum bytes for each point including logs and compactions).

docs/reference/study-s4.md describes how they were measured; MongoDB's are estimates.
"""
CSV_BYTES = 50
"""Maximum size [B] of a drawn point as a line of the CSV file, which is stored next to the server's files."""
NOT_KEPT = "the server keeps nothing when it is restarted: a stand-in"


def main():
    """Measures one system. Returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = _arguments()
    if options.check:
        return _check(options)
    server = Server(options.server, os.path.join(options.folder, "server.log"))
    measurement = Measurement(options, server)
    try:
        return ended(measurement.run, options.system, lambda: measurement.now, ServerFault)
    finally:
        server.stop()


def _arguments():
    made = parser(__doc__, sorted(SYSTEMS))
    add = made.add_argument
    add("--server", default="", metavar="COMMANDS", help="commands that start it: JSON (opjoule_server.py)")
    add(
        "--collection",
        default=PLAIN,
        choices=(PLAIN, TIME_SERIES),
        help="kind of MongoDB's collection (default: plain)",
    )
    add("--points", type=int, default=100_000, metavar="N", help="maximum number of points (default: 100000)")
    add("--cold", type=int, default=3, metavar="N", help="cold runs of each query (default: 3)")
    add(
        "--repeats",
        type=int,
        default=5,
        metavar="N",
        help="runs of each query after the cold ones (default: 5)",
    )
    add("--dataset", default="", metavar="FILE", help="the study's CSV file (default: drawn points)")
    return made.parse_args()


def _check(options):
    """Checks that client and data are there. Returns the exit status."""
    try:
        if options.system == "mongodb":
            import pymongo  # noqa: F401
        if options.dataset:
            next(points.read(options.dataset, 1, {}), None)
    except ImportError as error:
        print(f"job.py: mongodb's Python client is missing ({error}): pip install pymongo", file=sys.stderr)
        return 2
    except (OSError, points.BadData) as error:
        print(f"job.py: {error}", file=sys.stderr)
        return 2
    before, for_point = SPACE[options.system]
    drawn = 0 if options.dataset else CSV_BYTES
    print(json.dumps({"bytes": before + options.points * (for_point + drawn)}))
    return 0


class Measurement:
    """All phases of one system."""

    def __init__(self, options, server):
        self._options, self._server = options, server
        self._path = options.dataset or os.path.join(options.folder, "points.csv")
        self._client, self._kept, self._progress = None, True, Progress()
        self._cannot = {}
        """Query -> reason why the server does not answer it."""
        self._software = ("", "")
        """(server with its version, name of the software that it stands in for)"""
        self._stopped_bytes = None
        self._digests = {}
        """Query -> (number of its rows, their digest)."""
        self.now = "starting"
        """The current phase."""
        self._seconds, self._times = {}, {}
        """Phase -> durations [s], each the mean over the calls within one mark; phase -> number of calls."""

    def run(self):
        """Runs all phases. Raises: WrongAnswer, ServerFault, or any exception of the client."""
        options = self._options
        self._software = self._named()
        if not options.dataset:
            points.draw(self._path, options.points, options.seed)
        left_out = {}
        wanted = expected(points.read(self._path, options.points, left_out))
        count = wanted["Q1"][0]
        about = "SYNTHETIC points" if not options.dataset else f"points of {os.path.basename(options.dataset)}"
        without = "".join(f", {number} lines {why}" for why, number in sorted(left_out.items()))
        print(f"{self._software[0]}, {count} {about}{without}", flush=True)
        self._timed("HARNESS_INGEST", lambda: self._batches(batch), LEAST_S)
        self._timed("HARNESS_Q1", lambda: self._parse(count), LEAST_S)
        self.now = "start"
        self._server.start()
        self._client = self._connected()
        self._client.create()
        self._cannot = getattr(self._client, "cannot", {})
        self._timed("INGEST", lambda: self._ingest(count))
        sizes = {"allocated_bytes": self._server.stored_bytes()}
        self._check("INGEST", [self._client.count()], [count])
        self._see_what_is_kept(count)
        for query in QUERIES:
            if query not in self._cannot:
                self._query(query, wanted[query], count)
        self._client.close()
        self._tell(wanted, count, {**sizes, "stored_bytes": self._stopped_bytes})

    def _named(self):
        """(server with its version, name of the software that it stands in for).

        The server is started once, so that it is known before points are made whether it accepts this client.

        Raises: ServerFault: it does not start, or does not accept the client.
        """
        self._server.start()
        client = self._connected()
        try:
            title = self._server.title
            is_mongodb = self._options.system == "mongodb"
            other = client.other_server() if is_mongodb else ""
            plain = (
                "a plain collection: it has none of time series" if is_mongodb and client.lacks_time_series() else ""
            )
            named = ", ".join(filter(None, (f"{title} {client.version()}", other, plain)))
            return named, f"{title}'s collection of time series" if plain else title if other else ""
        except Exception as error:
            raise ServerFault(f"{self._server.title} does not accept this client: {one_line(error)}") from None
        finally:
            client.close()
            self._server.stop()

    def _connected(self):
        """A client of the server."""
        system = self._options.system
        more = [self._options.collection] if system == "mongodb" else []
        return SYSTEMS[system](self._server.address, *more)

    def _timed(self, name, work, least_s=0.0):
        """Does work in a marked phase of at least `least_s`. Returns: first answer and, if repeated, last one."""
        self.now = name
        with phase(name):
            done = read_at_least(work, least_s)
        self._seconds.setdefault(name, []).append(done.mean_s)
        self._times[name] = self._times.get(name, 0) + done.times
        return done.answers

    def _batches(self, take):
        """Calls `take` with batches of all points."""
        held, done = [], 0
        for point in points.read(self._path, self._options.points, {}):
            held.append(point)
            if len(held) == BATCH:
                take(held)
                done += len(held)
                held = []
                self._progress.tell(done)
        if held:
            take(held)

    def _ingest(self, count):
        self._batches(self._client.insert)
        self._client.settle(count)

    def _parse(self, count):
        """Parses as many rows of CSV as Q1 returns, from memory, with the same batch repeatedly."""
        text = io.StringIO(newline="")
        csv.writer(text).writerows(points.read(self._path, min(count, BATCH), {}))
        total = 0.0
        while count > 0:
            text.seek(0)
            total += sum(float(row[1]) for row in itertools.islice(csv.reader(text), count))
            count -= BATCH
        return total

    def _query(self, query, wanted, count):
        """Runs one query, first cold, then repeatedly."""
        ask = query.lower()
        for _ in range(self._options.cold if self._kept else 0):
            self._restart()
            (cold,) = self._timed(f"{query}_COLD", getattr(self._client, ask))
            self._check(f"{query}_COLD", cold, wanted)
        for _ in range(self._options.repeats):
            for answer in self._timed(query, getattr(self._client, ask), LEAST_S):
                self._check(query, answer, wanted)
            self._progress.tell(count)
        if query in ROWS:
            self._check_rows(query)

    def _check_rows(self, query):
        """Runs the query again outside of all phases and checks that it returns exactly the expected rows.

        Raises: WrongAnswer: rows differ.
        """
        self.now = f"the rows of {query}"
        answer = digest(getattr(self._client, f"{query.lower()}_rows")())
        wanted = digest(rows_of(query, points.read(self._path, self._options.points, {})))
        if answer != wanted:
            raise WrongAnswer(f"{query}: {answer[0]} rows of digest {answer[1]}, not {wanted[0]} of {wanted[1]}")
        self._digests[query] = wanted

    def _see_what_is_kept(self, count):
        """Checks whether the points survive a restart of the server. They are counted only here, because counting may
        read all points, so that the next query would not be cold."""
        self._restart()
        if self._client.count() != count:
            self._kept = False
            self._client.create()
            self._ingest(count)

    def _restart(self):
        """Restarts the server with none of its data in memory, and connects a client."""
        self._client.close()
        self._server.stop()
        if self._stopped_bytes is None:
            self._stopped_bytes = self._server.stored_bytes()
        self._server.forget_files()
        self._timed("START", self._server.start)
        self._client = self._connected()
        self._client.version()

    def _check(self, name, answer, wanted):
        """Compares an answer with the expected one. Raises: WrongAnswer: they differ."""
        if not agrees(answer, wanted):
            raise WrongAnswer(f"{name}: {answer}, not {wanted}")

    def _tell(self, wanted, count, sizes):
        """Prints each phase's durations and answer, and writes them to the results."""
        results = Results(self._options.results) if self._options.results else None
        if results:
            results.made_by(*self._software)
        bulk = {"points_per_s": count / self._seconds["INGEST"][0], **sizes}
        rows = {"Q1": count, "Q2": wanted["Q2"][0], "Q3": count}
        for name in (
            "HARNESS_INGEST",
            "HARNESS_Q1",
            "INGEST",
            "START",
            *(f"{q}{end}" for q in QUERIES for end in ("_COLD", "")),
        ):
            query = name[:2] if name[:2] in rows else ""
            if name not in self._seconds:
                why = self._cannot.get(query, NOT_KEPT)
                print(f"{name}: not supported: {why}", flush=True)
                if results:
                    results.add(name, not_supported=why)
                continue
            seconds = self._seconds[name]
            figures = spread_s(seconds) | (bulk if name == "INGEST" else {})
            figures["calls"] = rows[query] if query else 1 if name == "START" else count
            operations = figures["calls"] * self._times[name]
            answer = wanted[query] if query else count if name == "INGEST" else None
            answer = [*answer, self._digests[query][1]] if query in ROWS else answer
            print(f"{name}: {figures['mean_s']:.4f} s ({len(seconds)} times); answer {answer}", flush=True)
            if results:
                results.add(name, operations=operations, answer=answer, **figures)


if __name__ == "__main__":
    sys.exit(main())
