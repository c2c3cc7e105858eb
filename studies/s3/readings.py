"""Readings of 54 sensors, from the Intel Lab's file or drawn, and the sample of them that is loaded.

    python3 readings.py --dataset data.txt --rows 100000 >sample.txt

writes a sample in the file's own format, so that a board does not have to read the whole file.
"""

import argparse
import math
import random
import sys
from array import array
from collections import Counter
from datetime import date, datetime, timedelta
from typing import NamedTuple

SENSORS = 54
FIRST_DAY, LAST_DAY = date(2004, 2, 28), date(2004, 4, 5)
"""Days of the deployment. Source: db.csail.mit.edu/labdata/labdata.html, also for number of sensors and period."""
PERIOD_US = 31_000_000
HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000
START_US = (FIRST_DAY - date(1970, 1, 1)).days * DAY_US
SPAN_US = ((LAST_DAY - FIRST_DAY).days + 1) * DAY_US
EPOCHS = SPAN_US // PERIOD_US
FAILED, HEARD = 5, 5
"""A drawn sensor that fails, and the number of its readings: it is the warmest, but has too few of them to count."""
_FIELDS = 8
MALFORMED = {
    "fields": "a number of fields other than 8",
    "number": "a field that is not a number",
    "sensor": "a sensor outside 1 to 54",
    "date": "no date and time of the deployment",
    "twice": "sensor and time of an earlier line",
}
"""Reason for leaving out a line of the file -> the reason in words."""


EPOCH_DATE = datetime(1970, 1, 1)


def moment_of(at_us):
    """A time [us since 1970] as a datetime."""
    return EPOCH_DATE + timedelta(microseconds=at_us)


def us_of(moment):
    """A datetime as a time [us since 1970]."""
    return (moment - EPOCH_DATE) // timedelta(microseconds=1)


class SensorReading(NamedTuple):
    """One line of the dataset: time [us since 1970, local], temperature [degrees C], humidity [%], light [lx], [V]."""

    sensor: int
    at_us: int
    epoch: int
    temperature: float
    humidity: float
    light: float
    voltage: float

    @property
    def moment(self):
        """Its time as text, ISO 8601, with a fixed length."""
        return moment_of(self.at_us).isoformat(" ", "microseconds")


def _parsed(words, days):
    """The reading of one line, or the reason (a key of MALFORMED) for leaving it out; `days` caches parsed dates."""
    if len(words) != _FIELDS:
        return "fields"
    try:
        epoch, sensor, values = int(words[2]), int(words[3]), [float(word) for word in words[4:]]
    except ValueError:
        return "number"
    if not all(map(math.isfinite, values)):
        return "number"
    if not 1 <= sensor <= SENSORS:
        return "sensor"
    try:
        if words[0] not in days:
            day = date.fromisoformat(words[0])
            days[words[0]] = (day - date(1970, 1, 1)).days if FIRST_DAY <= day <= LAST_DAY else None
        hours, minutes, seconds = words[1].split(":")
        of_day_us = (int(hours) * 60 + int(minutes)) * 60_000_000 + round(float(seconds) * 1e6)
    except (ValueError, OverflowError):
        return "date"
    if days[words[0]] is None or not 0 <= of_day_us < DAY_US:
        return "date"
    return SensorReading(sensor, days[words[0]] * DAY_US + of_day_us, epoch, *values)


