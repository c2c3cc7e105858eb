"""The plan: names resolved, values checked, before anything is touched."""

import json
import os
import re
import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from opjoule.base.errors import BadInput, NewerSchema
from opjoule.cli import commands
from opjoule.cli.campaign.options import PlannedCampaign
from opjoule.cli.measure.options import MEASURE, YcsbOptions
from opjoule.cli.measure.planning import make_plan, plan_again
from opjoule.runs.measuring.plan import RUN_S, Plan
from opjoule.runs.record.phases import Role
from opjoule.runs.studies.properties import file_properties, find_workload, kinds, parse_properties
from opjoule.runs.studies.ycsb import YcsbStudy

ROOT = Path(__file__).resolve().parents[4]


def plan_of(*argv: str):
    words = ["--db", "leveldb", "--device", "rpi4", "--simulate", *argv]
    return make_plan(YcsbOptions.parsed(MEASURE.parser(), words))


WRONG = [
    (["--db", "levledb"], "database 'levledb': did you mean 'leveldb'?"),
    (["--db", "sqlite,leveldb"], "db = [...]"),
    (["--device", "rpi44"], "unknown device 'rpi44'"),
    (["--device", "RPi4"], "did you mean 'rpi4'?"),
    (["--storage", "nvme"], "rpi4 'nvme'"),
    (["--workload", "nothing-like-it"], "unknown workload 'nothing-like-it'"),
    (["--distribution", "zipf"], "did you mean 'zipfian'?"),
    (["-p", "readproportion"], "KEY=VALUE"),
    (["-p", "recordcount=many"], "recordcount='many'"),
    (["--design", "--generator", "ycsb"], "--design: "),
    (["--workload", "d", "--reset", "go-on"], "--reset go-on: "),
    (["--reset", "go-on", "--generator", "ycsb"], "--generator ycsb"),
    (["--rate", "fast"], "--rate fast: "),
    (["--rate", "120%"], "--rate 120%: "),
    (["--rate", "0"], "--rate 0: "),
    (["--rate", "50%", "--generator", "ycsb"], "--generator ycsb"),
    (["--rate", "full", "-p", "target=5"], "property target"),
    (["--generator", "ycsb", "-p", "mixblock.length_s=1"], "mixblock.length_s"),
    (
        ["--records", "10", "-p", "recordcount=5"],
        "--records sets recordcount=10, and -p sets recordcount=5",
    ),
    (
        ["--threads", "2", "-p", "threadcount=4"],
        "--threads sets threadcount=2, and -p sets threadcount=4",
    ),
    (["--seed", "2", "-p", "seed=4"], "--seed sets seed=2, and -p sets seed=4"),
    (
        ["--value-size", "9", "-p", "fieldcount=2"],
        "--value-size sets fieldcount=1, and -p sets fieldcount=2",
    ),
    (["--seconds", "9", "-p", "operationcount=2"], "--seconds 9 and -p operationcount"),
    (["--seconds", "9", "-p", "maxexecutiontime=2"], "--seconds sets maxexecutiontime=9, and -p sets"),
    (["-p", "operationcount=0"], "operationcount=0: "),
    (["-p", "threadcount=0"], "threadcount=0: "),
    (["-p", "recordcount=9 # nine"], "9 # nine"),
    (["-p", "valuetext=nothing.txt"], "property valuetext=nothing.txt: "),
]
"""Options -> part of the refusal that names the mistake."""


@pytest.mark.parametrize(("argv", "says"), WRONG)
def test_a_wrong_name_or_value_is_one_line_that_names_it(argv, says):
    with pytest.raises(BadInput) as caught:
        plan_of(*argv)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_are_refused_in_the_words_of_the_golden_screen(golden):
    lines = []
    for argv, _ in WRONG:
        with pytest.raises(BadInput) as caught:
            plan_of(*argv)
        lines.append(f"{shlex.join(argv)}\n--> {caught.value}")
    golden("refused-options", "\n\n".join(lines), {ROOT: "REPOSITORY"})


def test_a_run_that_nothing_is_asked_of_has_a_length():
    assert plan_of().study.run_s == RUN_S
    for argv in (["--operations", "7"], ["-p", "operationcount=7"]):
        assert plan_of(*argv).study.run_s is None
        assert plan_of(*argv).study.properties["operationcount"] == "7"


