"""The Nordic Power Profiler Kit II over its serial port, as ampere meter in the supply line.

This is the project's own code for a documented wire format; PyPI's ppk2-api (GPL-2) is not needed. The kit measures
only current; the user states the supply's voltage. A sample has 32 bits, from the lowest: 14 of the converter, 3 of
the range, one unused, 6 of a counter, 8 logic inputs.
"""

import time
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import serial

from opjoule.base.errors import BadInput, MeterFault
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, CURRENT, VOLTAGE, ErrorBounds
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.meters.interface import (
    EdgeEvent,
    Losses,
    MeterEvent,
    MeterGone,
    MeterIdentity,
    MeterKind,
    MeterOptions,
    Samples,
    SensorIdentity,
)
from opjoule.meters.streaming import StreamAssembler, StreamingMeter

try:
    from termios import error as TerminalGone
except ImportError:  # Windows, whose ports raise OSError alone
    TerminalGone = OSError  # type: ignore[misc,assignment]

SAMPLE_NS: Final = 10_000
BLOCK: Final = 20
"""Device samples averaged into one sample of the trace, which has 5,000 a second."""
COUNTER: Final = 64
CURRENT_MAX_A: Final = 1.0
GAIN_ERROR_MAX: Final = 0.1
"""Vendor: about +-10 % in the upper range."""
SUPPLY_ERROR_MAX: Final = 0.05
"""Largest relative error of a 5 V supply that is not measured."""
DELIVERY_NS: Final = 10_000_000
"""Longest time from a sample to its arrival without waiting; the kit sends about every 10 ms."""
_GONE = (OSError, TerminalGone)
"""Errors of a port that has disappeared; pyserial's own exception is an OSError."""
_ADC_V: Final = 1.8 / 163840
_ADC_END: Final = 0x3FFF
_SYNC_BIT: Final = 24
"""Logic input D0."""
_COARSE_OHM: Final = 0.043
"""Shunt of the largest range."""
OFFSET_MAX_A: Final = 1e-3
_REGULATOR_MIN_MV, _REGULATOR_MAX_MV, _REGULATOR_BASE = 800, 5000, 32
"""Range of the kit's regulator [mV], and the low byte of its command at the lower end. Source: pc-nrfconnect-ppk."""
_RANGES: Final = 5
_GET_META, _POWER_MODE, _DEVICE_POWER, _START, _STOP, _REGULATOR = 0x19, 0x11, 0x0C, 0x06, 0x07, 0x0D
_AMPERE_METER: Final = 1
_META_LIMIT_S: Final = 10.0


@dataclass(frozen=True)
class Modifiers:
    """Calibration of the five ranges, from the kit's own memory; arrays of shape (5,)."""

    resistor_ohm: Float64Array
    offset: Float64Array
    gain_square: Float64Array
    gain: Float64Array
    per_volt: Float64Array
    constant: Float64Array
    user_gain: Float64Array

    @classmethod
    def parse(cls, text: str) -> "Modifiers":
        """Calibration in the kit's answer, one 'KEY: VALUE' a line.

        A value that is absent or not finite is the default, as is 0 of R, GI or UG. Source: Nordic's
        pc-nrfconnect-ppk, serialDevice.ts (parseMeta).

        Raises: MeterFault: a value is not a number.
        """
        nominal = [1031.64, 101.65, 10.15, 0.94, _COARSE_OHM]
        rows = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        rows = {key.strip(): value.strip() for key, value in rows.items()}

        def five(key: str, default: list[float]) -> Float64Array:
            try:
                values = np.array([float(rows.get(f"{key}{n}", default[n])) for n in range(_RANGES)])
            except ValueError:
                raise MeterFault(f"ppk2: its calibration {key} is not readable: replug it") from None
            unset = ~np.isfinite(values) | (values == 0) & (key in ("R", "GI", "UG"))
            return np.where(unset, default, values)

        defaults = {"O": 0.0, "GS": 1.0, "GI": 1.0, "S": 0.0, "I": 0.0, "UG": 1.0}
        others = [five(key, [default] * _RANGES) for key, default in defaults.items()]
        return cls(five("R", nominal), *others)

    def current_a(self, words: npt.NDArray[np.uint32], supply_v: float) -> Float64Array:
        """Currents of samples [A], same shape."""
        place = np.minimum(words >> 14 & 0x7, _RANGES - 1)
        counts = (words & _ADC_END) * 4.0
        plain = (counts - self.offset[place]) * (_ADC_V / self.resistor_ohm[place])
        curved = plain * (self.gain_square[place] * plain + self.gain[place])
        shifted = curved + self.per_volt[place] * supply_v + self.constant[place]
        return np.asarray(self.user_gain[place] * shifted, np.float64)


