"""Studies of a folder: cells, scale, resumption, joules and answers of each phase, what is not supported."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import shutil
from pathlib import Path

import opjoule_study
import pytest
from opjoule.base.errors import BadInput
from opjoule.cli.commands import main, parse
from opjoule.results.comparison.study_best import best_systems
from opjoule.results.comparison.study_rows import agree, read_studies
from opjoule.runs.studies.folder import find_study, known_studies

STUDY = """
title = "A study to try"
command = ["python3", "{files}/job.py", "{system}", "{storage}", "{rows}"]
files = ["job.py"]
[axes]
system = ["one", "two"]
size = ["small", "large"]
[counts]
rows = [1000, 10000]
[[where]]
when = { size = "large" }
rows = [1000]
[[exclude]]
system = "two"
size = "large"
[phases]
write = "rows are written"
read = "rows are read"
often = "in many short stretches"
[best]
energy_per_operation_j = "least"
rows_per_s = "most"
"""
JOB = """
import json, sys, time
from opjoule_marks import phase, phase_between
from opjoule_study import Results
if sys.argv[-1] == "--check":
    print(json.dumps({"bytes": BYTES}))
    sys.exit(0)
system, storage, rows, file = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[-1]
results = Results(file)
for count in map(int, rows.split(",")):
    with phase(f"write.{count}"):
        end = time.monotonic() + (0.1 if system == "one" else 0.3)
        while time.monotonic() < end:
            pass
    here = {"rows": str(count)}
    for number in range(20):  # 2 ms each, 40 ms in all
        end_ns = time.monotonic_ns() - 4_000_000 * (20 - number)
        phase_between(f"often.{count}", end_ns - 2_000_000, end_ns)
    results.add("often", mark=f"often.{count}", cell=here, operations=count)
    results.add("write", mark=f"write.{count}", cell=here, operations=count, rows_per_s=count / 0.1)
    if system == "two":
        results.add("read", cell=here, not_supported="two is write-only", answer=None)
    else:
        with phase(f"read.{count}"):
            pass
        results.add("read", mark=f"read.{count}", cell=here, operations=count, answer=count)