@pytest.mark.parametrize(
    ("argv", "rate", "target"),
    [
        ([], 0.5, None),
        (["--rate", "80%"], 0.8, None),
        (["--rate", "full"], None, None),
        (["--rate", "700"], None, "700"),
        (["-p", "target=9"], None, "9"),
        (["--generator", "ycsb"], None, None),
    ],
)
def test_the_rate_is_a_part_of_the_warm_up_s_or_a_number_or_as_fast_as_it_goes(argv, rate, target):
    study = plan_of(*argv).study
    assert (study.rate, study.properties.get("target")) == (rate, target)


def test_the_warm_up_decides_the_rate_of_the_runs_and_is_itself_as_fast_as_it_goes(tmp_path):
    study, board = plan_of("--rate", "25%").study, BoardOfPaths(tmp_path)
    with study.repeats(board, tmp_path) as steps:
        warm_up = next(step for step in steps if step.name == "warm-up").runs.command
    assert "target=0" in warm_up and "maxexecutiontime=10" in warm_up
    after = study.after({"warm-up-1": {"throughput_per_s": 13_970.0}})
    assert "target=3500" in run_command(after, tmp_path)
    assert plan_of("--rate", "full").study.after({"warm-up-1": {"throughput_per_s": 9.0}}).rate is None


@pytest.mark.parametrize(
    ("argv", "arrivals"),
    [
        (["--rate", "700"], "exponential"),
        (["--rate", "50%"], "exponential"),
        (["--rate", "equal"], "exponential"),
        (["--rate", "700", "-p", "arrivals=even"], "even"),
        (["--rate", "50%", "-p", "arrivals=even"], "even"),
        (["-p", "target=700"], None),
        (["--rate", "700", "--generator", "ycsb"], None),
    ],
)
def test_operations_at_a_rate_come_at_random_unless_the_workload_or_ycsb_decides(tmp_path, argv, arrivals):
    study = plan_of(*argv).study.after({"warm-up-1": {"throughput_per_s": 1400.0}})
    study = study.at_rate(700.0) if study.rate == "equal" else study
    with study.repeat(BoardOfPaths(tmp_path), 1, tmp_path) as steps:
        commands = [step.runs.command for step in steps if step.name == "run"]
    assert {settings_in(command).get("arrivals") for command in commands} == {arrivals}


def test_no_two_workloads_of_a_measurement_have_one_tag(tmp_path):
    """Files are named by step and repeat: the load before the warm-up is not that of the first repeat."""
    for argv in (
        [],
        ["--workload", "d"],
        ["--reset", "load"],
        ["--workload", "d", "--warm-up", "5"],
    ):
        study, board = plan_of(*argv).study, BoardOfPaths(tmp_path)
        with study.repeats(board, tmp_path) as steps:
            names = [step.name for step in steps]
        with study.repeat(board, 1, tmp_path) as steps:
            names += [step.name for step in steps]
        assert len(names) == len(set(names)), names
        assert [name for name in names if "idle" not in name] == [
            step.name
            for step in [*study.once(), *study.steps()]
            if step.name not in ("harness",) and "idle" not in step.name
        ]


@pytest.mark.parametrize(
    ("argv", "reset"),
    [
        ([], "go-on"),
        (["--workload", "d"], "load"),
        (["--generator", "ycsb"], "load"),
        (["--reset", "load"], "load"),
    ],
)
def test_repeats_go_on_with_one_database_unless_the_workload_inserts_records(argv, reset):
    assert plan_of(*argv).study.reset == reset


def test_repeats_that_go_on_share_the_idle_phases_between_them_and_differ_in_their_draws(tmp_path):
    study, board = plan_of("--seed", "9").study, BoardOfPaths(tmp_path)
    names, seeds = [], []
    for number in (1, 2):
        with study.repeat(board, number, tmp_path) as steps:
            names.append([step.name for step in steps])
        line = run_command(study, tmp_path, number)
        seeds.append(line[line.index("--seed") + 1])
    assert names == [["idle-before", "run", "settle", "idle-after"], ["run", "settle", "idle-after"]]
    assert seeds == ["10", "11"]


def settings_in(command):
    return dict(word.split("=", 1) for before, word in pairwise(command) if before == "-p")


