"""Loader and probe on kernels from 3.14 on: system calls that came later answer ENOSYS, here through a seccomp filter.

Numbers: arch/x86/entry/syscalls/syscall_64.tbl; 315 is the last of 3.14 (sched_getattr). Later ones are renameat2,
getrandom, memfd_create, membarrier, copy_file_range, preadv2, statx, rseq, io_uring, clone3, faccessat2 and so on.
"""

from __future__ import annotations

import ctypes
import errno
import json
import platform
import struct
import subprocess
from pathlib import Path

import pytest
from opjoule.boards.databases import known_databases

LOADER = Path(__file__).resolve().parents[3] / "build/loader/loader"
PROBE = LOADER.with_name("probe")
LAST_OF_3_14 = 315
_LOAD_NUMBER, _GREATER, _RETURN = 0x20, 0x25, 0x06  # BPF_LD|W|ABS, BPF_JMP|JGT|K, BPF_RET|K
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")


def as_on_3_14() -> None:
    """From here on this process has the system calls of Linux 3.14 alone (seccomp(2), linux/filter.h)."""
    instructions = [
        struct.pack("HBBI", _LOAD_NUMBER, 0, 0, 0),
        struct.pack("HBBI", _GREATER, 0, 1, LAST_OF_3_14),
        struct.pack("HBBI", _RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        struct.pack("HBBI", _RETURN, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code)))
    c_library = ctypes.CDLL(None, use_errno=True)
    if c_library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or c_library.prctl(_PR_SET_SECCOMP, _FILTER_MODE, program):
        raise OSError(ctypes.get_errno(), "seccomp")


def run(*arguments: str) -> list[dict]:
    ran = subprocess.run(
        [LOADER, *arguments], capture_output=True, text=True, check=False, timeout=300, preexec_fn=as_on_3_14
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_the_filter_takes_later_system_calls_away(tmp_path):
    probe = "import os; os.memfd_create('x')"
    ran = subprocess.run(["python3", "-c", probe], capture_output=True, text=True, check=False, preexec_fn=as_on_3_14)
    assert "Function not implemented" in ran.stderr


@pytest.mark.parametrize("engine", [database.name for database in known_databases() if database.kind == "loader"])
def test_every_engine_loads_and_runs(engine, tmp_path):
    workload = tmp_path / "workload"
    workload.write_text("recordcount=50\noperationcount=100\nreadproportion=0.5\nupdateproportion=0.5\n")
    common = ["--db", engine, "--path", str(tmp_path / "db"), "--workload", str(workload)]
    files = ["--op-log", str(tmp_path / "log"), "--events", str(tmp_path / "e")]
    run("load", *common)
    summary = run("run", *common, *files)[-1]["summary"]
    assert summary["operations"] == 100
    assert summary["errors"] == 0


def test_the_probe_serves_and_runs_a_command(tmp_path):
    """Samples, marks over the socket, signature, a watched command with its lifeline."""
    kernel = {"text": True, "preexec_fn": as_on_3_14}
    serving = subprocess.Popen(
        [PROBE, "serve", "--dir", tmp_path, "--path", tmp_path, "--sync", f"virtual:{tmp_path}/line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        **kernel,
    )
    assert serving.stdin and serving.stdout
    assert json.loads(serving.stdout.readline())["level"] == 0
    serving.stdin.write("files a\n")
    serving.stdin.flush()
    assert json.loads(serving.stdout.readline())["answer"] == "files"
    job = ["--", "sh", "-c", '"$OPJOULE_PROBE" mark phase begin load; exit 3']
    run_job = [PROBE, "run", "--dir", tmp_path, "--tag", "job", "--silence-s", "0", *job]
    assert subprocess.run(run_job, check=False, timeout=300, **kernel).returncode == 3
    said, _ = serving.communicate("signature 10 5\nsteering\npending\ndrain 60\nclock\n", timeout=300)
    assert serving.returncode == 0
    answers = [json.loads(line) for line in said.splitlines()]
    assert {"pending", "steering", "clock"} <= {line.get("answer") for line in answers}
    assert not [line for line in answers if "fault" in line or line.get("answer") == "error"]
    assert "phase-begin" in (tmp_path / "a.events.jsonl").read_text()
