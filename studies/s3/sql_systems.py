"""SQLite, DuckDB and PostgreSQL: one text of SQL for all, each through its own Python client."""

import os
import shutil
import sqlite3

from answers import correlation
from readings import DAY_US, HOUR_US

TABLE = """CREATE TABLE readings (
  sensor INTEGER NOT NULL, at_us BIGINT NOT NULL, epoch BIGINT NOT NULL, temperature DOUBLE PRECISION NOT NULL,
  humidity DOUBLE PRECISION NOT NULL, light DOUBLE PRECISION NOT NULL, voltage DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (sensor, at_us))"""
INSERT = "INSERT INTO readings VALUES (?, ?, ?, ?, ?, ?, ?)"
READ = "SELECT * FROM readings WHERE sensor = ? AND at_us = ?"
UPDATE = "UPDATE readings SET temperature = temperature + ? WHERE sensor = ? AND at_us >= ? AND at_us < ?"
DELETE = "DELETE FROM readings WHERE sensor = ? AND at_us >= ? AND at_us < ?"
LAST_READINGS = """SELECT r.* FROM readings r
  JOIN (SELECT sensor, max(at_us) AS newest FROM readings GROUP BY sensor) n
  ON r.sensor = n.sensor AND r.at_us = n.newest ORDER BY r.sensor"""
AVG_SENSOR = "SELECT sensor, avg(temperature) FROM readings GROUP BY sensor ORDER BY sensor"
HOT_SENSORS = """SELECT sensor, avg(temperature) AS mean FROM readings GROUP BY sensor
  HAVING avg(temperature) > ? AND count(*) >= ? ORDER BY mean DESC, sensor LIMIT ?"""
ANOMALIES = """WITH means AS (SELECT sensor, avg(temperature) AS mean, count(*) AS n FROM readings GROUP BY sensor),
  spreads AS (
    SELECT r.sensor, m.mean, sum((r.temperature - m.mean) * (r.temperature - m.mean)) / (m.n - 1) AS variance
    FROM readings r JOIN means m ON r.sensor = m.sensor WHERE m.n > 1 GROUP BY r.sensor, m.mean, m.n)
  SELECT r.sensor, r.at_us, r.temperature FROM readings r JOIN spreads s ON r.sensor = s.sensor
  WHERE (r.temperature - s.mean) * (r.temperature - s.mean) > 4 * s.variance ORDER BY r.sensor, r.at_us"""
DAILY_SUMMARY = f"""SELECT sensor, at_us - at_us % {DAY_US} AS day, min(temperature), max(temperature), avg(temperature)
  FROM readings GROUP BY sensor, at_us - at_us % {DAY_US} ORDER BY sensor, day"""
OUTAGES = f"""SELECT sensor, before_us, at_us FROM (
    SELECT sensor, at_us, LAG(at_us) OVER (PARTITION BY sensor ORDER BY at_us) AS before_us FROM readings) gaps
  WHERE at_us - before_us > {HOUR_US} ORDER BY sensor, at_us"""
TOPK_SENSORS = """SELECT sensor, avg(temperature) AS mean FROM readings GROUP BY sensor
  ORDER BY mean DESC, sensor LIMIT ?"""
COMPARE_TWO = f"""WITH hourly AS (
    SELECT sensor, at_us - at_us % {HOUR_US} AS hour, avg(temperature) AS mean FROM readings
    WHERE sensor = ? OR sensor = ? GROUP BY sensor, at_us - at_us % {HOUR_US}),
  pairs AS (SELECT x.mean AS x, y.mean AS y FROM hourly x JOIN hourly y ON x.hour = y.hour
    WHERE x.sensor = ? AND y.sensor = ?),
  means AS (SELECT avg(x) AS x, avg(y) AS y FROM pairs)
  SELECT count(*), sum((p.x - m.x) * (p.y - m.y)), sum((p.x - m.x) * (p.x - m.x)), sum((p.y - m.y) * (p.y - m.y))
  FROM pairs p CROSS JOIN means m"""
