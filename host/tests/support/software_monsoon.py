"""A Monsoon in software in place of the library's Protocol: real packets of a supply with known energy."""

import time
from dataclasses import dataclass, field

import numpy as np
from opjoule.meters.monsoon import reader

SLOT_NS = 200_000
MEASUREMENT, ZERO, REFERENCE = 0x00, 0x10, 0x30


@dataclass(frozen=True)
class Supply:
    """The true current and voltage, in steps that are held until the next."""

    time_s: tuple = (0.0,)
    current_a: tuple = (0.6,)
    voltage_v: tuple = (5.1,)

    def integral(self, values, at_s):
        steps = np.asarray(values, float)
        starts = np.asarray(self.time_s, float)
        running = np.concatenate([[0.0], np.cumsum(steps[:-1] * np.diff(starts))])
        place = np.clip(np.searchsorted(starts, at_s, side="right") - 1, 0, starts.size - 1)
        return running[place] + steps[place] * (np.asarray(at_s) - starts[place])

    def energy_j(self, start_s, end_s):
        watts = np.asarray(self.current_a) * np.asarray(self.voltage_v)
        return float(self.integral(watts, end_s) - self.integral(watts, start_s))

    def means(self, slots):
        edges_s = np.arange(slots + 1) * SLOT_NS * 1e-9
        return tuple(np.diff(self.integral(v, edges_s)) / (SLOT_NS * 1e-9) for v in (self.current_a, self.voltage_v))


@dataclass(frozen=True)
class Hardware:
    """One unit: scales as its memory states them, and its converters' zero and reference."""

    code: int = 2
    serial_number: int = 23171
    fine_scale: int = 36500
    coarse_scale: int = 6400
    fine: tuple = (1200.0, 33000.0)
    """raw value of zero and of the reference, fine range"""
    coarse: tuple = (900.0, 61000.0)
    voltage_scale: float = 4.0
    signed: bool = False
    dac_low: int = 0xE000
    dac_high: int = 0xC800
    resistor_offset: int = -3
    """LVPM: tenths of a milliohm"""

    @property
    def scales_a(self):
        if not self.signed:
            return self.fine_scale * 1e-6, self.coarse_scale * 1e-3
        ohm = 0.05 + 1e-4 * self.resistor_offset
        return 35946e-6 * 0.05 / ohm, 3.1034 * 0.05 / ohm

    def memory(self):
        offset = self.resistor_offset & 0xFF
        return {
            **{
                0x1A: self.fine_scale,
                0x1B: self.coarse_scale,
                0x1C: self.fine_scale,
                0x1D: self.coarse_scale,
            },
            **{0x25: 0, 0x26: 0, 0x27: 0, 0x28: 0, 0x42: self.serial_number, 0x45: self.code},
            **{0x88: self.dac_low, 0x89: self.dac_high, 0xC0: 32, 0xC1: 18, 0xC4: 0},
            **{0x02: offset, 0x11: offset, 0x0D: offset, 0x12: offset},
        }

    def codes(self, amperes, scale_a, points):
        top = 0x7FFF if self.signed else 0xFFFF
        raw = points[0] + amperes / scale_a * (points[1] - points[0])
        return np.clip(np.rint(raw), 0, top).astype(np.uint16)


HVPM = Hardware()
LVPM = Hardware(code=1, signed=True, fine=(150.0, 16000.0), coarse=(120.0, 30000.0), voltage_scale=2.0)


@dataclass
class Stream:
    """Packets of one run, and the numbers of those lost and of calibrations."""

    packets: np.ndarray
    """uint8, shape (n, 64)"""
    due_ns: np.ndarray
    """when each is handed over, after start"""
    dropped: int = 0
    lost_packets: int = 0
    calibrations: int = 0
    info: dict = field(default_factory=dict)


def stream(
    supply,
    seconds,
    *,
    hardware=HVPM,
    seed=1,
    drop_rate=0.0,
    lose_rate=0.0,
    burst=1,
    noise_a=0.0,
    calibration_s=1.25,
):
    """The packets of one run.

    drop_rate: share of the packets whose samples the device's queue lost (its drop count shows this).
    lose_rate: share of the packets that never reached the host (their sequence number shows this).
    """
    rng = np.random.default_rng(seed)
    slots = round(seconds / (SLOT_NS * 1e-9)) // 3 * 3
    amperes, volts = supply.means(slots)
    amperes = amperes + rng.normal(0, noise_a, slots) if noise_a else amperes
    kind = np.zeros(slots, np.uint8)
    every = round(calibration_s / (SLOT_NS * 1e-9))
    for offset, what in ((0, ZERO), (1, ZERO), (2, REFERENCE), (3, REFERENCE)):
        kind[offset::every] = what
    words = np.zeros((slots, 8), np.uint16)
    ranges = zip(hardware.scales_a, (hardware.fine, hardware.coarse), ((1, 3), (0, 2)), strict=True)
    for scale_a, points, columns in ranges:
        codes = hardware.codes(amperes, scale_a, points)
        codes = np.where(kind == ZERO, round(points[0]), np.where(kind == REFERENCE, round(points[1]), codes))
        for column in columns:
            words[:, column] = codes
    words[:, 6] = np.rint(volts / (62.5e-6 * hardware.voltage_scale))
    words[:, 7] = np.rint(volts / (62.5e-6 * 2.0))
    body = np.zeros((slots, 18), np.uint8)
    body[:, :16] = words.astype(">u2").view(np.uint8).reshape(slots, 16)
    body[:, 17] = kind
    count = slots // 3
    dropped = _bursts(rng, count, drop_rate, burst)
    packets = np.zeros((count, 64), np.uint8)
    packets[:, 3] = 3
    packets[:, 4:58] = body.reshape(count, 54)
    total = np.cumsum(dropped) * 3
    packets[:, 0], packets[:, 1] = total & 0xFF, total >> 8 & 0xFF
    due_ns = (np.arange(count) + 1) * 3 * SLOT_NS
    packets, due_ns = packets[~dropped], due_ns[~dropped]
    packets[:, 2] = np.arange(packets.shape[0]) % 16 | 0x60  # bit 5: output at voltage; 6: reserved
    lost = _bursts(rng, packets.shape[0], lose_rate, burst)
    calibrations = int((kind.reshape(count, 3)[~dropped][~lost] != MEASUREMENT).sum())
    return Stream(packets[~lost], due_ns[~lost], int(dropped.sum()) * 3, int(lost.sum()), calibrations)