class Ppk2Assembler(StreamAssembler):
    """Turns the byte stream into events; holds the state between start and stop."""

    def __init__(self, modifiers: Modifiers, supply_v: float) -> None:
        super().__init__(DELIVERY_NS, 2 * DELIVERY_NS)
        self._modifiers, self._supply_v = modifiers, supply_v
        self._rest = b""
        self._next = 0
        self._counter: int | None = None
        self._waiting = np.empty(0, np.uint32)
        self._level: int | None = None
        self._edges = 0

    def take(self, data: bytes, arrival_ns: int) -> list[MeterEvent]:
        """Events of bytes that arrived together at `arrival_ns` [host_ns]."""
        data = self._rest + data
        whole = len(data) // 4 * 4
        self._rest = data[whole:]
        words = np.frombuffer(data[:whole], "<u4").astype(np.uint32)
        if not words.size:
            return []
        counter = (words >> 18 & 0x3F).astype(np.int64)
        before = (int(counter[0]) - 1) % COUNTER if self._counter is None else self._counter
        missing = (np.diff(counter, prepend=before) - 1) % COUNTER
        # A loss of whole turns of the counter shows only in the arrival times.
        end_ns = np.array([(self._next + words.size + int(missing.sum())) * SAMPLE_NS], np.int64)
        late_ns = self._delays.missing_ns(end_ns, np.array([arrival_ns], np.int64))
        missing[0] += round(late_ns / (COUNTER * SAMPLE_NS)) * COUNTER
        self._counter = int(counter[-1])
        events: list[MeterEvent] = []
        start = 0
        for cut in [*np.flatnonzero(missing).tolist(), words.size]:
            events += self._run(words[start:cut])
            if cut < words.size:
                self._lost += int(missing[cut])
                self._next += int(missing[cut])
                self._waiting = np.empty(0, np.uint32)  # the started block is lost with them
            start = cut
        return events + self._arrivals.exchanges(self._next * SAMPLE_NS, arrival_ns)

    def losses(self) -> Losses:
        """Losses since start, in samples of the device."""
        return Losses(lost_samples=self._lost, link={"samples_of_10_us": self._next})

    def _run(self, words: npt.NDArray[np.uint32]) -> list[MeterEvent]:
        """Samples without a break. Whole blocks become samples of the trace; the rest waits."""
        if not words.size:
            return []
        events = self._edges_in(words)
        self._next += int(words.size)
        self._waiting = np.concatenate([self._waiting, words])
        blocks = self._waiting.size // BLOCK
        if not blocks:
            return events
        used, self._waiting = self._waiting[: blocks * BLOCK], self._waiting[blocks * BLOCK :]
        first = self._next - self._waiting.size - used.size
        centre_ns = (first + BLOCK * np.arange(blocks, dtype=np.int64)) * SAMPLE_NS + BLOCK * SAMPLE_NS // 2
        sample_a = self._modifiers.current_a(used, self._supply_v)
        amperes = sample_a.reshape(blocks, BLOCK).mean(axis=1)
        at_end = ((used >> 14 & 0x7) >= _RANGES - 1) & ((used & _ADC_END) == _ADC_END)
        over = (sample_a >= CURRENT_MAX_A) | at_end
        volts = np.full(blocks, self._supply_v)
        clipped = np.asarray(over.reshape(blocks, BLOCK).any(axis=1), np.bool_)
        samples = Samples(0, centre_ns, amperes, volts, clipped)
        return events + self._following(samples, BLOCK * SAMPLE_NS)[0]

    def _edges_in(self, words: npt.NDArray[np.uint32]) -> list[MeterEvent]:
        levels = (words >> _SYNC_BIT & 1).astype(np.int8)
        before = int(levels[0]) if self._level is None else self._level
        self._level = int(levels[-1])
        events: list[MeterEvent] = []
        for at in np.flatnonzero(np.diff(levels, prepend=np.int8(before))).tolist():
            events.append(EdgeEvent((self._next + at) * SAMPLE_NS, int(levels[at]), self._edges))
            self._edges += 1
        return events


