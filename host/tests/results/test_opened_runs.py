"""`opjoule.open_runs`: what is read of many records at once is what each of them says when it is opened alone."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import opjoule
import pytest
from opjoule.base.errors import BadInput, RecordFault
from opjoule.base.units import Cause
from opjoule.energy.sensor_calibration import Correction, SensorCalibration
from opjoule.results.long_table import long_table
from opjoule.runs.evaluation.quantities.definition import Quantities
from opjoule.runs.evaluation.quantities.phases import PHASES
from opjoule.runs.record.result import Conclusion
from opjoule.runs.record.run_record import RunRecord
from raw_record import finished_record

ROOT = Path(__file__).resolve().parents[3]


def calibrated(directory: Path, most_a: float) -> RunRecord:
    """A record whose sensor has a calibration that holds up to a current."""
    record = finished_record(directory)
    correction = Correction(1.02, 0.003, -1.0, most_a)
    bounds = replace(record.run.sensor, calibration=SensorCalibration("bench-1", current=correction))
    record.update(sensor=bounds)
    record.finish("complete")
    return RunRecord.open(directory)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A plain record, one whose calibration holds, one whose does not, and the example."""
    folder = tmp_path_factory.mktemp("runs")
    finished_record(folder / "a-plain")
    calibrated(folder / "b-calibrated", 100.0)
    calibrated(folder / "below" / "c-refused", 0.01)
    shutil.copytree(ROOT / "runs" / "example", folder / "d-example")
    return folder


@pytest.fixture(scope="module")
def runs(folder):
    return opjoule.open_runs(folder)


def test_samples_are_those_of_each_run_opened_alone(runs):
    by_run = {
        run: numbers
        for run, *numbers in runs.sql(
            "select run, count(*), avg(current_a), avg(voltage_v), avg(power_w), min(meter_ns) from power group by run"
        ).fetchall()
    }
    assert list(by_run) and set(by_run) == {str(folder) for folder in runs.folders}
    for run, numbers in by_run.items():
        alone = opjoule.open_run(run).power
        means = [np.mean(alone[name]) for name in ("current_a", "voltage_v", "power_w")]
        assert numbers == pytest.approx([len(alone), *means, alone["meter_ns"][0]], rel=1e-9)
    plain, better, refused = (by_run[str(runs.folders[at])][1] for at in (0, 1, 2))
    assert {Path(run).name for run in by_run} == {"a-plain", "b-calibrated", "c-refused", "d-example"}
    by_name = {Path(run).name: numbers[1] for run, numbers in by_run.items()}
    assert by_name["b-calibrated"] == pytest.approx(0.003 + 1.02 * by_name["a-plain"])
    assert by_name["c-refused"] == pytest.approx(by_name["a-plain"]), "its calibration does not hold"
    assert {plain, better, refused} <= set(by_name.values())


def test_operations_are_those_of_each_run_opened_alone(runs):
    for run, kind, count in runs.sql("select run, kind, count(*) from operations group by all").fetchall():
        alone = opjoule.open_run(run).operations
        assert count == (alone["kind"] == kind).sum() > 0
    assert runs.events.columns[:2] == ["run", "board_ns"]
    assert runs.system.count("*").fetchall()[0][0] > 0


def test_results_have_every_number_with_its_interval(runs):
    rows = {row["run"]: row for row in runs.results.to_pylist()}
    assert len(rows) == 4
    for run, row in rows.items():
        alone = opjoule.open_run(run)
        assert (row["status"], row["simulated"]) == (alone.status, alone.simulated)
        for key in ("energy_j", "latency_s.p99", "harness_energy_j", "throughput_per_s"):
            assert (row[key], row[f"{key} u"]) == (alone[key].value, alone[key].u), key
    groups = runs.sql("select db, count(*), avg(power_w) from results group by db").fetchall()
    assert [(db, count) for db, count, _ in groups] == [("leveldb", 4)]


def test_what_cannot_be_read_is_named_and_costs_the_others_nothing(folder, tmp_path):
    shutil.copytree(folder / "a-plain", tmp_path / "good")
    shutil.copytree(folder / "a-plain", tmp_path / "changed")
    changed = tmp_path / "changed" / "result.json"
    changed.write_text(changed.read_text().replace('"value": ', '"value": 1'))
    shutil.copytree(folder / "a-plain", tmp_path / "torn")
    (tmp_path / "torn" / "power.parquet").write_bytes(b"PAR1")
    runs = opjoule.open_runs(tmp_path)
    assert {Path(run).name for (run,) in runs.sql("select distinct run from power").fetchall()} == {"good"}
    why = {Path(path).name: line for path, line in runs.unreadable.items()}
    assert "result.json" in why["changed"]
    assert "power.parquet" in why


def test_nothing_to_open_and_a_query_that_means_nothing_are_one_line(tmp_path, runs, monkeypatch):
    with pytest.raises(BadInput, match="no run record"):
        opjoule.open_runs(tmp_path)
    with pytest.raises(RecordFault, match=f"{tmp_path}/nothing"):
        opjoule.open_runs(tmp_path / "nothing")
    with pytest.raises(BadInput, match="select watts from power") as wrong:
        runs.sql("select watts\nfrom power")
    assert "\n" not in str(wrong.value)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(BadInput, match="pip install duckdb"):
        _ = opjoule.open_runs(ROOT / "runs" / "example").power


def test_runs_without_a_table_give_an_empty_one(tmp_path):
    record = RunRecord.create(tmp_path / "failed", {"db": "leveldb"}, simulated=True)
    record.finish("failed")
    runs = opjoule.open_runs(tmp_path)
    assert runs.power.fetchall() == [] and "power_w" in runs.power.columns
    assert runs.operations.fetchall() == []
    assert runs.results.to_pylist()[0]["status"] == "failed"


def test_the_memory_limit_is_the_database_s(folder):
    [(limit,)] = (
        opjoule.open_runs(folder, memory_limit="64MB")
        .sql("select value from duckdb_settings() where name = 'memory_limit'")
        .fetchall()
    )
    assert limit.startswith(("61", "64"))


def test_the_long_table_has_the_mean_and_every_repeat_of_each_number(runs, folder):
    example = opjoule.open_run(folder / "d-example")
    rows = runs.sql(
        "select repeat, value, u, unit, phase from quantities "
        "where run like '%d-example' and path = 'power_w' order by all"
    ).fetchall()
    mean, repeats = example["power_w"], example.result["by_repeat"]["power_w"]["values"]
    assert rows == [
        *((at, value, None, "W", None) for at, value in enumerate(repeats, 1)),
        (None, mean.value, mean.u, "W", None),
    ]
    causes = runs.sql("select distinct cause from quantities where path = 'by_activity.checkpoint'").fetchall()
    assert (str(Cause.NOT_REPORTED),) in causes


def test_a_phase_of_any_name_has_its_rows():
    numbers = {"by_phase": {"query 1.2": {"energy_j": {"value": 2.0, "u": 0.1, "unit": "J"}}}}
    [row] = long_table(Conclusion(numbers=numbers), Quantities(PHASES)).to_pylist()
    assert (row["phase"], row["quantity"], row["repeat"], row["value"]) == ("query 1.2", "energy_j", None, 2.0)
