"""A Joulescope through PyPI's pyjoulescope_driver, an optional extra.

The device numbers its samples, so that its own clock is the meter clock. A jump in the numbers, or a NaN, means lost
samples. One million samples a second of current and voltage are multiplied, then averaged into 5,000 of power.
"""

import queue
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from opjoule.base.errors import MeterFault
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, CURRENT, VOLTAGE, ErrorBounds
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.meters.interface import MeterEvent, MeterGone, MeterIdentity, MeterKind, Samples, SensorIdentity
from opjoule.meters.streaming import StreamAssembler, StreamingMeter

OUTPUT_HZ: Final = 5_000
DELIVERY_NS: Final = 30_000_000
"""Longest time from a sample to its arrival without waiting; the driver gathers about 20 ms."""
GAIN_ERROR_MAX: Final = 0.005
OFFSET_MAX_A: Final = 1e-3
CURRENT_MAX_A: Final = 10.0
VOLTAGE_MAX_V: Final = 15.0
_AUTO: Final = {"i/range/mode": "auto", "v/range/mode": "auto"}
RANGES: Final[Mapping[str, Mapping[str, str | int]]] = {
    "js110": {"i/range/select": "auto", "v/range/select": "15 V"},
    "js220": {"i/range/min": 0, "i/range/max": 5, **_AUTO},
}
"""Settings of the widest ranges of each model; others have the automatic ones alone."""
SILENCE_S: Final = 10.0
INSTALL: Final = "its driver is not installed: .venv/bin/pip install -r host/requirements/joulescope.in"


JoulescopeDriver = Any
"""pyjoulescope_driver.Driver. Used: device_paths, open, publish, subscribe, close and finalize."""


def usb_driver() -> JoulescopeDriver:
    """The library's driver. Raises: MeterFault: the library is not installed."""
    try:
        from pyjoulescope_driver import Driver  # noqa: PLC0415
    except ImportError:
        raise MeterFault(f"joulescope: {INSTALL}") from None
    return Driver()


