"""Planted passwords are found nowhere: refused where they would be kept, masked where a program prints them."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback_rig import RUN_THROUGH, LoopbackRig
from loopback_sshd import Sshd
from opjoule.base.errors import BadInput, RigFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.passwords import all_masked, masked
from opjoule.boards.rig import read_rig
from opjoule.boards.shell import LineProcess
from opjoule.boards.ssh import SshConnection
from opjoule.cli.failures import reporting_failures
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.command import CommandStudy

ROOT = Path(__file__).resolve().parents[3]
PLANTED = "gehe1m-Wort"
ADDRESS = f"mongodb://user:{PLANTED}@host:27017/db"
HELD = [
    ADDRESS,
    f"postgresql://u:{PLANTED}@127.0.0.1/x?sslmode=off",
    f"PGPASSWORD={PLANTED} psql",
    f"--password={PLANTED}",
    f"--password {PLANTED}",
    f"db.passwd={PLANTED}",
    f"Driver=X;UID=me;PWD=two words {PLANTED};Server=y",
    f'{{"password": "{PLANTED}"}}',
    f"api_key='{PLANTED}'",
]


@pytest.mark.parametrize("text", HELD)
def test_a_password_is_masked_and_what_is_around_it_stays(text):
    assert PLANTED not in masked(f"before {text} after")
    assert masked(f"before {text} after").startswith("before ")
    assert masked(f"before {text} after").endswith(" after")


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u@h/x?passfile=/a/b",
        "PWD=/tmp ls",
        "compass=3",
        "--passes 3",
        "PGPASSWORD=$PW psql",
        "secret={secret}",
        "allow sudo without a password",
        "https://x.y/a:b@c",
    ],
)
def test_what_is_no_password_stays(text):
    assert masked(text) == text


@given(st.text())
def test_masking_twice_changes_nothing_more(text):
    assert masked(masked(text)) == masked(text)


@given(st.text(alphabet="abcXYZ019-_.+", min_size=1), st.sampled_from(["mongodb", "postgresql", "redis"]))
def test_the_password_of_an_address_is_always_masked(word, scheme):
    assert masked(f"{scheme}://user:{word}@host/db") == f"{scheme}://user:***@host/db"


def test_a_password_under_its_own_key_is_masked():
    assert all_masked({"password": PLANTED, "n": [1, ADDRESS]}) == {
        "password": "***",
        "n": [1, "mongodb://user:***@host:27017/db"],
    }


@pytest.mark.parametrize("text", HELD)
def test_a_command_with_a_password_is_refused_without_repeating_it(text):
    with pytest.raises(BadInput, match="contains a password") as refused:
        CommandStudy(("client", *text.split()))
    assert PLANTED not in str(refused.value)


@pytest.mark.parametrize("where", ["-p", "workload", "command"])
def test_the_command_line_refuses_it_in_one_line(where, tmp_path):
    workload = tmp_path / "mine.properties"
    workload.write_text(f"recordcount=10\noperationcount=10\nmongodb.url={ADDRESS}\n")
    arguments = {
        "-p": ["--db", "leveldb", "-p", f"mongodb.url={ADDRESS}"],
        "workload": ["--db", "leveldb", "--workload", str(workload)],
        "command": ["command", "--dry-run", "--device", "rpi4", "--simulate", "--", "echo", ADDRESS],
    }[where]
    more = [] if where == "command" else ["--device", "rpi4", "--simulate", "--dry-run"]
    ended = said([*arguments, *more], tmp_path)
    assert ended.returncode == 2 and len(ended.stderr.splitlines()) == 1
    assert PLANTED not in ended.stdout + ended.stderr


def said(arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "opjoule.cli.start", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
    )


@pytest.mark.parametrize("connection", [f"ssh:pi:{PLANTED}@board", f"ssh:ssh://pi:{PLANTED}@board:22"])
def test_a_password_in_rig_toml_is_refused(connection, tmp_path):
    file = tmp_path / "rig.toml"
    file.write_text(f'[meter]\nport = "serial:/dev/x"\n[device.rpi4]\nconnection = "{connection}"\n')
    with pytest.raises(BadInput, match="ssh-copy-id") as refused:
        read_rig(file)
    assert PLANTED not in str(refused.value)


def test_an_error_that_repeats_one_is_reported_without_it(capsys):
    def fail() -> int:
        raise RigFault(f"cannot connect to {ADDRESS}")

    reporting_failures("measure.py", fail)
    assert PLANTED not in capsys.readouterr().err


@pytest.mark.parametrize("thread", [False, True])
def test_a_traceback_shows_none(tmp_path, thread):
    (tmp_path / "planted").write_text(ADDRESS)
    program = (
        "import threading\nfrom opjoule.cli.failures import masked_tracebacks\nmasked_tracebacks()\n"
        "def fail():\n    raise ValueError(open('planted').read())\n"
    ) + ("t = threading.Thread(target=fail)\nt.start()\nt.join()\n" if thread else "fail()\n")
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
    )
    assert "ValueError: mongodb://user:***@host" in ended.stderr
    assert PLANTED not in ended.stderr


def test_a_programs_log_and_last_line_show_none(tmp_path):
    log = tmp_path / "log"
    process = LineProcess(["sh", "-c", 'echo "cannot reach $1"', "sh", ADDRESS], log=log)
    assert list(process.lines()) == [] and process.wait() == 0
    assert PLANTED not in log.read_text() + process.complaint()
    assert "mongodb://user:***@host" in log.read_text()


def test_a_record_keeps_none_whatever_reaches_it(tmp_path):
    record = RunRecord.create(tmp_path / "run", {"words": ["x", ADDRESS]}, simulated=False)
    record.add_notices(Notice(NoticeKind.FAULT, f"lost {ADDRESS}"))
    record.add_notices(Notice(NoticeKind.NOTE, f"PGPASSWORD={PLANTED}"))
    record.finish("partial")
    assert PLANTED not in (tmp_path / "run/run.json").read_text()
    assert [fault.line for fault in RunRecord.open(tmp_path / "run").faults] == [
        "lost mongodb://user:***@host:27017/db"
    ]


def command_lines(word: str) -> list[str]:
    """Command lines of all processes that hold it."""
    lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word in (text := place.read_bytes().replace(b"\0", b" ").decode(errors="replace")):
                lines.append(text)
    return lines


def test_ssh_options_are_in_no_command_line(tmp_path):
    sshd = Sshd(tmp_path)
    try:
        options = [*sshd.options(), "-o", f"SetEnv=TOKEN={PLANTED}", f"-oSetEnv=OTHER={PLANTED}"]
        connection = SshConnection(sshd.target, options)
        try:
            waiting = subprocess.Popen(connection.command(["cat"]), stdin=subprocess.PIPE)
            assert connection.run(["true"]).status == 0
            assert command_lines(PLANTED) == []
            assert command_lines(str(sshd.port))  # the search finds what is there
            waiting.communicate()
        finally:
            connection.close()
    finally:
        sshd.close()


@pytest.mark.end_to_end
def test_a_measurement_with_planted_passwords_leaves_none_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("MONGODB_URI", ADDRESS)
    monkeypatch.setenv("PGPASSWORD", PLANTED)
    rig = LoopbackRig(tmp_path)
    try:
        text = (tmp_path / "rig.toml").read_text()
        planted = json.dumps([*rig.sshd.options(rig.link.port), "-o", f"SetEnv=TOKEN={PLANTED}"])
        lines = [f"ssh_options = {planted}" if line.startswith("ssh_options") else line for line in text.splitlines()]
        (tmp_path / "rig.toml").write_text("\n".join(lines))
        shown = []
        with rig.measure("--operations", "20000") as running:
            while running.poll() is None:
                shown += command_lines(PLANTED)
                time.sleep(0.05)
            assert running.stderr
            shown.append(running.stderr.read())
        assert running.returncode in RUN_THROUGH, shown
        assert not [line for line in shown if PLANTED in line]
        files = [path for path in rig.out.rglob("*") if path.is_file()]
        assert len(files) > 5
        assert not [path for path in files if PLANTED.encode() in path.read_bytes()]
    finally:
        rig.close()
