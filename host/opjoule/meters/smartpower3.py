"""Hardkernel's SmartPower3: a supply with two outputs that writes one line of text per measurement, each 5 ms at best.

This is the project's own code for a format that the maker's firmware defines (github.com/hardkernel/smartpower3,
`smartpower3.ino`, `meas_channel.cpp`). It writes without being asked, to its serial port or as UDP datagrams. A line
has the device's milliseconds, the input, both outputs, and two check sums.
"""

import functools
import operator
import re
import select
import socket
import time
from dataclasses import dataclass, replace
from typing import Annotated, Final, Protocol

import numpy as np
from msgspec import Meta

from opjoule.base.errors import BadInput, MeterFault
from opjoule.clocks.host_clock import MONOTONIC
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, POWER, SQRT3, ErrorBounds
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

CHANNELS: Final = ("0", "1")
BAUDS: Final = (921_600, 115_200, 460_800, 230_400, 576_000, 500_000, 57_600, 38_400, 19_200, 9_600)
"""Speeds in the device's menu: that of 5 ms first, then the one it is delivered with."""
INTERVALS_MS: Final = (5, 10, 50, 100, 500, 1000)
"""Logging intervals in the device's menu. It is delivered with none, and then writes nothing."""
UDP: Final = "udp"
UDP_PORT: Final = 6000
"""Port that the maker's examples name."""
PIECES: Final = ((0, 5, 30), (5, 10, 22), (10, 15, 22))
"""(first field, field after the last, bytes that the check sums cover) of the three pieces that the firmware writes."""
DELIVERY_NS: Final = 20_000_000
"""Longest time from a line's stamp to its arrival without waiting: 81 bytes at 115,200 baud, and the USB bridge."""
UDP_DELIVERY_NS: Final = 100_000_000
"""The same over Wi-Fi."""
HOLE_INTERVALS: Final = 1.5
"""Distance of two lines, in intervals, above which one is missing: the firmware stamps a line up to 2 ms late."""
RESTART_MS: Final = 60_000
"""Longest step of the device's clock from one line to the next; a longer one is a restart."""
LATE_MS: Final = 1000
"""Largest fall of the device's clock between two datagrams of which the second was overtaken; a larger one is a
restart."""
AVERAGE_NS: Final = 8_000_000
"""Length of the rolling mean of a PAC193x: its eight latest values, at 1,024 a second (Microchip DS20005850C)."""
FIRST_LINES: Final = 4
"""Lines from which the interval is found."""
FIRST_S: Final = 5.0
"""Longest wait for these lines at one speed."""
WRONG_BYTES: Final = 1000
"""Bytes without a line after which a speed is wrong: twelve lines, of which the first may be of the speed before."""
MS_WRAP: Final = 1 << 32
CURRENT_MAX_A: Final = 100 / 15
"""Range of the converter: 100 mV across 15 mohm. An output delivers 3 A."""
VOLTAGE_MAX_V: Final = 32.0
POWER_ERROR_MAX: Final = 0.06
"""Twice the maker's "3 % typical (above 5 V 1 A)" (wiki.odroid.com, SmartPower3)."""
OFFSET_MAX_A: Final = 10e-3
"""Assumed; the maker states none."""
_VALUES: Final = rb"\d{10},\d{5},\d{4,5},\d{5},\d(,\d{5},\d{4,5},\d{5},\d,[0-9a-f]{1,2}){2}"
"""Milliseconds; mV, mA, mW and "too low" of the input; mV, mA, mW, "on" and status of both outputs."""
_FORM: Final = re.compile(_VALUES + rb",([0-9a-f]{2}|100),[0-9a-f]{2}")
"""The values, sum and XOR. Firmware before 2023-03-25 (ba75f83) writes a sum of 0 as 100."""
_WITHOUT_SUMS: Final = re.compile(_VALUES)
"""A line of firmware before 2021-12-17 (82c1219)."""
_AROUND: Final = b"\r\n\0 "
_CUT: Final = 0x01 | 0x04 | 0x20 | 0x80
"""Bits of the regulator's status: overvoltage, short circuit, overheating, peak current (`STPD01.h`)."""


@dataclass(frozen=True)
class Line:
    """One measurement of one output."""

    ms: int
    """the device's clock, 32 bits"""
    volts: float
    amperes: float
    is_on: bool
    status: int
    """status bits of the output's regulator"""
    low_input: bool


