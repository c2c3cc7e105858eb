"""A meter in software behind a pty, with real frames and without firmware, for tests of the host alone."""

import os
import pty
import select
import threading
import tty

import numpy as np
from hypothesis import strategies as st
from opjoule.meters import messages as m
from opjoule.meters.serial.assembler import parse
from opjoule.meters.serial.wire import FrameReader, encode_frame

PERIOD_TICKS = 2128
FULL_SCALE = 32_000
"""Shunt code at the end of 320 mV."""


def identity(version: int = m.VERSION, model: m.ChipKind = m.ChipKind.INA219) -> m.Identity:
    items = np.array([(0x40, model)], dtype=m.Identity.ITEM)
    return m.Identity(
        version,
        (0, 1, 0),
        m.ControllerKind.ATMEGA328P,
        m.ResetCause.EXTERNAL,
        m.TICK_HZ,
        (0,) * 10,
        16,
        items,
    )


damage_plans = st.lists(
    st.tuples(st.sampled_from(["drop", "flip", "insert", "repeat"]), st.floats(0, 1), st.integers(1, 255)),
    min_size=1,
    max_size=6,
)
"""Damage to a byte stream, for `spoil`: kind, place as a share of its length, strength."""


def spoil(stream: bytes, plan: list[tuple[str, float, int]]) -> bytes:
    """The stream after the damage."""
    data = bytearray(stream)
    for kind, share, value in plan:
        at = min(int(share * len(data)), len(data) - 1)
        if kind == "drop":
            del data[at : at + 1 + value % 5]
        elif kind == "flip":
            data[at] ^= value
        elif kind == "insert":
            data.insert(at, value)
        else:
            data[at:at] = data[max(0, at - value) : at]
        if not data:
            return b""
    return bytes(data)


class PairsSource:
    """Consecutive frames of the message Pairs with right sums and `count` conversions each."""

    def __init__(self, count: int = 16, first_ticks: int = 5000) -> None:
        self.count, self.ticks = count, first_ticks
        self.index = self.shunt_sum = self.bus_sum = self.clipped = 0
        self.bus = 1260
        self.full_scale = False
        self.codes: list[int] = []

    def frame(self, shunt: list[int] | None = None, flags: int = 0) -> m.Pairs:
        if shunt is None:
            shunt = [FULL_SCALE if self.full_scale else 1000 + (self.index + i) % 500 for i in range(self.count)]
        items = np.zeros(len(shunt), dtype=m.Pairs.ITEM)
        items["delta_ticks"], items["shunt"], items["bus"] = PERIOD_TICKS, shunt, self.bus
        if shunt:
            items["delta_ticks"][0] = 0
        wrap = 0xFFFFFFFF
        fields = (self.index & wrap, self.ticks & wrap, self.shunt_sum & wrap, self.bus_sum & wrap)
        clipped = self.clipped & 0xFFFF
        self.index += len(shunt)
        self.ticks += PERIOD_TICKS * len(shunt)
        self.shunt_sum += sum(shunt)
        self.bus_sum += self.bus * len(shunt)
        self.codes += shunt
        self.clipped += sum(abs(code) >= FULL_SCALE for code in shunt)
        return m.Pairs(0, flags, *fields, clipped, items)


class SoftwareMeter:
    """Answers on a pty until closed. `deaf`: ignores commands; `frames`: number of sample frames after each start."""

    def __init__(self, *, version: int = m.VERSION, deaf: bool = False, frames: int = 20, noise: bytes = b"") -> None:
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self.version, self.deaf, self.frames, self.noise = version, deaf, frames, noise
        self.refuse: dict[int, tuple[int, int]] = {}
        """command type -> result and detail of its ack"""
        self.lose_acks = 0
        self.after_samples: list[m.Message] = []
        self.hang_up_after_samples = False
        self.source = PairsSource()
        self.commands: list[m.Message] = []
        self._seq = 0
        self._acquisition = m.Acquisition.IDLE
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> "SoftwareMeter":
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._wake_write, b"x")
        self._thread.join(60)
        for descriptor in (self._wake_read, self._wake_write):
            os.close(descriptor)

    def _serve(self) -> None:
        reader = FrameReader()
        while True:
            ready, _, _ = select.select([self._master, self._wake_read], [], [])
            if self._wake_read in ready:
                break
            if self.noise:
                os.write(self._master, self.noise)
            for frame in reader.feed(os.read(self._master, 4096)):
                message = parse(frame)
                if message is not None and not self.deaf:
                    self.commands.append(message)
                    if not self._answer(message, frame.seq):
                        self._hang_up()
                        return
        self._hang_up()

    def _hang_up(self) -> None:
        os.close(self._slave)
        os.close(self._master)

    def send(self, message: m.Message) -> None:
        os.write(self._master, encode_frame(message, self._seq))
        self._seq += 1

    def _answer(self, message: m.Message, seq: int) -> bool:
        if isinstance(message, m.Identify):
            self.send(identity(self.version))
        elif isinstance(message, m.RequestStatus):
            self.send(self._status())
        elif isinstance(message, m.Clock):
            self.send(m.ClockReply(message.token, self.source.ticks, self.source.ticks + 10))
        else:
            return self._command(message, seq)
        return True

    def _command(self, message: m.Message, seq: int) -> bool:
        result, detail = self.refuse.get(message.TYPE, (m.Result.OK, 0))
        started = isinstance(message, m.Start) and result == m.Result.OK
        if started and self._acquisition == m.Acquisition.SAMPLING:
            result = m.Result.WRONG_STATE
        self._acquisition = m.Acquisition.SAMPLING if started else m.Acquisition.IDLE
        if self.lose_acks:
            self.lose_acks -= 1
        else:
            self.send(m.Ack(message.TYPE, result, detail, seq))
        if started and result == m.Result.OK:
            for _ in range(self.frames):
                self.send(self.source.frame())
            for extra in self.after_samples:
                self.send(extra)
            return not self.hang_up_after_samples
        return True

    def _status(self) -> m.Status:
        wrap = 0xFFFFFFFF
        source = self.source
        row = (source.index & wrap, source.shunt_sum & wrap, source.bus_sum & wrap, source.clipped & 0xFFFF)
        items = np.array([row], dtype=m.Status.ITEM)
        return m.Status(self._acquisition, 2, source.ticks & wrap, source.ticks >> 32, 0, 900, (0,) * 13, items)
