"""FNIRSI's USB testers FNB58, FNB48, FNB48S and C1 over USB HID: 25 packets of four samples a second.

This is the project's own code for a protocol that users found out: github.com/baryluk/fnirsi-usb-power-data-logger.

Packets are not numbered. Samples are timed by the tester's own pace. A damaged packet shows in its checksum, a lost
one in the arrival times.
"""

import time
from typing import Final

import numpy as np

from opjoule.base.errors import MeterFault
from opjoule.energy.error_bounds import CURRENT, VOLTAGE, ErrorBounds
from opjoule.meters.interface import Losses, MeterEvent, MeterGone, MeterIdentity, MeterKind, Samples, SensorIdentity
from opjoule.meters.streaming import StreamAssembler, StreamingMeter
from opjoule.meters.usb_link import HID_CLASS, UsbLink, open_usb

PACKET_BYTES: Final = 64
SAMPLES: Final = 4
SAMPLE_NS: Final = 10_000_000
PACKET_NS: Final = SAMPLES * SAMPLE_NS
FNB58, FNB48S = "FNB58", "FNB48S"
MODELS: Final = {
    (0x2E3C, 0x5558): FNB58,
    (0x0483, 0x003A): "FNB48",
    (0x2E3C, 0x0049): FNB48S,
    (0x0483, 0x003B): "C1",
}
INTERPOLATED: Final = frozenset({FNB48S})
"""Testers that measure only the first of a packet's four samples: 25 a second (issue 21 of baryluk's repository)."""
LATER: Final = frozenset({FNB58, FNB48S})
"""Testers that start on 81, 82, 82. Others start on 81, 82, 83."""
ASKED_SELDOM: Final = frozenset({FNB48S})
"""Testers that are asked once a second, others after each packet. An FNB58 with firmware 0.68 stalls if it is asked
once a second (issue 19 of baryluk's repository)."""
ASK_ON_NS: Final = 1_000_000_000
ASK_AGAIN_NS: Final = 3 * PACKET_NS
"""Silence after which any tester is asked again."""
DELIVERY_NS: Final = 60_000_000
"""Longest time from a sample's end to its arrival without waiting: the packet's 40 ms and its transfer."""
LATE_NS: Final = PACKET_NS // 2
"""Growth of the minimum delay within a second above which a packet counts as lost."""
FIRST_S: Final = 3.0
SILENCE_S: Final = 3.0
DRAIN_S: Final = 1.0
CURRENT_MAX_A: Final = 7.0
VOLTAGE_MAX_V: Final = 28.0
_HEAD, _DATA = 0xAA, 0x04
_IMPOSSIBLE: Final = 2.0
"""Multiple of the range above which a packet is discarded, even with a right checksum. The first packet of an FNB48
was seen at 189 V."""
_SAMPLE: Final = np.dtype([("voltage", "<u4"), ("current", "<u4"), ("other", "V7")])
"""Voltage and current in steps of 10 uV and 10 uA; then D+, D-, one unknown byte, temperature."""
STEP: Final = 1e-5


def check_sum(data: bytes) -> int:
    """8-bit CRC (polynomial 0x39, initial value 0x42) of a packet without its first and last byte."""
    crc = 0x42
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = ((crc << 1) ^ 0x39 if crc & 0x80 else crc << 1) & 0xFF
    return crc


def command(code: int) -> bytes:
    """Packet to the tester. Codes 0x81 and 0x82 start it, 0x83 requests more data."""
    body = bytes((code,)) + bytes(PACKET_BYTES - 3)
    return bytes((_HEAD,)) + body + bytes((check_sum(body),))


class FnirsiAssembler(StreamAssembler):
    """Turns packets into events; holds the state between start and stop."""

    def __init__(self, model: str) -> None:
        super().__init__(DELIVERY_NS, LATE_NS, "packets lost")
        self._used = 1 if model in INTERPOLATED else SAMPLES
        self._period_ns = PACKET_NS // self._used
        self._packets = 0
        """packets since the start, including lost ones"""
        self._bad = self._unexplained = 0

    def take(self, packet: bytes, arrival_ns: int) -> list[MeterEvent]:
        """Events of one packet that arrived at `arrival_ns` [host_ns]; empty for a packet without a measurement."""
        if len(packet) != PACKET_BYTES or packet[0] != _HEAD:
            self._bad += 1
            return []
        sound = packet[-1] == check_sum(packet[1:-1])
        if sound and packet[1] != _DATA:
            return []
        samples = np.frombuffer(packet, _SAMPLE, SAMPLES, 2)[: self._used]
        volts, amperes = samples["voltage"] * STEP, samples["current"] * STEP
        possible = volts.max() < _IMPOSSIBLE * VOLTAGE_MAX_V and amperes.max() < _IMPOSSIBLE * CURRENT_MAX_A
        self._account(arrival_ns)
        if not (sound and possible):
            self._bad += 1
            self._lost += self._used
            return []
        first_ns = (self._packets - 1) * PACKET_NS
        meter_ns = first_ns + self._period_ns * np.arange(self._used, dtype=np.int64) + self._period_ns // 2
        clipped = np.asarray((amperes >= CURRENT_MAX_A) | (volts >= VOLTAGE_MAX_V), np.bool_)
        events, _ = self._following(Samples(0, meter_ns, amperes, volts, clipped), self._period_ns)
        return events + self._arrivals.exchanges(self._packets * PACKET_NS, arrival_ns)

    def losses(self) -> Losses:
        """Losses since start, in samples of the trace."""
        link = {"packets": self._packets, "bad_packets": self._bad, "unexplained_packets": self._unexplained}
        return Losses(lost_samples=self._lost, link=link)

    def _account(self, arrival_ns: int) -> None:
        """Numbers one packet, after the packets that are missing before it by the arrival times."""
        self._packets += 1
        end_ns = np.array([self._packets * PACKET_NS], np.int64)
        missing = round(self._delays.missing_ns(end_ns, np.array([arrival_ns], np.int64)) / PACKET_NS)
        self._packets += missing
        self._unexplained += missing
        self._lost += missing * self._used