"""


def study(folder: Path, toml: str = STUDY, bytes_needed: int = 1000) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(toml)
    (folder / "job.py").write_text(JOB.replace("BYTES", str(bytes_needed)))
    return folder


def command(folder: Path, *words: str) -> list[str]:
    rig = ["--device", "rpi4", "--simulate", "--idle", "0.3", "--settle-limit", "1", "--scale", "0.1"]
    return ["--study", str(folder), *rig, *words]


def test_cells_are_the_axes_product_without_what_is_excluded(tmp_path):
    made = find_study(str(study(tmp_path / "s")))
    cells = made.cells({})
    assert [tuple(cell.values()) for cell in cells] == [("one", "small"), ("one", "large"), ("two", "small")]
    assert made.cells({"size": ["large"]}) == [{"system": "one", "size": "large"}]
    assert made.scaled(cells[0], 0.1, {}) == {"rows": (100, 1000)}
    assert made.scaled(cells[1], 0.1, {}) == {"rows": (100,)}
    assert made.scaled(cells[0], 1e-9, {}) == {"rows": (1,)}
    assert made.scaled(cells[0], 1.0, {"rows": ["1000"]}) == {"rows": (1000,)}


def test_a_cell_without_a_count_that_is_asked_for_is_none(tmp_path):
    made = find_study(str(study(tmp_path / "s")))
    assert made.cells({"rows": ["10000"]}) == [{"system": system, "size": "small"} for system in ("one", "two")]
    with pytest.raises(BadInput, match="--only leaves nothing"):
        made.cells({"rows": ["10000"], "size": ["large"]})
    large = find_study("s1").cells({"records": ["4000000"]})
    assert {cell["size"] for cell in large} == {"1kb"}


WITHIN = STUDY.replace('[[exclude]]\nsystem = "two"\nsize = "large"\n', "")
WITHIN = WITHIN.replace('files = ["job.py"]', 'files = ["job.py"]\nwithin = ["size"]').replace("{rows}", "{parts}")


def test_an_axis_that_the_job_goes_through_itself_is_in_its_parts_with_its_own_counts(tmp_path, capsys):
    folder = study(tmp_path / "s", WITHIN)
    made = find_study(str(folder))
    cells = made.cells({})
    assert cells == [{"system": "one"}, {"system": "two"}]
    both = ({"size": "small", "rows": (100, 1000)}, {"size": "large", "rows": (100,)})
    assert made.parts(cells[0], 0.1, {}) == both
    assert made.parts(cells[0], 1.0, {"size": ["large"], "rows": ["1000"]}) == ({"size": "large", "rows": (1000,)},)
    planned = parse([*command(folder), "--only", "size=large"]).options.file.cells[0]
    assert planned.condition == {"system": "one", "size": "large"}
    assert planned.options.parts == both[1:]
    assert main([*command(folder), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "2 cells" in said and "size       small, large" in said and "rows       100, 1,000 or 100" in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("{parts}", "{size}"), "unknown place '{size}'"),
        (("{parts}", "{rows}"), "unknown place '{rows}'"),
        (('within = ["size"]', 'within = ["sise"]'), "did you mean 'size'"),
        (('within = ["size"]', 'within = ["system"]'), "within 'system'"),
        (("[phases]", '[[exclude]]\nsize = "large"\n[phases]'), "unknown axis 'size'"),
    ],
)
def test_what_a_job_goes_through_itself_is_checked(tmp_path, change, says):
    with pytest.raises(BadInput, match=says):
        find_study(str(study(tmp_path / "s", WITHIN.replace(*change))))


MEANINGLESS = [
    (("[best]", '[cold]\nread = "read_colt"\n[best]'), "unknown phase of .cold. 'read_colt'"),
    (("[best]", '[bars]\nrows_per_s = "rite"\n[best]'), "did you mean 'write'"),
    (
        (
            "[best]",
            '[[counterparts]]\npaper = "Figure 1"\nshows = "reads"\nstate = "exact"\nphases = ["reed"]\n[best]',
        ),
        "did you mean 'read'",
    ),
    (('title = "A study to try"', ""), "title is missing"),
    (("{storage}", "{storge}"), r"did you mean '{storage}'"),
    (("rows = [1000, 10000]", "rows = [0]"), "at least 1"),
    (
        ('energy_per_operation_j = "least"', 'energy_per_operation_j = "low"'),
        "best.energy_per_operation_j must be .*'low'",
    ),
    (('when = { size = "large" }', 'when = { siz = "large" }'), "unknown axis 'siz'"),
    (("[counts]", "[count]"), "unknown key 'count'"),
    (('files = ["job.py"]', "files = [3]"), r"files\[0\] must be .* not 3"),
    (('files = ["job.py"]', 'files = ["job.py"]\nunranked = ["reed"]'), "did you mean 'read'"),
    (('[[exclude]]\nsystem = "two"', '[[exclude]]\nsistem = "two"'), "unknown axis 'sistem'"),
]
"""Change of a study's file -> pattern of its refusal."""


@pytest.mark.parametrize(("change", "says"), MEANINGLESS)
def test_a_study_that_means_nothing_is_named_with_what_is_wrong(tmp_path, change, says):
    with pytest.raises(BadInput, match=says):
        find_study(str(study(tmp_path / "s", STUDY.replace(*change))))


def test_a_study_is_refused_in_the_words_of_the_golden_screen(tmp_path, golden):
    said = []
    for at, (change, _) in enumerate(MEANINGLESS):
        with pytest.raises(BadInput) as caught:
            find_study(str(study(tmp_path / f"{at}", STUDY.replace(*change))))
        said.append(str(caught.value).replace(f"{tmp_path}/{at}", "DIR"))
    golden("refused-study", "\n".join(said))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--scale", "0"], "above 0"),
        (["--scale", "2"], "at most 1"),
        (["--only", "system"], "not AXIS=VALUE"),
        (["--only", "system=three"], "unknown system of --only 'three'"),
        (["--only", "colour=red"], "unknown axis of --only 'colour'"),
        (["--only", "system=two", "--only", "size=large"], "leaves nothing"),
        (["--dataset", "/etc/hostname"], "only the data"),
        (["--until-u", "3%"], "--repeats"),
    ],
)
def test_a_mistaken_option_is_one_line(tmp_path, capsys, words, says):
    with pytest.raises(SystemExit) as ended:
        main(command(study(tmp_path / "s"), *words, "--dry-run"))
    assert ended.value.code == 2
    complaint = capsys.readouterr().err
    assert says in complaint and complaint.count("\n") == 1


