"""Tests the firmware with a host that is silent, or sends anything at any time. SIMULATED.

    .venv/bin/python host/validation/firmware_stress.py --seconds 120 --seed 1

The firmware runs in the AVR simulator, at full speed, with a simulated INA219. The host is silent for half of the time.
Then it sends commands in any order, unchecked configurations, damaged frames and noise. Exit code 1 if the firmware was
reset, an undamaged command got no answer, a command was lost without a counted fault, a conversion was missed or read
twice, or the stack came within 64 bytes of the data.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import sys
import tempfile
import time
import tty
from collections import Counter
from pathlib import Path

from opjoule.meters import messages as m
from opjoule.meters.serial.assembler import parse
from opjoule.meters.serial.wire import FrameReader, encode_frame
from rig_session import RunningRig, rig_sim, write_edges, write_profile

STACK_LEAST_BYTES = 64
ANSWER_LIMIT_S = 5.0
"""Limit in this computer's time. The computer may be busy; the firmware itself needs only milliseconds."""
TRIES = 3
ANSWERS: dict[type, tuple[type, ...]] = {
    m.Identify: (m.Identity,),
    m.Configure: (m.Ack,),
    m.Start: (m.Ack,),
    m.Stop: (m.Ack,),
    m.Clock: (m.ClockReply,),
    m.RequestStatus: (m.Status,),
}
CONFIGURED = m.Configure(0, m.Mode.PAIRS, 3, 3, 3, 8, 64)


class Line:
    """Serial line to the firmware, with counts of the received messages."""

    def __init__(self, port: Path) -> None:
        self._fd = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self._fd)
        self._reader, self._seq = FrameReader(), 0
        self.seen: Counter[str] = Counter()
        self.stack_free: list[int] = []
        self.faults: tuple[int, ...] = ()
        self.unanswered: list[str] = []
        self.repeated = 0
        self.ended = False

    def read(self, limit_s: float) -> list[m.Message]:
        """Waits up to limit_s for data and returns the messages that arrived."""
        if not select.select([self._fd], [], [], limit_s)[0]:
            return []
        try:
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return []
        except OSError:  # the simulator has ended
            data = b""
        self.ended = self.ended or not data
        messages = [message for frame in self._reader.feed(data) if (message := parse(frame)) is not None]
        for message in messages:
            self.seen[type(message).__name__] += 1
            if isinstance(message, m.Status):
                self.stack_free.append(message.stack_free_bytes)
                self.faults = message.faults
            self.ended = self.ended or isinstance(message, m.EndOfInput)
        return messages

    def write(self, data: bytes) -> None:
        """Sends bytes; waits while the line is full."""
        while data and not self.ended:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                self.read(0.01)

    def ask(self, message: m.Message) -> None:
        """Sends an undamaged command after a delimiter, and again if an overrun may have swallowed it."""
        for _ in range(TRIES):
            self._seq += 1
            self.write(b"\0" + encode_frame(message, self._seq))
            if self.ended or self._answered(ANSWERS[type(message)]):
                return
            self.repeated += 1
        self.unanswered.append(type(message).__name__)

    def _answered(self, wanted: tuple[type, ...]) -> bool:
        until_s = time.monotonic() + ANSWER_LIMIT_S
        while time.monotonic() < until_s and not self.ended:
            if any(isinstance(message, wanted) for message in self.read(0.2)):
                return True
        return self.ended

    @property
    def restarts(self) -> int:
        """Number of times that the firmware's frame numbers started again."""
        return self._reader.counts.restarts


def anything(line: Line, chance: random.Random) -> None:
    """Sends one random thing, permitted or not."""
    kind = chance.randrange(8)
    if kind == 0:
        line.write(chance.randbytes(chance.randrange(1, 300)))
    elif kind == 1:
        frame = bytearray(encode_frame(CONFIGURED, 5))
        frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
        line.write(bytes(frame[: chance.randrange(1, len(frame) + 1)]))
    elif kind == 2:
        line.write(b"".join(encode_frame(m.RequestStatus(), n) for n in range(chance.randrange(2, 30))))
    elif kind == 3:
        line.ask(m.Configure(*(chance.randrange(256) for _ in range(6)), chance.randrange(65536)))
    else:
        line.ask(chance.choice([m.Identify(), m.Clock(chance.getrandbits(32)), m.RequestStatus(), m.Start()]))


def stress(rig: RunningRig, seconds: float, chance: random.Random) -> Line:
    """Configures and starts the firmware, stays silent for half of the time, then sends anything."""
    line = Line(rig.port)
    line.ask(CONFIGURED)
    line.ask(m.Start())
    statuses = line.seen["Status"]
    while line.seen["Status"] - statuses < seconds / 2 and not line.ended:  # one status a second
        line.read(1.0)
    while not line.ended:
        anything(line, chance)
        line.read(0.0)
    return line


def main() -> int:
    """Prints the counts; exit status 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description="Tests the firmware under stress, SIMULATED.")
    parser.add_argument("--seconds", type=float, default=120.0, help="simulated time")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_profile(folder / "profile.csv", [(0.0, 0.5)], 5.04, options.seconds)
        write_edges(folder / "edges.csv", [0.5 + n for n in range(int(options.seconds) - 1)])
        inputs = ["--profile", str(folder / "profile.csv"), "--sync", str(folder / "edges.csv")]
        with rig_sim(folder, *inputs, pace="0") as rig:
            line = stress(rig, options.seconds, random.Random(options.seed))
            sensor = rig.played()["sensor"]
    missed = {name: sensor["shunt"][name] + sensor["bus"][name] for name in ("missed", "read_twice")}
    faults = {m.Fault(code).name: count for code, count in enumerate(line.faults) if count}
    print(f"SIMULATED, {options.seconds:g} s, silent for half of it, seed {options.seed}")
    print(f"| messages | {dict(line.seen)} |\n| conversions read | {sensor['shunt']['reads']} |")
    print(f"| missed, read twice | {missed} |\n| faults counted | {faults} |\n| restarts | {line.restarts} |")
    print(f"| commands said again after a counted overrun | {line.repeated} |")
    print(f"| commands without an answer | {line.unanswered or 'none'} |")
    least = min(line.stack_free, default=0)
    print(f"| least distance of the stack from the data | {least} bytes |")
    uncounted = line.repeated > faults.get("RECEIVE_OVERRUN", 0) + faults.get("RECEIVE_BAD_FRAME", 0)
    broken = uncounted or line.restarts or line.unanswered or least < STACK_LEAST_BYTES or any(missed.values())
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
