"""Expected answers of the phases, computed by plain Python from the readings, and their comparison with a system's.

Berkeley DB has no queries; it answers with these functions over its cursor. docs/reference/study-s3.md defines the
answers in words. The argument `readings` is always ordered by sensor, then by time.
"""

import hashlib
import math
from itertools import groupby
from operator import itemgetter

from readings import DAY_US, HOUR_US

TOLERANCE = 1e-9
"""Relative tolerance of numbers that are sums, as systems add in different orders."""


def _means(readings):
    """(sensor, mean temperature, readings) of each sensor, ordered by sensor."""
    for sensor, of_sensor in groupby(readings, key=itemgetter(0)):
        values = [reading[3] for reading in of_sensor]
        yield sensor, math.fsum(values) / len(values), len(values)


def last_readings(readings):
    """Each sensor's newest reading with all its fields."""
    return [tuple(list(of_sensor)[-1]) for _, of_sensor in groupby(readings, key=itemgetter(0))]


def avg_sensor(readings):
    """(sensor, mean temperature) of each sensor."""
    return [(sensor, mean) for sensor, mean, _ in _means(readings)]


def _warmest(means, k):
    return sorted(means, key=lambda row: (-row[1], row[0]))[:k]


def hot_sensors(readings, above, at_least, k):
    """The k warmest sensors among those with enough readings and a mean temperature above a threshold."""
    hot = [(sensor, mean) for sensor, mean, count in _means(readings) if mean > above and count >= at_least]
    return _warmest(hot, k)


def topk_sensors(readings, k):
    """The k warmest sensors."""
    return _warmest(avg_sensor(readings), k)


def anomalies(readings):
    """(sensor, time, temperature) of readings more than two standard deviations (n - 1) from the sensor's mean."""
    far_off = []
    for sensor, of_sensor in groupby(readings, key=itemgetter(0)):
        timed = [(reading[1], reading[3]) for reading in of_sensor]
        mean = math.fsum(value for _, value in timed) / len(timed)
        if len(timed) > 1:
            variance = math.fsum((value - mean) ** 2 for _, value in timed) / (len(timed) - 1)
            far_off += [(sensor, at, value) for at, value in timed if (value - mean) ** 2 > 4 * variance]
    return far_off


def daily_summary(readings):
    """(sensor, start of the day, lowest, highest, mean temperature) of each sensor and day."""
    days = []
    for (sensor, day), of_day in groupby(readings, key=lambda reading: (reading[0], reading[1] // DAY_US)):
        values = [reading[3] for reading in of_day]
        mean = math.fsum(values) / len(values)
        days.append((sensor, day * DAY_US, min(values), max(values), mean))
    return days


def outages(readings):
    """(sensor, last time before, first time after) of each gap of more than an hour between a sensor's readings."""
    gaps, before = [], (0, 0)
    for reading in readings:
        if reading[0] == before[0] and reading[1] - before[1] > HOUR_US:
            gaps.append((reading[0], before[1], reading[1]))
        before = reading
    return gaps


def _hourly(readings):
    return {
        hour: math.fsum(values) / len(values)
        for hour, of_hour in groupby(readings, key=lambda reading: reading[1] // HOUR_US)
        if (values := [reading[3] for reading in of_hour])
    }


def compare_two(one, other):
    """[(number of hours with readings of both sensors, correlation of their hourly mean temperatures, or None)]."""
    first, second = _hourly(one), _hourly(other)
    hours = sorted(first.keys() & second.keys())
    return correlation(*_moments([first[hour] for hour in hours], [second[hour] for hour in hours]))


def _moments(x, y):
    if not x:
        return 0, None, None, None
    x_mean, y_mean = math.fsum(x) / len(x), math.fsum(y) / len(y)
    x_off, y_off = [value - x_mean for value in x], [value - y_mean for value in y]
    return (
        len(x),
        *(math.fsum(map(float.__mul__, *pair)) for pair in ((x_off, y_off), (x_off, x_off), (y_off, y_off))),
    )


def correlation(hours, products, x_squares, y_squares):
    """compare_two()'s answer from the sums of products and squares about the means, which are None without hours."""
    if not hours or not x_squares or not y_squares:
        return [(hours, None)]
    return [(hours, products / math.sqrt(x_squares * y_squares))]


def newest_values(newest):
    """Berkeley DB's FULL_PROFILE: (number of sensors, lowest, highest, mean) of its cached newest temperatures."""
    values = [reading[3] for reading in newest]
    return [(len(values), min(values), max(values), math.fsum(values) / len(values))]


def difference(answer, expected):
    """Difference between an answer and the expected one, in words; empty if they agree.

    Args:
        answer, expected: lists of tuples, in order. Floating-point numbers may differ by the relative TOLERANCE.
    """
    if len(answer) != len(expected):
        return f"{len(answer)} rows, not {len(expected)}"
    for row, (one, other) in enumerate(zip(answer, expected, strict=True)):
        if tuple(one) != tuple(other) and not _close(one, other):
            return f"row {row + 1} is {tuple(one)}, not {tuple(other)}"
    return ""


def _close(one, other):
    if len(one) != len(other):
        return False
    return all(
        (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE))
        or a == b
        for a, b in zip(one, other, strict=True)
    )


def digest(answer):
    """Digest of an expected answer, twelve hexadecimal digits; the same for all systems that agree with it."""
    return hashlib.sha256(repr([tuple(row) for row in answer]).encode()).hexdigest()[:12]