def test_a_warm_up_comes_before_each_run_on_a_database_of_its_own_and_leaves_the_runs_keys_alone(tmp_path):
    study = plan_of("--workload", "d", "--warm-up", "30", "--rate", "500").study
    board = BoardOfPaths(tmp_path)
    assert [step.name for step in study.once()] == []
    with study.repeat(board, 2, tmp_path) as steps:
        made = list(steps)
    names = [step.name for step in made]
    at = names.index("run-warm-up")
    assert names[at + 1 : at + 4] == ["run-warm-up-settle", "idle-before", "run"]
    warm_up, run = (settings_in(made[place].runs.command) for place in (at, at + 3))
    assert (warm_up["insertproportion"], warm_up["maxexecutiontime"], warm_up["target"]) == ("0", "30", "500")
    assert run["maxexecutiontime"] == "16" and "insertproportion" not in run
    assert made[at].role is Role.PREPARE and not made[at].runs.files, "it is in no figure"
    assert study.words()["run-warm-up"].startswith("30 s ")
    copied = [step.name for step in plan_of("--reset", "copy", "--warm-up", "5").study.steps()]
    assert copied[copied.index("copy-settle") + 1 :][:2] == ["run-warm-up", "run-warm-up-settle"]
    assert YcsbStudy.from_json(study.to_json(), tmp_path, tmp_path).warm_up_s == 30


def test_the_length_of_the_warm_up_before_all_repeats_is_the_users(tmp_path):
    study, board = plan_of("--warm-up", "90").study, BoardOfPaths(tmp_path)
    with study.repeats(board, tmp_path) as steps:
        warm_up = next(step for step in steps if step.name == "warm-up")
    assert settings_in(warm_up.runs.command)["maxexecutiontime"] == "90"
    assert "warm_up_s" not in plan_of().study.to_json()


PROPORTIONS = {"read": 0.4, "update": 0.3, "remove": 0.2, "readmodifywrite": 0.1}
THREE_WRITE = [word for kind, part in PROPORTIONS.items() for word in ("-p", f"{kind}proportion={part}")]
THREE_WRITE += ["-p", "putback=true"]


def test_several_kinds_that_write_are_run_in_favour_of_each_at_the_rate_of_the_repeats(tmp_path):
    study = plan_of(*THREE_WRITE, "--rate", "500").study
    orders, mixes = set(), study.mixes()
    for seed in range(20):
        orders.add(str([mix.properties for mix in replace(study, seed=seed).mixes()]))
    assert len(orders) == 6, "the order is drawn from the seed"
    made = []
    for number, mix in enumerate(mixes, 5):
        with mix.repeat(BoardOfPaths(tmp_path), number, tmp_path) as steps:
            names, (step, *_) = [step.name for step in steps], steps
        assert names == ["mix", "settle", "idle-after"] and step.role is Role.MIX
        command = step.runs.command
        assert command[command.index("--seed") + 1] == str(study.seed + number)
        settings = settings_in(command)
        assert (settings["target"], settings["readproportion"]) == ("500", "0.4")
        made.append([float(settings[f"{kind}proportion"]) for kind in ("update", "remove", "readmodifywrite")])
    assert sorted(made) == [[0.15, 0.1, 0.35], [0.15, 0.4, 0.05], [0.45, 0.1, 0.05]]


def test_only_several_kinds_that_write_have_runs_in_other_mixes_and_an_earlier_plan_has_none(tmp_path):
    for argv in ([], ["--workload", "c"], ["--workload", "f"], ["--workload", "d"], [*THREE_WRITE, "--no-mixes"]):
        assert plan_of(*argv).study.mixes() == []
        assert "other_mixes" not in plan_of(*argv).study.to_json()
    study = plan_of(*THREE_WRITE).study
    assert YcsbStudy.from_json(study.to_json(), tmp_path, tmp_path).mixes()
    assert not YcsbStudy.from_json({**study.to_json(), "other_mixes": False}, tmp_path, tmp_path).mixes()
    assert not study.ranging().mixes() and not study.mixes()[0].mixes()
    assert ("mix", study.words()["mix"]) in plan_of(*THREE_WRITE).phases()


def test_a_warm_up_that_would_insert_the_runs_records_is_refused():
    with pytest.raises(BadInput, match=r"^--warm-up: "):
        plan_of("-p", "insertproportion=1", "-p", "readproportion=0", "-p", "updateproportion=0", "--warm-up", "5")


