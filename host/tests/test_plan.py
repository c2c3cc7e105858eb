"""The plan: names resolved, values checked, before anything is touched."""

from pathlib import Path

import pytest
from opjoule.cli import arguments
from opjoule.cli.planning import make_plan
from opjoule.errors import BadInput
from opjoule.measurement.plan import find_workload, parse_properties, workload_properties

ROOT = Path(__file__).resolve().parents[2]


CORE = ROOT / "ycsb-workloads" / "workloada.properties"


def plan_of(*argv: str):
    return make_plan(arguments.parse(["--db", "leveldb", "--device", "rpi4", "--simulate", *argv]).options)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--db", "levledb"], "unknown database 'levledb': did you mean 'leveldb'?"),
        (["--device", "rpi44"], "unknown device 'rpi44'"),
        (["--storage", "emmc"], "unknown storage for rpi4 'emmc'"),
        (["--workload", "nothing-like-it"], "unknown workload 'nothing-like-it'"),
        (["--distribution", "zipf"], "did you mean 'zipfian'?"),
        (["-p", "readproportion"], "is not KEY=VALUE"),
        (["-p", "recordcount=many"], "recordcount='many'"),
    ],
)
def test_a_wrong_name_or_value_is_one_line_that_names_it(argv, says):
    with pytest.raises(BadInput) as caught:
        plan_of(*argv)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_board_decides_the_default_medium():
    assert plan_of().medium == "sd"


def test_every_core_workload_is_found_by_its_letter():
    for letter in "abcdef":
        assert find_workload(letter, ROOT / "ycsb-workloads").name == f"workload{letter}.properties"


def test_a_property_setting_wins_over_the_named_option():
    chosen = workload_properties(
        ["fieldlength=7"], CORE, distribution="latest", records=10, operations=20, value_size=1000
    )
    assert chosen == {
        "recordcount": "10",
        "operationcount": "20",
        "requestdistribution": "latest",
        "fieldcount": "1",
        "fieldlength": "7",
    }


def test_a_core_workload_s_example_counts_are_replaced_and_another_file_s_are_kept():
    assert plan_of().properties["recordcount"] == "20000"
    study = ROOT / "ycsb-workloads" / "s1" / "zipfian-read-64b.properties"
    counts = dict(line.split("=", 1) for line in study.read_text().splitlines() if "count=" in line)
    assert plan_of("--workload", "s1/zipfian-read-64b").properties["recordcount"] == counts["recordcount"]
    assert plan_of("--workload", str(study), "--records", "5").properties["recordcount"] == "5"


def test_a_setting_keeps_equals_signs_in_its_value():
    assert parse_properties(["a=b=c"]) == {"a": "b=c"}


def test_the_loader_is_given_threads_seed_and_every_property():
    plan = plan_of("--threads", "4", "--seed", "9", "-p", "readproportion=1")
    line = plan.loader_arguments("run", "leveldb", "/data", "w")
    assert line[:7] == ["run", "--db", "leveldb", "--path", "/data", "--workload", "w"]
    assert line[line.index("--threads") + 1] == "4"
    assert line[line.index("--seed") + 1] == "9"
    assert "readproportion=1" in line
