"""What each query asks, and what plain Python answers to it."""

import math

from points import FIELDS

THRESHOLD = 20.0
"""Degrees C above which Q2 wants a temperature."""
QUERIES = ("Q1", "Q2", "Q3")


def expected(points):
    """Query -> its answer: Q1 and Q2 number and sum of the values, Q3 the means of both fields.

    Args:
        points: iterator over (timestamp, value, field, sensor).
    """
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


def agrees(found, wanted):
    """Are two answers the same but for rounding?"""
    return len(found) == len(wanted) and all(
        one == other or (None not in (one, other) and math.isclose(one, other, rel_tol=1e-9))
        for one, other in zip(found, wanted, strict=True)
    )
