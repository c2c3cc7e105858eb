"""A record's directory belongs to one measurement, however many begin at the same moment."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from opjoule.base.errors import BadInput, DeviceFault
from opjoule.campaign.campaign import run_conditions
from opjoule.cli import commands
from opjoule.cli.measure import command as measure
from opjoule.runs.record.directory import RESERVE, free_directory, held, made_directory
from opjoule.runs.record.run_record import RunRecord

AT_ONCE = 8
ARGV = ["--db", "leveldb", "--device", "rpi4", "--simulate"]


def at_once(work):
    """What `work` gives in each of several threads that begin it together; None where it is refused."""
    begin = threading.Barrier(AT_ONCE, timeout=60)

    def one(_):
        begin.wait()
        try:
            return work()
        except BadInput:
            return None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, range(AT_ONCE)))


def test_directories_that_are_made_at_once_are_different_ones(tmp_path):
    inside = threading.Barrier(AT_ONCE, timeout=60)

    def made():
        with made_directory(tmp_path / "runs" / "one") as directory:
            inside.wait()
            (directory / "file").touch()
            return directory.name

    assert sorted(at_once(made)) == ["one", *(f"one-{number}" for number in range(2, AT_ONCE + 1))]


def test_a_directory_that_stayed_empty_is_not_left(tmp_path):
    with made_directory(tmp_path / "runs" / "one") as directory:
        assert directory.is_dir()
    assert not directory.exists()


def test_a_free_name_is_given_without_making_anything(tmp_path):
    (tmp_path / "one").mkdir()
    assert free_directory(tmp_path / "one") == tmp_path / "one-2"
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize("number", range(20))
def test_of_records_that_are_created_in_one_directory_at_once_one_is(tmp_path, number):
    place = tmp_path / f"out-{number}"
    created = at_once(lambda: RunRecord.create(place, {"number": number}, simulated=True))
    [record] = [record for record in created if record is not None]
    assert RunRecord.open(place).document == record.document
    assert sorted(path.name for path in place.iterdir()) == [RESERVE, "run.json"]


def test_a_record_that_another_is_about_to_create_is_refused(tmp_path):
    (tmp_path / RESERVE).touch()
    with pytest.raises(BadInput, match=re.escape(str(tmp_path))):
        RunRecord.create(tmp_path, {}, simulated=True)
    assert not (tmp_path / "run.json").exists()


def test_measurements_that_start_in_the_same_second_have_records_of_their_own(tmp_path, monkeypatch):
    """Both have chosen their directory before either has a record."""
    chosen = threading.Barrier(2)

    def measured(plan, rig, options, directory):
        chosen.wait(60)
        record = RunRecord.create(directory, plan.asked, simulated=True)
        record.finish("complete")
        return record

    _only(monkeypatch, tmp_path, measured)
    options = [commands.parse(ARGV).options for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(measure.run_measure, options)) == [0, 0]
    records = sorted((tmp_path / "runs").iterdir())
    assert [path.name for path in records] == ["same", "same-2"]
    assert {RunRecord.open(path).status for path in records} == {"complete"}


def test_a_measurement_that_does_not_begin_and_a_dry_run_leave_no_directory(tmp_path, monkeypatch, capsys):
    def refused(plan, rig, options, directory):
        raise DeviceFault("the board does not answer")

    _only(monkeypatch, tmp_path, refused)
    assert measure.run_measure(commands.parse([*ARGV, "--dry-run"]).options) == 0
    assert "runs/same" in capsys.readouterr().out.replace("\n", "")
    assert not (tmp_path / "runs").exists()
    with pytest.raises(DeviceFault):
        measure.run_measure(commands.parse(ARGV).options)
    assert not list((tmp_path / "runs").iterdir())


def _only(monkeypatch, root, measure_once):
    """Leaves of a measurement what chooses its directory, below `root` and at the same second."""
    monkeypatch.setattr(measure, "ROOT", root)
    monkeypatch.setattr(measure, "RUNS", root / "runs")
    monkeypatch.setattr(measure, "directory_name", lambda plan: "same")
    monkeypatch.setattr(measure, "_measure_once", measure_once)
    monkeypatch.setattr(measure, "_print_truth", lambda plan, options, directory: None)
    monkeypatch.setattr(measure, "print_outcome", lambda record, place, as_json: None)


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_folder_of_several_conditions_belongs_to_one_measurement(tmp_path, goes_on):
    """Refused while the other one holds it, and when it has written its conditions.json."""

    def never(plan, place):
        raise AssertionError("measured into another's folder")

    if goes_on:
        with held(tmp_path), pytest.raises(BadInput, match="is being written"):
            run_conditions([], tmp_path, never, seed=1, json=False)
    else:
        (tmp_path / "conditions.json").write_text("{}")
        with pytest.raises(BadInput, match="is not empty"):
            run_conditions([], tmp_path, never, seed=1, json=False)