class JoulescopeAssembler(StreamAssembler):
    """Turns pieces of two streams into events."""

    def __init__(self) -> None:
        super().__init__(DELIVERY_NS, 0)
        self._parts: dict[str, Float64Array] = {"i": np.empty(0), "v": np.empty(0)}
        self._first: dict[str, int] = {}
        self._origin: int | None = None

    def take(self, signal: str, value: Mapping[str, Any], arrival_ns: int) -> list[MeterEvent]:
        """Events after one more piece of signal 'i' or 'v', as the driver delivers it."""
        factor = int(value["decimate_factor"])
        rate_hz = int(value["sample_rate"]) // factor
        first = int(value["sample_id"]) // factor
        self._append(signal, first, np.asarray(value["data"], np.float64))
        if len(self._first) < 2:
            return []
        events = self._blocks(rate_hz)
        end_ns = self._time_ns(self._first[signal] + self._parts[signal].size, rate_hz)
        return events + self._arrivals.exchanges(end_ns, arrival_ns)

    def _append(self, signal: str, first: int, data: Float64Array) -> None:
        if signal not in self._first:
            self._first[signal] = first
        missing = first - (self._first[signal] + self._parts[signal].size)
        pieces = [self._parts[signal], np.full(max(missing, 0), np.nan), data[max(-missing, 0) :]]
        self._parts[signal] = np.concatenate(pieces)

    def _blocks(self, rate_hz: int) -> list[MeterEvent]:
        """Events of the whole blocks that both signals have; a block with a lost sample is lost."""
        block = max(rate_hz // OUTPUT_HZ, 1)
        if self._origin is None:
            self._origin = max(self._first.values())
        start = max(*self._first.values(), self._origin)
        start += (self._origin - start) % block
        end = min(self._first[name] + part.size for name, part in self._parts.items())
        count = (end - start) // block
        if count <= 0:
            return []
        columns = {}
        for name, part in self._parts.items():
            skipped = start - self._first[name]
            columns[name] = part[skipped : skipped + count * block].reshape(count, block)
            self._parts[name] = part[skipped + count * block :]
            self._first[name] = start + count * block
        volts = columns["v"].mean(axis=1)
        # The product of the means is not the mean of the product: the current is chosen so that the power is right.
        power_w, amperes = (columns["i"] * columns["v"]).mean(axis=1), columns["i"].mean(axis=1)
        np.divide(power_w, volts, out=amperes, where=volts != 0)
        period_ns = block * 10**9 // rate_hz
        start_ns = self._time_ns(start + block * np.arange(count, dtype=np.int64), rate_hz)
        centre_ns = start_ns + period_ns // 2
        beyond = (np.abs(columns["i"]) >= CURRENT_MAX_A) | (np.abs(columns["v"]) >= VOLTAGE_MAX_V)
        over = np.asarray(beyond.any(axis=1), np.bool_)
        good = np.flatnonzero(~(np.isnan(amperes) | np.isnan(volts)))
        events: list[MeterEvent] = []
        for run in np.split(good, np.flatnonzero(np.diff(good) > 1) + 1):
            if run.size:
                samples = Samples(0, centre_ns[run], amperes[run], volts[run], over[run])
                following, lost = self._following(samples, period_ns)
                self._lost += lost
                events += following
        return events

    def _time_ns(self, sample: Any, rate_hz: int) -> Any:
        """Start of a sample on the device's clock, counted from the first sample [ns]."""
        return (sample - (self._origin or 0)) * 10**9 // rate_hz


class JoulescopeMeter(StreamingMeter[JoulescopeDriver, JoulescopeAssembler]):
    """A JS110 or JS220; see Meter for the contract."""

    def __init__(self, serial_number: str = "", make_driver: Callable[[], JoulescopeDriver] = usb_driver) -> None:
        super().__init__("joulescope", joulescope_sensor)
        self._wanted, self._make_driver = serial_number, make_driver
        self._path = ""
        self._pieces: queue.SimpleQueue[tuple[str, Mapping[str, Any], int]] = queue.SimpleQueue()
        self._heard_s = 0.0

    def _connect(self) -> MeterIdentity:
        self._device = self._make_driver()
        paths = [path for path in self._device.device_paths() if path.endswith(self._wanted)]
        if len(paths) != 1:
            listed = ", ".join(paths) or "none"
            remedy = "name one: joulescope:SERIAL" if paths else "check its cable, and its udev rule"
            raise MeterFault(f"joulescope: {len(paths)} devices ({listed}): {remedy}")
        self._path = paths[0]
        self._device.open(self._path, "restore")
        _, model, number = self._path.rsplit("/", 2)
        return MeterIdentity(
            kind="joulescope",
            place=self._path,
            board=model.upper(),
            serial_number=number,
            tick_hz=1_000_000,
            sensors=(SensorIdentity(model.upper(), 0),),
            voltage_at="at the meter's output",
            notes=(
                "current range automatic; recorded as 5,000 means of power a second",
                f"error bounds of {GAIN_ERROR_MAX:.1%} and {OFFSET_MAX_A * 1e3:g} mA are assumed, wider "
                "than the maker's",
                "its general inputs are not read: aligned by load signature and arrival",
            ),
        )

    def configure(self) -> None:
        """Automatic ranges, and a JS110's range of 15 V. What another program set before would stay.

        A JS110's `mode` says what becomes of samples while the range changes. Source: joulescope_driver, js110_usb.c,
        js220.txt and record.py; its mode of opening that sets the defaults is not written yet for a JS220.
        """
        for topic, value in RANGES.get(self._path.split("/")[-2], _AUTO).items():
            self._opened().publish(f"{self._path}/s/{topic}", value)

    def start(self) -> None:
        """Starts both streams."""
        driver = self._opened()
        self._assembler = JoulescopeAssembler()
        for signal in ("i", "v"):
            driver.subscribe(f"{self._path}/s/{signal}/!data", ["pub"], partial(self._take, signal))
            driver.publish(f"{self._path}/s/{signal}/ctrl", 1)
        self._heard_s = time.monotonic()

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events since the last call. Raises: MeterGone: no data for 10 s."""
        events: list[MeterEvent] = []
        wait_s: float = timeout_s
        assembler = self._started()
        while True:
            try:
                piece = self._pieces.get(timeout=wait_s) if wait_s > 0 else self._pieces.get_nowait()
            except queue.Empty:
                break
            events += assembler.take(*piece)
            self._heard_s, wait_s = time.monotonic(), 0.0
        if time.monotonic() - self._heard_s > SILENCE_S:
            raise MeterGone(f"joulescope: {self._path} sent nothing for {SILENCE_S:g} s: cable pulled?")
        return events

    def stop(self) -> list[MeterEvent]:
        """Stops both streams."""
        for signal in ("i", "v"):
            self._opened().publish(f"{self._path}/s/{signal}/ctrl", 0)
        return self.read(0.0)

    def _release(self, device: JoulescopeDriver) -> None:
        if self._path:
            device.close(self._path)
        device.finalize()

    def _take(self, signal: str, _topic: str, value: Mapping[str, Any]) -> None:
        """Takes one piece of a stream, on the driver's thread."""
        self._pieces.put((signal, value, time.monotonic_ns()))


def joulescope_sensor() -> ErrorBounds:
    """Error bounds assumed for both models."""
    return ErrorBounds(
        gain_errors_max={CURRENT: GAIN_ERROR_MAX, VOLTAGE: GAIN_ERROR_MAX},
        current_offset_max_a=OFFSET_MAX_A,
        current_step_a=1e-6,
        voltage_step_v=1e-6,
        current_max_a=CURRENT_MAX_A,
        seen_fraction=1.0,
        clock_error_max=CRYSTAL_ERROR_MAX,
    )


KIND: Final = MeterKind(
    stamp_width_ns=DELIVERY_NS,
    name="joulescope",
    written="joulescope or joulescope:SERIAL",
    make=lambda address, _: JoulescopeMeter(address.place),
    samples="1,000,000/s, recorded as 5,000 means of power",
    runs_on="the device",
    needs="`host/requirements/joulescope.in`",
    draw="unknown draw",
    imports={"joulescope": joulescope_sensor},
    import_formats={"joulescope": "joulescope"},
)
