"""The 13 phases of the study: what each calls, and what it has to answer."""

import random

import answers
from readings import SENSORS

ADD = 0.5
"""Degrees by which UPDATE mends temperatures."""
ABOVE = 22.0
"""Degrees above which a sensor is hot."""
K = 10
PAIR = (1, 2)
"""Sensors that are compared."""
PROGRESS_EVERY = 4096
"""Calls between two words about how far a phase is."""


class Parameters:
    """What the phases ask, and what has to be answered: of one sample, the same for all systems."""

    def __init__(self, readings, seed):
        """`readings`: the sample, in the order of loading."""
        self.readings = readings
        self.rows, self.sensors = len(readings), SENSORS
        first, last = readings[0].at_us, readings[-1].at_us + 1
        tenth = (last - first) // 10
        self.updated = (first + 4 * tenth, first + 5 * tenth)
        self.deleted = (first, first + tenth)
        self.at_least = max(1, self.rows // SENSORS // 2)
        self.points = list(readings)
        random.Random(f"points {seed}").shuffle(self.points)
        self._expect()

    def _expect(self):
        """The answer of each phase, by plain Python."""
        rows = sorted(self.readings)
        self.expected = {
            "LOAD": [(self.rows,)],
            "READ": self.points,
            "LAST_READINGS": answers.last_readings(rows),
        }
        self.expected["UPDATE"] = self._counts(rows, *self.updated)
        start, end = self.updated
        rows = [
            row._replace(temperature=row.temperature + ADD) if start <= row.at_us < end else row
            for row in rows
        ]
        self.expected["DELETE"] = self._counts(rows, *self.deleted)
        start, end = self.deleted
        rows = [row for row in rows if not start <= row.at_us < end]
        self.expected |= {
            "AVG_SENSOR": answers.avg_sensor(rows),
            "HOT_SENSORS": answers.hot_sensors(rows, ABOVE, self.at_least, K),
            "ANOMALIES": answers.anomalies(rows),
            "DAILY_SUMMARY": answers.daily_summary(rows),
            "OUTAGES": answers.outages(rows),
            "TOPK_SENSORS": answers.topk_sensors(rows, K),
            "COMPARE_TWO": answers.compare_two(*([row for row in rows if row.sensor == one] for one in PAIR)),
        }
        parts = ("AVG_SENSOR", "DAILY_SUMMARY", "OUTAGES", "TOPK_SENSORS")
        self.expected["FULL_PROFILE"] = [row for part in parts for row in self.expected[part]]
        self.rows_left = rows
        self.newest_values = answers.newest_values(self.expected["LAST_READINGS"])

    def _counts(self, rows, start, end):
        """[(rows of a time range)], sensor by sensor."""
        found = dict.fromkeys(range(1, SENSORS + 1), 0)
        for row in rows:
            found[row.sensor] += start <= row.at_us < end
        return [(count,) for count in found.values()]


def _load(system, asked, progress):
    system.begin()
    for number, reading in enumerate(asked.readings):
        system.insert(reading)
        if not number % PROGRESS_EVERY:
            progress(number)
    system.commit()


def _read(system, asked, progress):
    found = []
    for number, point in enumerate(asked.points):
        found.append(system.read(point.sensor, point.at_us))
        if not number % PROGRESS_EVERY:
            progress(number)
    return found


def _update(system, asked, progress):
    system.begin()
    counts = []
    for sensor in range(1, SENSORS + 1):
        counts.append((system.update(sensor, *asked.updated, ADD),))
    system.commit()
    return counts


def _delete(system, asked, progress):
    system.begin()
    counts = []
    for sensor in range(1, SENSORS + 1):
        counts.append((system.delete(sensor, *asked.deleted),))
    system.commit()
    return counts


def _full_profile(system, asked, progress):
    if system.own_profile:
        return system.newest_values()
    return [*system.avg_sensor(), *system.daily_summary(), *system.outages(), *system.topk_sensors(K)]


PHASES = {
    "LOAD": _load,
    "READ": _read,
    "LAST_READINGS": lambda system, asked, progress: system.last_readings(),
    "UPDATE": _update,
    "DELETE": _delete,
    "AVG_SENSOR": lambda system, asked, progress: system.avg_sensor(),
    "HOT_SENSORS": lambda system, asked, progress: system.hot_sensors(ABOVE, asked.at_least, K),
    "ANOMALIES": lambda system, asked, progress: system.anomalies(),
    "DAILY_SUMMARY": lambda system, asked, progress: system.daily_summary(),
    "OUTAGES": lambda system, asked, progress: system.outages(),
    "TOPK_SENSORS": lambda system, asked, progress: system.topk_sensors(K),
    "COMPARE_TWO": lambda system, asked, progress: system.compare_two(*PAIR),
    "FULL_PROFILE": _full_profile,
}
"""In the order in which they run: each finds what those before it have left."""
CALLS = {"LOAD": "rows", "READ": "rows", "UPDATE": "sensors", "DELETE": "sensors"}
"""Phases of many calls, whose loops in Python are measured without a database as well -> one for each of what."""

CHANGES = ("LOAD", "UPDATE", "DELETE")
"""Phases that cannot be done twice; where one that only reads takes little time, it is."""


class Nothing:
    """A system that stores and answers nothing: what is left is the harness."""

    def begin(self):
        """Does nothing."""

    commit = begin

    def insert(self, reading):
        """Does nothing."""

    def read(self, sensor, at_us):
        """Finds nothing."""

    def update(self, sensor, start_us, end_us, add):
        """Changes nothing."""

    def delete(self, sensor, start_us, end_us):
        """Removes nothing."""
