"""The module that a Python job marks its phases and operations with, through the real probe."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROBE = ROOT / "build/loader/probe"
MODULE = ROOT / "loader-cpp/probe"
JOB = """
import os
from opjoule_marks import operation, phase
with phase("load"):
    for number in range(2000):
        with operation("insert", bytes=number):
            pass
    try:
        with operation("read") as read:
            read.bytes = 7
            raise KeyError
    except KeyError:
        pass
with operation("between"):
    pass
if os.fork() == 0:
    with operation("child"):
        pass
    raise SystemExit
os.wait()
print("job done")
"""


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if name != "OPJOULE_MARKS"}
    return {**kept, "PYTHONPATH": str(MODULE), **more}


class Serving:
    """A probe that serves a folder, with files called `a`."""

    def __init__(self, folder):
        command = [PROBE, "serve", "--dir", folder]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.events = folder / "a.events.jsonl"
        assert self.process.stdin and self.process.stdout
        self.process.stdout.readline()
        self.process.stdin.write("files a\n")
        self.process.stdin.flush()
        assert json.loads(self.process.stdout.readline())["answer"] == "files"

    def end(self):
        """Its last lines, and the events that it wrote."""
        said, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        events = [json.loads(line) for line in self.events.read_text().splitlines()]
        return [json.loads(line) for line in said.splitlines()], events


@pytest.fixture
def serving(tmp_path):
    probe = Serving(tmp_path)
    yield probe
    probe.process.kill()
    probe.process.wait()


def test_a_job_s_phases_and_operations_arrive_in_order_and_whole(tmp_path, serving):
    command = [PROBE, "run", "--dir", tmp_path, "--tag", "job", "--silence-s", "0", "--"]
    ran = subprocess.run(
        [*command, sys.executable, "-c", JOB], env=environment(), capture_output=True, text=True, check=True
    )
    assert (ran.stdout, ran.stderr) == ("job done\n", "")
    said, events = serving.end()
    assert [line.get("mark") for line in said] == ["phase-begin", "phase-end"]
    assert [event["event"] for event in events if event["event"] != "operation"] == [
        "phase-begin",
        "phase-end",
    ]
    begin, end = (event for event in events if event["event"] != "operation")
    operations = [event for event in events if event["event"] == "operation"]
    inserts = [event for event in operations if event["detail"].startswith("insert")]
    assert [event["detail"] for event in inserts] == [f"insert {number} ok" for number in range(2000)]
    assert {event["detail"] for event in operations} - {event["detail"] for event in inserts} == {
        "between 0 ok",
        "child 0 ok",
        "read 7 failed",
    }
    assert len(operations) == 2003, "a forked child sends what waits in its parent once more"
    times = [begin["board_ns"], *(event["board_ns"] for event in inserts), end["board_ns"]]
    assert times == sorted(times)
    assert all(event["end_board_ns"] <= end["board_ns"] for event in inserts)


def test_without_a_probe_a_job_does_the_same(tmp_path):
    ran = subprocess.run([sys.executable, "-c", JOB], env=environment(), capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("job done\n", "")


def test_a_probe_that_is_gone_is_reported_in_one_line_and_the_job_goes_on(tmp_path):
    gone = environment(OPJOULE_MARKS=str(tmp_path / "marks"))
    ran = subprocess.run([sys.executable, "-c", JOB], env=gone, capture_output=True, text=True, check=True)
    assert ran.stdout == "job done\n"
    assert ran.stderr.startswith("opjoule_marks: the probe ")
    assert len(ran.stderr.splitlines()) <= 1


def test_a_phase_that_has_passed_is_marked_with_its_own_times(serving, tmp_path):
    job = "from opjoule_marks import phase_between\nphase_between('past', 1_000, 5_000)\n"
    command = [
        PROBE,
        "run",
        "--dir",
        tmp_path,
        "--tag",
        "job",
        "--silence-s",
        "0",
        "--",
        sys.executable,
        "-c",
        job,
    ]
    subprocess.run(command, check=True, env=environment(), timeout=60)
    said, _ = serving.end()
    marks = [(line["mark"], line["name"], line["board_ns"]) for line in said if "mark" in line]
    assert ("phase-begin", "past", 1_000) in marks and ("phase-end", "past", 5_000) in marks


@pytest.mark.parametrize("name", ["query ü", "two words", "", "a/b", "x" * 64, "line\nend"])
@pytest.mark.parametrize("mark", ["with phase({!r}): pass", "phase_between({!r}, 1, 2)", "with operation({!r}): pass"])
def test_a_name_that_the_probe_refuses_ends_the_job_at_once_also_without_a_probe(mark, name):
    """Not after the whole measurement: a trial of the job on the desk shows it."""
    job = f"from opjoule_marks import operation, phase, phase_between\n{mark.format(name)}"
    ended = subprocess.run([sys.executable, "-c", job], env=environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "ValueError: " in ended.stderr and "1 to 63" in ended.stderr.splitlines()[-1]
