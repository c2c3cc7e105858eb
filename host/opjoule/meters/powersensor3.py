"""PowerSensor3 (ASTRON, Netherlands eScience Center): up to four pairs of a current and a voltage sensor, 20,000 times
a second over USB.

This is the project's own code for the protocol that the device's firmware and host library define
(github.com/nlesc-recruit/PowerSensor3, `PowerSensor.ino`, `PowerSensor.cc`). A packet has 18 bytes: the low 10 bits of
the device's microseconds, then 10 bits of each of eight sensors. The host asks for a marker in the next packet, which
makes a round trip between both clocks.
"""

import re
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from opjoule.base.errors import BadInput, MeterFault
from opjoule.clocks.exchanges import Exchange
from opjoule.clocks.host_clock import MONOTONIC
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, CURRENT, VOLTAGE, ErrorBounds
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.meters.interface import (
    Address,
    Losses,
    MeterEvent,
    MeterIdentity,
    MeterKind,
    MeterOptions,
    Samples,
    SensorIdentity,
    Wishes,
)
from opjoule.meters.serial.port import SerialPort, is_pseudo_terminal
from opjoule.meters.streaming import StreamAssembler, StreamingMeter

SENSORS, PAIRS = 8, 4
PACKET_BYTES: Final = 2 + 2 * SENSORS
BLOCK: Final = 4
"""Packets averaged into one sample of the trace, which has about 5,000 a second."""
TICK_NS: Final = 1000
TURN_TICKS: Final = 1024
"""Microseconds after which a packet's time stamp repeats."""
REFERENCE_V, LEVEL_MAX = 3.3, 1023
USUAL_PERIOD_US: Final = 50
HOLE_PERIODS: Final = 1.5
"""Distance of two packets, in periods, above which one is missing."""
HOLE_BLOCKS: Final = 1.1
"""The same for samples; a missing packet moves the next sample by a quarter of a block."""
LATE_NS: Final = 3_000_000
"""Growth of the minimum delay within a second above which whole turns of the time stamp are missing."""
MARK_EARLY_NS: Final = 200_000
"""Longest time by which the marked packet's stamp may precede the request: the firmware sends what it has measured."""
MARK_LOST_S: Final = 2.0
MARK_WAIT_S: Final = 0.1
"""Longest wait for a marker before the stream is stopped: firmware 1.5 to 1.6.1 hangs if a stop overtakes a marker
(`PowerSensor.ino`, case 'T')."""
ANSWER_S: Final = 1.0
QUIET_S: Final = 0.1
TRIAL_PACKETS: Final = 400
GAIN_ERROR_MAX: Final = 0.03
"""Assumed bound of the current's gain; the makers' figures could not be found."""
VOLTAGE_ERROR_MAX: Final = 0.01
"""Likewise of the voltage's."""
OFFSET_STEPS_MAX: Final = 3.0
"""Assumed bound of the current's offset after `psconfig -a`, in steps of the converter."""
USUAL_VOLT_PER_A: Final = 0.12
"""Sensitivity of a 10 A module (`psconfig.cc`, MLX10)."""
USUAL_GAIN: Final = 0.09
"""Gain of a voltage module (docs/CONFIGURATION.md: 0.0877 to 0.095)."""
_ROW: Final = struct.Struct("<16s16sff?")
"""Settings of one sensor: type, name of its pair, zero [V], sensitivity [V/A] or gain, in use."""
_OLD_ROW_BYTES: Final = 25
"""The same without the name of the pair, as firmware before 1.3 sends it (926e6ee)."""
_VERSION: Final = re.compile(rb"F4\d\d-\S+")
_STOP, _VERSION_OF, _SETTINGS, _NEXT, _DONE, _START, _MARK = b"T", b"V", b"R", b"s", b"D", b"S", b"M"


