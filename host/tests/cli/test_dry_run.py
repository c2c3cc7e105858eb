"""A dry run refuses what the run would refuse, and says how long the run takes at least.

Forty wrong inputs go through one process: each is one line with exit status 2, none brings a traceback, and all of
them together take neither a gigabyte nor minutes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from dry_runs import BAD_INPUT, BYTES_MAX, DRIVER, LEVELDB, LIMIT_S, REAL, ROOT, WRONG
from opjoule.cli.commands import main

CAMPAIGN = """
{head}
[constants]
device = "rpi4"
simulate = true
{constants}
[axes]
{axes}
"""
CAMPAIGNS = {
    "blocks": ("repeats = 100000000", 'db = "leveldb"', 'storage = ["sd", "emmc"]'),
    "property": ("", 'db = "leveldb"\np = ["leveldb.colour=red"]', 'storage = ["sd", "emmc"]'),
    "name": ('name = "../.."', 'db = "leveldb"', 'storage = ["sd", "emmc"]'),
    "values": ("", 'db = "leveldb"', f"records = {list(range(1, 60_000))}"),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What forty wrong inputs bring: the lines on stderr and the status of each; and the greatest memory."""
    place = tmp_path_factory.mktemp("wrong")
    (place / "file").write_text("x")
    (place / "full").mkdir()
    (place / "full/mine").write_text("the user's")
    (place / "rig.toml").write_text('[meter]\nport = "rapl"\n[device.rpi4]\nconnection = "local"\n')
    for name, (head, constants, axes) in CAMPAIGNS.items():
        (place / f"{name}.toml").write_text(CAMPAIGN.format(head=head, constants=constants, axes=axes))
    places = {
        "file": place / "file",
        "full": place / "full",
        "rig": place / "rig.toml",
        "campaign": place,
        "long": place / ("x" * 300),
    }
    command_lines = [[word.format(**places) if "{" in word else word for word in argv] for argv in WRONG]
    (place / "argv.json").write_text(json.dumps(command_lines))
    before = {str(path): path.stat().st_size for path in place.rglob("*")}
    command = [sys.executable, "-c", DRIVER, str(place / "argv.json")]
    ended = subprocess.run(command, cwd=ROOT / "host", capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert {str(path): path.stat().st_size for path in place.rglob("*")} == before
    outcomes: list[tuple[int, list[str]]] = []
    lines: list[str] = []
    for line in filter(str.strip, ended.stderr.splitlines()):
        if line.startswith('{"status"'):
            outcomes.append((json.loads(line)["status"], lines))
            lines = []
        else:
            lines.append(line)
    assert ended.returncode == 0 and len(outcomes) == len(WRONG), ended.stderr[-2000:]
    return outcomes, json.loads(lines[-1])["peak_bytes"]


def test_the_plan_names_rig_tomls_meter_of_the_medium_and_the_option_goes_before_it(tmp_path, capsys):
    rig = tmp_path / "rig.toml"
    rig.write_text(
        '[meter]\nport = "km003c"\nstorage = "fnirsi"\n[device.rpi4]\nconnection = "local"\nsync = "none"\n'
        '[device.rpi4.storage]\nsd = "/mnt/sd"\n'
    )
    command_line = [word.format(rig=rig) for word in REAL]
    assert main(command_line) == 0
    assert re.search(r"km003c; .* fnirsi\n", capsys.readouterr().out)
    assert main([*command_line, "--storage-meter", "fnirsi:A1"]) == 0
    assert re.search(r"km003c; .* fnirsi:A1\n", capsys.readouterr().out)


def test_there_are_forty():
    assert len(WRONG) == len({" ".join(argv) for argv in WRONG}) == 40


@pytest.mark.parametrize("number", range(40), ids=lambda number: " ".join(WRONG[number])[-50:])
def test_a_wrong_input_is_one_line_in_its_dry_run(said, number):
    status, lines = said[0][number]
    assert status == BAD_INPUT and len(lines) == 1, (WRONG[number], lines)
    assert ": " in lines[0] and len(lines[0]) > 25


def test_all_of_them_take_less_than_a_gigabyte(said):
    assert said[1] < BYTES_MAX


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "Takes at least 2 min in all (idle 18 s, runs 2 min, harness 2 s)"),
        (
            ["--no-harness", "--repeats", "5", "--rate", "full", "--reset", "load", "--workload", "c"],
            "Takes at least 2 min in all (idle 30 s, runs 80 s)",
        ),
        (["--operations", "5000"], "Takes at least 20 s in all (idle 18 s, harness 2 s)"),
        (["--storage", "sd,emmc"], "Takes at least 4 min in all"),
        (
            ["-p", "updateproportion=0.2", "-p", "readmodifywriteproportion=0.3", "--repeats", "1"],
            "Takes at least 72 s in all (idle 12 s, runs 58 s, harness 2 s)",
        ),
    ],
)
def test_a_dry_run_says_how_long_the_run_takes_at_least(capsys, options, says):
    assert main([*LEVELDB, *options]) == 0
    assert says in capsys.readouterr().out