REMOVES = ["-p", "removeproportion=0.02"]


def test_a_workload_that_removes_records_loads_them_for_each_repeat(tmp_path):
    """Repeats that go on with one database would soon ask for records that are gone."""
    study = plan_of(*REMOVES, "--warm-up", "5").study
    assert study.reset == "load"
    with study.repeat(BoardOfPaths(tmp_path), 1, tmp_path) as steps:
        commands = {step.name: settings_in(step.runs.command) for step in steps if step.workload}
    assert commands["run-warm-up"]["removeproportion"] == "0"
    assert commands["run"]["removeproportion"] == "0.02"
    assert study.words()["run-warm-up"].startswith("5 s of the same work without its removes")
    with pytest.raises(BadInput, match=r"^--reset go-on: the workload removes records.*putback=true"):
        plan_of(*REMOVES, "--reset", "go-on")
    only = ["-p", "removeproportion=1", "-p", "readproportion=0", "-p", "updateproportion=0"]
    with pytest.raises(BadInput, match=r"^--warm-up: the workload only inserts or removes"):
        plan_of(*only, "--warm-up", "5")


def test_repeats_go_on_where_removed_records_are_put_back():
    assert plan_of(*REMOVES, "-p", "putback=true").study.reset == "go-on"


def test_proportions_that_a_workload_leaves_out_are_those_of_ycsb(tmp_path):
    def study(*lines):
        path = tmp_path / "bare.properties"
        path.write_text("\n".join(lines))
        return plan_of("--workload", str(path)).study

    assert kinds(study("recordcount=1000").effective) == ["read", "update"]
    assert [mix.properties["updateproportion"] for mix in study("insertproportion=0.05").mixes()] != []
    plan_of("--workload", str(tmp_path / "bare.properties"), "--reset", "load", "--warm-up", "5")


def test_made_text_is_no_file(tmp_path):
    study = plan_of("-p", "valuetext=generated", "-p", "fieldlengthhistogram=none.txt").study
    assert "file_sha256" not in study.to_json()
    assert settings_in(run_command(study, tmp_path))["valuetext"] == "generated"


def test_the_board_decides_the_default_medium():
    assert plan_of().board.medium == "sd"


def test_every_core_workload_is_found_by_its_letter():
    for letter in "abcdef":
        assert find_workload(letter, ROOT / "ycsb-workloads").name == f"workload{letter}.properties"


def test_a_path_is_that_file_and_a_name_of_two_files_is_refused(tmp_path, monkeypatch):
    """YCSB's own files are called workloada and so on, and have their own counts."""
    monkeypatch.chdir(tmp_path)
    folder = ROOT / "ycsb-workloads"
    mine, other = tmp_path / "workloada", tmp_path / "workloada.properties"
    mine.write_text("recordcount=123")
    assert find_workload("./workloada", folder) == find_workload(str(mine), folder) == mine
    with pytest.raises(BadInput, match=r"workloada\.properties and a file here: .*\./workloada for the file here"):
        find_workload("workloada", folder)
    assert find_workload("a", folder) == find_workload(str(folder / "workloada.properties"), folder)
    other.write_text("recordcount=999")
    assert find_workload(str(mine), folder) == mine
    monkeypatch.chdir(folder)
    assert find_workload("workloada.properties", folder) == folder / "workloada.properties"


def workload_file(folder: Path, *lines: str, name: str = "workloadg.properties") -> list[str]:
    path = folder / name
    path.write_text("\n".join(("readproportion=1", "updateproportion=0", *lines)))
    return ["--workload", str(path)]


@pytest.mark.parametrize("name", ["workloadg.properties", "workloadc.properties", "workloada", "mine"])
def test_a_file_s_own_counts_hold_whatever_its_name(tmp_path, name):
    study = plan_of(*workload_file(tmp_path, "recordcount=256000", "operationcount=300000", name=name)).study
    assert (study.effective["recordcount"], study.effective["operationcount"]) == ("256000", "300000")
    assert study.run_s is None


def test_only_what_nothing_states_has_a_default():
    study = plan_of().study
    assert study.properties == {"recordcount": "20000", "operationcount": "0"}
    assert (study.run_s, study.threads, study.seed) == (RUN_S, 1, 1)


