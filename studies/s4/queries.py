"""The queries, and plain Python's answers to them."""

import math
import zlib

from points import FIELDS

THRESHOLD = 20.0
"""Temperature above which Q2 returns a point [degrees C]."""
QUERIES = ("Q1", "Q2", "Q3")


def expected(points):
    """Query -> its answer from all points: number and sum of the values for Q1 and Q2, means of both fields for Q3."""
    counts, totals = dict.fromkeys(FIELDS, 0), dict.fromkeys(FIELDS, 0.0)
    above, warm = 0, 0.0
    for _, value, field, _ in points:
        counts[field] += 1
        totals[field] += value
        if value > THRESHOLD and field == "temperature":
            above += 1
            warm += value
    means = [totals[field] / counts[field] if counts[field] else None for field in FIELDS]
    return {"Q1": [sum(counts.values()), sum(totals.values())], "Q2": [above, warm], "Q3": means}


ROWS = ("Q1", "Q2")
"""Queries that return rows."""


def rows_of(query, points):
    """Expected rows of a query, (timestamp [ms], value, field, sensor), from an iterator over all points."""
    for point in points:
        if query == "Q1" or (point[2] == "temperature" and point[1] > THRESHOLD):
            yield point


def digest(rows):
    """(number of rows, sum of their CRC-32s), independent of the rows' order, in constant memory."""
    count, total = 0, 0
    for at_ms, value, field, sensor in rows:
        count += 1
        total += zlib.crc32(f"{at_ms} {value!r} {field} {sensor}".encode())
    return count, total


def agrees(answer, wanted):
    """Whether two answers are equal except for rounding."""
    return len(answer) == len(wanted) and all(
        one == other or (None not in (one, other) and math.isclose(one, other, rel_tol=1e-9))
        for one, other in zip(answer, wanted, strict=True)
    )