class FnirsiMeter(StreamingMeter[UsbLink, FnirsiAssembler]):
    """One of FNIRSI's testers; see Meter for the contract. The meter clock is the tester's own pace since start."""

    def __init__(self, serial_number: str = "") -> None:
        """`serial_number`: may be empty if only one tester is plugged in."""
        super().__init__("fnirsi", fnirsi_sensor)
        self._wanted = serial_number
        self._model = ""
        self._asked_ns = self._heard_ns = 0

    def _connect(self) -> MeterIdentity:
        self._model, self._device = open_usb("fnirsi", MODELS, self._wanted, HID_CLASS)
        for code in (0x81, 0x82, 0x82 if self._model in LATER else 0x83):
            self._device.write(command(code))
        self._await_first(self._device)
        pace = "100 samples a second"
        if self._model in INTERPOLATED:
            pace = "25 samples a second (it sends 100, of which three in four are interpolated)"
        return MeterIdentity(
            kind="fnirsi",
            place=self._device.place,
            board=f"FNIRSI {self._model}",
            serial_number=self._device.serial_number,
            tick_hz=100,
            sensors=(SensorIdentity(f"FNIRSI {self._model}", 0),),
            voltage_at="at the tester's plug on the board's side",
            notes=(
                f"{pace}; shorter bursts are not resolved",
                "its packets are not numbered: a loss shows only in a checksum or in the arrival times",
                "its error bounds are assumed: the maker's figures could not be checked",
            ),
        )

    def start(self) -> None:
        """Discards earlier packets and starts anew: the tester has been sending since it was opened."""
        link = self._opened()
        while link.read(0.001):
            pass
        self._assembler = FnirsiAssembler(self._model)
        self._heard_ns = time.monotonic_ns()
        self._ask_on(link)

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events since the last call. Raises: MeterGone: unplugged, or silent for 3 s."""
        link, assembler = self._opened(), self._started()
        events: list[MeterEvent] = []
        packet = link.read(timeout_s)
        while packet:
            arrival_ns = time.monotonic_ns()
            self._heard_ns = arrival_ns
            events += assembler.take(packet, arrival_ns)
            if self._model not in ASKED_SELDOM or arrival_ns - self._asked_ns >= ASK_ON_NS:
                self._ask_on(link)
            packet = link.read(0.001)
        now_ns = time.monotonic_ns()
        if not events and now_ns - self._heard_ns > SILENCE_S * 1e9:
            raise MeterGone(f"fnirsi: {link.place} has stopped sending: plug it in again")
        if now_ns - max(self._heard_ns, self._asked_ns) > ASK_AGAIN_NS:
            self._ask_on(link)
        return events

    def stop(self) -> list[MeterEvent]:
        """Events so far. Later packets are read and discarded, as a tester with a full queue freezes its display."""
        events = self.read(0.0)
        link = self._opened()
        until_s = time.monotonic() + DRAIN_S
        while time.monotonic() < until_s and link.read(2 * PACKET_NS * 1e-9):
            pass
        return events

    def _ask_on(self, link: UsbLink) -> None:
        link.write(command(0x83))
        self._asked_ns = time.monotonic_ns()

    def _await_first(self, link: UsbLink) -> None:
        """Waits for the first measurement. Raises: MeterFault: the tester sends none."""
        until_s = time.monotonic() + FIRST_S
        other = 0
        while time.monotonic() < until_s:
            packet = link.read(FIRST_S / 10)
            if packet[:2] == bytes((_HEAD, _DATA)):
                return
            other += bool(packet)
        said = f"sends {other} packets, none with a measurement" if other else "answers nothing"
        raise MeterFault(
            f"fnirsi: {self._model} at {link.place} {said}: plug it in again by its port marked PC, and update its "
            "firmware (a C1 needs 0.70)"
        )


def fnirsi_sensor() -> ErrorBounds:
    """Assumed bounds of all models: twice the 0.5 % quoted by users of the FNB58 (github.com/Shadester/fnb58manual)."""
    return ErrorBounds(
        gain_errors_max={CURRENT: 0.01, VOLTAGE: 0.01},
        current_offset_max_a=5e-3,
        current_step_a=STEP,
        voltage_step_v=STEP,
        current_max_a=CURRENT_MAX_A,
        seen_fraction=0.5,
        clock_error_max=0.01,
        model="FNIRSI",
    )


KIND: Final = MeterKind(
    stamp_width_ns=DELIVERY_NS,
    name="fnirsi",
    written="fnirsi or fnirsi:SERIAL (FNB58, FNB48, FNB48S, C1)",
    make=lambda address, _: FnirsiMeter(address.place),
    samples="100/s; FNB48S 25/s",
    runs_on="the computer that it is plugged into",
    needs="`host/requirements/usb.in`, libusb, [udev rule](../how-to/60-usb-meters.rules)",
    draw="unknown draw",
    imports={"fnirsi": fnirsi_sensor},
    import_formats={"fnirsi": "fnirsi"},
)
