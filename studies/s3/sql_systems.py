"""SQLite, DuckDB and PostgreSQL: shared SQL statements, each system through its own Python client."""

import os
import sqlite3
from datetime import date, datetime
from functools import cache
from typing import NamedTuple

from answers import correlation
from opjoule_study import Unmeasurable, emptied, one_line
from phases import read_csv
from readings import moment_of, us_of

INSERT = "INSERT INTO readings VALUES (?, ?, ?, ?, ?, ?, ?)"
READ = "SELECT * FROM readings WHERE sensor = ? AND taken_at = ?"
UPDATE = "UPDATE readings SET temperature = temperature + ? WHERE sensor = ? AND taken_at >= ? AND taken_at < ?"
UPDATE_ROW = "UPDATE readings SET temperature = temperature + ? WHERE sensor = ? AND taken_at = ?"
DELETE = "DELETE FROM readings WHERE sensor = ? AND taken_at >= ? AND taken_at < ?"
DELETE_ROW = "DELETE FROM readings WHERE sensor = ? AND taken_at = ?"
LAST_READINGS = """SELECT r.* FROM readings r
  JOIN (SELECT sensor, max(taken_at) AS newest FROM readings GROUP BY sensor) n
  ON r.sensor = n.sensor AND r.taken_at = n.newest ORDER BY r.sensor"""
AVG_SENSOR = "SELECT sensor, avg(temperature) FROM readings GROUP BY sensor ORDER BY sensor"
HOT_SENSORS = """SELECT sensor, avg(temperature) AS mean FROM readings GROUP BY sensor
  HAVING avg(temperature) > ? AND count(*) >= ? ORDER BY mean DESC, sensor LIMIT ?"""
ANOMALIES = """WITH means AS (SELECT sensor, avg(temperature) AS mean, count(*) AS n FROM readings GROUP BY sensor),
  spreads AS (
    SELECT r.sensor, m.mean, sum((r.temperature - m.mean) * (r.temperature - m.mean)) / (m.n - 1) AS variance
    FROM readings r JOIN means m ON r.sensor = m.sensor WHERE m.n > 1 GROUP BY r.sensor, m.mean, m.n)
  SELECT r.sensor, r.taken_at, r.temperature FROM readings r JOIN spreads s ON r.sensor = s.sensor
  WHERE (r.temperature - s.mean) * (r.temperature - s.mean) > 4 * s.variance ORDER BY r.sensor, r.taken_at"""
TOPK_SENSORS = """SELECT sensor, avg(temperature) AS mean FROM readings GROUP BY sensor
  ORDER BY mean DESC, sensor LIMIT ?"""
COUNT = "SELECT count(*) FROM readings"
ALL = "SELECT * FROM readings ORDER BY sensor, taken_at"


class TimeSql(NamedTuple):
    """SQL for times, the only part in which the systems' SQL differs."""

    column: str
    """Type of a time."""
    day: str
    hour: str
    """`day` and `hour`: expressions for the beginning of a time's day and hour."""
    hour_apart: str
    """Condition: `taken_at` is more than an hour after `before_at`."""

    def table(self):
        """The table. The study names no primary key; sensor and time are used, as it asks for points by both."""
        return f"""CREATE TABLE readings (
          sensor INTEGER NOT NULL, taken_at {self.column} NOT NULL, epoch BIGINT NOT NULL,
          temperature DOUBLE PRECISION NOT NULL, humidity DOUBLE PRECISION NOT NULL,
          light DOUBLE PRECISION NOT NULL, voltage DOUBLE PRECISION NOT NULL, PRIMARY KEY (sensor, taken_at))"""

    def daily_summary(self):
        """Lowest, highest and mean temperature by sensor and day."""
        return f"""SELECT sensor, {self.day} AS day, min(temperature), max(temperature), avg(temperature)
          FROM readings GROUP BY sensor, {self.day} ORDER BY sensor, day"""

    def outages(self):
        """Gaps of more than one hour."""
        return f"""SELECT sensor, before_at, taken_at FROM (
            SELECT sensor, taken_at, LAG(taken_at) OVER (PARTITION BY sensor ORDER BY taken_at) AS before_at
            FROM readings) gaps WHERE {self.hour_apart} ORDER BY sensor, taken_at"""

    def compare_two(self):
        """Sums of products and squares about the means of two sensors' hourly means."""
        return f"""WITH hourly AS (
            SELECT sensor, {self.hour} AS hour, avg(temperature) AS mean FROM readings
            WHERE sensor = ? OR sensor = ? GROUP BY sensor, {self.hour}),
          pairs AS (SELECT x.mean AS x, y.mean AS y FROM hourly x JOIN hourly y ON x.hour = y.hour
            WHERE x.sensor = ? AND y.sensor = ?),
          means AS (SELECT avg(x) AS x, avg(y) AS y FROM pairs)
          SELECT count(*), sum((p.x - m.x) * (p.y - m.y)), sum((p.x - m.x) * (p.x - m.x)),
            sum((p.y - m.y) * (p.y - m.y)) FROM pairs p CROSS JOIN means m"""


