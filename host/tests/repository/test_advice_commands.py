"""What a command that is refused, or a study of several runs, advises is carried out, and the complaint is gone."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import pytest
from advised import Cases, check
from compared_records import several
from opjoule.base.errors import BadInput
from opjoule.boards.rig import check_sync
from opjoule.cli import commands
from opjoule.cli.commands import main
from opjoule.cli.import_trace import run_import
from opjoule.cli.measure.options import MEASURE
from opjoule.cli.record_commands import ImportOptions
from opjoule.cli.twin import runs_to_make
from opjoule.energy.trace.imported.trace_file import read_trace_file
from opjoule.runs.evaluation.trace_result import STATED_VOLTAGE
from opjoule.runs.record.result import read_result
from opjoule.runs.studies.properties import check_space

SIMULATED = ["--db", "leveldb", "--device", "rpi4", "--simulate", "--dry-run"]
CASES = Cases()


def said(capsys, argv: list[str]) -> str:
    """What a command prints on both streams."""
    capsys.readouterr()
    with suppress(SystemExit):
        main(argv)
    printed = capsys.readouterr()
    return printed.out + printed.err


def without(argv: list[str], option: str) -> list[str]:
    """The command without an option and its value, if it has one."""
    at = argv.index(option)
    valued = at + 1 < len(argv) and not argv[at + 1].startswith("--")
    return [*argv[:at], *argv[at + 1 + valued :]]


LEFT_OUT = [
    (["--until-u", "3%", "--idle", "0"], r"leave out (--idle) 0"),
    (["--seconds", "5", "--operations", "100"], r"--seconds 5 and (--operations) both set"),
    (["--seconds", "5", "--generator", "ycsb"], r"--seconds 5 and (--generator) both set"),
    (["--design", "--generator", "ycsb"], r"(--design): .* leave one of them out"),
    (["--design", "--generator", "ycsb"], r"with (--generator) ycsb, whose .* leave one of them out"),
    (["--meter", "rapl"], r"leave out (--meter) or"),
    (["--sync", "gpio:GPIO17"], r"leave out (--sync) or"),
    (["--state", "governor=performance"], r"leave out (--state) or"),
]


@pytest.mark.parametrize(("options", "advice"), LEFT_OUT, ids=[f"{case[0][0]} {case[1][:20]}" for case in LEFT_OUT])
def test_a_plan_without_what_is_to_be_left_out_is_shown(capsys, options, advice):
    argv = [*SIMULATED, *options]
    line = said(capsys, argv)
    match = re.search(advice, " ".join(line.split()))
    assert match, line
    after = said(capsys, without(argv, match[1]))
    assert "leave" not in after and "both set" not in after
    assert "Nothing was run" in after or "YCSB is not in" in after, "a dry run misses YCSB where none is fetched"


def test_with_a_simulated_rig_instead_of_a_missing_one_the_plan_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    argv = ["--db", "leveldb", "--device", "rpi4", "--dry-run", "--rig", str(tmp_path / "rig.toml")]
    line = said(capsys, argv)
    match = re.search(r"add (--simulate)", line)
    assert match and "is not there" in line
    assert "is not there" not in said(capsys, [*argv, match[1]])


@CASES.advice("is not empty", r"choose another (--out)")
def a_directory_that_is_taken(advice, tmp_path, capsys):
    (tmp_path / "taken").mkdir(exist_ok=True)
    (tmp_path / "taken" / "mine").write_text("x")
    (tmp_path / "trace.csv").write_text(POWER + ROWS)
    out = [advice[1], str(tmp_path / "free")] if advice else ["--out", str(tmp_path / "taken")]
    return said(capsys, ["import", str(tmp_path / "trace.csv"), *out])


@CASES.advice("are free on", r"fewer with (--records)")
def records_without_room(advice, tmp_path, capsys):
    return room(advice, "recordcount")


@CASES.advice("are free on", r"smaller ones with (--value-size)")
def values_without_room(advice, tmp_path, capsys):
    return room(advice, "fieldlength")


def room(advice, key: str) -> str:
    """What is said of 20 GB, and of them with a hundredth of what the property says."""
    if advice:
        assert advice[1] in MEASURE.parser()._option_string_actions
    properties = {"recordcount": "20000000", "fieldcount": "10", "fieldlength": "100"}
    properties[key] = str(int(properties[key]) // (100 if advice else 1))
    try:
        check_space(properties, 10**9, "/mnt/sd")
    except BadInput as error:
        return str(error)
    return ""


POWER = "time (s),current (A),voltage (V)\n"
ROWS = "".join(f"{number * 1e-3:g},0.5,5\n" for number in range(50))
CSVS = {
    "no time": (POWER.replace(" (s)", "") + ROWS, "no column with a unit of time", {"NAME": "time"}),
    "no current": (
        POWER.replace(" (A)", "") + ROWS.replace("0.5", "500"),
        "no column with a unit of current",
        {"NAME": "current"},
    ),
    "unknown unit": (
        POWER.replace("(A)", "(mA?)") + ROWS,
        "no column with a unit of current",
        {"NAME": "current (mA?)"},
    ),
    "another unit": (
        POWER + ROWS.replace("0.5", "50000"),
        "check the unit",
        {"NAME": "current (A)", "UNIT": "mA"},
    ),
    "time that stands": (
        "time (s),ticks,current (A),voltage (V)\n"
        + "".join(f"{1e6 + number // 7 * -1:g},{number},0.5,5\n" for number in range(50)),
        "time does not increase",
        {"NAME": "ticks", "UNIT": "ms"},
    ),
}


@pytest.mark.parametrize("name", CSVS)
def test_a_csv_file_is_read_with_the_columns_as_the_message_says_to_write_them(name, tmp_path):
    text, complaint, words = CSVS[name]
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=complaint) as refused:
        read_trace_file(path, {}, 5.0)
    match = re.search(r"--columns (\w+)=(\S+)", str(refused.value))
    assert match, refused.value
    column = match[2].rstrip(".")
    for placeholder, value in words.items():
        column = column.replace(placeholder, value)
    assert "NAME" not in column and "UNIT" not in column
    assert read_trace_file(path, {match[1]: column}, 5.0).current_a.size == 50


@CASES.advice("no voltage", r"(--voltage) VOLTS")
def a_trace_without_voltage(advice, tmp_path, capsys):
    path = tmp_path / "trace.csv"
    path.write_text("time (s),current (A)\n0,0.5\n1,0.5\n2,0.5\n")
    supply = [advice[1], "5.1"] if advice else []
    place = tmp_path / ("advised" if advice else "refused")
    return said(capsys, ["import", str(path), "--out", str(place), *supply])


@CASES.advice("error bounds are unknown", r"(--sensor)")
def a_trace_of_an_unknown_meter(advice, tmp_path, capsys):
    path = tmp_path / "trace.csv"
    path.write_text(POWER + ROWS)
    place = tmp_path / ("advised" if advice else "unknown")
    sensor = {advice[1].removeprefix("--"): "ina219"} if advice else {}
    assert run_import(ImportOptions(file=path, out=place, **sensor)) == 0
    energy = read_result(place).numbers["energy_j"]
    assert not advice or (energy["u"] is not None and STATED_VOLTAGE not in str(energy))
    return str(energy.get("reason"))


@CASES.advice("not comparable", r"allow it with (--although) (\S+)")
def runs_that_differ(advice, tmp_path, capsys):
    if not advice:
        several(tmp_path, "a", [1.0, 1.01])
        several(tmp_path, "b", [2.0, 2.01], storage="emmc", simulated=True)
    extra = [advice[1], advice[2]] if advice else []
    return said(capsys, ["compare", str(tmp_path), "--by", "storage", *extra])


@CASES.advice("not clear what to compare", r"give (--by) with (?:one or more of|for example) (\w+)")
def runs_without_a_question(advice, tmp_path, capsys):
    if not advice:
        several(tmp_path, "a", [1.0, 1.01])
        several(tmp_path, "b", [2.0, 2.01], storage="emmc")
    extra = ["--by", "storage"] if advice else []
    return said(capsys, ["compare", str(tmp_path), *extra]).replace("compared by storage", "")


@CASES.advice("no verdict", r"\((--repeats)\)")
def a_change_of_single_runs(advice, tmp_path, capsys):
    """With two runs on each side, as --repeats 2 makes them, there is a verdict."""
    assert not advice or advice[1] in MEASURE.parser()._option_string_actions
    count = 2 if advice else 1
    place = tmp_path / str(count)
    before = several(place, "before", [1.0, 1.01][:count])
    after = several(place, "after", [1.2, 1.21][:count])
    return said(capsys, ["compare", "--before", *before, "--after", *after])


@pytest.mark.parametrize("case", CASES.all, ids=lambda case: case.name)
def test_what_is_advised_mends_what_is_complained_of(case, tmp_path, capsys):
    check(case, lambda advice: str(case.carry_out(advice, tmp_path, capsys)))


def test_a_sync_line_is_taken_as_the_message_writes_it():
    with pytest.raises(BadInput) as refused:
        check_sync("GPIO17")
    forms = re.findall(r"as in (gpio:[^\s,]+)", str(refused.value))
    assert len(forms) >= 2
    for form in [*forms, "none"]:
        check_sync(form)


@pytest.mark.parametrize("simulate", ["", "--simulate"])
def test_the_runs_that_a_fit_asks_for_are_commands_that_are_taken(simulate):
    for command, _ in runs_to_make("rpi4", "sd", simulate):
        words = command.split()
        assert words[0] == "host/measure.py"
        parsed = commands.parse(words[1:])
        assert parsed.options


def test_a_plan_that_dry_run_wrote_is_one_that_again_takes(tmp_path, capsys):
    """As the message of a record without a plan says: a plan that --dry-run --json wrote."""
    missing = said(capsys, ["again", str(tmp_path / "none"), "--dry-run"])
    options = re.search(r"a plan that (--dry-run) (--json) wrote", missing)
    assert options, missing
    plan = said(capsys, [*without(SIMULATED, "--dry-run"), options[1], options[2]])
    (tmp_path / "plan.json").write_text(plan)
    assert json.loads(plan)["device"] == "rpi4"
    assert "Nothing was run" in said(capsys, ["again", str(tmp_path / "plan.json"), "--dry-run"])