def test_every_study_that_is_there_can_be_read_and_planned(capsys):
    studies = known_studies()
    assert studies
    for definition in studies:
        assert definition.cells({}) and all(file.is_file() for file in definition.files)
    assert main(["studies"]) == 0
    said = capsys.readouterr().out
    assert all(definition.title in said for definition in studies)


def test_the_plan_says_what_the_scale_makes_of_the_counts(tmp_path, capsys):
    assert main(command(study(tmp_path / "s"), "--dry-run", "--out", str(tmp_path / "out"))) == 0
    said = capsys.readouterr().out
    assert "scale 0.1" in said and "100, 1,000 or 100" in said and "3 cells" in said
    assert "write: rows are written" in said


@pytest.mark.parametrize(
    ("study", "board"), [("s1", "odroid-c2"), ("s2", "rpi4"), ("s3", "rpi4"), ("s4", "rpi4"), ("s5", "rpi3")]
)
def test_a_plan_without_a_board_is_for_the_papers_and_a_measurement_needs_one(
    study, board, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)  # no rig.toml
    assert main(["--study", study, "--dry-run"]) == 0
    assert f"  device     {board}, assumed: --device names the board\n" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["--study", study])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.count("\n") == 1 and "--device is missing" in said


def test_counts_that_are_asked_for_are_conditions_of_their_own(tmp_path):
    """So that the folder's index keeps those of the command line before."""
    names = []
    for rows in ("1000", "10000"):
        options = parse(command(study(tmp_path / "s"), "--only", "size=small", "--only", f"rows={rows}")).options
        names += [" ".join(cell.condition.values()) for cell in options.file.cells]
    assert names == ["one small 1000", "two small 1000", "one small 10000", "two small 10000"]


def test_a_medium_that_is_too_small_is_named_before_anything_is_measured(tmp_path, capsys):
    folder = study(tmp_path / "s", bytes_needed=10**18)
    assert main(command(folder, "--out", str(tmp_path / "out"), "--only", "size=large")) != 0
    assert "1,000,000,000.0 GB" in capsys.readouterr().err
    assert not list((tmp_path / "out").glob("*/run.json"))


