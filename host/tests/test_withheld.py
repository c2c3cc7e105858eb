"""A figure that a fault makes wrong is not given; the fault stands in its place."""

import pytest
from opjoule.cli.measure import exit_status
from opjoule.record.result import GROUPS as RESULT_GROUPS
from opjoule.record.result import UNITS
from opjoule.record.run_record import RunRecord
from opjoule.record.withheld import ABOVE_IDLE, ENERGY, GROUPS, PER_OPERATION, withhold
from opjoule.units import Measured, Missing


def entries():
    return {key: Measured(1.0, 0.1, unit) for key, unit in UNITS.items()} | {
        "latency_s": {},
        "by_operation": {"read": {}},
        "by_repeat": {"energy_j": {}, "latency_s.p99": {}, "power_w": {}, "duration_s": {}},
    }


def test_every_key_of_a_group_is_one_of_result_json():
    known = {*UNITS, *RESULT_GROUPS, "by_operation", "by_sensor", "marginal_budget", "headline_budget"}
    assert {key for keys in GROUPS.values() for key in keys} <= known


@pytest.mark.parametrize(
    ("group", "stays"),
    [
        (ENERGY, {"duration_s", "throughput_per_s", "operations", "cpu_fraction"}),
        (ABOVE_IDLE, {"run_energy_j", "power_w", "duration_s", "throughput_per_s"}),
        (PER_OPERATION, {"run_energy_j", "energy_j", "marginal_energy_j", "power_w", "duration_s"}),
    ],
)
def test_what_a_fault_makes_wrong_is_missing_with_the_fault_as_its_reason(group, stays):
    kept = withhold(entries(), {group: "settle limit reached"})
    for key in GROUPS[group]:
        if key in kept:
            assert kept[key] is None or kept[key].reason == "withheld: settle limit reached"
    assert all(isinstance(kept[key], Measured) for key in stays)
    assert set(kept["by_repeat"]).isdisjoint(GROUPS[group])


def test_a_missing_number_keeps_its_unit():
    assert withhold(entries(), {ENERGY: "x"})["power_w"] == Missing("withheld: x", "W")


def test_the_first_fault_of_a_group_is_kept(tmp_path):
    record = RunRecord.create(tmp_path, {}, simulated=False)
    record.add_fault("one", withholds=(ENERGY,))
    record.add_fault("two", withholds=(ENERGY, PER_OPERATION))
    assert RunRecord.open(tmp_path).withheld == {ENERGY: "one", PER_OPERATION: "two"}


def test_the_exit_status_tells_a_fault_from_an_end_before_time(tmp_path):
    record = RunRecord.create(tmp_path, {}, simulated=False)
    assert exit_status(record) == 1
    record.finish("complete")
    assert exit_status(record) == 0
    record.add_fault("the board was throttled")
    assert exit_status(record) == 6