@pytest.mark.parametrize("options", [[], ["-p"]])
def test_a_property_holds_from_the_file_as_from_the_command_line(tmp_path, options):
    lines = ["threadcount=4", "seed=9", "maxexecutiontime=60", "target=700"]
    given = [word for line in lines for word in ("-p", line)]
    argv = [*workload_file(tmp_path), *given] if options else workload_file(tmp_path, *lines)
    study = plan_of(*argv).study
    assert (study.threads, study.seed, study.run_s, study.rate) == (4, 9, 60, None)
    line = run_command(study, tmp_path)
    assert line[line.index("--threads") + 1] == "4"
    assert "maxexecutiontime=60" in line and "operationcount=0" in line


@pytest.mark.parametrize(
    ("option", "value", "found"),
    [
        ("--records", "7", lambda study: study.effective["recordcount"]),
        ("--operations", "7", lambda study: study.effective["operationcount"]),
        ("--threads", "7", lambda study: str(study.threads)),
        ("--seed", "7", lambda study: str(study.seed)),
        ("--seconds", "7", lambda study: str(study.run_s)),
        ("--rate", "7", lambda study: study.effective["target"]),
        ("--value-size", "7", lambda study: study.effective["fieldlength"]),
        ("--distribution", "latest", lambda study: study.effective["requestdistribution"]),
    ],
)
def test_an_option_wins_over_the_file(tmp_path, option, value, found):
    lines = ["recordcount=5", "operationcount=5", "threadcount=5", "seed=5", "maxexecutiontime=5", "target=5"]
    lines += ["fieldlength=5", "fieldlengthdistribution=uniform", "requestdistribution=uniform"]
    study = plan_of(*workload_file(tmp_path, *lines), option, value).study
    assert found(study) == value
    assert study.effective["fieldlengthdistribution"] == ("constant" if option == "--value-size" else "uniform")


def test_a_rate_as_fast_as_it_goes_wins_over_the_target_of_a_file(tmp_path):
    study = plan_of(*workload_file(tmp_path, "target=5"), "--rate", "full").study
    assert (study.rate, study.effective["target"]) == (None, "0")


def test_both_limits_of_a_file_hold_for_a_run_and_neither_for_its_load(tmp_path):
    argv = workload_file(tmp_path, "recordcount=50", "insertcount=20", "operationcount=90", "maxexecutiontime=60")
    study = plan_of(*argv, "--reset", "load").study
    assert re.findall(r"[\d.]+", study.words()["run"]) == ["90", "60", "50", "1"]
    assert study.words()["load"] == "20 records into LevelDB"
    with study.repeat(BoardOfPaths(tmp_path), 1, tmp_path) as steps:
        load = next(step for step in steps if step.name == "load").runs
    assert "maxexecutiontime=0" in load.command and load.operations == 20
    assert not any("maxexecutiontime" in word for word in run_command(study, tmp_path))


def test_the_plan_shows_what_holds_and_where_it_comes_from(tmp_path):
    argv = workload_file(tmp_path, "recordcount=50", "operationcount=90", "seed=3")
    study = plan_of(*argv, "-p", "fieldcount=2", "--operations", "8").study
    assert [text for name, text in study.settings() if name in ("settings", "")] == [
        "fieldcount=2 (-p)",
        "operationcount=8 (--operations)",
        "readproportion=1 updateproportion=0 recordcount=50 seed=3 (workloadg.properties)",
        "threadcount=1 (default)",
    ]


def test_a_file_is_read_as_java_reads_it(tmp_path):
    text = "\ufeff# caf\u00e9\r\nrecordcount\t:  12\\\r\n   34\r\n! no=1\r\n\\u006fperationcount 77\r\na\\=b=c=d \r\n"
    for encoding in ("utf-8", "iso-8859-1"):
        path = tmp_path / encoding
        path.write_bytes(text.lstrip("\ufeff" if encoding != "utf-8" else "").encode(encoding))
        assert file_properties(path) == {"recordcount": "1234", "operationcount": "77", "a=b": "c=d"}


def test_an_escaped_blank_at_the_end_belongs_to_the_value(tmp_path):
    path = tmp_path / "w"
    path.write_text("a=x\\  \nb=x\\\\ \n")
    assert file_properties(path) == {"a": "x ", "b": "x\\"}


