"""`measure.py command`: any program, its marked phases and operations, through the simulated rig."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MARKS = ROOT / "loader-cpp" / "probe" / "opjoule_marks.py"

JOB = """
import sys, time
from opjoule_marks import operation, phase

def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

with phase("work"):
    began_s = time.monotonic()
    for _ in range(40):
        with operation("spin", bytes=10):
            busy(0.05)
    worked_s = time.monotonic() - began_s
with phase("wait"):
    time.sleep(2)
open(sys.argv[1] + "/written", "w").write("x" * 1_000_000)
print("done after", worked_s, "s of work", flush=True)
"""


def measure(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "opjoule.cli.start", "command", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def simulated(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    rig = ["--device", "rpi4", "--simulate", "--repeats", "1", "--seed", "7", "--out", str(out)]
    return measure(out, *rig, *arguments)


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_program_is_measured_as_a_whole_in_its_phases_and_per_operation(tmp_path):
    job = tmp_path / "job.py"
    job.write_text(JOB)
    out = tmp_path / "as-a-whole"  # its storage bears this name, which no other test takes
    files = ["--file", str(job), "--file", str(MARKS)]
    ended = simulated(out, *files, "--", "python3", "{files}/job.py", "{storage}")
    assert ended.returncode in (0, 6), ended.stderr
    run, result = (json.loads((out / name).read_text()) for name in ("run.json", "result.json"))
    assert [phase["role"] for phase in run["phases"]] == ["baseline", "work", "drain", "baseline"]
    assert [phase["name"] for phase in run["marked_phases"]] == ["work", "wait"]
    done = re.search(r"done after ([\d.]+) s", (out / "raw" / "run-1.log").read_text())
    assert done
    assert result["operations"]["value"] == 40
    assert result["by_operation"]["spin"]["count"]["value"] == 40
    work, wait = result["by_phase"]["work"], result["by_phase"]["wait"]
    assert work["operations"]["value"] == 40 and wait["operations"]["value"] == 0
    assert work["duration_s"]["value"] == pytest.approx(float(done[1]), abs=0.5)
    # The simulated board draws above idle while the program is busy, and hardly while it sleeps.
    assert work["marginal_energy_j"]["value"] > 5 * abs(wait["marginal_energy_j"]["value"])
    assert work["energy_per_operation_j"]["value"] == pytest.approx(work["energy_j"]["value"] / 40)
    assert wait["energy_per_operation_j"]["value"] is None
    whole = result["run_energy_j"]["value"]
    assert work["energy_j"]["value"] + wait["energy_j"]["value"] <= whole
    assert (out / "report.html").exists()
    assert not list((ROOT / "build" / "simulated-files").glob(f"{out.name}-*"))


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_program_that_marks_nothing_is_measured_as_a_whole(tmp_path):
    out = tmp_path / "record"
    ended = simulated(out, "--", "sleep", "1.5")
    assert ended.returncode in (0, 6), ended.stderr
    result = json.loads((out / "result.json").read_text())
    assert 1.49 < result["duration_s"]["value"] < 2.5, "a busy computer starts it late"
    assert result["run_energy_j"]["value"] > 0
    assert result["energy_per_operation_j"]["value"] is None
    assert "by_phase" not in result


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_program_that_fails_ends_the_measurement_with_its_own_line(tmp_path):
    out = tmp_path / "record"
    ended = simulated(out, "--", "sh", "-c", "echo no such table >&2; exit 3")
    assert ended.returncode == 3
    assert "run-1 " in ended.stderr and "no such table" in ended.stderr
    assert json.loads((out / "run.json").read_text())["status"] == "partial"


ENDLESS_JOB = """
import time
from opjoule_marks import phase

with phase("load"):
    time.sleep(0.5)
with phase("query"):
    time.sleep(600)
"""


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_measurement_killed_in_the_middle_keeps_the_phases_that_its_program_had_marked(tmp_path):
    job, out = tmp_path / "job.py", tmp_path / "record"
    job.write_text(ENDLESS_JOB)
    files = ["--file", str(job), "--file", str(MARKS)]
    rig = ["--device", "rpi4", "--simulate", "--repeats", "1", "--idle", "0.5", "--out", str(out)]
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "opjoule.cli.start",
            "command",
            *rig,
            *files,
            "--",
            "python3",
            "{files}/job.py",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline_s = time.monotonic() + 300
    while not sealed_after(out, '"query"'):
        assert time.monotonic() < deadline_s, "the program does not begin"
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    ended = subprocess.run(
        [sys.executable, "-m", "opjoule.cli.start", "report", str(out)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    run = json.loads((out / "run.json").read_text())
    assert run["status"] == "partial"
    [load] = run["marked_phases"]
    assert (load["name"], load["repeat"]) == ("load", 1)
    assert 0.49e9 < load["end_board_ns"] - load["start_board_ns"] < 1e9
    assert any(notice["kind"] == "marks" and "phase query " in notice["line"] for notice in run["notices"])


def sealed_after(record: Path, text: str) -> bool:
    """Whether the marks that the host has written down hold this text, and were sealed since."""
    marks, seals = record / "raw" / "marks.jsonl", record / "raw" / "seals.csv"
    if not marks.exists() or text not in (content := marks.read_text()):
        return False
    return f"marks.jsonl,{len(content)}," in seals.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "required"),
        (["--device", "rpi4", "--simulate"], "no command"),
        (
            ["--device", "rpi4", "--simulate", "--file", "/no/such/file", "--", "true"],
            "/no/such/file: no such file",
        ),
        (["--device", "nothing", "--simulate", "--", "true"], "unknown device 'nothing'"),
        (
            ["--device", "rpi4", "--simulate", "--", "no-such-program"],
            "no-such-program: ",
        ),
    ],
)
def test_a_mistake_is_one_line(tmp_path, arguments, says):
    ended = measure(tmp_path, *arguments)
    assert ended.returncode == 2
    assert says in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


def test_the_plan_of_a_command_is_shown(tmp_path):
    ended = measure(tmp_path, "--device", "rpi4", "--simulate", "--dry-run", "--", "python3", "job.py", "--big")
    assert ended.returncode == 0
    assert "python3 job.py --big on Raspberry Pi 4" in ended.stdout
