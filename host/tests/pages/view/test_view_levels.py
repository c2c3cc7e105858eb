"""Levels of a long trace that are kept beside its record: good, stale, damaged, or not to be written."""

import shutil
from dataclasses import replace

import numpy as np
import opjoule
import pytest
from opjoule.base.notices import Notice, NoticeKind
from opjoule.energy.sensor_calibration import Correction, SensorCalibration
from opjoule.energy.trace import parquet_file
from opjoule.energy.trace.journal import TraceJournal, to_parquet
from opjoule.energy.trace.parquet_file import StretchReader
from opjoule.energy.trace.power_trace import Gap
from opjoule.meters.chips import ina219_breakout
from opjoule.pages.view import runs_folder
from opjoule.pages.view.runs_folder import CACHE, FINEST, POWER, WHOLE, RunsFolder, kept_levels, make_levels
from opjoule.runs.record.run_record import RunRecord

PERIOD_NS = 200_000
COUNT = WHOLE + 5000
LOST = slice(40_000, 41_000)
CALIBRATED = replace(
    ina219_breakout(1.0),
    calibration=SensorCalibration("bench", Correction(1.01, 0.001), Correction(0.99, 0.01)),
)


def recorded(directory):
    """A recording whose journal is whole, with a lost stretch in it."""
    record = RunRecord.create(directory, {"meter": "made up", "seconds": 14}, simulated=True)
    record.update(sensor=CALIBRATED)
    journal, rng = TraceJournal(directory), np.random.default_rng(1)
    stamps_ns = np.arange(COUNT, dtype=np.int64) * PERIOD_NS
    for some in (slice(0, LOST.start), slice(LOST.stop, COUNT)):
        if some.start:
            ends_ns = int(stamps_ns[LOST.start - 1]), int(stamps_ns[LOST.stop])
            journal.append_gap(Gap.between(*ends_ns, LOST.stop - LOST.start, "lost frame"))
        own_ns = stamps_ns[some]
        journal.append_samples(own_ns, rng.normal(0.5, 0.01, own_ns.size), np.full(own_ns.size, 5.0))
    journal.close()
    return record


@pytest.fixture(scope="module")
def long_record(tmp_path_factory):
    directory = tmp_path_factory.mktemp("long") / "record"
    record = recorded(directory)
    with pytest.MonkeyPatch.context() as small:
        small.setattr(parquet_file, "ROW_GROUP_ROWS", 10_000)
        to_parquet(directory)
    record.finish("complete")
    return directory


@pytest.fixture
def record(long_record, tmp_path):
    return shutil.copytree(long_record, tmp_path / "record")


def assert_alike(levels, wanted):
    """Two levels' extents and values, to what 32 bits hold."""
    assert levels.extent == wanted.extent
    assert [len(level) for level in levels.pyramid.levels] == [len(level) for level in wanted.pyramid.levels]
    for one, other in zip(levels.pyramid.levels, wanted.pyramid.levels, strict=True):
        assert one.samples_per_cell == other.samples_per_cell
        np.testing.assert_array_equal(one.bounds_s, other.bounds_s)
        np.testing.assert_allclose(one.mean[POWER], other.mean[POWER], rtol=1e-6)
        np.testing.assert_allclose(one.extremes(POWER), other.extremes(POWER), rtol=1e-6)


def test_levels_are_kept_and_the_record_stays_sound(record):
    made = make_levels(opjoule.open_run(record))
    assert made.extent.samples == COUNT and made.extent.corrected and len(made.extent.lost_s) == 1
    assert made.pyramid.levels[0].samples_per_cell == FINEST
    kept = kept_levels(opjoule.open_run(record))
    assert_alike(kept, made)
    assert RunRecord.open(record).verify() == []
    assert CACHE not in RunRecord.open(record).run.checksums


