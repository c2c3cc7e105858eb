"""Data of study S3: the readings that it draws, its samples, and lines of the real dataset."""

from __future__ import annotations

import itertools
import re
import statistics
import subprocess
import sys
from collections import Counter

import pytest
from study_s3 import STUDY, job


def test_drawn_readings_have_the_sensors_period_day_gaps_and_outliers_of_the_deployment(study):
    readings = study("readings")
    sensor = readings.Sensor(7, seed=3)
    rows = sensor.readings(sensor.epochs())
    assert [row.at_us for row in rows] == sorted({row.at_us for row in rows})
    gaps_s = [(after.at_us - before.at_us) / 1e6 for before, after in itertools.pairwise(rows)]
    assert statistics.median(gaps_s) == pytest.approx(31.0, abs=0.2)
    assert sum(gap > 3600 for gap in gaps_s) >= 2
    assert rows[0].at_us >= readings.START_US and rows[-1].at_us < readings.START_US + 38 * readings.DAY_US
    hour = {number: [] for number in range(24)}
    for row in rows:
        hour[row.at_us % readings.DAY_US // readings.HOUR_US].append(row)
    mean = {at: statistics.fmean(row.temperature for row in of) for at, of in hour.items()}
    assert max(mean, key=mean.get) in (13, 14, 15, 16) and max(mean.values()) - min(mean.values()) > 4
    assert statistics.fmean(row.light for row in hour[14]) > 100 * statistics.fmean(row.light for row in hour[2]) / 10
    values = [row.temperature for row in rows]
    middle, spread = statistics.fmean(values), statistics.stdev(values)
    assert 0.002 < sum(abs(value - middle) > 2 * spread for value in values) / len(values) < 0.05
    assert all(0 <= row.humidity <= 100 and 2 < row.voltage < 3 for row in rows)


@pytest.mark.slow
def test_a_sample_is_of_54_sensors_with_as_many_rows_each_and_follows_from_the_seed(study):
    readings = study("readings")
    drawn, about = readings.DrawnReadings().sample(5_000, 1), readings.DrawnReadings().about()
    counts = Counter(row.sensor for row in drawn)
    assert len(drawn) == 5_000 and set(counts) == set(range(1, 55))
    assert counts.pop(readings.FAILED) == readings.HEARD
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len({row[:2] for row in drawn}) == 5_000
    assert drawn == readings.drawn(5_000, 1) and drawn != readings.drawn(5_000, 2)
    assert about.startswith("SYNTHETIC")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1_000, 10_000])
def test_a_sample_covers_the_whole_deployment_and_two_sensors_share_many_hours(study, rows):
    answers, readings = study("answers"), study("readings")
    for seed in (1, 2, 3):
        drawn = sorted(readings.drawn(rows, seed))
        for sensor in (1, 2, 54):
            days = [(row.at_us - readings.START_US) / readings.DAY_US for row in drawn if row.sensor == sensor]
            assert days[0] < 4 and days[-1] > 33, "from the first to the last days"
            assert sum(day < 19 for day in days) == pytest.approx(len(days) / 2, rel=0.25)
        pair = [[row for row in drawn if row.sensor == one] for one in (1, 2)]
        ((hours, correlation),) = answers.compare_two(*pair)
        assert hours >= 5 and correlation is not None


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1_000, 10_000])
def test_hot_sensors_are_fewer_by_each_of_its_conditions(study, rows):
    answers, phases = study("answers"), study("phases")
    asked = phases.Parameters(study("readings").drawn(rows, 1), 1)
    every = {sensor for sensor, _ in answers.avg_sensor(asked.left)}
    warm = {sensor for sensor, _ in answers.hot_sensors(asked.left, phases.ABOVE, 0, len(every))}
    counted = {sensor for sensor, _ in answers.hot_sensors(asked.left, phases.ABOVE, asked.at_least, len(every))}
    asked_for = {sensor for sensor, _ in asked.expected("HOT_SENSORS", 0)}
    assert asked_for < counted < warm < every and len(asked_for) == phases.K


def test_the_moments_of_a_sample_of_100000_show_outages_above_an_hour(study):
    """In a part of 30 minutes without a reading the sensor was silent."""
    readings = study("readings")
    rows = 100_000 // readings.SENSORS
    assert readings.SPAN_US / rows < readings.HOUR_US / 2