WITH_TIMES = TimeSql(
    "TIMESTAMP",
    "date_trunc('day', taken_at)",
    "date_trunc('hour', taken_at)",
    "taken_at - before_at > INTERVAL '1 hour'",
)
"""DuckDB and PostgreSQL."""
_SECOND = "CAST(strftime('%s', substr({0}, 1, 19)) AS INTEGER)"
WITH_TEXTS = TimeSql(
    "TEXT",
    "substr(taken_at, 1, 10)",
    "substr(taken_at, 1, 13)",
    f"({_SECOND.format('taken_at')} - {_SECOND.format('before_at')}) * 1000000"
    " + CAST(substr(taken_at, 21) AS INTEGER) - CAST(substr(before_at, 21) AS INTEGER) > 3600000000",
)
"""SQLite, which stores times as text (ISO 8601). Its own date functions are not used, because they round to
milliseconds, which would move a microsecond before midnight to the next day."""


def _plain(value):
    """A value of an answer; a time becomes microseconds since 1970."""
    if isinstance(value, str):
        value = datetime.fromisoformat(f"{value}:00" if len(value) == len("2004-02-28 00") else value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return us_of(value) if isinstance(value, datetime) else value


def _question(sql):
    """A method that returns the rows of one statement."""
    return lambda system, *values: system._all(sql, *values)


def _change(sql):
    """A method that executes one statement and returns the number of changed rows."""
    return lambda system, *values: system._changed(sql, *values)


class SqlSystem:
    """Common base of the three: a connection with execute(), in one transaction until commit()."""

    own_profile = False
    """False: FULL_PROFILE is the study's."""
    has_bulk = True
    """True: LOAD uses another call than LOAD_ROWS."""
    time_sql = WITH_TIMES

    def moment(self, at_us):
        """A time in the client's form."""
        return moment_of(at_us)

    def row(self, reading):
        """A reading in the client's form."""
        return (reading.sensor, self.moment(reading.at_us), *reading[2:])

    def plain(self, rows):
        """An answer with its times in microseconds, as in answers.py."""
        return [tuple(map(_plain, row)) for row in rows]

    def _all(self, sql, *values):
        return self._execute(sql, values).fetchall()

    def _changed(self, sql, *values):
        return self._execute(sql, values).rowcount

    def insert(self, row):
        """Inserts one row."""
        self._execute(INSERT, row)

    def read(self, sensor, at):
        """One row with all its columns."""
        return self._execute(READ, (sensor, at)).fetchone()

    update, delete = _change(UPDATE), _change(DELETE)
    """Adds to the temperatures of a time range, or removes its rows. Returns: number of rows."""
    update_row, delete_row = _change(UPDATE_ROW), _change(DELETE_ROW)
    """Adds to the temperature of a row, or removes the row. Returns: number of rows."""
    last_readings, avg_sensor, anomalies = map(_question, (LAST_READINGS, AVG_SENSOR, ANOMALIES))
    hot_sensors, topk_sensors = _question(HOT_SENSORS), _question(TOPK_SENSORS)
    """As the functions with these names in answers.py."""
    everything = _question(ALL)
    """All rows, ordered by sensor and time, for the check after all phases."""

    def daily_summary(self):
        """As answers.daily_summary()."""
        return self._all(self.time_sql.daily_summary())

    def outages(self):
        """As answers.outages()."""
        return self._all(self.time_sql.outages())

    def compare_two(self, one, other):
        """As answers.compare_two()."""
        return correlation(*self._all(self.time_sql.compare_two(), one, other, one, other)[0])

    def count(self):
        """Number of rows."""
        return self._all(COUNT)[0][0]

    def begin(self):
        """Begins a transaction that lasts until commit()."""
        self._execute("BEGIN")

    def commit(self):
        """Commits; the rows are then on the medium."""
        self._execute("COMMIT")

    def close(self):
        """Closes the connection; a server keeps running."""
        self._connection.close()


class SqlFile(SqlSystem):
    """A database in a file on the measured medium."""

    def __init__(self, folder):
        self._folder = folder

    def create(self):
        """Creates a new database with an empty table."""
        self._connection = self._connect(os.path.join(emptied(self._folder), "readings.database"))
        self._execute = self._connection.execute
        self._execute(self.time_sql.table())


class Sqlite(SqlFile):
    """SQLite through Python's own module."""

    version = sqlite3.sqlite_version
    time_sql = WITH_TEXTS

    def moment(self, at_us):
        """The time as text, ISO 8601, with a fixed length."""
        return moment_of(at_us).isoformat(" ", "microseconds")

    def _connect(self, path):
        return sqlite3.connect(path, isolation_level=None)

    def load(self, path):
        """Loads the rows of a CSV file with the client's call for many rows."""
        self._connection.executemany(INSERT, map(self.row, read_csv(path)))


class Duckdb(SqlFile):
    """DuckDB through the `duckdb` wheel."""

    def __init__(self, folder):
        import duckdb

        super().__init__(folder)
        self.version, self._connect = duckdb.__version__, duckdb.connect

    def _changed(self, sql, *values):
        return self._execute(sql, values).fetchone()[0]

    def load(self, path):
        """Loads the rows of a CSV file, which the database reads itself."""
        self._execute("COPY readings FROM '" + path.replace("'", "''") + "' (FORMAT csv, HEADER false)")


OLDEST_SERVER, OLDEST_CLIENT = 12, (3, 1)


def client():
    """The module psycopg. Raises: Unmeasurable: it is missing, or too old."""
    try:
        import psycopg
    except ImportError as error:
        raise Unmeasurable(f"PostgreSQL's Python client is missing ({error}): pip install 'psycopg[binary]'") from None
    version = tuple(int(part) for part in psycopg.__version__.split(".")[:2])
    if version < OLDEST_CLIENT:
        oldest = ".".join(map(str, OLDEST_CLIENT))
        raise Unmeasurable(f"psycopg {psycopg.__version__} is too old: pip install 'psycopg[binary]>={oldest}'")
    return psycopg


@cache
def _spelled(sql):
    """The shared SQL with psycopg's placeholder for values; converted once for each statement."""
    return sql.replace("%", "%%").replace("?", "%s")


class Postgresql(SqlSystem):
    """One database of a server."""

    def __init__(self, address):
        """Checks that the server answers and is new enough.

        Args:
            address: in libpq's form, postgresql://USER@HOST:PORT/DATABASE?...
        Raises: Unmeasurable: it does not answer (in libpq's own words), or is too old.
        """
        if not address:
            raise Unmeasurable("--server is missing: the address of a running PostgreSQL, postgresql://...")
        self._connect = lambda: client().connect(address, autocommit=True)
        try:
            with client().connect(address, connect_timeout=10) as connection:
                version = connection.info.server_version
        except client().Error as error:
            raise Unmeasurable(f"PostgreSQL does not accept this client: {one_line(error)}") from None
        if version < OLDEST_SERVER * 10_000:
            raise Unmeasurable(f"PostgreSQL {OLDEST_SERVER} or later is needed, but this is {version // 10_000}")
        self.version = f"{version // 10_000}.{version % 10_000}"

    def create(self):
        """Replaces the table by an empty one. A commit waits for the log, as in PostgreSQL's default settings."""
        self._connection = self._connect()
        self._cursor = self._connection.cursor()
        self._execute("SET synchronous_commit TO on")
        self._execute("DROP TABLE IF EXISTS readings")
        self._execute(self.time_sql.table())

    def _execute(self, sql, values=()):
        return self._cursor.execute(_spelled(sql), values)

    def load(self, path):
        """Loads the rows of a CSV file, which are sent to the server unchanged."""
        with self._cursor.copy("COPY readings FROM STDIN (FORMAT csv)") as copy, open(path, "rb") as lines:
            for block in iter(lambda: lines.read(1 << 16), b""):
                copy.write(block)
