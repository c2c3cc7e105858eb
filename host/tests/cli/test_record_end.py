"""How `measure.py record` ends: only the end that was asked for is an orderly one."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from rig_session import LIMIT_S, ROOT, rig_sim, write_profile
from software_meter import SoftwareMeter, identity

COMMAND = [sys.executable, "-m", "opjoule.cli.start", "record"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "host")}


def record(port, out, *options):
    command = [*COMMAND, "--meter", f"serial:{port}", "--out", str(out), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)


def status_and_faults(out):
    contents = json.loads((out / "run.json").read_text())
    return contents["status"], " ".join(notice["line"] for notice in contents["notices"])


@pytest.mark.rig
@pytest.mark.parametrize(
    ("rig_options", "options", "exit_code", "status", "fault"),
    [
        ((), (), 0, "complete", ""),
        ((), ("--seconds", "1"), 0, "complete", ""),
        ((), ("--seconds", "60"), 3, "partial", "of the 60 s asked for"),
        (("--unplug-at", "1"), (), 3, "partial", "port closed"),
        (("--reset-at", "1"), (), 3, "partial", "was reset in mid-run (brown-out)"),
    ],
    ids=["profile played", "seconds reached", "seconds not reached", "unplugged", "reset"],
)
def test_only_the_end_that_was_asked_for_is_complete(tmp_path, rig_options, options, exit_code, status, fault):
    write_profile(tmp_path / "profile.csv", [(0.0, 0.6)], 5.0, 2.0)
    with rig_sim(tmp_path, "--profile", str(tmp_path / "profile.csv"), *rig_options, pace="1"):
        ended = record(tmp_path / "meter", tmp_path / "out", *options)
    assert ended.returncode == exit_code, ended.stdout + ended.stderr
    assert status_and_faults(tmp_path / "out")[0] == status
    assert fault in status_and_faults(tmp_path / "out")[1]
    assert bool(fault) == bool(status_and_faults(tmp_path / "out")[1])


@pytest.mark.parametrize("frames", [40, 0], ids=["among samples", "before the first sample"])
def test_a_meter_that_speaks_another_version_in_mid_run_is_reported(tmp_path, frames):
    with SoftwareMeter(frames=frames) as device:
        device.after_samples = [identity(version=99)]
        ended = record(device.path, tmp_path / "out")
    assert ended.returncode == 3
    status, faults = status_and_faults(tmp_path / "out")
    assert status == ("partial" if frames else "failed") and "protocol version 99" in faults


@pytest.mark.rig
@pytest.mark.parametrize(
    ("options", "number", "exit_code", "status", "fault"),
    [
        ((), signal.SIGINT, 0, "complete", ""),
        (("--seconds", "600"), signal.SIGINT, 130, "partial", "interrupted by the user (Ctrl-C); "),
        (("--seconds", "600"), signal.SIGTERM, 130, "partial", "interrupted by SIGTERM; "),
    ],
)
def test_ctrl_c_is_an_orderly_end_unless_a_time_was_asked_for(tmp_path, options, number, exit_code, status, fault):
    write_profile(tmp_path / "profile.csv", [(0.0, 0.6)], 5.0, 600.0)
    out = tmp_path / "out"
    command = [*COMMAND, "--meter", f"serial:{tmp_path / 'meter'}", "--out", str(out), *options]
    with (
        rig_sim(tmp_path, "--profile", str(tmp_path / "profile.csv"), pace="1"),
        subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as process,
    ):
        end_s = time.monotonic() + LIMIT_S
        stream = out / "raw/power.arrows"
        while time.monotonic() < end_s and not (stream.exists() and stream.stat().st_size > 10_000):
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(LIMIT_S) == exit_code
    said = status_and_faults(out)
    assert said[0] == status and said[1].startswith(fault) and bool(said[1]) == bool(fault)
