"""A figure that a fault makes wrong is not given; the fault stands in its place."""

import json

import pytest
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Cause, Quantity, missing
from opjoule.cli.measure.command import exit_status, print_outcome
from opjoule.runs.evaluation.faults import withhold
from opjoule.runs.evaluation.wording import YCSB_QUANTITIES as YCSB
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.result import ABOVE_IDLE, ENERGY, PER_OPERATION, RESULT_SCHEMA
from opjoule.runs.record.run_record import RunRecord

ABOVE = {
    *("write_back_energy_j", "energy_j", "marginal_energy_j", "harness_energy_j", "idle_power_w"),
    *(
        "energy_per_operation_j",
        "marginal_energy_per_operation_j",
        "budget",
        "marginal_budget",
        "headline_budget",
        *("by_operation", "by_activity", "by_component", "energy_per_byte_j"),
    ),
}
COUNTED = {
    *("operations", "energy_per_operation_j", "marginal_energy_per_operation_j", "harness_energy_j"),
    *("throughput_per_s", "bandwidth_bytes_per_s", "latency_s", "by_operation", "headline_budget"),
    *("by_activity", "by_component", "write_amplification", "read_amplification", "energy_per_byte_j"),
}


def entries():
    numbers = {quantity.key: Quantity(1.0, 0.1, quantity.unit) for quantity in YCSB if "." not in quantity.key}
    groups = {quantity.top: {} for quantity in YCSB if "." in quantity.key}
    by_repeat = {key: {} for key in ("energy_j", "latency_s.p99", "power_w", "duration_s")}
    return numbers | groups | {"by_repeat": by_repeat}


@pytest.mark.parametrize(
    ("group", "goes"),
    [
        (ENERGY, ABOVE | {"run_energy_j", "power_w", "by_sensor"}),
        (ABOVE_IDLE, ABOVE),
        (PER_OPERATION, COUNTED),
    ],
)
def test_what_a_fault_makes_wrong_is_missing_with_the_fault_as_its_reason(group, goes):
    given = entries()
    kept = withhold(given, {group: "not settled"}, YCSB)
    for key in goes:
        assert kept[key] is None or kept[key].reason == "withheld: not settled"
    assert all(kept[key] == given[key] for key in given if key not in goes and key != "by_repeat")
    assert set(kept["by_repeat"]) == {key for key in given["by_repeat"] if key.split(".")[0] not in goes}


def test_a_missing_number_keeps_its_unit():
    assert withhold(entries(), {ENERGY: "x"}, YCSB)["power_w"] == missing("x", "W", Cause.WITHHELD)


def test_the_first_fault_of_a_group_is_kept(tmp_path):
    record = RunRecord.create(tmp_path, {}, simulated=False)
    record.add_notices(Notice(NoticeKind.FAULT, "one", withholds=(ENERGY,)))
    record.add_notices(Notice(NoticeKind.FAULT, "two", withholds=(ENERGY, PER_OPERATION)))
    assert RunRecord.open(tmp_path).withheld == {ENERGY: "one", PER_OPERATION: "two"}


def test_the_exit_status_tells_a_fault_from_an_end_before_time(tmp_path):
    record = RunRecord.create(tmp_path, {}, simulated=False)
    assert exit_status(record) == 1
    record.finish("complete")
    assert exit_status(record) == 0
    record.add_notices(Notice(NoticeKind.FAULT, "the board was throttled"))
    assert exit_status(record) == 6


def test_json_holds_faults_and_tells_them_on_stderr(tmp_path, capsys):
    """A script that reads the result sees why the exit status is 6."""
    record = RunRecord.create(tmp_path, {}, simulated=False)
    write_json(tmp_path / "result.json", {"schema": RESULT_SCHEMA, "simulated": False})
    record.finish("complete")
    record.add_notices(Notice(NoticeKind.FAULT, "it throttled", withholds=(ENERGY,)))
    print_outcome(record, tmp_path, as_json=True)
    output = capsys.readouterr()
    assert [each["line"] for each in json.loads(output.out)["notices"]] == ["it throttled"]
    assert output.err.endswith(": fault: it throttled\n")
    assert output.err.count("throttled") == 1