def test_the_warm_up_and_the_harness_request_the_keys_of_the_run(tmp_path):
    """With inserts, zipfian requests depend on the number of operations (docs/reference/loader.md)."""
    counted, timed = (
        plan_of("--workload", "e", "--rate", "50%", *argv).study
        for argv in (["--operations", "9"], ["--seconds", "600"])
    )
    for study, room in ((counted, "9"), (timed, "20000")):
        board = BoardOfPaths(tmp_path)
        with study.repeats(board, tmp_path) as steps:
            warm_up = next(step for step in steps if step.name == "warm-up").runs.command
        harness = next(iter(study.controls(board))).runs.command
        for command in (warm_up, harness):
            assert f"insertroom.operations={room}" in command
    assert "operationcount=0" in run_command(timed, tmp_path)
    assert not any("insertroom" in word for word in run_command(timed, tmp_path))


def test_files_that_properties_name_are_copied_to_the_board(tmp_path):
    (tmp_path / "hist.txt").write_text("BlockSize\t10\n0\t1\n")
    (tmp_path / "book.txt").write_text("Call me Ishmael.")
    argv = workload_file(tmp_path, "fieldlengthdistribution=histogram", "valuetext=book.txt", "insertproportion=1")
    study = plan_of(*argv, "--reset", "copy").study
    line = run_command(replace(study, reset="load"), tmp_path)
    assert "fieldlengthhistogram=/files/hist.txt" in line and "valuetext=/files/book.txt" in line
    assert f"valuetext={tmp_path / 'book.txt'}" in study.check_command("loader", str, "/nowhere")
    before = study.kept_name("loader")
    (tmp_path / "book.txt").write_text("It was the best of times.")
    assert study.kept_name("loader") != before


def test_a_plan_whose_files_were_changed_is_refused(tmp_path):
    (tmp_path / "book.txt").write_text("Call me Ishmael.")
    path = saved(tmp_path, "-p", f"valuetext={tmp_path / 'book.txt'}")
    assert plan_again(path, {}).study.properties["valuetext"] == str(tmp_path / "book.txt")
    (tmp_path / "book.txt").write_text("It was the best of times.")
    with pytest.raises(BadInput, match=r"book\.txt"):
        plan_again(path, {})


def test_a_setting_keeps_equals_signs_in_its_value():
    assert parse_properties(["a=b=c"]) == {"a": "b=c"}


def test_the_loader_is_given_threads_seed_and_every_property(tmp_path):
    plan = plan_of("--threads", "4", "--seed", "9", "-p", "readproportion=1", "--reset", "load")
    board = BoardOfPaths(tmp_path)
    with plan.study.repeat(board, 1, tmp_path) as steps:
        run = next(step for step in steps if step.name == "run")
    line = run.runs.command
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
        ["--design"],
        ["--rate", "full"],
        ["--reset", "load"],
    )
    hashes = {plan_of(*other).sha256 for other in others}
    assert len(hashes) == len(others) and plan_of().sha256 not in hashes


def test_a_command_is_planned_with_its_own_phases():
    command = commands.parse(["command", "--device", "rpi4", "--simulate", "--", "sleep", "1"])
    plan = make_plan(command.options)
    assert [name for name, _ in plan.phases()] == ["idle", "run", "settle", "idle"]
    assert plan.study.label == "command-sleep"


def run_command(study, folder: Path, number: int = 1) -> tuple[str, ...]:
    with study.repeat(BoardOfPaths(folder), number, folder) as steps:
        return next(step for step in steps if step.name == "run").runs.command


@pytest.mark.parametrize(
    ("period_s", "length_s"),
    [(200e-6, 0.02), (532e-6, 0.02), (0.01, 0.1), (0.0681, 0.69), (0.1, 1.0), (1.0, 10.0), (0.0, 0.02)],
)
def test_mix_blocks_are_as_long_as_ten_samples_of_the_meter(tmp_path, period_s, length_s):
    study = plan_of("--design").study.under(period_s)
    assert f"mixblock.length_s={length_s:g}" in run_command(study, tmp_path)
    assert not any("mixblock" in part for part in run_command(plan_of().study.under(period_s), tmp_path))