def equal_shares(counts, rows):
    """Sensor -> number of its rows in a sample: equal for all sensors, as far as each has enough rows (`counts`)."""
    given, left = dict.fromkeys(counts, 0), min(rows, sum(counts.values()))
    for place, sensor in enumerate(sorted(counts, key=lambda one: (counts[one], one))):
        given[sensor] = min(counts[sensor], left // (len(counts) - place))
        left -= given[sensor]
    return given


def stratified(times, rows):
    """Chooses a sample's readings: equal numbers for all sensors, spread over the whole deployment.

    The deployment has as many parts of equal length as a sensor has rows, the same parts for all sensors, so that two
    sensors have many moments in common. A sensor's first reading of each part is chosen. For parts without a reading
    others of its readings are chosen instead, evenly spaced.

    Args:
        times: sensor -> times of its readings [us], increasing.
    Returns: sensor -> indices of the chosen readings, increasing.
    """
    shares = equal_shares({sensor: len(of_sensor) for sensor, of_sensor in times.items()}, rows)
    return {sensor: _stratified(of_sensor, shares[sensor]) for sensor, of_sensor in times.items()}


def _stratified(times, rows):
    """Indices of `rows` of a sensor's readings."""
    first_of = {}
    for place, at_us in enumerate(times) if rows else ():
        first_of.setdefault((at_us - START_US) * rows // SPAN_US, place)
    chosen = set(first_of.values())
    others, missing = [place for place in range(len(times)) if place not in chosen], rows - len(chosen)
    return sorted([*chosen, *(others[number * len(others) // missing] for number in range(missing))])


class SensorFile:
    """A file of "date time epoch sensor temperature humidity light voltage"; needs 16 bytes of memory a line."""

    def __init__(self, path):
        """Reads the file once.

        Raises: OSError: it cannot be read. ValueError: it contains no readings.
        """
        self.path = path
        self.left_out = Counter()
        """Key of MALFORMED -> number of lines."""
        self._places = {}
        """Sensor -> (times, positions in the file) of its readings."""
        days, place = {}, 0
        with open(path, "rb") as lines:
            for line in lines:
                self._take(line, place, days)
                place += len(line)
        self._kept = {sensor: self._in_order(*self._places[sensor]) for sensor in sorted(self._places)}
        """Sensor -> (times, increasing, and positions in the file)."""
        if not self._kept:
            raise ValueError(f"{path}: no line is a reading (date time epoch sensor and four values)")

    def _take(self, line, place, days):
        words = line.decode("ascii", "replace").split()
        if not words:
            return
        reading = _parsed(words, days)
        if isinstance(reading, str):
            self.left_out[reading] += 1
            return
        times, places = self._places.setdefault(reading.sensor, (array("q"), array("q")))
        times.append(reading.at_us)
        places.append(place)

    def _in_order(self, times, places):
        """(times, positions) ordered by time; of several readings with the same time, the first in the file."""
        in_time, kept = array("q"), array("q")
        for index in sorted(range(len(times)), key=times.__getitem__):
            if in_time and times[index] == in_time[-1]:
                self.left_out["twice"] += 1
            else:
                in_time.append(times[index])
                kept.append(places[index])
        return in_time, kept

    def about(self):
        """Description of the contents in one line."""
        left_out = [f"{self.left_out[why]} with {words}" for why, words in MALFORMED.items() if self.left_out[why]]
        count = sum(len(times) for times, _ in self._kept.values())
        return f"{self.path}: {count} readings, lines left out: {'; '.join(left_out) or 'none'}"

    def sample(self, rows, seed):
        """Equal numbers of readings of each sensor over the whole deployment, by time; the same for every seed."""
        chosen = stratified({sensor: times for sensor, (times, _) in self._kept.items()}, rows)
        places = [self._kept[sensor][1][place] for sensor, of_sensor in chosen.items() for place in of_sensor]
        readings, days = [], {}
        with open(self.path, "rb") as lines:
            for place in sorted(places):
                lines.seek(place)
                readings.append(_parsed(lines.readline().decode("ascii").split(), days))
        return sorted(readings, key=lambda reading: (reading.at_us, reading.sensor))


class Sensor:
    """One drawn sensor: the times and values of its readings. SYNTHETIC: nothing was measured."""

    def __init__(self, number, seed):
        self.number = number
        self._draw = random.Random(f"sensor {seed} {number}")
        self._base = 28.0 if number == FAILED else 19.0 + 6.0 * self._draw.random()
        self.present = self._heard()

    def _heard(self):
        """(first, last + 1) of each stretch of epochs with readings; outages of 2 to 30 hours lie between them."""
        if self.number == FAILED:
            return [(0, HEARD)]
        stretches, at = [], 0
        while at < EPOCHS:
            end = at + 1 + int(self._draw.expovariate(1 / (4 * DAY_US / PERIOD_US)))
            stretches.append((at, min(end, EPOCHS)))
            at = end + int(self._draw.uniform(2, 30) * HOUR_US / PERIOD_US)
        return stretches

    def count(self):
        """Number of epochs with a reading."""
        return sum(end - start for start, end in self.present)

    def epochs(self):
        """Every epoch with a reading."""
        return [epoch for start, end in self.present for epoch in range(start, end)]

    def readings(self, epochs):
        """Its readings in some epochs, in order."""
        return [self._reading(epoch) for epoch in epochs]

    def _reading(self, epoch):
        """A reading: warmest at 15:00, light by day, with a falling battery; one in 200 is an outlier."""
        draw = self._draw
        at_us = START_US + epoch * PERIOD_US + self.number * 250_000 + draw.randrange(200_000)
        hour = at_us % DAY_US / HOUR_US
        daily = math.cos((hour - 15.0) / 24.0 * 2 * math.pi)
        temperature = self._base + 3.0 * daily + draw.gauss(0.0, 0.4)
        if draw.random() < 0.005:
            temperature += draw.choice((-1, 1)) * draw.uniform(20.0, 40.0)
        humidity = 40.0 - 1.2 * (temperature - self._base) + draw.gauss(0.0, 0.8)
        light = max(0.46, 450.0 * daily + draw.gauss(0.0, 20.0))
        voltage = 2.75 - 0.4 * epoch / EPOCHS + draw.gauss(0.0, 0.005)
        values = (temperature, min(max(humidity, 0.0), 100.0), light, voltage)
        return SensorReading(self.number, at_us, epoch, *(round(value, 4) for value in values))


def drawn(rows, seed):
    """A sample of `rows` SYNTHETIC readings of 54 sensors drawn from the seed, in the form of a dataset's sample."""
    readings = []
    sensors = {number: Sensor(number, seed) for number in range(1, SENSORS + 1)}
    epochs = {number: sensor.epochs() for number, sensor in sensors.items()}
    times = {number: [START_US + epoch * PERIOD_US for epoch in of_sensor] for number, of_sensor in epochs.items()}
    for number, chosen in stratified(times, rows).items():
        readings += sensors[number].readings(epochs[number][place] for place in chosen)
    return sorted(readings, key=lambda reading: (reading.at_us, reading.sensor))


def line_of(reading):
    """A reading as a line of the file."""
    return " ".join(map(str, (reading.moment, reading.epoch, reading.sensor, *reading[3:])))


class DrawnReadings:
    """SYNTHETIC readings, in place of a file."""

    def about(self):
        """Description in one line."""
        return f"SYNTHETIC readings of {SENSORS} sensors"

    def sample(self, rows, seed):
        """As SensorFile.sample()."""
        return drawn(rows, seed)


def main():
    """Writes a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--dataset", default="", metavar="FILE", help="the Intel Lab's data.txt (default: drawn readings)"
    )
    parser.add_argument("--rows", type=int, default=100_000, metavar="N", help="rows of the sample")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the drawn data (default: 1)")
    options = parser.parse_args()
    try:
        dataset = SensorFile(options.dataset) if options.dataset else DrawnReadings()
    except (OSError, ValueError) as error:
        sys.exit(f"readings.py: {error}")
    print(dataset.about(), file=sys.stderr)
    for reading in dataset.sample(options.rows, options.seed):
        print(line_of(reading))


if __name__ == "__main__":
    main()
