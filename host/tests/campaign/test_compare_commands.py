"""`compare -- COMMAND COMMAND`: a campaign of commands, and the factor by which they differ."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from opjoule.base.errors import BadInput
from opjoule.cli import commands
from opjoule.cli.campaign.compared_commands import command_names
from opjoule.cli.campaign.options import PlannedCampaign
from opjoule.cli.commands import main
from opjoule.results.comparison.index import read_index
from opjoule.runs.record.run import program_of, title_of
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.command import CommandStudy

ROOT = Path(__file__).resolve().parents[3]
RIG = ["compare", "--device", "rpi4", "--simulate"]
PAIR = ["--", "sleep 1", "sleep 2"]
TRUTH = {"sleep 1": (10.0, 1.0), "sleep 2": (18.0, 2.0), "sleep 3": (27.0, 3.0)}
"""Command -> its joules above idle and its seconds."""


def planned(*words: str) -> PlannedCampaign:
    options = commands.parse([*RIG, *words]).options
    assert isinstance(options, PlannedCampaign)
    return options


class Measured:
    """Stands in for the measurement: writes each command's result, with a spread."""

    def __init__(self, monkeypatch, spread: float = 0.02) -> None:
        self.spread, self.measured, self.cut_off_at = spread, [], 0
        monkeypatch.setattr("opjoule.cli.campaign.command.measuring", lambda cells, rigs: self)

    def __call__(self, plan, place: Path) -> tuple[int, Path]:
        line = plan.study.command[-1]
        self.measured.append((plan.asked["block"], line))
        record = RunRecord.create(place, plan.asked, simulated=True)
        record.update(plan=plan.to_json(), plan_sha256=plan.sha256)
        if len(self.measured) == self.cut_off_at:
            raise KeyboardInterrupt
        chance = np.random.default_rng([plan.asked["block"], len(line), int(line[-1])])
        joules, length_s = (value * (1 + self.spread * chance.standard_normal()) for value in TRUTH[line])
        numbers = {
            "marginal_energy_j": {"value": joules, "u": 1e-3 * joules, "unit": "J"},
            "energy_j": {"value": joules + 3 * length_s, "u": 1e-3 * joules, "unit": "J"},
            "duration_s": {"value": length_s, "u": 1e-6, "unit": "s"},
        }
        schema = {"name": "result", "version": 3}
        (place / "result.json").write_text(json.dumps({"schema": schema, "simulated": True, **numbers}))
        record.finish("complete")
        return 0, place


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_two_commands_are_measured_in_blocks_and_their_factors_printed(tmp_path, capsys, monkeypatch):
    measured = Measured(monkeypatch)
    assert main([*RIG, "--out", str(tmp_path / "out"), *PAIR]) == 0
    assert sorted(measured.measured) == [(block, line) for block in range(1, 6) for line in TRUTH if line[-1] < "3"]
    said = plain(capsys.readouterr().out)
    above_idle, in_all, time = (
        [float(number) for number in re.findall(rf"{words}.*?ommand sleep 2 \w+ ([\d.]+) times as much", said)]
        for words in ("above idle", "in all", "lowest time")
    )
    assert (above_idle[0], in_all[0], time[0]) == pytest.approx((1.8, 24 / 13, 2.0), rel=0.05), said
    assert "All 3 contrasts" in said and "SIMULATED" in said
    assert "varies" not in said, "that commands differ is the question"
    assert {run.condition["command"] for run in read_index(tmp_path / "out")[0]} == {"sleep 1", "sleep 2"}
    assert (tmp_path / "out" / "report.html").exists()
    assert main(["report", str(tmp_path / "out")]) in (0, 4)
    assert "sleep 2 used" in capsys.readouterr().out