def _bursts(rng, count, rate, burst):
    gone = np.zeros(count, bool)
    if rate:
        for start in np.flatnonzero(rng.random(count) < rate / ((1 + burst) / 2)):
            gone[start : start + int(rng.integers(1, burst + 1))] = True
        gone[: 1250 // 3 // 10] = False
        gone[-1] = False
    return gone


class UsbGone(Exception):
    errno = 19


class DeviceClock:
    """Replaces the module `time` in the reader process, so that packets arrive when due, however busy the host is."""

    now_ns = 0

    @classmethod
    def monotonic_ns(cls):
        return cls.now_ns


class SoftwareMonsoon:
    """Stands for the library's Protocol.

    `paced`: hands packets over in real time. `on_time`: a packet is due when the reader takes it.
    """

    def __init__(
        self,
        *,
        supply=None,
        seconds=3.0,
        hardware=HVPM,
        paced=False,
        on_time=False,
        unplugged=False,
        **imperfections,
    ):
        self._on_time = on_time
        if on_time:
            reader.time = DeviceClock
        self._stream = stream(supply or Supply(), seconds, hardware=hardware, **imperfections)
        self._memory = hardware.memory()
        self._paced, self._unplugged = paced, unplugged
        self._at = 0
        self._started_ns = None

    def Connect(self, deviceType, serialno=None):
        self.connected = deviceType, serialno

    def getValue(self, operation, valueLength, signed=False):
        value = self._memory[operation] & ((1 << 8 * valueLength) - 1)
        top = 1 << (8 * valueLength - 1)
        return value - 2 * top if signed and value >= top else value

    def sendCommand(self, operation, value):
        if self._started_ns is not None:
            raise ValueError("Power Monitor Error, attempted to send a command while the unit is in Sample Mode.")
        self._memory[operation] = int(value)

    def startSampling(self, calTime, maxTime):
        self._started_ns = time.monotonic_ns()

    def stopSampling(self):
        self._started_ns = None

    def BulkRead(self):
        if self._at >= len(self._stream.packets):
            if self._unplugged:
                raise UsbGone("No such device (it may have been disconnected)")
            time.sleep(0.01)
            return b""
        if self._paced:
            wait_ns = self._started_ns + int(self._stream.due_ns[self._at]) - time.monotonic_ns()
            time.sleep(max(wait_ns, 0) * 1e-9)
        if self._on_time:
            DeviceClock.now_ns = self._started_ns + int(self._stream.due_ns[self._at])
        self._at += 1
        return self._stream.packets[self._at - 1].tobytes()

    def closeDevice(self):
        self._started_ns = None


class Forbidden:
    """A device that this user may not open, with pyusb's error."""

    def Connect(self, deviceType, serialno=None):
        error = OSError("Access denied (insufficient permissions)")
        error.errno = 13
        raise error

    def closeDevice(self):
        raise AttributeError("'NoneType' object has no attribute 'reset'")


class Absent:
    """The library without a device: it prints a line, continues and fails later."""

    def Connect(self, deviceType, serialno=None):
        print("Unable to find device")
        raise AttributeError("'NoneType' object has no attribute 'ctrl_transfer'")

    def closeDevice(self):
        raise AttributeError("'NoneType' object has no attribute 'reset'")


class Resetting(SoftwareMonsoon):
    """A device that is back on the bus after `absent_for` tries; until then the library finds none."""

    tries = 0

    def __init__(self, *, absent_for, then_forbidden=0):
        super().__init__()
        self._absent, self._forbidden = absent_for, then_forbidden

    def Connect(self, deviceType, serialno=None):
        Resetting.tries += 1
        if Resetting.tries <= self._absent:
            Absent().Connect(deviceType)
        if Resetting.tries <= self._absent + self._forbidden:
            Forbidden().Connect(deviceType)
        super().Connect(deviceType, serialno)