COUNT = "SELECT count(*) FROM readings"
ALL = "SELECT * FROM readings ORDER BY sensor, at_us"


def emptied(folder):
    """The folder, new and empty: the database of the run before is gone."""
    if os.path.exists(folder):
        shutil.rmtree(folder)
    os.makedirs(folder)
    return folder


class SqlSystem:
    """What the three have in common: a connection with execute(), in one transaction until commit()."""

    own_profile = False
    """FULL_PROFILE is the one of the study."""

    def _all(self, sql, *values):
        return self._execute(sql, values).fetchall()

    def insert(self, reading):
        """One row."""
        self._execute(INSERT, reading)

    def read(self, sensor, at_us):
        """One row, whole."""
        return self._execute(READ, (sensor, at_us)).fetchone()

    def last_readings(self):
        """As answers.last_readings()."""
        return self._all(LAST_READINGS)

    def update(self, sensor, start_us, end_us, add):
        """Adds to the temperatures of a time range; how many rows."""
        return self._changed(UPDATE, add, sensor, start_us, end_us)

    def delete(self, sensor, start_us, end_us):
        """Removes a time range; how many rows."""
        return self._changed(DELETE, sensor, start_us, end_us)

    def _changed(self, sql, *values):
        return self._execute(sql, values).rowcount

    def avg_sensor(self):
        """As answers.avg_sensor()."""
        return self._all(AVG_SENSOR)

    def hot_sensors(self, above, at_least, k):
        """As answers.hot_sensors()."""
        return self._all(HOT_SENSORS, above, at_least, k)

    def anomalies(self):
        """As answers.anomalies()."""
        return self._all(ANOMALIES)

    def daily_summary(self):
        """As answers.daily_summary()."""
        return self._all(DAILY_SUMMARY)

    def outages(self):
        """As answers.outages()."""
        return self._all(OUTAGES)

    def topk_sensors(self, k):
        """As answers.topk_sensors()."""
        return self._all(TOPK_SENSORS, k)

    def compare_two(self, one, other):
        """As answers.compare_two()."""
        return correlation(*self._all(COMPARE_TWO, one, other, one, other)[0])

    def count(self):
        """Rows that there are."""
        return self._all(COUNT)[0][0]

    def everything(self):
        """All rows, by sensor and time: for the check after all phases."""
        return self._all(ALL)

    def begin(self):
        """One transaction until commit()."""
        self._execute("BEGIN")

    def commit(self):
        """The rows are on the medium."""
        self._execute("COMMIT")


class Sqlite(SqlSystem):
    """Through Python's own module."""

    version = sqlite3.sqlite_version

    def __init__(self, folder):
        self._folder = folder

    def create(self):
        """A new database with an empty table."""
        path = os.path.join(emptied(self._folder), "readings.sqlite")
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._execute = self._connection.execute
        self._execute(TABLE)

    def insert_all(self, readings):
        """What a user does who has them all at once."""
        self._connection.executemany(INSERT, readings)

    def close(self):
        """The files are closed."""
        self._connection.close()


class Duckdb(SqlSystem):
    """Through the `duckdb` wheel."""

    def __init__(self, folder):
        import duckdb

        self.version = duckdb.__version__
        self._connect = duckdb.connect
        self._folder = folder

    def create(self):
        """A new database with an empty table."""
        self._connection = self._connect(os.path.join(emptied(self._folder), "readings.duckdb"))
        self._execute = self._connection.execute
        self._execute(TABLE)

    def _changed(self, sql, *values):
        return self._execute(sql, values).fetchone()[0]

    def insert_all(self, readings):
        """What a user does who has them all at once: a file, read by the database."""
        path = os.path.join(self._folder, "readings.csv")
        with open(path, "w", encoding="ascii") as out:
            out.writelines(",".join(map(repr, reading)) + "\n" for reading in readings)
        self._execute("COPY readings FROM '" + path.replace("'", "''") + "' (FORMAT csv, HEADER false)")
        os.remove(path)

    def close(self):
        """The files are closed."""
        self._connection.close()