def test_commands_that_cost_the_same_are_not_told_apart(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(TRUTH, "sleep 2", TRUTH["sleep 1"])
    Measured(monkeypatch)
    assert main([*RIG, "--out", str(tmp_path / "out"), *PAIR]) == 0
    said = plain(capsys.readouterr().out)
    assert "o difference in " in said and "(ratio above idle 1.0" in said and "times as much" not in said


def test_several_commands_are_compared_with_the_least(tmp_path, capsys, monkeypatch):
    Measured(monkeypatch)
    words = ["--out", str(tmp_path / "out"), "-n", "one", "-n", "two", "-n", "three", *PAIR, "sleep 3"]
    assert main([*RIG, *words]) == 0
    said = plain(capsys.readouterr().out)
    assert "two used 1." in said and "command three 2." in said and "All 9 contrasts" in said


def test_one_block_has_factors_and_no_conclusion(tmp_path, capsys, monkeypatch):
    Measured(monkeypatch)
    assert main([*RIG, "--blocks", "1", "--out", str(tmp_path / "out"), *PAIR]) == 0
    said = plain(capsys.readouterr().out)
    assert "ommand sleep 2 over command sleep 1" in said and "sleep 2 used" not in said


def test_an_interrupted_comparison_continues_with_the_same_command(tmp_path, capsys, monkeypatch):
    measured = Measured(monkeypatch)
    measured.cut_off_at = 4
    line = [*RIG, "--out", str(tmp_path / "out"), *PAIR]
    assert main(line) == 130
    assert "continues" in capsys.readouterr().err
    assert main(line) == 0
    assert len(measured.measured) == 10 + 1
    assert main(line) == 0
    assert len(measured.measured) == 10 + 1
    assert "sleep 2" in capsys.readouterr().out


def test_json_is_the_comparison(tmp_path, capsys, monkeypatch):
    Measured(monkeypatch)
    assert main([*RIG, "--json", "--out", str(tmp_path / "out"), *PAIR]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["schema"]["name"] == "comparison" and compared["by"] == ["command"]
    contrasts = {contrast["metric"]: contrast for contrast in compared["contrasts"]}
    assert contrasts["marginal_energy_j"]["ratio"] == pytest.approx(1.8, rel=0.05)
    assert contrasts["duration_s"]["differs"] is True


def test_blocks_are_added_until_the_factor_is_known(tmp_path, capsys, monkeypatch):
    measured = Measured(monkeypatch, spread=0.1)
    words = ["--repeats", "3", "--until", "8%", "--out", str(tmp_path / "out")]
    assert main([*RIG, *words, *PAIR]) == 0
    assert max(block for block, _ in measured.measured) > 8
    assert "2 of 2 contrasts reached" in capsys.readouterr().err.splitlines()[-1]


def test_again_adds_blocks_to_compared_commands(tmp_path, capsys, monkeypatch):
    measured = Measured(monkeypatch)
    monkeypatch.setattr("opjoule.cli.campaign.command.measuring", lambda cells, rigs: measured)
    words = [*RIG, "--out", str(tmp_path / "out"), "--before", "true", *PAIR]
    assert main(words) == 0
    measured.measured.clear()
    assert main(["again", str(tmp_path / "out"), "--blocks", "1"]) == 0
    assert sorted(measured.measured) == [(6, "sleep 1"), (6, "sleep 2")]
    assert "sleep 2 used" in capsys.readouterr().out
    measured.measured.clear()
    assert main(words) == 0 and not measured.measured


def test_media_are_a_second_axis(capsys):
    cells = planned("--storage", "sd,emmc", *PAIR).file.cells
    assert [dict(cell.condition) for cell in cells] == [
        {"command": name, "storage": medium} for name in ("sleep 1", "sleep 2") for medium in ("sd", "emmc")
    ]
    assert [cell.options.storage for cell in cells] == ["sd", "emmc"] * 2


def test_a_warm_up_runs_the_command_before_idle_and_the_preparation_before_each():
    [one, _] = planned("--warmup", "2", "--before", "sync", *PAIR).file.cells
    assert one.options.before == " && ".join(["sh -c sync", "sh -c 'sleep 1'"] * 2 + ["sh -c sync"])
    assert planned(*PAIR).file.cells[0].options.before is None


def test_options_of_the_rig_reach_every_cell():
    cells = planned("--idle", "7", "--settle-limit", "9", "--disturb", "cpu", "--seed", "4", *PAIR).file.cells
    for cell in cells:
        options = cell.options
        assert (options.idle, options.settle_limit, options.disturb, options.seed) == (7, 9, "cpu", 4)
        assert options.repeats == 1 and options.simulate


def test_the_same_command_line_has_the_same_folder_and_another_one_its_own():
    folder = planned(*PAIR).file.name
    assert folder == planned(*PAIR).file.name
    assert folder == planned("--blocks", "9", *PAIR).file.name, "more blocks are added to those measured"
    assert folder != planned("--", "sleep 1", "sleep 3").file.name
    assert folder != planned("--warmup", "1", *PAIR).file.name
    assert len(planned("--", "a" * 300, "b" * 300).file.name) < 100


def test_long_commands_have_short_names_that_differ():
    long = "python3 -c " + "x" * 200
    first, second, third = command_names([long + "1", long + "2", "sleep 1"], [])
    assert first != second and max(map(len, (first, second))) <= 60
    assert third == "sleep 1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--"], "two or more"),
        (["--", "sleep 1"], "'sleep 1'"),
        (["--", "sleep 1", "sleep 1"], "'sleep 1'"),
        (["--", "gzip", "-9"], "'-9'"),
        (["--", "sleep 1", " "], "' '"),
        (["-n", "a", *PAIR], "--name is given for 1 of 2"),
        (["-n", "a", "-n", "a", *PAIR], "same --name"),
        (["--storage", "floppy", *PAIR], "floppy"),
        (["--blocks", "9000", *PAIR], "18000 measurements"),
        (["--blokcs", "2", *PAIR], "did you mean '--blocks'?"),
    ],
)
def test_a_mistake_is_one_line(capsys, words, says):
    with pytest.raises(SystemExit, match="2"):
        commands.parse([*RIG, *words])
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