def test_a_run_whose_levels_are_kept_is_drawn_without_its_whole_trace(record, monkeypatch):
    make_levels(opjoule.open_run(record))
    monkeypatch.setattr(opjoule.open_run(record).__class__, "_supply", property(lambda self: 1 / 0))
    shown = RunsFolder(record.parent).open("record")
    assert shown.run.phases == () and shown.extent.end_s == pytest.approx(COUNT * PERIOD_NS * 1e-9)
    assert len(shown.pyramid.view(0.0, shown.extent.end_s, 500)) <= 500
    assert shown.pyramid.view(1.0, 1.01, 500).samples_per_cell == 1


@pytest.mark.parametrize("first", [0, 9_900, 10_050, LOST.start - 300, COUNT - 400])
def test_single_samples_are_those_of_the_corrected_trace(record, first):
    """Row groups have 10,000 rows: across them, into the lost stretch, and at both ends."""
    run = opjoule.open_run(record)
    start_s, end_s = first * PERIOD_NS * 1e-9, (first + 400) * PERIOD_NS * 1e-9
    view = make_levels(run).pyramid.view(start_s, end_s, 1000)
    assert view.bounds_s[0] <= start_s and view.bounds_s[-1] >= end_s - 1e-9
    centre_s = (view.bounds_s[1:] + view.bounds_s[:-1]) / 2
    power_w = run.trace.power_w[first + 1 : first + 399]
    own_s = run.axis.of_meter(run.trace.meter_ns[first + 1 : first + 399])
    at = np.searchsorted(view.bounds_s, own_s, "right") - 1
    np.testing.assert_allclose(view.mean[POWER][at], power_w, rtol=1e-12)
    np.testing.assert_allclose(centre_s[at], own_s, atol=1e-9)


@pytest.mark.parametrize("how", ["cut off", "no file of ours", "another version", "another run.json"])
def test_a_cache_that_is_not_good_is_made_anew(record, monkeypatch, how):
    made = make_levels(opjoule.open_run(record))
    cache = record / CACHE
    if how == "cut off":
        cache.write_bytes(cache.read_bytes()[:-2000])
    elif how == "no file of ours":
        cache.write_bytes(b"something else")
    elif how == "another version":
        monkeypatch.setattr(runs_folder, "VERSION", 99)
    else:
        RunRecord.open(record).add_notices(Notice(NoticeKind.FAULT, "something that was found later"))
    assert kept_levels(opjoule.open_run(record)) is None
    assert_alike(make_levels(opjoule.open_run(record)), made)
    assert kept_levels(opjoule.open_run(record)) is not None


def test_a_folder_that_cannot_be_written_is_shown_all_the_same(record, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "read-only file system")

    monkeypatch.setattr(runs_folder, "rewriting", refuse)
    made = make_levels(opjoule.open_run(record))
    assert len(made.pyramid.view(0.0, 10.0, 100)) <= 100 and not (record / CACHE).exists()


def test_a_recording_that_has_not_ended_is_shown_and_nothing_is_kept(tmp_path):
    recorded(tmp_path / "record")
    made = make_levels(opjoule.open_run(tmp_path / "record"))
    assert made.pyramid.view(1.0, 1.01, 500).samples_per_cell == 1
    assert not (tmp_path / "record" / CACHE).exists()


def test_joules_are_the_librarys_after_samples_were_let_go(record):
    run = opjoule.open_run(record)
    before = run.energy(1.0, 3.0)
    run.forget_samples()
    assert run.energy(1.0, 3.0) == before
    assert len(run.trace) == COUNT


def test_a_stretch_holds_two_samples_more_on_either_side(long_record):
    reader = StretchReader(long_record / "power.parquet")
    for first, last in ((0, 5), (9_999, 10_000), (20_000, 20_001), (COUNT - 3, COUNT)):
        stretch = reader.between(first * PERIOD_NS, last * PERIOD_NS)
        wanted = range(max(first - 2, 0), min(last + 2, COUNT))
        assert stretch.meter_ns.tolist() == [number * PERIOD_NS for number in wanted]