LINES = """\
2004-03-31 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397
2004-02-28 00:59:16.02785 3 1 19.9884 37.0933 45.08 2.69964
2004-02-28 00:59:16.02785 3 1 19.9884 37.0933 45.08 2.69964
2004-03-01 10:00:00 90 54 20.5 36.1 100.0 2.6
2004-03-01 10:00:00 90 6485 20.5 36.1 100.0 2.6
2004-03-01 10:00:00 90 0 20.5 36.1 100.0 2.6
2004-03-01 10:00:31 91 3
2004-03-01 10:00:31 91 3 20.5 36.1 100.0
2004-13-01 10:00:31 91 3 20.5 36.1 100.0 2.6
2031-03-01 10:00:31 91 3 20.5 36.1 100.0 2.6
2004-03-01 27:00:31 91 3 20.5 36.1 100.0 2.6
2004-03-01 10:00:31 91 3 x 36.1 100.0 2.6
2004-03-01 10:00:31 91 3 nan 36.1 100.0 2.6

2004-04-05 23:59:59.999999 92 3 20.5 36.1 100.0 2.6
2004-04-05 23:59:59.9"""


def test_lines_of_the_dataset_that_are_no_readings_are_left_out_and_counted(study, tmp_path):
    readings = study("readings")
    file = tmp_path / "data.txt"
    file.write_text(LINES)
    dataset = readings.SensorFile(str(file))
    assert dict(dataset.left_out) == {"twice": 1, "sensor": 2, "fields": 3, "date": 3, "number": 2}
    sample = dataset.sample(100, 1)
    assert [row.sensor for row in sample] == [1, 54, 1, 3]
    assert sample[2] == (1, 1080704295757551, 2, 122.153, -3.91901, 11.04, 2.03397)
    assert readings.line_of(sample[2]) == LINES.splitlines()[0]
    said = dataset.about()
    assert f"{file}: 4 readings" in said and re.search(r"\b3 .* fields other than 8", said)


def test_a_file_without_a_reading_is_one_line(tmp_path):
    file = tmp_path / "data.txt"
    file.write_bytes(b"\xff\xfe nothing\n")
    ended = job("sqlite", "--storage", str(tmp_path), "--dataset", str(file))
    assert ended.returncode == 2 and str(file) in ended.stderr.splitlines()[-1]
    ended = job("sqlite", "--storage", str(tmp_path), "--dataset", str(tmp_path / "none"))
    assert ended.returncode == 2 and "No such file" in ended.stderr.splitlines()[-1]


def test_a_sample_of_a_file_has_as_many_rows_of_each_sensor_in_order(study, tmp_path):
    readings = study("readings")
    start = readings.START_US
    whole = [
        readings.SensorReading(sensor, start + 10**6 * number + sensor, number, 20.0 + number, 40.0, 1.0, 2.5)
        for sensor, count in ((1, 600), (2, 300), (3, 99))
        for number in range(count)
    ]
    file = tmp_path / "data.txt"
    file.write_text("\n".join(map(readings.line_of, whole)))
    dataset = readings.SensorFile(str(file))
    taken = dataset.sample(100, 5)
    counts = Counter(row.sensor for row in taken)
    assert sorted(counts.values()) == [33, 33, 34]
    assert set(taken) <= set(whole) and [row.at_us for row in taken] == sorted(row.at_us for row in taken)
    assert taken == dataset.sample(100, 6)
    assert dataset.sample(5_000, 5) == sorted(whole, key=lambda row: (row.at_us, row.sensor))


def test_a_sensor_with_too_few_readings_gives_all_of_them_and_others_the_rest(study):
    assert study("readings").equal_shares({1: 600, 2: 300, 3: 10}, 100) == {1: 45, 2: 45, 3: 10}
    assert study("readings").equal_shares({1: 6, 2: 3}, 100) == {1: 6, 2: 3}


@pytest.mark.slow
def test_a_sample_written_by_the_command_is_a_dataset_itself(study, tmp_path):
    made = subprocess.run(
        [sys.executable, str(STUDY / "readings.py"), "--rows", "300", "--seed", "4"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    (tmp_path / "sample").write_text(made.stdout)
    dataset = study("readings").SensorFile(str(tmp_path / "sample"))
    assert dataset.sample(300, 1) == study("readings").drawn(300, 4) and not dataset.left_out
    assert "SYNTHETIC" in made.stderr
    options = [
        "--rows",
        "30",
        "--runs",
        "2",
        "--dataset",
        str(tmp_path / "sample"),
        "--storage",
        str(tmp_path),
    ]
    ended = job("sqlite", *options)
    assert ended.returncode == 0 and "30 rows: " in ended.stdout and "sample: 300 readings" in ended.stdout
