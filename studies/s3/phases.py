"""The study's phases: the calls of each, their number, and the expected answer."""

import csv
import random
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import answers
from readings import SENSORS, SensorReading, us_of

ADD = 0.5
"""Degrees that UPDATE adds to temperatures."""
ABOVE = 22.0
"""Temperature above which a sensor is hot [degrees C]."""
K = 10
PAIR = (1, 2)
"""Sensors that are compared."""
PROGRESS_EVERY = 4096
"""Calls between two progress reports of a phase."""
PARTS = 60
"""Number of parts of the sample, by time, with equal numbers of rows. DELETE's runs remove the first ten in turn."""
UPDATED = (24, 30)
"""(first, last + 1) of the parts that UPDATE changes: a tenth of the rows."""


class Parameters:
    """The questions of the phases and the expected answers for one sample; the same for all systems."""

    def __init__(self, readings, seed, runs=6, dropped=1):
        """`readings`: the sample in loading order; `runs`: runs of each phase; the first `dropped` do not count."""
        self.readings, self.seed = readings, seed
        self.runs, self.dropped = runs, dropped
        self.rows = len(readings)
        self.ends = [readings[self.rows * part // PARTS].at_us for part in range(PARTS)]
        self.at_least = max(1, self.rows // SENSORS // 2)
        self.points = list(readings)
        random.Random(f"points {seed}").shuffle(self.points)
        self.left = sorted(readings)
        """Expected rows after the phases done so far, ordered by sensor and time: plain Python's table."""
        self.expected_of = {}
        """Phase -> expected answer of its last run."""

    def times(self, name):
        """(runs of a phase, number of them that are dropped)."""
        runs = min(self.runs, PHASES[name].most_runs) if name in PHASES else self.runs
        return runs, min(self.dropped, runs - 1)

    def between(self, first, after):
        """(start, end) of some parts of the sample [us]."""
        return self.ends[first], self.ends[after]

    def window(self, name, number):
        """The part of the sample that a run of DELETE or DELETE_ROWS removes; different for each run."""
        first = number if name == "DELETE" else self.times("DELETE")[0] + number
        return self.between(first, first + 1)

    def within(self, start, end):
        """The existing rows of a time range, ordered by sensor and time."""
        return [row for row in self.left if start <= row.at_us < end]

    def expected(self, name, number):
        """Expected answer of a run of a phase; makes the phase's changes in `left`."""
        answer = EXPECTED[name](self, name, number)
        self.expected_of[name] = answer
        return answer


def _counts(rows):
    """[(number of rows,)] of each sensor, ordered by sensor."""
    counts = dict.fromkeys(range(1, SENSORS + 1), 0)
    for row in rows:
        counts[row.sensor] += 1
    return [(count,) for count in counts.values()]


def _updated(asked, name, number):
    start, end = asked.between(*UPDATED)
    changed = _counts(asked.within(start, end))
    asked.left = [
        row._replace(temperature=row.temperature + ADD) if start <= row.at_us < end else row for row in asked.left
    ]
    return changed if name == "UPDATE" else [(sum(count for (count,) in changed),)]


def _deleted(asked, name, number):
    start, end = asked.window(name, number)
    deleted = _counts(asked.within(start, end))
    asked.left = [row for row in asked.left if not start <= row.at_us < end]
    return deleted if name == "DELETE" else [(sum(count for (count,) in deleted),)]


def _profile(asked, name, number):
    parts = ("AVG_SENSOR", "DAILY_SUMMARY", "OUTAGES", "TOPK_SENSORS")
    return [row for part in parts for row in EXPECTED[part](asked, part, number)]


EXPECTED = {
    "LOAD_ROWS": lambda asked, name, number: [(asked.rows,)],
    "LOAD": lambda asked, name, number: [(asked.rows,)],
    "READ": lambda asked, name, number: asked.points,
    "LAST_READINGS": lambda asked, name, number: answers.last_readings(asked.left),
    "UPDATE": _updated,
    "UPDATE_ROWS": _updated,
    "DELETE": _deleted,
    "DELETE_ROWS": _deleted,
    "AVG_SENSOR": lambda asked, name, number: answers.avg_sensor(asked.left),
    "HOT_SENSORS": lambda asked, name, number: answers.hot_sensors(asked.left, ABOVE, asked.at_least, K),
    "ANOMALIES": lambda asked, name, number: answers.anomalies(asked.left),
    "DAILY_SUMMARY": lambda asked, name, number: answers.daily_summary(asked.left),
    "OUTAGES": lambda asked, name, number: answers.outages(asked.left),
    "TOPK_SENSORS": lambda asked, name, number: answers.topk_sensors(asked.left, K),
    "COMPARE_TWO": lambda asked, name, number: answers.compare_two(
        *([row for row in asked.left if row.sensor == one] for one in PAIR)
    ),
    "FULL_PROFILE": _profile,
}
"""Phase -> function that computes its answer by plain Python."""


class PhaseWork:
    """The work of the phases on one system. Times are converted to the system's form before any phase begins."""

    def __init__(self, system, asked, path):
        """`path`: the sample as a CSV file, the same for all systems."""
        self.system, self.asked, self._path = system, asked, path
        self._rows = [system.row(reading) for reading in asked.readings]
        self._points = [(point.sensor, system.moment(point.at_us)) for point in asked.points]
        self._is_open = False
        self.progress = lambda done: None
        """Called with the number of calls that are done."""

    def prepare(self, name, number):
        """Prepares a run of a phase: new database, keys of rows, ends of time ranges."""
        if name in ("LOAD", "LOAD_ROWS"):
            if self._is_open:
                self.system.close()
            self.system.create()
            self._is_open = True
        range_us = self.asked.between(*UPDATED) if "UPDATE" in name else self.asked.window("DELETE", 0)
        if "DELETE" in name:
            range_us = self.asked.window(name, number)
        self._range = tuple(map(self.system.moment, range_us))
        self.keys = [(row.sensor, self.system.moment(row.at_us)) for row in self.asked.within(*range_us)]

    def load(self):
        """Loads all rows of the CSV file at once, in one transaction."""
        self.system.begin()
        self.system.load(self._path)
        self.system.commit()

    def load_rows(self):
        """Inserts each row separately, in one transaction."""
        self.system.begin()
        for number, row in enumerate(self._rows):
            self.system.insert(row)
            if not number % PROGRESS_EVERY:
                self.progress(number)
        self.system.commit()

    def read(self):
        """Reads each row by its key, in random order."""
        temperatures = []
        for number, (sensor, at) in enumerate(self._points):
            temperatures.append(self.system.read(sensor, at))
            if not number % PROGRESS_EVERY:
                self.progress(number)
        return temperatures

    def update(self):
        """Updates a time range of each sensor, in one transaction."""
        return self._by_sensor(lambda sensor: self.system.update(ADD, sensor, *self._range))

    def delete(self):
        """Deletes a time range of each sensor, in one transaction."""
        return self._by_sensor(lambda sensor: self.system.delete(sensor, *self._range))

    def update_rows(self):
        """Updates the rows of the time range, each by its key, in one transaction."""
        return self._by_key(lambda sensor, at: self.system.update_row(ADD, sensor, at))

    def delete_rows(self):
        """Deletes the rows of a time range, each by its key, in one transaction."""
        return self._by_key(self.system.delete_row)

    def _by_sensor(self, change):
        self.system.begin()
        counts = [(change(sensor),) for sensor in range(1, SENSORS + 1)]
        self.system.commit()
        return counts

    def _by_key(self, change):
        self.system.begin()
        count = sum(change(sensor, at) for sensor, at in self.keys)
        self.system.commit()
        return [(count,)]

    def hot_sensors(self):
        """The warmest sensors above a threshold."""
        return self.system.hot_sensors(ABOVE, self.asked.at_least, K)

    def topk_sensors(self):
        """The warmest sensors."""
        return self.system.topk_sensors(K)

    def compare_two(self):
        """Comparison of two sensors hour by hour."""
        return self.system.compare_two(*PAIR)

    def full_profile(self):
        """Answers to four of the questions, or the system's own profile instead."""
        if self.system.own_profile:
            return self.system.newest_values()
        profile = self.system.avg_sensor(), self.system.daily_summary(), self.system.outages()
        return [*profile[0], *profile[1], *profile[2], *self.topk_sensors()]


class StudyPhase(NamedTuple):
    """One phase of the study."""

    ask: Callable[[PhaseWork], Any]
    calls: Callable[[PhaseWork], int] = lambda work: 1
    """Number of calls of the prepared run; 1 if it is one question."""
    looped: bool = False
    """True if Python loops over the rows with a call for each; the loop is then also run without a database."""
    changes: bool = False
    """True if it changes rows and so cannot be repeated at will. A short phase that only reads is repeated."""
    most_runs: int = 6


ROWWISE_RUNS = 3
"""Maximum number of runs of the row-by-row phases, which take long."""


def _rows(work):
    return len(work.asked.readings)


def _keys(work):
    return len(work.keys)


def _question(name):
    """A phase that is one question to the system; `name`: the system's method."""
    return StudyPhase(lambda work: getattr(work.system, name)())


PHASES = {
    "LOAD_ROWS": StudyPhase(PhaseWork.load_rows, _rows, True, True, ROWWISE_RUNS),
    "LOAD": StudyPhase(PhaseWork.load, _rows, changes=True),
    "READ": StudyPhase(PhaseWork.read, _rows, looped=True),
    "LAST_READINGS": _question("last_readings"),
    "UPDATE": StudyPhase(PhaseWork.update, lambda work: SENSORS, changes=True),
    "UPDATE_ROWS": StudyPhase(PhaseWork.update_rows, _keys, True, True, ROWWISE_RUNS),
    "DELETE": StudyPhase(PhaseWork.delete, lambda work: SENSORS, changes=True),
    "DELETE_ROWS": StudyPhase(PhaseWork.delete_rows, _keys, True, True, ROWWISE_RUNS),
    "AVG_SENSOR": _question("avg_sensor"),
    "HOT_SENSORS": StudyPhase(PhaseWork.hot_sensors),
    "ANOMALIES": _question("anomalies"),
    "DAILY_SUMMARY": _question("daily_summary"),
    "OUTAGES": _question("outages"),
    "TOPK_SENSORS": StudyPhase(PhaseWork.topk_sensors),
    "COMPARE_TWO": StudyPhase(PhaseWork.compare_two),
    "FULL_PROFILE": StudyPhase(PhaseWork.full_profile),
}
"""Phases in the order in which they run; each one works on the rows left by the earlier ones."""
COUNTED = ("LOAD_ROWS", "LOAD", "READ")
"""Phases with an operation for each row, which count in the progress."""
LOOPED = tuple(name for name, phase in PHASES.items() if phase.looped)


class Nothing:
    """A system that stores and answers nothing, so that only the harness is measured."""

    def row(self, value):
        """The value unchanged."""
        return value

    moment = row

    def create(self, *values):
        """Does nothing."""

    begin = commit = close = insert = read = create

    def update_row(self, *values):
        """Changes nothing and returns 1, the number of rows."""
        return 1

    delete_row = update_row


def write_csv(readings, path):
    """Writes the sample as the CSV file that LOAD reads."""
    with open(path, "w", encoding="ascii", newline="") as out:
        lines = csv.writer(out)
        for reading in readings:
            lines.writerow([reading.sensor, reading.moment, *reading[2:]])


def read_csv(path):
    """The readings of the CSV file."""
    with open(path, encoding="ascii", newline="") as lines:
        for sensor, moment, epoch, *values in csv.reader(lines):
            yield SensorReading(int(sensor), us_of(datetime.fromisoformat(moment)), int(epoch), *map(float, values))