@pytest.mark.rig
@pytest.mark.end_to_end
def test_each_cell_has_joules_answers_and_reasons_and_is_measured_once(tmp_path, capsys):
    argv = command(study(tmp_path / "s"), "--only", "size=small", "--out", str(tmp_path / "out"))
    assert main(argv) in (0, 6)
    said = capsys.readouterr().out
    assert "not supported: read in two: two is write-only" in said
    assert "SIMULATED" in said
    records = sorted(path.parent for path in (tmp_path / "out").glob("*/run.json"))
    assert len(records) == 2
    (study_table,) = read_studies(records)
    assert not study_table.faults
    write_rows = [row for row in study_table.rows if row.phase == "write"]
    assert {(row.system, row.cell["rows"]) for row in write_rows} == {
        (system, rows) for system in ("one", "two") for rows in ("100", "1000")
    }
    for row in write_rows:
        per_operation_j = float(row.means["energy_j"]) / row.operations
        assert row.means["energy_per_operation_j"].value == pytest.approx(per_operation_j)
        assert row.means["energy_per_operation_j"].u > 0
    refused = [row for row in study_table.rows if row.not_supported]
    assert {row.system for row in refused} == {"two"} and not any(row.means for row in refused)
    short = [row for row in study_table.rows if row.phase == "read" and row.system == "one"]
    assert all("10 samples" in row.why and "energy_j" not in row.means for row in short)
    often = [row for row in study_table.rows if row.phase == "often"]
    assert all(row.means["duration_s"].value == pytest.approx(0.04, rel=1e-3) for row in often)
    assert all(row.short_s == pytest.approx(0.002, rel=1e-3) and row.why for row in often)
    best = {(winner.measure, dict(winner.place)["rows"]): winner.system for winner in best_systems(study_table)}
    assert best["energy_per_operation_j", "1000"] == "one"  # which works a third of the time
    with (tmp_path / "out" / "study.csv").open() as lines:
        table = list(csv.DictReader(lines))
    assert len(table) == len(study_table.rows) and {line["simulated"] for line in table} == {"SIMULATED"}
    plan = json.loads((records[0] / "run.json").read_text())["plan"]["study"]
    assert plan["scale"] == 0.1 and plan["parts"] == [{"rows": [100, 1000]}]
    assert main(argv) in (0, 6)
    assert len(list((tmp_path / "out").glob("*/run.json"))) == 2
    shutil.copytree(records[0], tmp_path / "the same again")
    (twice,) = read_studies([*records, tmp_path / "the same again"])
    assert len(twice.rows) == len(study_table.rows)  # a cell counts once
    job = tmp_path / "s" / "job.py"
    job.write_text(job.read_text() + "# changed\n")
    assert main([*argv, "--only", "system=one"]) in (0, 6)
    assert "left out: 2 records of another version of the job" in capsys.readouterr().out


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_study_without_axes_gives_joules_for_each_of_its_phases(tmp_path, capsys):
    argv = ["--study", "speedtest", "--device", "rpi4", "--simulate", "--idle", "0.3", "--scale", "0.15"]
    assert main([*argv, "--out", str(tmp_path / "out")]) in (0, 6)
    assert "SQLite from Python" in capsys.readouterr().err
    (record,) = (path.parent for path in (tmp_path / "out").glob("*/run.json"))
    result = json.loads((record / "result.json").read_text())
    phases = result["by_phase"]
    assert list(phases) == ["create", "insert", "index", "select", "update", "delete"]
    counts = {name: phases[name]["operations"]["value"] for name in phases}
    assert counts == {"create": 0, "insert": 3000, "index": 0, "select": 3000, "update": 3000, "delete": 1500}
    assert {name: kind["count"]["value"] for name, kind in result["by_operation"].items()} == {
        "insert": 3000,
        "select": 3000,
        "update": 3000,
        "delete": 1500,
    }
    for name in ("insert", "select", "update", "delete"):
        assert phases[name]["energy_j"]["value"] > 0 and phases[name]["energy_per_operation_j"]["u"] > 0
    assert "1500 of 3000 rows left" in (record / "raw" / "run-1.log").read_text()
    (table,) = read_studies([record])
    assert [row.phase for row in table.rows] == list(phases) and table.rows[-1].answer == 1500


def test_reading_is_done_again_until_it_has_lasted_long_enough(monkeypatch):
    clock_ns = itertools.count(0, 20_000_000)  # each look at the clock is 20 ms later
    monkeypatch.setattr(opjoule_study.time, "monotonic_ns", lambda: next(clock_ns))
    answers = iter(range(100))
    done = opjoule_study.read_at_least(lambda: next(answers), least_s=0.1)
    assert done == ([0, 4], pytest.approx(0.1), 5)
    assert done.mean_s == pytest.approx(0.02), "of all times, as the joules"
    once = opjoule_study.read_at_least(lambda: next(answers), least_s=0.0)
    assert once.answers == [5] and once.times == 1


def test_a_jobs_end_is_a_status_and_one_line(capsys):
    def raises(error):
        def work():
            raise error

        return work

    for error, status, says in (
        (KeyError("two\n lines"), 3, "job.py: DB, Q1: KeyError: 'two\\n lines'"),
        (OSError(5, "no\n disk"), 2, "job.py: [Errno 5] no disk"),
        (opjoule_study.WrongAnswer("Q1: 3, not 4"), 1, "DB gives wrong answers: Q1: 3, not 4"),
    ):
        assert opjoule_study.ended(raises(error), "DB", lambda: "Q1", OSError) == status
        assert capsys.readouterr().err == says + "\n"
    assert opjoule_study.ended(lambda: None, "DB", lambda: "Q1") == 0


