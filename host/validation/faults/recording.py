"""Faults of `measure.py record` on a simulated meter: of its process, its meter, the host's disk or its clock."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from rig_session import FIRMWARE, RIG_SIM, write_profile

from faults.trial import COMMAND, CURRENT_A, HOST, LIMIT_S, PYTHON, Trial, env, judged, note_what_is_left

RECORDED_S = 2.0
EARLY_S = 0.3
STANDS_S = 20.0
FULL_BYTES = (140_000, 320_000)
"""Range of the space on a disk that fills up: from too little for a start to enough for a recording of 2 s."""

Strike = Callable[["Recording"], None]


class Recording:
    """A simulated meter, `measure.py record` with a fault at a random moment, and the next recording."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.out = folder / "disk/run"
        self.out.parent.mkdir()
        (folder / "tmp").mkdir()
        self.mounts = Path("/proc/self/mounts").read_text()
        self.moment_s = chance.uniform(0.0, RECORDED_S + 0.5)
        self.said = ""
        self.meter = self._meter("meter")

    def _meter(self, name: str) -> subprocess.Popen[str]:
        write_profile(self.folder / "profile.csv", [(0.0, CURRENT_A)], 5.04, 600)
        rig = [
            RIG_SIM,
            "--elf",
            FIRMWARE,
            "--pty",
            self.folder / name,
            "--truth",
            self.folder / f"{name}.json",
        ]
        rig += ["--profile", self.folder / "profile.csv", "--pace", "1", "--patience-s", "60"]
        meter = subprocess.Popen(rig, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert meter.stdout
        meter.stdout.readline()
        return meter

    def start(self, out: Path, *, meter: str = "", seconds: float = RECORDED_S, **more: str) -> subprocess.Popen[str]:
        """Starts `measure.py record`, with additional environment variables."""
        command = [*COMMAND, "record", "--meter", meter or f"serial:{self.folder}/meter", "--out", str(out)]
        return subprocess.Popen(
            [*command, "--seconds", str(seconds)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=env(self.folder / "tmp", **more),
            cwd=self.folder,
        )

    def ended(self, running: subprocess.Popen[str]) -> int:
        """Waits for the end; returns the exit status, keeps stderr in `said`. Raises: TimeoutExpired, after a kill."""
        try:
            _, self.said = running.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
            raise
        return running.returncode

    def sleep(self) -> None:
        """Sleeps until the fault; its time counts from the record's first file, or (one in eight) from now."""
        until_s = time.monotonic() + LIMIT_S
        while self.moment_s > EARLY_S and not (self.out / "run.json").exists() and time.monotonic() < until_s:
            time.sleep(0.01)
        time.sleep(self.moment_s)

    def finish(self, status: int, *, exact: bool = True) -> Trial:
        """Judges the record, and makes the next recording with a reset meter; an Uno also resets at each opening.

        Without the reset, a simulator that lags behind real time on a busy computer would not answer in time.
        """
        trial = judged(self.out, status, self.said, exact=exact)
        self.close()
        self.meter = self._meter("meter")
        next_one = self.ended(self.start(self.folder / "next", seconds=0.5))
        after = judged(self.folder / "next", next_one, self.said, exact=True)
        if after.status != "complete" or after.wrong:
            trial.wrong.append(f"next recording failed: {after.status} {after.wrong} {self.said.strip()[-200:]}")
        return trial

    def close(self) -> None:
        """Ends the meter, if it still runs."""
        self.meter.send_signal(signal.SIGCONT)
        self.meter.kill()
        self.meter.wait()
        if self.meter.stdout:
            self.meter.stdout.close()
        (self.folder / "meter").unlink(missing_ok=True)  # its pty may soon be another trial's


def killed(run: Recording) -> Trial:
    """Kills the recording (SIGKILL)."""
    running = run.start(run.out)
    run.sleep()
    running.kill()
    return run.finish(run.ended(running))


def stopped(run: Recording) -> Trial:
    """Suspends the recording for 20 s."""
    running = run.start(run.out)
    run.sleep()
    running.send_signal(signal.SIGSTOP)
    time.sleep(STANDS_S)
    running.send_signal(signal.SIGCONT)
    return run.finish(run.ended(running))


def meter_gone(run: Recording) -> Trial:
    """Kills the simulated meter, as if its cable were pulled; the next recording has a meter again."""
    running = run.start(run.out)
    run.sleep()
    run.close()
    return run.finish(run.ended(running))


def meter_stopped(run: Recording) -> Trial:
    """Suspends the simulated meter for 20 s, as if it hung."""
    running = run.start(run.out)
    run.sleep()
    run.meter.send_signal(signal.SIGSTOP)
    time.sleep(STANDS_S)
    run.meter.send_signal(signal.SIGCONT)
    return run.finish(run.ended(running))


def disk_full(run: Recording) -> Trial:
    """Records to a file system that fills up at a random moment."""
    size = run.chance.randint(*FULL_BYTES) // 4096 * 4096
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "opjoule", run.out.parent], check=True)
    try:
        return run.finish(run.ended(run.start(run.out)))
    finally:
        subprocess.run(["umount", run.out.parent], check=True)


