"""A SmartPower3 in software, at its serial port: lines as its firmware writes them (smartpower3.ino). SIMULATED."""

import operator
import socket
import termios
import threading
import time
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

from software_port import SoftwarePort


@dataclass(frozen=True)
class Output:
    """One output, or the input."""

    millivolts: int = 5000
    milliamperes: int = 600
    on: int = 1
    status: int = 0


OFF = Output(0, 0, on=0)
INPUT = Output(15000, 230)


def line(ms, first=Output(), second=OFF, *, low_input=0, old=False):
    """One line, with its check sums, as the firmware makes it of three pieces; `old`: as before 2023-03-25."""
    pieces = [f"{ms % 2**32:010d},{_values(INPUT)},{low_input:1d},"]
    pieces += [f"{_values(one)},{one.on:1d},{one.status:02x}," for one in (first, second)]
    summed = b"".join(piece.encode()[:size] for piece, size in zip(pieces, (30, 22, 22), strict=True))
    total = (~sum(summed) & 0xFF) + 1 if old else -sum(summed) & 0xFF
    ends = f"{total:02x},{reduce(operator.xor, summed):02x}\r\n"
    return "".join(pieces).encode() + ends.encode()


def line_of_sum_0(ms):
    """A line whose sum is 0, as older firmware writes it; the second output's values are chosen for that."""
    values = product(range(100), (0, 9, 99, 999))
    texts = (line(ms, second=Output(millivolts, current_ma, on=0), old=True) for millivolts, current_ma in values)
    return next(text for text in texts if text[-8:-4] == b"100,")


def without_sums(text):
    """The line as firmware before December 2021 writes it."""
    return text[: -len(b",00,00\r\n")] + b"\n\r"


def _values(one):
    return f"{one.millivolts:05d},{one.milliamperes:04d},{one.millivolts * one.milliamperes // 1000:05d}"


class SoftwareSmartPower3(SoftwarePort):
    """Writes a line each interval, at the speed in its menu; at another speed the host sees other bytes."""

    def __init__(
        self, first=Output(), second=OFF, *, interval_ms=5, speed=termios.B921600, started_ms=90_000, written=bytes
    ):
        """`written`: what it writes of a line."""
        super().__init__()
        self.written = written
        self.first, self.second = first, second
        self.interval_ms, self.menu_speed, self.clock_ms = interval_ms, speed, started_ms
        self._next_s = 0.0

    def heard(self, byte):
        self.send(b">>> Unknown command <<<\n\r")

    def due(self, now_s):
        self._next_s = self._next_s or now_s
        if len(self._out) > 200:  # nobody reads: the device keeps nothing
            self._out = b""
        while self.interval_ms and self._next_s <= now_s:
            self._next_s += 1e-3 * self.interval_ms
            self.clock_ms += self.interval_ms
            text = self.written(line(self.clock_ms, self.first, self.second))
            self.send(text if self.speed == self.menu_speed else bytes(byte & 0x55 | 0x80 for byte in text))

    def switch_off(self):
        self.first = replace(self.first, on=0, milliamperes=0, millivolts=0)

    def restart(self):
        self.clock_ms = 0


class SoftwareDatagrams:
    """A SmartPower3 that sends its lines as datagrams to a port of this computer."""

    def __init__(self, port, interval_ms=5, texts=line, host="127.0.0.1"):
        """`texts`: text of a time [ms]; `host`: address that it sends from."""
        self._texts = texts
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self._port, self._interval_ms, self._ended = port, interval_ms, threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join(60)
        self._socket.close()

    def _serve(self):
        start_s = time.monotonic()
        sent = 0
        while not self._ended.wait(1e-3 * self._interval_ms):
            while sent * self._interval_ms < 1e3 * (time.monotonic() - start_s):
                sent += 1
                text = self._texts(7000 + self._interval_ms * sent)
                self._socket.sendto(text, ("127.0.0.1", self._port))