class Ppk2Meter(StreamingMeter[serial.Serial, Ppk2Assembler]):
    """A PPK2 on a serial port; see Meter for the contract."""

    def __init__(self, path: str, supply_v: float | None) -> None:
        if supply_v is None:
            raise BadInput("ppk2: it does not measure voltage: state the supply's, for example ppk2:PORT,voltage=5.1")
        if not 0.8 <= supply_v <= 5.25:
            raise BadInput(f"ppk2: a supply of {supply_v:g} V is outside its 0.8 to 5.25 V")
        super().__init__("ppk2", ppk2_sensor)
        self._path, self._supply_v = path, supply_v
        self._modifiers: Modifiers | None = None

    def _connect(self) -> MeterIdentity:
        try:
            self._device = serial.Serial(self._path, timeout=0.05, exclusive=True)
        except _GONE as error:
            raise MeterFault(
                f"ppk2: {self._path} does not open ({error}): check its cable and your group dialout"
            ) from None
        self._send(_STOP)
        self._device.reset_input_buffer()
        self._send(_GET_META)
        self._modifiers = Modifiers.parse(self._metadata(self._device))
        return MeterIdentity(
            kind="ppk2",
            place=self._path,
            board="PPK2",
            tick_hz=10**9 // SAMPLE_NS,
            sensors=(SensorIdentity("ampere meter", 0),),
            notes=(
                f"at most {CURRENT_MAX_A:g} A, which a loaded Raspberry Pi 4 or 5 exceeds; readings there are flagged",
                f"voltage is not measured: {self._supply_v:g} V as stated, +-{SUPPLY_ERROR_MAX:.0%} assumed",
                f"100,000 samples/s, recorded as means of {BLOCK}; logic input D0 is the sync line",
            ),
        )

    def configure(self) -> None:
        """Sets the kit to ampere meter and switches the device under test on."""
        millivolt = min(round(self._supply_v * 1000), _REGULATOR_MAX_MV)
        high, low = divmod(millivolt - _REGULATOR_MIN_MV + _REGULATOR_BASE, 256)
        self._send(_POWER_MODE, _AMPERE_METER)
        self._send(_REGULATOR, 3 + high, low)
        self._send(_DEVICE_POWER, 1)

    def start(self) -> None:
        """Starts sampling."""
        if self._modifiers is None:
            raise MeterFault("ppk2: not open")
        self._assembler = Ppk2Assembler(self._modifiers, self._supply_v)
        self._send(_START)

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events since the last call. Raises: MeterGone."""
        assembler, port = self._started(), self._opened()
        try:
            port.timeout = timeout_s
            data = port.read(1)
            data += port.read(port.in_waiting)
        except _GONE:
            raise MeterGone(f"ppk2: {self._path} is gone: cable pulled, or supply lost") from None
        return assembler.take(data, time.monotonic_ns()) if data else []

    def stop(self) -> list[MeterEvent]:
        """Stops sampling; the device under test stays on."""
        events = self.read(0.0)
        self._send(_STOP)
        return events

    def _send(self, *command: int) -> None:
        try:
            self._opened().write(bytes(command))
            self._opened().flush()
        except _GONE:
            raise MeterGone(f"ppk2: {self._path} is gone: cable pulled, or supply lost") from None

    def _metadata(self, port: serial.Serial) -> str:
        deadline_s = time.monotonic() + _META_LIMIT_S
        data = b""
        while b"END" not in data:
            if time.monotonic() > deadline_s:
                raise MeterFault(f"ppk2: no PPK2 answers on {self._path}: it has two ports, try the other; replug it")
            data += port.read(256)
        return data.decode("ascii", "replace")


def ppk2_sensor() -> ErrorBounds:
    """Error bounds of a PPK2 whose supply voltage is stated, not measured."""
    return ErrorBounds(
        gain_errors_max={CURRENT: GAIN_ERROR_MAX, VOLTAGE: SUPPLY_ERROR_MAX},
        current_offset_max_a=OFFSET_MAX_A,
        current_step_a=4 * _ADC_V / _COARSE_OHM,
        voltage_step_v=0.0,
        current_max_a=CURRENT_MAX_A,
        seen_fraction=1.0,
        clock_error_max=CRYSTAL_ERROR_MAX,
    )


class Ppk2Options(MeterOptions, frozen=True, kw_only=True):
    """The supply that it makes or passes on."""

    voltage: float | None = None


KIND: Final = MeterKind(
    stamp_width_ns=DELIVERY_NS,
    name="ppk2",
    written="ppk2:PORT,voltage=5.1",
    make=lambda address, _: Ppk2Meter(address.needed_place(), address.options.voltage),
    options=Ppk2Options,
    samples="100,000/s, recorded as 5,000 means",
    sync_input="yes (D0), 10 µs",
    runs_on="the device",
    draw="unknown draw",
    on_serial_port=True,
    states_voltage=True,
    imports={"ppk2": ppk2_sensor},
    import_formats={"ppk2": "ppk2"},
)
