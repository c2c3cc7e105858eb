"""What each phase has to answer: computed by plain Python from readings, and held against what a system said.

Berkeley DB, which has no queries, answers with these functions from its cursor. The definitions in words are in
docs/reference/study-s3.md. Wherever `readings` is an argument, they come by sensor and then by time.
"""

import hashlib
import math
from itertools import groupby
from operator import itemgetter

from readings import DAY_US, HOUR_US

TOLERANCE = 1e-9
"""Relative, of numbers that are sums: systems add in different orders."""


def _means(readings):
    """(sensor, its mean temperature, its readings), by sensor."""
    for sensor, of_sensor in groupby(readings, key=itemgetter(0)):
        values = [reading[3] for reading in of_sensor]
        yield sensor, math.fsum(values) / len(values), len(values)


def last_readings(readings):
    """Each sensor's newest reading, whole."""
    return [tuple(list(of_sensor)[-1]) for _, of_sensor in groupby(readings, key=itemgetter(0))]


def avg_sensor(readings):
    """(sensor, mean temperature)."""
    return [(sensor, mean) for sensor, mean, _ in _means(readings)]


def _warmest(means, k):
    return sorted(means, key=lambda row: (-row[1], row[0]))[:k]


def hot_sensors(readings, above, at_least, k):
    """The k warmest of the sensors that have enough readings and a mean temperature above a threshold."""
    hot = [(sensor, mean) for sensor, mean, count in _means(readings) if mean > above and count >= at_least]
    return _warmest(hot, k)


def topk_sensors(readings, k):
    """The k warmest sensors."""
    return _warmest(avg_sensor(readings), k)


def anomalies(readings):
    """(sensor, time, temperature) further than two standard deviations (n - 1) from the sensor's mean."""
    far_off = []
    for sensor, of_sensor in groupby(readings, key=itemgetter(0)):
        timed = [(reading[1], reading[3]) for reading in of_sensor]
        mean = math.fsum(value for _, value in timed) / len(timed)
        if len(timed) > 1:
            variance = math.fsum((value - mean) ** 2 for _, value in timed) / (len(timed) - 1)
            far_off += [(sensor, at, value) for at, value in timed if (value - mean) ** 2 > 4 * variance]
    return far_off


def daily_summary(readings):
    """(sensor, start of the day, lowest, highest, mean temperature)."""
    days = []
    for (sensor, day), of_day in groupby(readings, key=lambda reading: (reading[0], reading[1] // DAY_US)):
        values = [reading[3] for reading in of_day]
        mean = math.fsum(values) / len(values)
        days.append((sensor, day * DAY_US, min(values), max(values), mean))
    return days


def outages(readings):
    """(sensor, time before, time after) where a sensor was not heard for more than an hour."""
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
    """[(hours that both sensors were heard in, the correlation of their mean temperatures in them, or None)]."""
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
    """compare_two()'s answer from sums of products and squares about the means; those of no hours are None."""
    if not hours or not x_squares or not y_squares:
        return [(hours, None)]
    return [(hours, products / math.sqrt(x_squares * y_squares))]


def newest_values(newest):
    """Berkeley DB's FULL_PROFILE: (sensors, lowest, highest, mean) of the newest temperatures that it has cached."""
    values = [reading[3] for reading in newest]
    return [(len(values), min(values), max(values), math.fsum(values) / len(values))]


def difference(answer, expected):
    """What is wrong with an answer, in words; empty if it agrees.

    Args:
        answer, expected: lists of tuples, in order. Numbers with a fraction may differ by TOLERANCE of their size.
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
        (
            isinstance(a, float)
            and isinstance(b, float)
            and math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        )
        or a == b
        for a, b in zip(one, other, strict=True)
    )


def digest(answer):
    """Twelve hexadecimal digits of an expected answer: the same for all systems that agree with it."""
    return hashlib.sha256(repr([tuple(row) for row in answer]).encode()).hexdigest()[:12]