def host_faults(folder: Path) -> str:
    """Builds the library to preload in a folder; returns its path."""
    place, source = folder / "host_faults.so", HOST / "validation/faults/host_faults.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", place, source, "-ldl"], check=True)
    return str(place)


def host_fault(fault: str) -> Callable[[Recording], Trial]:
    """Makes the host's disk or clock misbehave from a random moment on."""

    def strike(run: Recording) -> Trial:
        settings = {
            "LD_PRELOAD": host_faults(run.folder),
            "OPJOULE_FAULT": fault,
            "OPJOULE_FAULT_AFTER_S": f"{run.moment_s:.3f}",
            "OPJOULE_FAULT_FOLDER": str(run.out),
            "OPJOULE_FAULT_STEP_S": str(run.chance.choice([-86400, -3600, -2, 2, 3600, 86400])),
        }
        return run.finish(run.ended(run.start(run.out, **settings)))

    return strike


def two_at_once(run: Recording) -> Trial:
    """Starts a second recording on the same meter; it must be refused in one line and not disturb the first one."""
    first = run.start(run.out)
    run.sleep()
    second = run.start(run.folder / "second", seconds=0.5)
    _, said = second.communicate(timeout=LIMIT_S)
    overlapped = first.poll() is None
    trial = run.finish(run.ended(first))
    trial.struck = overlapped
    if "Traceback" in said or (overlapped and (second.returncode == 0) == (trial.status == "complete")):
        trial.wrong.append(f"second recording: exit status {second.returncode}: {said.strip()[-200:]}")
    return trial


_MONSOON = """
import sys
from functools import partial
from opjoule.meters.monsoon import meter
from software_monsoon import SoftwareMonsoon
seconds = float(sys.argv[1])
asked = {"seconds": seconds, "paced": True, "unplugged": True}
meter.MonsoonMeter = partial(meter.MonsoonMeter, make_protocol=partial(SoftwareMonsoon, **asked))
from opjoule.cli.start import main
sys.exit(main(sys.argv[2:]))
"""


def monsoon_gone(run: Recording) -> Trial:
    """Unplugs a software Monsoon at a random moment of its 2 s."""
    command = [str(PYTHON), "-c", _MONSOON, f"{run.chance.uniform(0.2, RECORDED_S - 0.2):.3f}"]
    command += ["record", "--meter", "monsoon", "--out", str(run.out), "--seconds", str(RECORDED_S)]
    more = {"PYTHONPATH": f"{HOST}:{HOST}/tests/support"}
    running = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=env(run.folder / "tmp", **more),
        cwd=run.folder,
    )
    return run.finish(run.ended(running), exact=False)


FAULTS: dict[str, Callable[[Recording], Trial]] = {
    "recording killed": killed,
    "recording stopped 20 s": stopped,
    "meter's cable pulled": meter_gone,
    "meter hung for 20 s": meter_stopped,
    "host disk full": disk_full,
    "host disk read-only": host_fault("read-only"),
    "host disk slow (0.2 s a write)": host_fault("slow"),
    "host clock stepped": host_fault("clock"),
    "two recordings on one meter": two_at_once,
    "Monsoon gone": monsoon_gone,
}


def recording_trial(name: str, chance: random.Random, folder: Path) -> Trial:
    """Injects one fault at one moment of a recording."""
    run = Recording(folder, chance)
    try:
        trial = FAULTS[name](run)
    except subprocess.TimeoutExpired:
        trial = Trial(-1, "hangs", wrong=["it did not end"])
    finally:
        run.close()
    note_what_is_left(trial, folder / "tmp", run.mounts)
    return trial
