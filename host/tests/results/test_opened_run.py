"""`opjoule.open_run`: the record's numbers and tables on one time axis, and the joules of any stretch of it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import opjoule
import pytest
from opjoule.base.errors import BadInput, RecordFault, WindowError
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Cause, missing
from opjoule.runs.record.run_record import RunRecord
from raw_record import OPERATIONS, REPEATS, finished_record
from report_record import make_record, make_trace

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return finished_record(tmp_path_factory.mktemp("runs") / "record").directory


@pytest.fixture
def run(directory):
    return opjoule.open_run(directory)


def mean(values):
    return pytest.approx(sum(values) / REPEATS, rel=1e-7)


def test_a_stretch_has_the_joules_that_the_result_states_of_it(run):
    phases = {name: [run.phase(name, repeat) for repeat in (1, 2)] for name in ("run", "settle")}
    alone = [run.energy(phase) for phase in phases["run"]]
    whole = [run.energy(first.start_s, last.end_s) for first, last in zip(*phases.values(), strict=True)]
    assert run["run_energy_j"].value == mean(stretch.energy_j.value for stretch in alone)
    assert run["power_w"].value == mean(stretch.power_w.value for stretch in alone)
    assert run["duration_s"].value == mean(stretch.duration_s.value for stretch in alone)
    assert run["marginal_energy_j"].value == mean(stretch.marginal_energy_j.value for stretch in whole)
    assert run["marginal_energy_per_operation_j"].value == mean(
        stretch.marginal_energy_per_operation_j.value for stretch in whole
    )
    assert [stretch.operations for stretch in alone] == [OPERATIONS] * REPEATS
    assert all(stretch.energy_j.u is not None and stretch.energy_j.u > 0 for stretch in alone)


def test_joules_of_parts_add_up_and_idle_itself_has_none_above_idle(run):
    phase = run.phase("run", 2)
    middle_s = phase.start_s + 0.3
    parts = run.energy(phase.start_s, middle_s), run.energy(middle_s, phase.end_s)
    whole = run.energy(phase)
    assert whole.energy_j.value == pytest.approx(sum(part.energy_j.value for part in parts), rel=1e-7)
    assert whole.operations == sum(part.operations for part in parts)
    idle = run.energy(run.phase("idle-before", 2))
    assert idle.marginal_energy_j.covers(0.0)
    assert idle.energy_per_operation_j.value is None


def test_tables_are_numpy_and_arrow_on_one_axis(run):
    assert run.power.arrow.num_rows == len(run.power) == run.power["power_w"].size
    assert run.power["power_w"] == pytest.approx(run.power["current_a"] * run.power["voltage_v"])
    for table in (run.power, run.operations, run.system, run.events):
        assert table.names[0] == "time_s" and np.all(np.diff(table["time_s"]) >= 0)
    during = run.phase("run", 1)
    inside = (run.operations["time_s"] >= during.start_s) & (run.operations["time_s"] < during.end_s)
    assert inside.sum() == OPERATIONS
    edges = run.events["time_s"][run.events["event"] == "sync-edge"]
    assert edges[0] == pytest.approx(during.start_s, abs=1e-9)
    with pytest.raises(KeyError, match="there are time_s, power_w"):
        run.power["watts"]


def test_what_a_fault_withholds_is_withheld_of_a_stretch_too(directory, tmp_path):
    record = finished_record(tmp_path / "faulty")
    record.add_notices(Notice(NoticeKind.FAULT, "a damaged log", withholds=("per_operation",)))
    record.add_notices(Notice(NoticeKind.FAULT, "an endless settle", withholds=("above_idle",)))
    record.finish("failed")
    run = opjoule.open_run(tmp_path / "faulty")
    energy = run.energy(run.phase("run"))
    assert energy.energy_j.u is not None
    assert energy.marginal_energy_j == missing("an endless settle", "J", Cause.WITHHELD)
    assert energy.energy_per_operation_j == missing("a damaged log", "J", Cause.WITHHELD)


def test_nothing_is_read_from_a_changed_file_and_nothing_is_written(tmp_path):
    directory = finished_record(tmp_path / "record").directory
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    run = opjoule.open_run(directory)
    run.energy(run.phase("run"))
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before
    with (directory / "events.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(RecordFault, match=r"events\.parquet: changed"):
        _ = opjoule.open_run(directory).events


def test_a_trace_on_its_own_has_joules_without_what_only_a_board_tells(tmp_path):
    make_trace(tmp_path / "trace")
    run = opjoule.open_run(tmp_path / "trace")
    energy = run.energy(1.0, 2.0)
    assert energy.energy_j.u is None and energy.energy_j.value == pytest.approx(4.0, rel=0.5)
    assert energy.marginal_energy_j.value is None
    assert run.phases == () and energy.operations == 0


def test_a_phase_that_is_not_there_is_reported_with_those_that_are(directory):
    run = opjoule.open_run(directory)
    with pytest.raises(BadInput, match="has no phase 'runn' in repeat 1: there are idle-before 1, run 1"):
        run.phase("runn")


@pytest.mark.parametrize(("start_s", "end_s"), [(2.0, 1.0), (1.0, 1.0), (1.0, None), (float("nan"), 1.0)])
def test_what_is_no_stretch_is_refused(run, start_s, end_s):
    with pytest.raises(BadInput, match="must come after"):
        run.energy(start_s, end_s)
    with pytest.raises(WindowError):
        run.energy(1.0, 1e6)


@pytest.mark.parametrize("path", ["nope", "energy", "latency_s.p98", ""])
def test_a_number_that_no_result_has_is_a_key_error(run, path):
    with pytest.raises(KeyError, match=path):
        run[path]


def test_a_mistyped_number_is_reported_with_the_nearest(run):
    with pytest.raises(KeyError, match=r"did you mean 'energy_j'\?"):
        run["enery_j"]


def test_a_number_of_a_kind_that_the_run_did_not_have_is_missing(run):
    assert run["by_operation.remove.energy_per_operation_j"].value is None


def test_a_partial_record_opens_with_the_reason_for_its_missing_numbers(tmp_path):
    make_record(tmp_path / "partial", status="partial")
    run = opjoule.open_run(tmp_path / "partial")
    assert run.status == "partial" and run.result == {} and run["energy_j"].value is None
    with pytest.raises(RecordFault, match=str(tmp_path)):
        opjoule.open_run(tmp_path)


def test_the_simulated_say_so(run, directory):
    assert run.simulated and "SIMULATED" in run.title and RunRecord.open(directory).simulated


def test_the_package_itself_loads_no_other():
    code = "import sys, opjoule; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT / "host", check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'open_runn'"):
        _ = opjoule.open_runn
