"""Faults at random moments of a recording and of a measurement, each tried several times. SIMULATED.

    .venv/bin/python host/validation/fault_matrix.py --times 20
    .venv/bin/python host/validation/fault_matrix.py "line: bits flipped" "killed: loader" --times 3 --seed 7

Faults of the serial line stand between the simulated meter and `measure.py record`; those of processes strike
`measure.py --simulate` at a random moment. A fault is survived if the record opens, says how it ended and why, holds no
sample that the meter did not take, and no process is left. A status with "before it" is of a measurement whose process
had ended before the fault. Exit code 1 if one was not survived.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tty
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HOST = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HOST), str(HOST / "tests" / "support")]

from opjoule.errors import OpJouleError  # noqa: E402  # path set above
from opjoule.meters.serial.wire import cobs_encode, crc16, decode_frame  # noqa: E402
from opjoule.record.run_record import RunRecord  # noqa: E402
from opjoule.trace.journal import read_trace  # noqa: E402
from rig_session import FIRMWARE, RIG_SIM, write_profile  # noqa: E402

PYTHON = HOST.parent / ".venv/bin/python"
COMMAND = (str(PYTHON), "-m", "opjoule.cli.start")
RECORDED_S = 4.0
LIMIT_S = 240.0
CURRENT_A = 0.5
NEAR_A = 0.02
"""Of a sample from the true current; a damaged one that passed as sound would be anywhere."""
SHORT = ("--db", "leveldb", "--device", "rpi4", "--records", "500", "--operations", "2000", "--no-harness")
SETUP_BYTES = 1000
"""That a meter says before it samples; the first faults strike after them."""
MARK = "OPJOULE_FAULT_MATRIX"


@dataclass
class Trial:
    """One fault at one moment."""

    exit_status: int
    status: str
    lost: int = 0
    """Samples that the record says were lost."""
    wrong: list[str] = field(default_factory=list)
    """What was not survived."""


Damage = Callable[[bytes, random.Random], bytes]


def flipped(data: bytes, chance: random.Random) -> bytes:
    """One bit is another."""
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def dropped(data: bytes, chance: random.Random) -> bytes:
    """Some bytes are missing."""
    at = chance.randrange(len(data))
    return data[:at] + data[at + chance.randrange(1, 40) :]


def inserted(data: bytes, chance: random.Random) -> bytes:
    """Bytes that nobody sent."""
    at = chance.randrange(len(data))
    return data[:at] + chance.randbytes(chance.randrange(1, 40)) + data[at:]


def replayed(data: bytes, chance: random.Random) -> bytes:
    """A piece comes twice."""
    return data + data[chance.randrange(len(data)) :]


def jumped(data: bytes, chance: random.Random) -> bytes:
    """Whole frames, one of which bears another number under a CRC that fits."""
    parts = data.split(b"\0")
    for place in range(1, len(parts) - 1):
        with contextlib.suppress(ValueError, IndexError):
            frame = decode_frame(parts[place])
            content = bytes([frame.type]) + chance.randrange(1 << 32).to_bytes(4, "little") + frame.body
            parts[place] = cobs_encode(content + crc16(content).to_bytes(2, "little"))
            break
    return b"\0".join(parts)


LINE: dict[str, Damage] = {
    "line: bits flipped": flipped,
    "line: bytes dropped": dropped,
    "line: bytes inserted": inserted,
    "line: bytes replayed": replayed,
    "line: valid CRC, another number": jumped,
    "line: silent for half a second": lambda data, chance: b"",
}
SILENT = "line: silent for half a second"


class BadLine:
    """A pty in place of the meter's, which passes bytes on and damages a few of them at random moments."""

    def __init__(self, port: Path, link: Path, name: str, chance: random.Random) -> None:
        self._far = os.open(port, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self._far)
        self._near, self._kept_open = pty.openpty()
        tty.setraw(self._near)
        link.symlink_to(os.ttyname(self._kept_open))
        self._name, self._chance, self.struck = name, chance, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pass_on)
        self._thread.start()

    def _pass_on(self) -> None:
        begun_s, passed = 0.0, 0
        strikes = sorted(self._chance.uniform(0.0, RECORDED_S - 1) for _ in range(3))
        while not self._stop.is_set():
            for ready in select.select([self._far, self._near], [], [], 0.1)[0]:
                try:
                    data = os.read(ready, 1 << 14)
                except OSError:
                    return
                if ready == self._far:
                    passed += len(data)
                    if passed < SETUP_BYTES:
                        begun_s = time.monotonic()
                    elif strikes and data and time.monotonic() - begun_s > strikes[0]:
                        strikes.pop(0)
                        self.struck += 1
                        data = self._damaged(data)
                os.write(self._near if ready == self._far else self._far, data)

    def _damaged(self, data: bytes) -> bytes:
        if self._name == SILENT:
            time.sleep(0.5)
            with contextlib.suppress(OSError):
                os.read(self._far, 1 << 16)
        return LINE[self._name](data, self._chance)

    def close(self) -> None:
        """Ends it."""
        self._stop.set()
        self._thread.join()
        for fd in (self._far, self._near, self._kept_open):
            os.close(fd)