def read_line(text: bytes, channel: int) -> Line | None:
    """The line's measurement of one output; None if it is no whole line or its check sums are wrong."""
    text = text.strip(_AROUND)
    if not _FORM.fullmatch(text):
        return None
    fields = text.split(b",")
    summed = b"".join((b",".join(fields[first:end]) + b",")[:length] for first, end, length in PIECES)
    stated = int(fields[15], 16) & 0xFF, int(fields[16], 16)
    if stated != (-sum(summed) & 0xFF, functools.reduce(operator.xor, summed)):
        return None
    at = 5 + 5 * channel
    volts, amperes = 1e-3 * int(fields[at]), 1e-3 * int(fields[at + 1])
    return Line(int(fields[0]), volts, amperes, fields[at + 3] != b"0", int(fields[at + 4], 16), fields[4] != b"0")


class SmartPower3Assembler(StreamAssembler):
    """Turns text into events; holds the state between start and stop."""

    def __init__(self, channel: int, interval_ms: int, delivery_ns: int = DELIVERY_NS) -> None:
        super().__init__(delivery_ns, 0, "lines lost", HOLE_INTERVALS)
        self._channel, self._interval_ns = channel, interval_ms * 1_000_000
        self._centre_ns = _centre_ns(interval_ms)
        self._rest = b""
        """start of a line that goes on"""
        self._before_ms: int | None = None
        self._now_ms = 0
        """the device's clock without its wrap"""
        self._counts = {"lines": 0, "bad_lines": 0, "same_time": 0, "late_lines": 0}
        self._faults = {"output_off": 0, "overcurrent_or_overheating": 0, "low_input": 0}

    def take(self, data: bytes, arrival_ns: int) -> list[MeterEvent]:
        """Events of text that arrived at `arrival_ns` [host_ns]. Raises: MeterFault: the device restarted."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        known = self._before_ms
        events = [event for text in lines for event in self._line(text)]
        if self._before_ms != known:
            events += self._arrivals.exchanges((self._now_ms + 1) * 1_000_000, arrival_ns)
        return events

    def losses(self) -> Losses:
        """Losses since start, and what the device said of its outputs."""
        faults = {name: count for name, count in self._faults.items() if count}
        return Losses(lost_samples=self._lost, link=dict(self._counts), faults=faults)

    def _line(self, text: bytes) -> list[MeterEvent]:
        line = read_line(text, self._channel)
        if line is None:
            self._counts["bad_lines"] += self._before_ms is not None  # the first one may have begun before the start
            return []
        step_ms = 0 if self._before_ms is None else _step_ms(self._before_ms, line.ms)
        if not -LATE_MS <= step_ms <= RESTART_MS:
            raise MeterFault(
                "smartpower3: it restarted in mid-run, and the board's supply may have been off: check its input and "
                "cable, then measure again"
            )
        self._counts["lines"] += 1
        if self._before_ms is None:
            self._now_ms = line.ms
        elif not step_ms:  # the device was busy and writes a value of the same moment again
            self._counts["same_time"] += 1
            return []
        elif step_ms < 0:  # overtaken on its way: it counts as lost already
            self._counts["late_lines"] += 1
            return []
        self._before_ms, self._now_ms = line.ms, self._now_ms + step_ms
        self._faults["output_off"] += not line.is_on
        self._faults["overcurrent_or_overheating"] += bool(line.status & _CUT)
        self._faults["low_input"] += line.low_input
        over = line.amperes >= CURRENT_MAX_A - 2e-3 or line.volts >= VOLTAGE_MAX_V - 2e-3
        samples = Samples(
            0,
            np.array([self._now_ms * 1_000_000 + 500_000 - self._centre_ns], np.int64),
            np.array([line.amperes]),
            np.array([line.volts]),
            np.array([over]),
            int(line.volts >= VOLTAGE_MAX_V - 2e-3),
        )
        events, missing = self._following(samples, self._interval_ns)
        self._lost += missing
        return events


def _step_ms(before_ms: int, now_ms: int) -> int:
    """Step from one reading of the device's clock to another, with its sign, over the wrap."""
    return (now_ms - before_ms + MS_WRAP // 2) % MS_WRAP - MS_WRAP // 2


def logging_interval_ms(times_ms: list[int]) -> int:
    """The logging interval of a device that wrote lines at these times, which datagrams may have exchanged."""
    steps_ms = np.diff(np.sort([_step_ms(times_ms[0], one) for one in times_ms]))
    return min(INTERVALS_MS, key=lambda interval: abs(interval - float(np.median(steps_ms))))


def _centre_ns(interval_ms: int) -> int:
    """Time from the middle of what a line's current is the mean of to the line's stamp [ns].

    The firmware takes the mean of the last `interval / 2` readings, of which it makes 600 to 1,000 a second: the last
    0.5 to 0.83 of an interval. Each is the converter's rolling mean at the request before, 1 to 1.7 ms ago.
    """
    return round(0.33 * interval_ms * 1e6) + AVERAGE_NS // 2 + 1_300_000


class _Link(Protocol):
    """Where the lines come from."""

    def read(self, timeout_s: float) -> bytes: ...

    def close(self) -> None: ...


class _UdpPort:
    """The device's datagrams; see SerialPort for the contract."""

    def __init__(self, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._port = port
        self.sender = ""
        """address of the device, once it has sent; what others send is not read"""
        self.others: dict[str, int] = {}
        """address of another sender -> number of its datagrams"""
        try:
            self._socket.bind(("", port))
        except OSError as error:
            self._socket.close()
            raise MeterFault(
                f"smartpower3: UDP port {port} cannot be opened ({error.strerror}): 'ss -ulpn' names the program that "
                "has it; close it, or set another port in the device"
            ) from None

    def read(self, timeout_s: float) -> bytes:
        """The device's next datagram; empty if none comes in time."""
        until_s = time.monotonic() + timeout_s
        while select.select([self._socket], [], [], max(until_s - time.monotonic(), 0.0))[0]:
            data, (sender, _) = self._socket.recvfrom(2048)
            self.sender = self.sender or sender
            if sender == self.sender:
                # A sum of 100 takes the place of the line end: the firmware sends 7 bytes of check sums.
                return data + b"\n"
            self.others[sender] = self.others.get(sender, 0) + 1
        return b""

    def check_sender(self) -> None:
        """Raises: MeterFault: several devices send, of which any may be the board's."""
        if self.others:
            senders = ", ".join((self.sender, *self.others))
            raise MeterFault(
                f"smartpower3: several devices send to UDP port {self._port} ({senders}): set another port in all but "
                "the one that supplies the board"
            )

    def close(self) -> None:
        self._socket.close()


class SmartPower3Meter(StreamingMeter[_Link, SmartPower3Assembler]):
    """A SmartPower3 on a serial port, or over UDP; see Meter for the contract."""

    def __init__(self, place: str, channel: int | None) -> None:
        """`place`: a serial port, or udp:PORT. Raises: BadInput: no output is named, or the UDP port is impossible."""
        super().__init__("smartpower3", smartpower3_sensor)
        self._place = place
        self._udp_port = _udp_port(place)
        if channel is None:
            raise BadInput(
                f"smartpower3: say which output feeds the board, for example smartpower3:{place},channel=0 "
                "(or channel=1)"
            )
        self._channel = channel
        self._interval_ms = INTERVALS_MS[0]

    def _connect(self) -> MeterIdentity:
        if self._udp_port is None:
            self._device = port = SerialPort(self._place, MONOTONIC, BAUDS[0])
            baud, lines = self._at_any_speed(port)
            simulated, over = is_pseudo_terminal(self._place), f"{baud:,} baud"
        else:
            self._device = udp = _UdpPort(self._udp_port)
            _, lines = self._first_lines(udp)
            udp.check_sender()
            if not lines:
                raise MeterFault(
                    f"smartpower3: nothing arrives at UDP port {self._udp_port}: set this computer's address and port "
                    "in the device (Ctrl-C on its serial port), its Logging Interval to 5 ms, and open the firewall"
                )
            simulated, over = udp.sender.startswith("127."), f"UDP from {udp.sender}"
        if not lines[-1].is_on:
            raise MeterFault(
                f"smartpower3: output {self._channel} is off: switch it on, or name the other one, channel="
                f"{1 - self._channel}"
            )
        self._interval_ms = logging_interval_ms([line.ms for line in lines])
        return MeterIdentity(
            kind="smartpower3",
            place=self._place,
            board="SmartPower3",
            tick_hz=1000,
            sensors=(SensorIdentity(f"output {self._channel}", 0),),
            voltage_at="at its output, before the cable to the board",
            simulated=simulated,
            notes=(
                f"output {self._channel} feeds the board; a line each {self._interval_ms} ms by {over}",
                *self._slow(),
                f"the maker states 3 % typical above 5 V and 1 A: {POWER_ERROR_MAX:.0%} and {OFFSET_MAX_A * 1e3:g} mA "
                "are assumed; it shows no current below 0",
            ),
        )

    def start(self) -> None:
        """Begins a new trace. The device always writes; what it wrote before is dropped."""
        link = self._opened()
        while link.read(0.0):
            pass
        delivery_ns = DELIVERY_NS if self._udp_port is None else UDP_DELIVERY_NS
        self._assembler = SmartPower3Assembler(self._channel, self._interval_ms, delivery_ns)

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events since the last call. Raises: MeterGone. MeterFault: the device restarted."""
        assembler, data = self._started(), self._opened().read(timeout_s)
        return assembler.take(data, time.monotonic_ns()) if data else []

    def stop(self) -> list[MeterEvent]:
        """Ends the trace; the device goes on writing, and its output stays on."""
        return self.read(0.0)

    @property
    def losses(self) -> Losses:
        """Losses since start, and the number of datagrams of other senders."""
        losses = super().losses
        if isinstance(self._device, _UdpPort):
            losses.link["datagrams_of_others"] = sum(self._device.others.values())
        return losses

    def error_bounds(self) -> ErrorBounds:
        """Error bounds at the device's interval."""
        truncated_u_ns, mean_u_ns = 0.5e6 / SQRT3, (0.17 * self._interval_ms + 0.7) * 1e6 / 2 / SQRT3
        seen = 1.0 if self._interval_ms * 1e6 <= AVERAGE_NS * 1.25 else 0.6
        return replace(self._bounds(), seen_fraction=seen, stamp_u_ns=float(np.hypot(truncated_u_ns, mean_u_ns)))

    def _slow(self) -> tuple[str, ...]:
        if self._interval_ms == INTERVALS_MS[0]:
            return ()
        remedy = f"set Logging Interval to 5 ms and Baud rate to {BAUDS[0]} in its menu"
        return (f"it can measure every 5 ms: {remedy}",)

    def _at_any_speed(self, port: SerialPort) -> tuple[int, list[Line]]:
        """(speed, first lines) at the first speed at which lines arrive. Raises: MeterFault."""
        for baud in BAUDS:
            port.set_baud(baud)
            received, lines = self._first_lines(port)
            if lines:
                return baud, lines
            if not received:
                raise MeterFault(
                    f"smartpower3: {self._place} sends nothing: set Logging Interval to 5 ms and Baud rate to "
                    f"{BAUDS[0]} in the device's menu, and check the cable"
                )
        raise MeterFault(
            f"smartpower3: {self._place} sends text that is no SmartPower3's at any speed of its menu: check the port, "
            f"and set Baud rate to {BAUDS[0]}"
        )

    def _first_lines(self, link: _Link) -> tuple[int, list[Line]]:
        """(bytes received, lines): as many lines as give the interval, or none if there is no whole line in time.

        Raises: MeterFault: the device's firmware is too old.
        """
        text, lines, until_s = b"", list[Line](), time.monotonic() + FIRST_S
        while len(lines) < FIRST_LINES and time.monotonic() < until_s:
            text += link.read(0.1)
            found = (read_line(part, self._channel) for part in text.split(b"\n"))
            lines = [line for line in found if line is not None]
            if not lines and len(text) > WRONG_BYTES:
                break
        if not lines and any(_WITHOUT_SUMS.fullmatch(part.strip(_AROUND)) for part in text.split(b"\n")):
            raise MeterFault(
                "smartpower3: its lines have no check sums: its firmware is older than December 2021; update it "
                "(github.com/hardkernel/smartpower3)"
            )
        return len(text), lines if len(lines) > 1 else []


def _udp_port(place: str) -> int | None:
    """UDP port of a place like udp:6000; None for a serial port. Raises: BadInput."""
    word, _, number = place.partition(":")
    if word != UDP:
        return None
    if number and not (number.isdecimal() and 0 < int(number) < 1 << 16):
        raise BadInput(f"smartpower3: UDP port '{number}': must be 1 to 65535, for example smartpower3:udp:{UDP_PORT}")
    return int(number or UDP_PORT)


def smartpower3_sensor() -> ErrorBounds:
    """Error bounds of one output at an interval of 5 ms, also for a log of another program."""
    return ErrorBounds(
        gain_errors_max={POWER: POWER_ERROR_MAX},
        current_offset_max_a=OFFSET_MAX_A,
        current_step_a=1e-3,
        voltage_step_v=1e-3,
        current_max_a=CURRENT_MAX_A,
        seen_fraction=1.0,
        clock_error_max=CRYSTAL_ERROR_MAX,
        model="SmartPower3",
    )


class SmartPower3Options(MeterOptions, frozen=True, kw_only=True):
    """The output that feeds the board."""

    channel: Annotated[int, Meta(ge=0, le=1, description="0 or 1, its output that feeds the board")] | None = None


def _smartpower3(address: Address, _: Wishes) -> SmartPower3Meter:
    return SmartPower3Meter(address.needed_place(), address.options.channel)


KIND: Final = MeterKind(
    stamp_width_ns=DELIVERY_NS,
    name="smartpower3",
    written="smartpower3:PORT,channel=0 or smartpower3:udp:6000,channel=0 (Hardkernel)",
    make=_smartpower3,
    options=SmartPower3Options,
    samples="200/s at best, each the mean of its interval",
    runs_on="the device",
    draw="unknown draw",
    on_serial_port=True,
    imports={"smartpower3": smartpower3_sensor},
    import_formats={"smartpower3": "smartpower3"},
)