def test_a_board_is_needed_and_a_misspelt_one_refused(capsys):
    for words, says in ((PAIR, "--device"), (["--device", "rpi44", *PAIR], "did you mean 'rpi4'?")):
        with pytest.raises(SystemExit, match="2"):
            commands.parse(["compare", *words])
        said = capsys.readouterr().err
        assert says in said and said.count("\n") == 1


def test_a_program_that_the_simulated_board_lacks_is_refused_before_anything_is_measured(tmp_path, capsys):
    out = tmp_path / "out"
    assert main([*RIG, "--out", str(out), "--", "no-such-program 1", "sleep 2"]) == BadInput.exit_code
    assert "no-such-program: " in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("sleep 1", "sleep"),
        ("  /bin/ls -l", "/bin/ls"),
        ("for i in 1 2; do :; done", "for"),
        ("A=1 env", "sh"),
        ("(cd /; ls)", "sh"),
        ("{files}/job", "sh"),
        ("ls;ls", "sh"),
    ],
)
def test_the_program_of_a_shell_command_is_its_first_word_if_that_is_plain(line, program):
    assert program_of(("sh", "-c", line)) == program


def test_records_are_still_compared(tmp_path, capsys):
    assert main(["compare", str(tmp_path / "none")]) == BadInput.exit_code
    assert f"{tmp_path}/none" in capsys.readouterr().err


def test_help_of_both_forms_leads_to_measuring(capsys):
    for words in (["--help"], ["--help", "--"]):
        with pytest.raises(SystemExit, match="0"):
            commands.parse(["compare", *words])
        said = capsys.readouterr().out
        assert "--simulate -- 'sleep 2' 'sleep 4'" in said
    assert "--blocks" in said and "--warmup" in said


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_command_that_works_twice_as_long_uses_about_twice_the_energy_of_the_simulated_board(tmp_path):
    work = "python3 -c 'import time; end = time.process_time() + {}\nwhile time.process_time() < end: pass'"
    rig = ["--device", "rpi4", "--simulate", "--blocks", "2", "--out", str(tmp_path / "out"), "--json"]
    ended = subprocess.run(
        [sys.executable, "-m", "opjoule.cli.start", "compare", *rig, "--", work.format(1), work.format(2)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert ended.returncode in (0, 6), ended.stderr
    [above, _, time] = json.loads(ended.stdout)["contrasts"]
    assert 1.5 < above["ratio"] < 2.6 and time["ratio"] > 1


@pytest.mark.parametrize(
    ("command", "title"),
    [
        (("python3", "-O", "{files}/job.py", "--data", "x"), "job.py"),
        (("/usr/bin/python3.11", "-W", "error", "job.py"), "job.py"),
        (("python3", "-m", "timeit", "x"), "timeit"),
        (("python3", "-c", "sum(range(10))"), "python3"),
        (("python3",), "python3"),
        (("bash", "/opt/run.sh", "5"), "run.sh"),
        (("sh", "-c", "dd if=/dev/zero of=f"), "dd"),
        (("sh", "-c", "$PROGRAM"), "sh"),
        (("/opt/bench", "job.py"), "bench"),
    ],
)
def test_a_command_is_titled_by_its_program_or_script(command, title):
    assert title_of(command) == title
    assert CommandStudy(command).label == "command-" + title.replace(".", "-")