def line_trial(name: str, chance: random.Random, folder: Path) -> Trial:
    """A recording over a line that damages some bytes."""
    write_profile(folder / "profile.csv", [(0.0, CURRENT_A)], 5.04, RECORDED_S + 2)
    rig = [RIG_SIM, "--elf", FIRMWARE, "--pty", folder / "meter", "--truth", folder / "truth.json"]
    rig += ["--profile", folder / "profile.csv", "--pace", "1", "--patience-s", "60"]
    with subprocess.Popen(rig, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as meter:
        assert meter.stdout
        meter.stdout.readline()
        line = BadLine(folder / "meter", folder / "bad", name, chance)
        try:
            asked = [*COMMAND, "record", "--meter", f"serial:{folder}/bad", "--out", str(folder / "run")]
            asked += ["--seconds", str(RECORDED_S)]
            ended = subprocess.run(
                asked, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=env()
            )
        finally:
            meter.kill()
            line.close()
    trial = judged(folder / "run", ended.returncode, ended.stderr, exact=True)
    if not line.struck:
        trial.wrong.append("the fault did not strike: the recording had ended")
    return trial


def env() -> dict[str, str]:
    """Of the commands that are tried."""
    return {**os.environ, "PYTHONPATH": str(HOST), MARK: str(os.getpid())}


def judged(record: Path, exit_status: int, said: str, *, exact: bool = False) -> Trial:
    """What a fault has left of a record."""
    trial = Trial(exit_status, "no record")
    if "Traceback" in said:
        trial.wrong.append("a traceback: " + said.strip().splitlines()[-1])
    if not (record / "run.json").exists():
        return trial
    try:
        run = RunRecord.open(record)
        trial.status = run.status
        if run.status != "complete" and not run.run.faults and exit_status == 0:
            trial.wrong.append(f"status {run.status} without a reason")
        trace = read_trace(record)
    except OpJouleError as fault:
        if "no power trace" not in str(fault) and "no window" not in str(fault):
            trial.wrong.append(str(fault))
        return trial
    good = trace.current_a[trace.good]
    off = int(((good - CURRENT_A) > NEAR_A).sum() + ((good - CURRENT_A) < -NEAR_A).sum()) if exact else 0
    if exact and off > 2:  # the supply of the simulated rig switches on and off at the ends
        trial.wrong.append(f"{off} samples that the meter did not take")
    trial.lost = sum(gap.lost_samples for gap in trace.gaps)
    return trial


KILLED = ("measure.py", "rig-sim", "probe", "loader", "medium-sim")
PROCESS = {
    f"{what}: {name}": (sent, name) for what, sent in (("killed", 9), ("stopped 20 s", 19)) for name in KILLED
}


def of_ours(name: str) -> list[int]:
    """The processes of this name that the commands tried have started."""
    found = []
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if f"{MARK}={os.getpid()}".encode() not in (place / "environ").read_bytes().split(b"\0"):
                continue
            words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
            program = "measure.py" if "opjoule.cli.start" in words else Path(words[0]).name
            if program == name or not name:
                found.append(int(place.name))
    return sorted(found)


def process_trial(name: str, chance: random.Random, folder: Path) -> Trial:
    """A measurement one of whose processes is killed, or stands still, at a random moment."""
    number, program = PROCESS[name]
    asked = [*COMMAND, *SHORT, "--simulate", "--out", str(folder / "run")]
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen(asked, stdout=said, stderr=said, env=env()) as running,
    ):
        until_s, after_s = time.monotonic() + LIMIT_S, chance.uniform(0.0, 12.0)
        while not of_ours(program) and running.poll() is None and time.monotonic() < until_s:
            time.sleep(0.02)
        deadline_s = time.monotonic() + after_s
        while running.poll() is None and time.monotonic() < deadline_s:
            time.sleep(0.02)
        struck = of_ours(program)[:1]
        for pid in struck:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                if number == signal.SIGSTOP:
                    time.sleep(20)
                    os.kill(pid, signal.SIGCONT)
        try:
            status = running.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            running.kill()
            return Trial(-1, "hangs", wrong=["it did not end"])
    trial = judged(folder / "run", status, (folder / "said").read_text(errors="replace"))
    if not struck:
        trial.status = f"{trial.status} before it"
    until_s = time.monotonic() + 30
    while of_ours("") and time.monotonic() < until_s:
        time.sleep(0.2)
    if left := of_ours(""):
        trial.wrong.append(f"processes left: {left}")
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return trial


def tried(name: str, times: int, seed: int) -> list[Trial]:
    """So many trials of one fault."""
    found = []
    for number in range(times):
        chance = random.Random(f"{name} {seed} {number}")
        with tempfile.TemporaryDirectory() as folder:
            one = line_trial if name in LINE else process_trial
            found.append(one(name, chance, Path(folder)))
    return found


def main() -> int:
    """Exit status 1 if a fault was not survived."""
    every = [*LINE, *PROCESS]
    parser = argparse.ArgumentParser(description="Faults at random moments, SIMULATED.")
    parser.add_argument("fault", nargs="*", help=f"these alone: {', '.join(every)}")
    parser.add_argument("--times", type=int, default=20, help="each (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if unknown := set(asked.fault) - set(every):
        parser.error(f"there is no fault {', '.join(sorted(unknown))}")
    print(
        "SIMULATED\n| fault | tried | survived | statuses | samples lost and counted |\n|---|---|---|---|---|"
    )
    broken = 0
    for name in asked.fault or every:
        trials = tried(name, asked.times, asked.seed)
        bad = [trial for trial in trials if trial.wrong]
        broken += len(bad)
        statuses = {
            one: sum(trial.status == one for trial in trials) for one in sorted({t.status for t in trials})
        }
        told = ", ".join(f"{count} {status}" for status, count in statuses.items())
        lost = sum(trial.lost for trial in trials)
        print(f"| {name} | {len(trials)} | {len(trials) - len(bad)} | {told} | {lost} |", flush=True)
        for trial in bad:
            print(f"  not survived: {'; '.join(trial.wrong)} (exit {trial.exit_status})", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