def test_mix_blocks_are_run_and_never_loaded_and_the_user_may_choose_their_length(tmp_path):
    with plan_of("--design", "--reset", "load").study.repeat(BoardOfPaths(tmp_path), 1, tmp_path) as steps:
        load = next(step for step in steps if step.name == "load").runs.command
    assert not any("mixblock" in part for part in load)
    chosen = run_command(plan_of("--design", "-p", "mixblock.length_s=3").study.under(0.1), tmp_path)
    assert [part for part in chosen if "mixblock" in part] == ["mixblock.length_s=3"]


def test_the_plan_shows_mix_blocks():
    assert "block" in dict(plan_of("--design").study.settings())["mix"]
    assert "mix" not in dict(plan_of().study.settings())


def saved(tmp_path, *argv: str) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_of(*argv).to_json()))
    return path


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--workload", "d", "--records", "7", "--threads", "3", "--no-harness"],
        ["--seconds", "4", "--until-u", "3%"],
        ["--design"],
        ["--rate", "30%", "--reset", "load"],
    ],
)
def test_a_saved_plan_is_the_same_plan_again(tmp_path, argv):
    command = commands.parse(["again", str(saved(tmp_path, *argv))])
    again = plan_again(command.options.plan, {})
    assert again.to_json() == plan_of(*argv).to_json()
    assert again.sha256 == plan_of(*argv).sha256
    assert command.needs.simulate and command.needs.loader
    assert [again.asked[name] for name in ("device", "simulate", "db")] == ["rpi4", True, "leveldb"]


def test_a_plan_of_opjoule_0_1_is_repeated_as_it_was(tmp_path):
    """Its runs were as fast as they could be, on a database each; the cycle in mix blocks is left out."""
    path = saved(tmp_path, "--rate", "full", "--reset", "load")
    plan = json.loads(path.read_text())
    plan["study"]["blocks"] = True
    path.write_text(json.dumps(plan))
    study = plan_again(path, {}).study
    assert (study.reset, study.rate, study.once()) == ("load", None, [])


def test_a_plan_written_before_an_option_existed_has_the_default_of_this_option(tmp_path):
    path = saved(tmp_path, "--repeats-limit", "50")
    plan = json.loads(path.read_text())
    del plan["repeats_limit"]
    path.write_text(json.dumps(plan))
    assert plan_again(path, {}).repeats_limit == Plan.repeats_limit
    del plan["idle_s"]
    path.write_text(json.dumps(plan))
    with pytest.raises(BadInput, match="contains no plan"):
        plan_again(path, {})


def test_a_plan_that_is_read_twice_never_shows_half_a_workload_file(tmp_path):
    """It is replaced as a whole, so that who has it open still reads all of it."""
    path = saved(tmp_path)
    workload = plan_again(path, {}).study.workload
    text = workload.read_text()
    with workload.open() as opened:
        again = plan_again(path, {}).study.workload
        assert again == workload and again.stat().st_ino != os.fstat(opened.fileno()).st_ino
        assert opened.read() == text == again.read_text()


@pytest.mark.parametrize(
    "argv",
    [
        ["command", "--device", "rpi4", "--simulate", "--", "true"],
        ["--study", "speedtest", "--device", "rpi4", "--simulate", "--scale", "0.5"],
    ],
)
def test_a_command_s_plan_is_the_same_plan_again(tmp_path, argv):
    options = commands.parse(argv).options
    plan = make_plan(options.file.cells[0].options if isinstance(options, PlannedCampaign) else options)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"plan": plan.to_json()}))
    assert plan_again(path, {}).sha256 == plan.sha256


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda plan: plan.clear(), "contains no plan"),
        (lambda plan: plan["schema"].update(version=99), "version 99"),
        (lambda plan: plan["study"].update(database="nothing"), "unknown database 'nothing'"),
        (lambda plan: plan["study"]["workload"].update(text="recordcount=1"), "checksum"),
        (lambda plan: plan.update(study=[1]), "contains no plan"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_one_line(tmp_path, change, says):
    path = saved(tmp_path)
    plan = json.loads(path.read_text())
    change(plan)
    path.write_text(json.dumps(plan))
    with pytest.raises(BadInput, match=says):
        plan_again(path, {})
    with pytest.raises(BadInput, match="No such file"):
        plan_again(tmp_path / "nothing", {})


def test_a_newer_record_is_not_taken_for_one_without_a_plan(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"schema": {"name": "run", "version": 99}, "steps": []}))
    with pytest.raises(NewerSchema, match="version 99"):
        plan_again(tmp_path, {})
