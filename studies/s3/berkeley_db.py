"""Berkeley DB: a B-tree whose key is sensor and time. Python answers every question over a cursor."""

import os
import struct

import answers
from opjoule_study import emptied
from phases import read_csv
from readings import SENSORS, SensorReading

_KEY = struct.Struct(">HQ")
"""Big-endian, so that the keys sort by sensor, then by time."""
_VALUE = struct.Struct("<q4d")


def _module():
    """Its Python client: PyPI's `berkeleydb`, or Debian's python3-bsddb3, which has the same calls."""
    try:
        from berkeleydb import db
    except ImportError:
        from bsddb3 import db
    return db


def _of_all(question):
    """A method that answers one of the questions in answers.py from all rows."""
    return lambda system, *values: question(system._scan(), *values)


class BerkeleyDb:
    """One database file without transactions; commit() writes the changes to the medium."""

    own_profile = True
    """True: FULL_PROFILE is a statistic over the newest values, which the process keeps."""

    has_bulk = False
    """False: its client has no call for many rows."""

    def moment(self, at_us):
        """The time unchanged; a key has microseconds."""
        return at_us

    def row(self, reading):
        """The reading unchanged."""
        return reading

    def plain(self, rows):
        """The rows unchanged."""
        return rows

    def __init__(self, folder):
        self._db = _module()
        self.version = ".".join(map(str, self._db.version()))
        self._folder = folder

    def create(self):
        """Creates a new database."""
        path = os.path.join(emptied(self._folder), "readings.db")
        self._tree = self._db.DB()
        self._tree.open(path, dbtype=self._db.DB_BTREE, flags=self._db.DB_CREATE | self._db.DB_EXCL)
        self._put, self._get = self._tree.put, self._tree.get
        self._newest = []

    def begin(self):
        """Does nothing, as there are no transactions."""

    def commit(self):
        """Writes the rows to the medium."""
        self._tree.sync()

    def load(self, path):
        """Loads the rows of a CSV file, with a put for each."""
        for reading in read_csv(path):
            self._put(_KEY.pack(reading[0], reading[1]), _VALUE.pack(*reading[2:]))

    def read(self, sensor, at_us):
        """One reading with all its fields."""
        value = self._get(_KEY.pack(sensor, at_us))
        return None if value is None else (sensor, at_us, *_VALUE.unpack(value))

    def last_readings(self):
        """As answers.last_readings(): for each sensor, the pair before the next sensor's first one."""
        cursor, newest = self._tree.cursor(), []
        for sensor in range(1, SENSORS + 1):
            pair = cursor.prev() if self._set_range(cursor, sensor + 1, 0) else cursor.last()
            if pair and (reading := _reading(pair)).sensor == sensor:
                newest.append(tuple(reading))
        cursor.close()
        self._newest = newest
        return newest

    def _set_range(self, cursor, sensor, at_us):
        """Moves the cursor to the first pair at or after a key and returns the pair; None if there is none."""
        try:
            return cursor.set_range(_KEY.pack(sensor, at_us))
        except self._db.DBNotFoundError:
            return None

    def _range(self, cursor, sensor, start_us, end_us):
        """Yields the pairs of a sensor and time range; the cursor is on the current one."""
        pair, end = self._set_range(cursor, sensor, start_us), _KEY.pack(sensor, end_us)
        while pair and pair[0] < end:
            yield pair
            pair = cursor.next()

    def update(self, add, sensor, start_us, end_us):
        """Adds to the temperatures of a time range. Returns: number of rows."""
        cursor, count = self._tree.cursor(), 0
        for key, value in self._range(cursor, sensor, start_us, end_us):
            epoch, temperature, *rest = _VALUE.unpack(value)
            cursor.put(key, _VALUE.pack(epoch, temperature + add, *rest), self._db.DB_CURRENT)
            count += 1
        cursor.close()
        return count

    def update_row(self, add, sensor, at_us):
        """Adds to the temperature of a row, with a get and a put. Returns: number of rows."""
        key = _KEY.pack(sensor, at_us)
        epoch, temperature, *rest = _VALUE.unpack(self._get(key))
        self._put(key, _VALUE.pack(epoch, temperature + add, *rest))
        return 1

    def delete_row(self, sensor, at_us):
        """Removes a row. Returns: number of rows."""
        self._tree.delete(_KEY.pack(sensor, at_us))
        return 1

    def delete(self, sensor, start_us, end_us):
        """Removes a time range. Returns: number of rows."""
        cursor, count = self._tree.cursor(), 0
        for _ in self._range(cursor, sensor, start_us, end_us):
            cursor.delete()
            count += 1
        cursor.close()
        return count

    def _scan(self):
        cursor = self._tree.cursor()
        pair = cursor.first()
        while pair:
            yield _reading(pair)
            pair = cursor.next()
        cursor.close()

    def _of_sensor(self, sensor):
        cursor = self._tree.cursor()
        for pair in self._range(cursor, sensor, 0, (1 << 64) - 1):
            yield _reading(pair)
        cursor.close()

    avg_sensor, hot_sensors = _of_all(answers.avg_sensor), _of_all(answers.hot_sensors)
    anomalies, daily_summary = _of_all(answers.anomalies), _of_all(answers.daily_summary)
    outages, topk_sensors = _of_all(answers.outages), _of_all(answers.topk_sensors)

    def compare_two(self, one, other):
        """As answers.compare_two()."""
        return answers.compare_two(self._of_sensor(one), self._of_sensor(other))

    def newest_values(self):
        """As answers.newest_values(), for the values that LAST_READINGS has kept in the process."""
        return answers.newest_values(self._newest)

    def count(self):
        """Number of pairs."""
        return self._tree.stat()["nkeys"]

    def everything(self):
        """All rows, ordered by sensor and time."""
        return [tuple(reading) for reading in self._scan()]

    def close(self):
        """Closes the file."""
        self._tree.close()


def _reading(pair):
    return SensorReading(*_KEY.unpack(pair[0]), *_VALUE.unpack(pair[1]))
