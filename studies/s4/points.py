"""The points of the study, from a CSV file in its format or drawn; the queries on them, with plain Python's answers."""

import datetime
import math
import random
import zlib

COLUMNS = ("timestamp", "value", "field", "sensor")
FIELDS = ("temperature", "humidity")
START_MS = 1_709_251_200_000  # 2024-03-01
SPAN_MS = 13 * 86_400_000
PERIOD_MS = 10_000
"""Time between two readings of a sensor, if there are enough points; 126 sensors give about the study's number."""
DAY_MS = 86_400_000


class BadData(Exception):
    """A file with another format."""


def draw(path, count, seed):
    """Writes points to a CSV file; they always span 13 days.

    Args:
        count: number of points; half of them are temperatures [degrees C], half relative humidities [%].
        seed: seed of the values. The same seed and count make the same file.
    """
    sensors = max(1, round(count / len(FIELDS) / (SPAN_MS // PERIOD_MS)))
    times = math.ceil(count / len(FIELDS) / sensors)
    random_numbers = random.Random(seed)
    warmth = [random_numbers.uniform(-2, 2) for _ in range(sensors)]
    noise = [
        random_numbers.gauss(0, 0.5) for _ in range(4099)
    ]  # a prime, so that no sensor has the same value twice a day
    made = 0
    with open(path, "w", encoding="ascii") as out:
        out.write(",".join(COLUMNS) + "\n")
        for number in range(times):
            at_ms = START_MS + number * SPAN_MS // times
            swing = math.sin(2 * math.pi * (at_ms % DAY_MS) / DAY_MS - 2)
            for sensor in range(sensors):
                drawn = noise[(number * sensors + sensor) % 4099]
                for field, value in (
                    ("temperature", 21 + 4 * swing + warmth[sensor] + drawn),
                    ("humidity", 45 - 10 * swing + 3 * drawn),
                ):
                    if made < count:
                        out.write(f"{at_ms},{value:.2f},{field},s{sensor + 1}\n")
                        made += 1


def read(path, most, left_out):
    """Yields (timestamp [ms], value, field, sensor) of the first points of a CSV file.

    Args:
        most: maximum number of points.
        left_out: dictionary of the numbers of lines left out, by reason: malformed, or repeated (same time as the
            previous line of the same sensor and field; two of the three databases would keep it, one would not).
    Raises: BadData: the first line does not name the columns.
    """
    with open(path, encoding="utf-8", errors="replace") as lines:
        named = [name.strip().lower() for name in next(lines, "").split(",")]
        if sorted(named) != sorted(COLUMNS):
            raise BadData(f"{path}: the first line must name the columns {', '.join(COLUMNS)}")
        order = [named.index(name) for name in COLUMNS]
        last, given = {}, 0
        for line in lines:
            if given == most:
                return
            parts = line.rstrip("\n").split(",")
            try:
                at, value, field, sensor = (parts[place] for place in order)
                point = (_milliseconds(at), float(value), field, sensor)
            except (IndexError, ValueError):
                left_out["malformed"] = left_out.get("malformed", 0) + 1
                continue
            if field not in FIELDS or not sensor or not math.isfinite(point[1]) or any(c in sensor for c in ' =",\\'):
                left_out["malformed"] = left_out.get("malformed", 0) + 1
            elif last.get((field, sensor)) == point[0]:
                left_out["repeated"] = left_out.get("repeated", 0) + 1
            else:
                last[field, sensor] = point[0]
                given += 1
                yield point


def _milliseconds(text):
    """Milliseconds of a timestamp, which is a number of milliseconds or a date and time (UTC if it has no zone)."""
    if text.isdigit():
        return int(text)
    at = datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    if at.tzinfo is None:
        at = at.replace(tzinfo=datetime.UTC)
    return round(at.timestamp() * 1000)


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
