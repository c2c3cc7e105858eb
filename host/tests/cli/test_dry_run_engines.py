"""Forty wrong inputs beside those of test_dry_run.py: settings of engines, workload files, rig files, campaigns.

They go through one process: each is refused in its dry run, in one line with exit status 2, none brings a traceback,
and all of them together take neither a gigabyte nor minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from dry_runs import BAD_INPUT, BYTES_MAX, DRIVER, LIMIT_S, ROOT

DRY = ["--device", "rpi4", "--simulate", "--dry-run"]
LEVELDB, SQLITE = (["--db", name, *DRY] for name in ("leveldb", "sqlite"))
WRONG = {
    "engine: a choice": [*LEVELDB, "-p", "leveldb.compression=zip"],
    "engine: a size": [*LEVELDB, "-p", "leveldb.block_bytes=-1"],
    "engine: a number": [*LEVELDB, "-p", "leveldb.write_buffer_bytes=4MB"],
    "engine: beyond any number": [*LEVELDB, "-p", "leveldb.write_buffer_bytes=" + "9" * 25],
    "engine: durability": [*LEVELDB, "-p", "durability=maybe"],
    "engine: a page size": [*SQLITE, "-p", "sqlite.page_bytes=1000"],
    "engine: two that exclude each other": [
        *["--db", "berkeleydb", *DRY], "-p", "durability=sync", "-p", "berkeleydb.mode=store",
    ],
    "engine: a map without a place": ["--db", "lmdb", *DRY, "-p", "lmdb.map_bytes=1"],
    "workload: a share that is no number": [*LEVELDB, "--workload", "{place}/nan.properties"],
    "workload: a line without a value": [*LEVELDB, "--workload", "{place}/bare.properties"],
    "workload: another program's": [*LEVELDB, "--workload", "{place}/class.properties"],
    "workload: no fields": [*LEVELDB, "--workload", "{place}/fields.properties"],
    "workload: bytes": [*LEVELDB, "--workload", "{place}/bytes.properties"],
    "rig: a number for a port": [*["--db", "leveldb", "--device", "rpi4", "--dry-run"], "--rig", "{place}/port.toml"],
    "rig: no such connection": [
        *["--db", "leveldb", "--device", "rpi4", "--dry-run"], "--rig", "{place}/pigeon.toml",
    ],
    "rig: no storage": [*["--db", "leveldb", "--device", "rpi4", "--dry-run"], "--rig", "{place}/bare.toml"],
    "rig: a warm room": [*["--db", "leveldb", "--device", "rpi4", "--dry-run"], "--rig", "{place}/warm.toml"],
    "interval: not a number": [*LEVELDB, "--until-u", "nan%"],
    "interval: the whole": [*LEVELDB, "--until-u", "100%"],
    "idle: a week": [*LEVELDB, "--idle", "604800"],
    "idle: forever": [*LEVELDB, "--idle", "inf"],
    "both ends of a run": [*LEVELDB, "--operations", "5", "--seconds", "3"],
    "a state of a simulated board": [*LEVELDB, "--state", "memory_mb=-1"],
    "nothing between commas": [*LEVELDB, "--storage", ","],
    "letters for a count": [*LEVELDB, "--records", "١٢½"],
    "study: no such figure": ["--study", "s1", *DRY, "--only", "figure=99"],
    "study: an axis without a value": ["--study", "s1", *DRY, "--only", "figure"],
    "study: no scale": ["--study", "s1", *DRY, "--scale", "nan"],
    "command: no such program": ["command", *DRY, "--", "no-such-program-here"],
    "command: no command": ["command", *DRY, "--"],
    "again: brackets without end": ["again", "{place}/deep.json", "--dry-run"],
    "again: bytes": ["again", "{place}/bytes.properties", "--dry-run"],
    "campaign: half a repeat": ["campaign", "{place}/half.toml", "--dry-run"],
    "campaign: values without brackets": ["campaign", "{place}/text.toml", "--dry-run"],
    "campaign: a value twice": ["campaign", "{place}/twice.toml", "--dry-run"],
    "campaign: nothing left": ["campaign", "{place}/nothing.toml", "--dry-run"],
    "campaign: an option that is no option": ["campaign", "{place}/colour.toml", "--dry-run"],
    "campaign: a durability": ["campaign", "{place}/durability.toml", "--dry-run"],
    "campaign: a table for a value": ["campaign", "{place}/table.toml", "--dry-run"],
    "campaign: another encoding": ["campaign", "{place}/latin.toml", "--dry-run"],
}  # fmt: skip
CONSTANTS = '[constants]\ndevice = "rpi4"\nsimulate = true\ndb = "leveldb"\n'
MEDIA = CONSTANTS + '[axes]\nstorage = ["sd", "emmc"]\n'
DEVICE = '[device.rpi4]\nconnection = "local"\n'
FILES: dict[str, str | bytes] = {
    "nan.properties": "readproportion=nan\n",
    "bare.properties": "recordcount\n",
    "class.properties": "workload=com.yahoo.Foo\n",
    "fields.properties": "fieldcount=0\nreadproportion=1\n",
    "bytes.properties": bytes(range(256)) * 16,
    "port.toml": f"[meter]\nport = 4\n{DEVICE}",
    "pigeon.toml": '[meter]\nport = "rapl"\n[device.rpi4]\nconnection = "pigeon"\n',
    "bare.toml": f'[meter]\nport = "rapl"\n{DEVICE}',
    "warm.toml": f'[room]\ntemperature_c = "warm"\n[meter]\nport = "rapl"\n{DEVICE}',
    "deep.json": "[" * 100_000,
    "half.toml": "repeats = 2.5\n" + MEDIA,
    "text.toml": CONSTANTS + '[axes]\nstorage = "sd"\n',
    "twice.toml": CONSTANTS + '[axes]\nstorage = ["sd", "sd"]\n',
    "nothing.toml": MEDIA + '[[exclude]]\nstorage = ["sd", "emmc"]\n',
    "colour.toml": MEDIA + '[[where]]\nwhen = { storage = "sd" }\ncolour = 3\n',
    "durability.toml": CONSTANTS + '[axes]\ndurability = ["async", "maybe"]\n',
    "table.toml": CONSTANTS + '[axes]\nstorage = ["sd", { a = 1 }]\n',
    "latin.toml": b'name = "\xe9"\n' + MEDIA.encode(),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Lines on stderr and status of each wrong input, by its title; and the greatest memory."""
    place = tmp_path_factory.mktemp("wrong")
    for name, text in FILES.items():
        (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    command_lines = [[word.replace("{place}", str(place)) for word in argv] for argv in WRONG.values()]
    (place / "argv.json").write_text(json.dumps(command_lines))
    before = sorted(str(path) for path in Path(place).rglob("*"))
    ended = subprocess.run(
        [sys.executable, "-c", DRIVER, str(place / "argv.json")],
        cwd=ROOT / "host", capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert sorted(str(path) for path in Path(place).rglob("*")) == before, "a dry run leaves nothing"
    outcomes: list[tuple[int, list[str]]] = []
    lines: list[str] = []
    for line in filter(str.strip, ended.stderr.splitlines()):
        if line.startswith('{"status"'):
            outcomes.append((json.loads(line)["status"], lines))
            lines = []
        else:
            lines.append(line)
    assert ended.returncode == 0 and len(outcomes) == len(WRONG), ended.stderr[-2000:]
    return dict(zip(WRONG, outcomes, strict=True)), json.loads(lines[-1])["peak_bytes"]


def test_there_are_forty_and_none_is_of_the_other_list():
    from dry_runs import WRONG as OTHERS

    assert len(WRONG) == len({" ".join(argv) for argv in WRONG.values()}) == 40
    assert not {" ".join(argv) for argv in WRONG.values()} & {" ".join(argv) for argv in OTHERS}


@pytest.mark.parametrize("title", WRONG)
def test_a_wrong_input_is_refused_in_one_line_in_its_dry_run(said, title):
    status, lines = said[0][title]
    assert status == BAD_INPUT and len(lines) == 1, (WRONG[title], lines)
    assert ": " in lines[0] and len(lines[0]) > 25 and "known are \n" not in lines[0] + "\n"


def test_all_of_them_take_less_than_a_gigabyte(said):
    assert said[1] < BYTES_MAX
