"""A PowerSensor3 in software, at its USB serial port: it answers as its firmware does (PowerSensor.ino). SIMULATED."""

import struct

import numpy as np
from software_port import SoftwarePort

PERIOD_US = 50
ZERO_V, VOLT_PER_A, GAIN = 1.65, 0.12, 0.09


def packets(amperes, volts, *, pair=0, first_us=0, marked=(), period_us=PERIOD_US):
    """Packets of 18 bytes, uint8 of shape (n, 18); `marked`: numbers of those with a marker."""
    amperes, volts = np.broadcast_arrays(np.asarray(amperes, float), np.asarray(volts, float))
    levels = np.zeros((amperes.size, 8), np.uint16)
    levels[:, 2 * pair] = np.clip(np.rint((amperes * VOLT_PER_A + ZERO_V) / 3.3 * 1023), 0, 1023)
    levels[:, 2 * pair + 1] = np.clip(np.rint(volts * GAIN / 3.3 * 1023), 0, 1023)
    stamps = (first_us + period_us * np.arange(amperes.size)) % 1024
    rows = np.zeros((amperes.size, 18), np.uint8)
    rows[:, 0], rows[:, 1] = 0xF0 | stamps >> 6, 0x40 | stamps & 0x3F
    for sensor in range(8):
        rows[:, 2 + 2 * sensor] = 0x80 | sensor << 4 | levels[:, sensor] >> 6
        rows[:, 3 + 2 * sensor] = levels[:, sensor] & 0x3F
    rows[list(marked), 3] |= 0x40
    return rows


def settings(used=(0,), *, volt_per_a=VOLT_PER_A, names=("board", "disk", "", "")):
    """The device's memory: 41 bytes for each of eight sensors."""
    rows = b""
    for pair in range(4):
        for model, zero_v, per_unit_v in ((b"MLX10", ZERO_V, volt_per_a), (b"voltage", 0.0, GAIN)):
            rows += struct.pack("<16s16sff?", model, names[pair].encode(), zero_v, per_unit_v, pair in used)
    return rows


def without_names(memory):
    """The memory as firmware before 1.3 sends it: 25 bytes for each of eight sensors."""
    return b"".join(memory[at : at + 16] + memory[at + 32 : at + 41] for at in range(0, len(memory), 41))


class SoftwarePowerSensor3(SoftwarePort):
    """Answers V, R, S, T and M; streams a constant current in real time.

    As firmware 1.5 to 1.6.1, it hangs at a T that comes before a marker is sent.
    """

    PERIOD_S = 0.001

    def __init__(self, amperes=0.6, volts=5.0, *, memory=None, version=b"F411-1.6.1\r\n", streaming=False):
        super().__init__()
        self.amperes, self.volts, self.memory, self.version = amperes, volts, memory or settings(), version
        self.streaming, self.hangs = streaming, False
        self._to_come, self._markers = [], 0
        self._next_s, self._us = 0.0, 12_345

    def heard(self, byte):
        self.hangs = self.hangs or (byte == b"T" and self.streaming and self._markers > 0)
        if self.hangs:
            return
        if self._to_come:
            self.send(self._to_come.pop(0))
        elif byte == b"R":
            size = len(self.memory) // 8 if len(self.memory) % 8 == 0 else 41
            rows = [self.memory[at : at + size] for at in range(0, len(self.memory), size)]
            self.send(rows[0])
            self._to_come = [*rows[1:], b"D"]
        elif byte == b"V":
            self.send(self.version)
        elif byte in b"ST":
            self.streaming, self._next_s = byte == b"S", 0.0
        elif byte == b"M":
            self._markers += 1

    def due(self, now_s):
        if not self.streaming or self.hangs:
            return
        self._next_s = self._next_s or now_s
        count = int((now_s - self._next_s) * 1e6 / PERIOD_US)
        if count > 0:
            marked = range(min(self._markers, count))
            self._markers -= len(marked)
            self.send(packets(np.full(count, self.amperes), self.volts, first_us=self._us, marked=marked).tobytes())
            self._us += count * PERIOD_US
            self._next_s += count * PERIOD_US * 1e-6
