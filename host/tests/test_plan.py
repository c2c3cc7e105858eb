"""The plan: names resolved, values checked, before anything is touched."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from opjoule.cli import arguments
from opjoule.cli.planning import make_plan
from opjoule.errors import BadInput
from opjoule.studies.ycsb.properties import find_workload, parse_properties, workload_properties

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
    assert plan_of().study.properties["recordcount"] == "20000"
    study = ROOT / "ycsb-workloads" / "s1" / "zipfian-read-64b.properties"
    counts = dict(line.split("=", 1) for line in study.read_text().splitlines() if "count=" in line)
    assert (
        plan_of("--workload", "s1/zipfian-read-64b").study.properties["recordcount"] == counts["recordcount"]
    )
    assert plan_of("--workload", str(study), "--records", "5").study.properties["recordcount"] == "5"


def test_a_setting_keeps_equals_signs_in_its_value():
    assert parse_properties(["a=b=c"]) == {"a": "b=c"}


def test_the_loader_is_given_threads_seed_and_every_property(tmp_path):
    plan = plan_of("--threads", "4", "--seed", "9", "-p", "readproportion=1")
    board = BoardOfPaths(tmp_path)
    with plan.study.repeat(board, 1, tmp_path) as steps:
        run = next(step for step in steps if step.name == "run")
    line = run.workload.command
    assert line[:7] == ("loader", "run", "--db", "leveldb", "--path", "/data/leveldb", "--workload")
    assert line[line.index("--threads") + 1] == "4"
    assert line[line.index("--seed") + 1] == "9"
    assert "readproportion=1" in line


class BoardOfPaths:
    """What a study asks of a board to make its command lines."""

    def __init__(self, folder: Path) -> None:
        self.programs = SimpleNamespace(loader="loader")
        self.runner = SimpleNamespace(copy_in=lambda file: f"/files/{file.name}")

    def database_path(self, database: str) -> str:
        return f"/data/{database}"

    def start_database(self, database: str, raw: Path) -> None:
        pass

    def remove_database(self, path: str) -> None:
        pass


def test_two_plans_of_the_same_settings_are_the_same_value_and_any_other_setting_makes_another():
    assert plan_of().sha256 == plan_of().sha256
    assert plan_of("--out", "elsewhere").sha256 == plan_of().sha256
    others = (
        ["--records", "5"],
        ["--threads", "2"],
        ["--idle", "4"],
        ["--repeats", "7"],
        ["--storage", "ssd-usb3"],
    )
    hashes = {plan_of(*other).sha256 for other in others}
    assert len(hashes) == len(others) and plan_of().sha256 not in hashes


def test_a_command_is_planned_with_its_own_phases():
    asked = arguments.parse(["command", "--device", "rpi4", "--simulate", "--", "sleep", "1"])
    plan = make_plan(asked.options)
    assert [name for name, _ in plan.phases()] == ["idle", "run", "settle", "idle"]
    assert plan.study.label == "command-sleep"
