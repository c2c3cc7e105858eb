"""Readings of 54 sensors: from the Intel Lab's file, or drawn; and the sample of them that is loaded.

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
"""Days of the deployment. Source: db.csail.mit.edu/labdata/labdata.html, like the sensors' number and the period."""
PERIOD_US = 31_000_000
HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000
START_US = (FIRST_DAY - date(1970, 1, 1)).days * DAY_US
EPOCHS = ((LAST_DAY - FIRST_DAY).days + 1) * DAY_US // PERIOD_US
_FIELDS = 8
MALFORMED = {
    "fields": "another number of fields than 8",
    "number": "a field that is no number",
    "sensor": "a sensor that is none of 1 to 54",
    "date": "no date and time of the deployment",
    "twice": "sensor and time of an earlier line",
}
"""Why a line of the file is left out -> in words."""


class SensorReading(NamedTuple):
    """One line of the data set; time [us since 1970, local], temperature [degrees C], humidity [%], light [lx], [V]."""

    sensor: int
    at_us: int
    epoch: int
    temperature: float
    humidity: float
    light: float
    voltage: float


def _parsed(words, days):
    """The reading of one line, or why it is none; `days` keeps what dates mean."""
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


def stratified(counts, rows):
    """How many rows each sensor gives to a sample: its share, the largest remainders rounded up.

    Args:
        counts: sensor -> its readings.
    """
    total = sum(counts.values())
    rows = min(rows, total)
    shares = {sensor: divmod(count * rows, total) for sensor, count in counts.items()}
    given = {sensor: whole for sensor, (whole, _) in shares.items()}
    by_remainder = sorted(shares, key=lambda sensor: (-shares[sensor][1], sensor))
    for sensor in by_remainder[: rows - sum(given.values())]:
        given[sensor] += 1
    return given


class SensorFile:
    """A file of "date time epoch sensor temperature humidity light voltage"; in memory are 16 bytes a line."""

    def __init__(self, path):
        """Reads it once.

        Raises: OSError: it cannot be read. ValueError: no line of it is a reading.
        """
        self.path = path
        self.left_out = Counter()
        """Key of MALFORMED -> lines."""
        self._places = {}
        """Sensor -> times and places in the file of its readings."""
        days, place = {}, 0
        with open(path, "rb") as lines:
            for line in lines:
                self._take(line, place, days)
                place += len(line)
        self._kept = {sensor: self._in_order(*self._places[sensor]) for sensor in sorted(self._places)}
        """Sensor -> places in the file, by time."""
        if not self._kept:
            raise ValueError(f"{path}: no line of it is a reading (date time epoch sensor and four values)")

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
        """Places by time; of several with one time the first in the file."""
        kept, before = array("q"), None
        for index in sorted(range(len(times)), key=times.__getitem__):
            if times[index] == before:
                self.left_out["twice"] += 1
            else:
                kept.append(places[index])
            before = times[index]
        return kept

    def about(self):
        """What it holds, in a line."""
        said = [
            f"{self.left_out[why]} with {words}" for why, words in MALFORMED.items() if self.left_out[why]
        ]
        count = sum(map(len, self._kept.values()))
        return f"{self.path}: {count} readings, lines left out: {'; '.join(said) or 'none'}"

    def sample(self, rows, seed):
        """A stratified sample: of each sensor its share, drawn at random, in order; by time over all."""
        chosen = []
        for sensor, count in stratified({name: len(of) for name, of in self._kept.items()}, rows).items():
            chosen += random.Random(f"sample {seed} {sensor}").sample(self._kept[sensor], count)
        found, days = [], {}
        with open(self.path, "rb") as lines:
            for place in sorted(chosen):
                lines.seek(place)
                found.append(_parsed(lines.readline().decode("ascii").split(), days))
        return sorted(found, key=lambda reading: (reading.at_us, reading.sensor))


class Sensor:
    """One drawn sensor: when it was heard, and what it said. SYNTHETIC: nothing of it was measured."""

    def __init__(self, number, seed):
        self.number = number
        self._draw = random.Random(f"sensor {seed} {number}")
        self._base = 19.0 + 6.0 * self._draw.random()
        self.present = self._heard()

    def _heard(self):
        """The stretches of epochs in which it is heard, (first, after the last); outages of 2 to 30 hours between."""
        stretches, at = [], 0
        while at < EPOCHS:
            end = at + 1 + int(self._draw.expovariate(1 / (4 * DAY_US / PERIOD_US)))
            stretches.append((at, min(end, EPOCHS)))
            at = end + int(self._draw.uniform(2, 30) * HOUR_US / PERIOD_US)
        return stretches

    def count(self):
        """Epochs in which it is heard."""
        return sum(end - start for start, end in self.present)

    def readings(self, count):
        """So many of its readings, drawn from all, in order."""
        chosen = sorted(self._draw.sample(range(self.count()), count))
        found, before, stretches = [], 0, iter(self.present)
        start, end = next(stretches)
        for index in chosen:
            while index - before >= end - start:
                before += end - start
                start, end = next(stretches)
            found.append(self._reading(start + index - before))
        return found

    def _reading(self, epoch):
        """Warmest at 15 o'clock, light by day, the battery falling; one of 200 is far off."""
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
    """A sample of so many SYNTHETIC readings, as a dataset's would be, of 54 sensors that are drawn from the seed."""
    sensors = {number: Sensor(number, seed) for number in range(1, SENSORS + 1)}
    shares = stratified({number: sensor.count() for number, sensor in sensors.items()}, rows)
    found = [reading for number, count in shares.items() for reading in sensors[number].readings(count)]
    return sorted(found, key=lambda reading: (reading.at_us, reading.sensor))


def line_of(reading):
    """A reading as a line of the file."""
    moment = datetime(1970, 1, 1) + timedelta(microseconds=reading.at_us)
    values = " ".join(map(str, (reading.epoch, reading.sensor, *reading[3:])))
    return f"{moment:%Y-%m-%d %H:%M:%S.%f} {values}"


class DrawnReadings:
    """In place of a file: SYNTHETIC readings."""

    def about(self):
        """What it is, in a line."""
        return f"SYNTHETIC readings of {SENSORS} sensors"

    def sample(self, rows, seed):
        """As a dataset's."""
        return drawn(rows, seed)


def main():
    """Writes a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--dataset", default="", metavar="FILE", help="the Intel Lab's data.txt; without: drawn"
    )
    parser.add_argument("--rows", type=int, default=100_000, metavar="N", help="of the sample")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of what is drawn (default: 1)")
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
