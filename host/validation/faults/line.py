"""Faults of the serial line: bytes from the meter that are changed, lost, added or repeated."""

from __future__ import annotations

import contextlib
import os
import pty
import random
import select
import subprocess
import threading
import time
import tty
from collections.abc import Callable
from pathlib import Path

from opjoule.meters.serial.wire import cobs_encode, crc16, decode_frame
from rig_session import FIRMWARE, RIG_SIM, write_profile

from faults.trial import COMMAND, CURRENT_A, LIMIT_S, Trial, env, judged

RECORDED_S = 4.0
SETUP_BYTES = 1000
"""Bytes that a meter sends before it samples; all faults come after them."""

Damage = Callable[[bytes, random.Random], bytes]


def flipped(data: bytes, chance: random.Random) -> bytes:
    """Flips one bit."""
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def dropped(data: bytes, chance: random.Random) -> bytes:
    """Removes some bytes."""
    at = chance.randrange(len(data))
    return data[:at] + data[at + chance.randrange(1, 40) :]


def inserted(data: bytes, chance: random.Random) -> bytes:
    """Inserts random bytes."""
    at = chance.randrange(len(data))
    return data[:at] + chance.randbytes(chance.randrange(1, 40)) + data[at:]


def replayed(data: bytes, chance: random.Random) -> bytes:
    """Repeats the end of the data."""
    return data + data[chance.randrange(len(data)) :]


def jumped(data: bytes, chance: random.Random) -> bytes:
    """Gives a frame another number and a CRC that fits."""
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
    """Pty in place of the meter's, which passes bytes on and damages some of them at random moments."""

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
                try:
                    os.write(self._near if ready == self._far else self._far, data)
                except OSError:
                    return

    def _damaged(self, data: bytes) -> bytes:
        if self._name == SILENT:
            time.sleep(0.5)
            with contextlib.suppress(OSError):
                os.read(self._far, 1 << 16)
        return LINE[self._name](data, self._chance)

    def close(self) -> None:
        """Stops passing bytes on, and closes the pty."""
        self._stop.set()
        self._thread.join()
        for fd in (self._far, self._near, self._kept_open):
            os.close(fd)


def line_trial(name: str, chance: random.Random, folder: Path) -> Trial:
    """Records over a line that damages some bytes."""
    write_profile(folder / "profile.csv", [(0.0, CURRENT_A)], 5.04, 600)
    rig = [RIG_SIM, "--elf", FIRMWARE, "--pty", folder / "meter", "--truth", folder / "truth.json"]
    rig += ["--profile", folder / "profile.csv", "--pace", "1", "--patience-s", "60"]
    with subprocess.Popen(rig, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as meter:
        assert meter.stdout
        meter.stdout.readline()
        line = BadLine(folder / "meter", folder / "bad", name, chance)
        try:
            command = [*COMMAND, "record", "--meter", f"serial:{folder}/bad", "--out", str(folder / "run")]
            command += ["--seconds", str(RECORDED_S)]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=env())
        finally:
            meter.kill()
            line.close()
    trial = judged(folder / "run", ended.returncode, ended.stderr, exact=True)
    trial.struck = line.struck > 0
    trial.status += "" if trial.struck else " before the fault"
    return trial