def test_answers_agree_but_for_rounding():
    assert agree([1, {"a": 0.1 + 0.2}], [1, {"a": 0.3}])
    assert not agree([1, 2], [1, 2, 3])
    assert not agree({"a": 1.0}, {"a": 1.001})
    assert not agree("1", 1)
    assert agree(None, None)


def test_studies_databases_dry_run_and_doctor_agree_about_what_is_missing(tmp_path, monkeypatch, capsys):
    """The Python of a simulated board without a client of Berkeley DB, whose engine the loader has built in."""
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    lacking = f"its Python module berkeleydb or bsddb3 is missing ({tmp_path}/python3 does not have it)"
    words = f"{lacking}; --study s3 --simulate installs"
    monkeypatch.chdir(tmp_path)
    for argv in (
        ["studies"],
        ["databases"],
        ["--study", "s3", "--device", "rpi4", "--simulate", "--dry-run"],
        ["doctor", "--simulate"],
    ):
        main(argv)
        said = [line for line in capsys.readouterr().out.splitlines() if words in line]
        remedy = "python3-bsddb3 only for /usr/bin/python3: put /usr/bin first on PATH"
        assert len(said) == 1 and remedy in said[0], argv
    main(["--study", "s3", "--device", "rpi4", "--simulate", "--dry-run", "--only", "system=sqlite"])
    assert "missing" not in capsys.readouterr().out
    main(["--study", "s2", "--device", "rpi4", "--simulate", "--dry-run", "--only", "system=berkeleydb"])
    assert "missing" not in capsys.readouterr().out  # the loader runs that one


def test_a_client_that_is_there_is_reported_by_all_of_them(tmp_path, monkeypatch, capsys):
    (tmp_path / "python3").write_text("#!/bin/sh\ncase $2 in *bsddb3) exit 0;; esac; exit 1\n")
    (tmp_path / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    main(["databases"])
    assert re.search("s3: found, .*bsddb3", capsys.readouterr().out)
    main(["--study", "s3", "--device", "rpi4", "--simulate", "--dry-run"])
    assert "berkeleydb: its" not in capsys.readouterr().out


def test_a_simulated_study_sets_up_the_packages_of_its_systems_alone():
    study = ["--study", "s3", "--device", "rpi4"]
    assert parse([*study, "--simulate"]).needs.packages == ("python3-bsddb3", "postgresql")
    assert parse([*study, "--simulate", "--only", "system=sqlite,duckdb"]).needs.packages == ()
    assert parse(["--study", "s2", "--device", "rpi4", "--simulate"]).needs.packages == ()
    assert parse(study).needs.packages == ()  # a real board's own affair
    assert parse([*study, "--simulate", "--dry-run"]).needs.packages == ()


@pytest.mark.parametrize("name", ["s1", "s2", "s3", "s4", "s5"])
def test_a_dry_run_needs_no_rig_no_system_and_no_loader_and_counts_what_would_be_measured(
    name, tmp_path, monkeypatch, capsys
):
    """It names each thing that is missing; a cell whose system is missing is not counted."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    study = [
        "--study",
        name,
        "--device",
        "rpi4",
        "--dry-run",
        "--repeats",
        "1",
        "--out",
        str(tmp_path / "new"),
    ]
    assert not parse(study).needs.loader and not parse([*study, "--simulate"]).needs.loader
    assert main(study) == 0
    said = capsys.readouterr().out
    assert "  missing    rig.toml is not there" in said and "  to measure 0" not in said
    assert main([*study, "--simulate", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    absent = set().union(*planned["lacking"].values())
    assert main([*study, "--simulate"]) == 0
    said = capsys.readouterr().out
    assert f"  to measure {len(planned['cells']) - len(absent)}" in said and "rig.toml is not there" not in said
    assert (name == "s1") == (f"{len(absent)} cells not measured" in said and "mongod" in said)
    assert not (tmp_path / "new").exists()