@dataclass(frozen=True)
class SensorSetting:
    """Settings of one sensor, from the device's memory."""

    model: str
    pair_name: str
    zero_v: float
    per_unit_v: float
    """V/A of a current sensor, V/V of a voltage sensor; negative if it is wired the other way round"""
    in_use: bool

    @classmethod
    def parse(cls, row: bytes) -> "SensorSetting":
        """The sensor's settings in their 41 bytes."""
        model, pair_name, zero_v, per_unit_v, in_use = _ROW.unpack(row)
        model, pair_name = (text.split(b"\0")[0].decode("ascii", "replace") for text in (model, pair_name))
        return cls(model, pair_name, zero_v, per_unit_v, in_use)

    def values(self, levels: npt.NDArray[np.uint16]) -> Float64Array:
        """Current [A] or voltage [V] of levels, same shape."""
        return np.asarray((REFERENCE_V * levels / LEVEL_MAX - self.zero_v) / self.per_unit_v, np.float64)

    @property
    def step(self) -> float:
        """Smallest difference of two readings [A or V]."""
        return REFERENCE_V / LEVEL_MAX / abs(self.per_unit_v)

    @property
    def highest(self) -> float:
        """Upper end of its range [A or V]."""
        return max((end - self.zero_v) / self.per_unit_v for end in (0.0, REFERENCE_V))


@dataclass(frozen=True)
class Pair:
    """The current and the voltage sensor of one supply."""

    number: int
    current: SensorSetting
    voltage: SensorSetting

    @property
    def words(self) -> str:
        """Its number and the name that the user gave it."""
        return f"{self.number} ({self.current.pair_name})" if self.current.pair_name else str(self.number)


class PowerSensor3Assembler(StreamAssembler):
    """Turns the byte stream into events; holds the state between start and stop."""

    def __init__(self, pair: Pair, period_us: int = USUAL_PERIOD_US) -> None:
        super().__init__(0, LATE_NS, hole_periods=HOLE_BLOCKS)
        self._pair, self._period_us = pair, period_us
        self._rest = b""
        self._before_us: int | None = None
        self._packets = self._bad_bytes = self._turns = 0
        self._waiting = np.empty((3, 0))
        """microseconds, levels of current and voltage of packets that do not fill a block yet"""
        self._asked_ns: int | None = None
        """time of the request for the marker that is on its way [host_ns]"""

    def ask(self, at_ns: int) -> bool:
        """Whether a marker may be asked for at `at_ns` [host_ns]: none is on its way."""
        if self._asked_ns is not None and at_ns - self._asked_ns < MARK_LOST_S * 1e9:
            return False
        self._asked_ns = at_ns
        return True

    @property
    def awaits_marker(self) -> bool:
        """Whether a marker is on its way, or lost."""
        return self._asked_ns is not None

    def take(self, data: bytes, arrival_ns: int) -> list[MeterEvent]:
        """Events of bytes that arrived together at `arrival_ns` [host_ns]."""
        packets, self._rest, bad = whole_packets(self._rest + data)
        self._bad_bytes += bad
        if not packets.size:
            return []
        high, low = packets[:, 0::2].astype(np.uint16), packets[:, 1::2].astype(np.uint16)
        levels = (high & 0xF) << 6 | low & 0x3F
        turning_us = stamps_us(packets)
        first_us = int(turning_us[0]) if self._before_us is None else self._before_us
        steps_us = np.diff(turning_us, prepend=first_us % TURN_TICKS) % TURN_TICKS
        times_us = first_us + np.cumsum(steps_us)
        late_ns = self._delays.missing_ns(times_us[-1:] * TICK_NS, np.array([arrival_ns], np.int64))
        turns = round(late_ns / (TURN_TICKS * TICK_NS))
        self._turns += turns
        times_us += turns * TURN_TICKS
        self._packets += times_us.size
        self._before_us = int(times_us[-1])
        at = 1 + 2 * self._pair.number
        rows = np.vstack([times_us, levels[:, at], levels[:, at + 1]]).astype(np.float64)
        events = self._blocks(rows)
        marked = np.flatnonzero(low[:, 1] & 0x40)
        if marked.size and self._asked_ns is not None:
            mark_ns = int(times_us[marked[0]]) * TICK_NS
            events.append(Exchange(self._asked_ns - MARK_EARLY_NS, mark_ns, mark_ns, arrival_ns))
            self._asked_ns = None
        return events

    def losses(self) -> Losses:
        """Losses since start."""
        link = {"packets": self._packets, "bad_bytes": self._bad_bytes, "turns_found_by_arrival": self._turns}
        return Losses(lost_samples=self._lost, link=link)

    def _blocks(self, rows: npt.NDArray[np.float64]) -> list[MeterEvent]:
        """Samples of whole blocks, with the gaps between them; a block that lost packets is lost."""
        rows = np.hstack([self._waiting, rows])
        holes = np.flatnonzero(np.diff(rows[0]) > HOLE_PERIODS * self._period_us) + 1
        events: list[MeterEvent] = []
        *runs, last = np.split(rows, holes, axis=1)
        for run in runs:
            events += self._run(run)[0]
        more, self._waiting = self._run(last)
        return events + more

    def _run(self, rows: npt.NDArray[np.float64]) -> tuple[list[MeterEvent], npt.NDArray[np.float64]]:
        """(events, rest) of packets without a hole; the rest does not fill a block."""
        blocks = rows.shape[1] // BLOCK
        used, rest = rows[:, : blocks * BLOCK].reshape(3, blocks, BLOCK), rows[:, blocks * BLOCK :]
        if not blocks:
            return [], rest
        amperes, volts = self._pair.current.values(used[1]), self._pair.voltage.values(used[2])
        power_w, mean_a, mean_v = (amperes * volts).mean(axis=1), amperes.mean(axis=1), volts.mean(axis=1)
        # The product of the means is not the mean of the product: the current is chosen so that the power is right.
        current_a = np.divide(power_w, mean_v, out=mean_a, where=mean_v != 0)
        ended = ((used[1:] <= 0) & (np.array([True, False])[:, None, None])) | (used[1:] >= LEVEL_MAX)
        clipped = ended.any(axis=(0, 2))
        # A packet's stamp is the end of its mean, which takes one period.
        centre_ns = np.rint((used[0].mean(axis=1) - self._period_us / 2) * TICK_NS).astype(np.int64)
        samples = Samples(0, centre_ns, current_a, mean_v, np.asarray(clipped, np.bool_))
        events, missing = self._following(samples, BLOCK * self._period_us * TICK_NS)
        self._lost += missing
        return events, rest


def whole_packets(data: bytes) -> tuple[npt.NDArray[np.uint8], bytes, int]:
    """(packets, rest, bad): packets in the bytes, shape (n, 18); a started one; number of bytes between packets."""
    found: list[npt.NDArray[np.uint8]] = []
    array, at, bad = np.frombuffer(data, np.uint8), 0, 0
    while array.size - at >= PACKET_BYTES:
        rows = array[at : at + (array.size - at) // PACKET_BYTES * PACKET_BYTES].reshape(-1, PACKET_BYTES)
        good = _are_packets(rows)
        count = int(good.size if good.all() else np.argmin(good))
        found.append(rows[:count])
        at += count * PACKET_BYTES
        if count < good.size:
            skipped = _next_start(array[at + 1 :]) + 1
            bad += skipped
            at += skipped
    return np.concatenate(found) if found else np.empty((0, PACKET_BYTES), np.uint8), data[at:], bad


def stamps_us(packets: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Time stamps of packets [us], modulo 1,024, shape (n,)."""
    return (packets[:, 0].astype(np.int64) & 0xF) << 6 | packets[:, 1] & 0x3F


def _are_packets(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Whether each row of 18 bytes is a packet: a stamp, then the sensors in order."""
    high, low = rows[:, 0::2], rows[:, 1::2]
    numbers = 0x80 | np.arange(SENSORS, dtype=np.uint8) << 4
    stamp = ((high[:, 0] & 0xF0) == 0xF0) & ((low[:, 0] & 0xC0) == 0x40)
    sensors = ((high[:, 1:] & 0xF0) == numbers).all(axis=1) & ((low[:, 1:] & 0x80) == 0).all(axis=1)
    return np.asarray(stamp & sensors & ((low[:, 2:] & 0x40) == 0).all(axis=1), np.bool_)


def _next_start(array: npt.NDArray[np.uint8]) -> int:
    """Place of the first stamp in the bytes; their number if there is none, less one if it may have begun."""
    stamps = np.flatnonzero(((array[:-1] & 0xF0) == 0xF0) & ((array[1:] & 0xC0) == 0x40))
    if stamps.size:
        return int(stamps[0])
    return int(array.size) - bool(array.size and array[-1] & 0xF0 == 0xF0)


class PowerSensor3Meter(StreamingMeter[SerialPort, PowerSensor3Assembler]):
    """A PowerSensor3 on a serial port; see Meter for the contract."""

    def __init__(self, path: str, pair: int | None) -> None:
        """`pair`: number of the pair in the board's supply; None if only one is in use."""
        super().__init__("powersensor3", powersensor3_sensor)
        self._path, self._wanted = path, pair
        self._pair: Pair | None = None
        self._period_us = USUAL_PERIOD_US

    def _connect(self) -> MeterIdentity:
        self._device = port = SerialPort(self._path, MONOTONIC)
        port.write(_STOP)  # another program may have been killed while the device was sending
        while port.read(QUIET_S):
            pass
        version = self._version(port)
        self._pair = self._choose(self._settings(port, version))
        self._period_us = self._measured_period_us(port)
        current, voltage = self._pair.current, self._pair.voltage
        return MeterIdentity(
            kind="powersensor3",
            place=self._path,
            board="PowerSensor3",
            firmware_version=version,
            tick_hz=10**9 // TICK_NS,
            sensors=(SensorIdentity(f"pair {self._pair.words}: {current.model}", 0),),
            voltage_at="at its module",
            simulated=is_pseudo_terminal(self._path),
            notes=(
                f"pair {self._pair.words} is in the board's supply; up to {current.highest:.3g} A in steps of "
                f"{1e3 * current.step:.3g} mA, {voltage.highest:.3g} V in steps of {1e3 * voltage.step:.3g} mV",
                f"{1e6 / self._period_us:,.0f} packets/s, recorded as means of the power of {BLOCK}",
                f"error bounds of {GAIN_ERROR_MAX:.0%} (current), {VOLTAGE_ERROR_MAX:.0%} (voltage) and "
                f"{1e3 * OFFSET_STEPS_MAX * current.step:.3g} mA are assumed: set its zero without a current (psconfig "
                "-a), and calibrate it (docs/how-to/calibrate.md)",
            ),
        )

    def start(self) -> None:
        """Starts the stream."""
        if self._pair is None:
            raise MeterFault("powersensor3: not open")
        self._assembler = PowerSensor3Assembler(self._pair, self._period_us)
        self._opened().write(_START)

    def clock_exchange(self) -> None:
        """Asks for a marker in the stream, unless one is on its way."""
        if self._assembler is not None and self._assembler.ask(time.monotonic_ns()):
            self._opened().write(_MARK)

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events since the last call. Raises: MeterGone."""
        assembler, data = self._started(), self._opened().read(timeout_s)
        return assembler.take(data, time.monotonic_ns()) if data else []

    def stop(self) -> list[MeterEvent]:
        """Stops the stream once no marker is on its way, and takes what is."""
        events: list[MeterEvent] = []
        until_s = time.monotonic() + MARK_WAIT_S
        while self._started().awaits_marker and (left_s := until_s - time.monotonic()) > 0:
            events += self.read(left_s)
        self._opened().write(_STOP)
        until_s = time.monotonic() + ANSWER_S
        while time.monotonic() < until_s and (data := self._opened().read(QUIET_S)):
            events += self._started().take(data, time.monotonic_ns())
        return events

    def error_bounds(self) -> ErrorBounds:
        """Error bounds of the pair as it is set up."""
        return self._bounds() if self._pair is None else _bounds(self._pair.current, self._pair.voltage)

    def _version(self, port: SerialPort) -> str:
        port.write(_VERSION_OF)
        answer = _received(port, lambda data: data.endswith(b"\n"))
        if not (version := _VERSION.search(answer)):
            raise MeterFault(f"powersensor3: no PowerSensor3 answers on {self._path}: check the port; replug it")
        return version[0].decode("ascii", "replace")

    def _settings(self, port: SerialPort, version: str) -> list[SensorSetting]:
        port.write(_SETTINGS)
        sensors = []
        for _ in range(SENSORS):
            row = _received(port, lambda data: len(data) >= _ROW.size)
            if len(row) == _OLD_ROW_BYTES:
                raise MeterFault(
                    f"powersensor3: {self._path} has firmware {version}: update it to 1.3 or later "
                    "(github.com/nlesc-recruit/PowerSensor3)"
                )
            if len(row) != _ROW.size:
                raise MeterFault(f"powersensor3: {self._path} does not send its sensors' settings: replug it")
            sensors.append(SensorSetting.parse(row))
            port.write(_NEXT)
        if _received(port, bool) != _DONE:
            raise MeterFault(f"powersensor3: {self._path} does not end its sensors' settings: replug it")
        return sensors

    def _choose(self, sensors: list[SensorSetting]) -> Pair:
        """The pair in the board's supply. Raises: MeterFault: it is not set up. BadInput: there are several."""
        pairs = [Pair(number, *sensors[2 * number : 2 * number + 2]) for number in range(PAIRS)]
        used = [pair for pair in pairs if pair.current.in_use and pair.voltage.in_use]
        if not used:
            raise MeterFault(
                "powersensor3: no pair of sensors is on: psconfig -s 0 -t MLX10 -o 1 -s 1 -o 1, then calibrate it"
            )
        listed = ", ".join(pair.words for pair in used)
        if self._wanted is None and len(used) > 1:
            raise BadInput(
                f"powersensor3: pairs {listed} are on: say which one is in the board's supply, for example "
                f"powersensor3:{self._path},pair={used[0].number}"
            )
        wanted = used[0].number if self._wanted is None else self._wanted
        if wanted not in {pair.number for pair in used}:
            raise MeterFault(f"powersensor3: pair {wanted} is off (on: {listed}): name another, or psconfig -o 1")
        pair = pairs[wanted]
        for sensor, option in ((pair.current, "-n 120"), (pair.voltage, "-n 0.09")):
            if not (np.isfinite([sensor.zero_v, sensor.per_unit_v]).all() and abs(sensor.per_unit_v) > 1e-4):
                raise MeterFault(
                    f"powersensor3: pair {pair.words} has no sensitivity: set it, for example psconfig {option}"
                )
        return pair

    def _measured_period_us(self, port: SerialPort) -> int:
        """Distance of two packets [us], from a short trial. Raises: MeterFault: none comes."""
        port.write(_START)
        data = _received(port, lambda data: len(data) >= TRIAL_PACKETS * PACKET_BYTES)
        port.write(_STOP)
        while port.read(QUIET_S):
            pass
        packets, _, _ = whole_packets(data)
        if len(packets) < BLOCK:
            raise MeterFault(f"powersensor3: {self._path} sends no measurements: replug it")
        return max(round(float(np.median(np.diff(stamps_us(packets)) % TURN_TICKS))), 1)


def _received(port: SerialPort, is_whole: Callable[[bytes], bool]) -> bytes:
    """Bytes that arrive until they are whole, or nothing more comes."""
    data, until_s = b"", time.monotonic() + ANSWER_S
    while not is_whole(data) and time.monotonic() < until_s:
        data += port.read(0.05)
    return data


def _bounds(current: SensorSetting, voltage: SensorSetting) -> ErrorBounds:
    return ErrorBounds(
        gain_errors_max={CURRENT: GAIN_ERROR_MAX, VOLTAGE: VOLTAGE_ERROR_MAX},
        current_offset_max_a=OFFSET_STEPS_MAX * current.step,
        current_step_a=current.step,
        voltage_step_v=voltage.step,
        current_max_a=current.highest,
        seen_fraction=1.0,
        clock_error_max=CRYSTAL_ERROR_MAX,
        model="PowerSensor3",
    )


def powersensor3_sensor() -> ErrorBounds:
    """Error bounds of a 10 A module with its usual settings, also for a dump of another program."""
    zero = SensorSetting("MLX10", "", REFERENCE_V / 2, USUAL_VOLT_PER_A, in_use=True)
    return _bounds(zero, replace(zero, zero_v=0.0, per_unit_v=USUAL_GAIN))


class PowerSensor3Options(MeterOptions, frozen=True, kw_only=True):
    """The pair of sensors in the board's supply."""

    pair: Annotated[int, Meta(ge=0, lt=PAIRS, description=f"a pair of sensors from 0 to {PAIRS - 1}")] | None = None


def _powersensor3(address: Address, _: Wishes) -> PowerSensor3Meter:
    return PowerSensor3Meter(address.needed_place(), address.options.pair)


KIND: Final = MeterKind(
    stamp_width_ns=1e6,
    name="powersensor3",
    written="powersensor3:PORT or powersensor3:PORT,pair=0",
    make=_powersensor3,
    options=PowerSensor3Options,
    samples="20,000/s, recorded as 5,000 means of power",
    runs_on="the device",
    draw="unknown draw",
    on_serial_port=True,
    imports={"powersensor3": powersensor3_sensor},
    import_formats={"powersensor3": "powersensor3"},
)
