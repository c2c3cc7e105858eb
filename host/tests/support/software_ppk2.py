"""A PPK2 in software behind a pty: metadata, then samples of a known current."""

import os
import pty
import select
import threading
import tty

import numpy as np

META = """\
Calibrated: 0
R0: 1003.3506
R1: 101.5865
R2: 10.3027
R3: 0.9636
R4: 0.0564
GS4: 0.0000
GI4: 0.9695
O4: 98.0
S4: 0.000
I4: 0.001
UG4: 1.00
HW: 9173
IA: 56
END
"""
RANGE, OFFSET, OHM, GAIN, CONSTANT = 4, 98.0, 0.0564, 0.9695, 0.001


def words(amperes, *, first=0, logic=None):
    """32-bit samples of currents in the top range."""
    codes = np.rint(((np.asarray(amperes) - CONSTANT) / GAIN / (1.8 / 163840 / OHM) + OFFSET) / 4).astype(np.uint32)
    counter = ((np.arange(codes.size) + first) % 64).astype(np.uint32)
    bits = np.zeros(codes.size, np.uint32) if logic is None else np.asarray(logic, np.uint32)
    return np.minimum(codes, 0x3FFF) | RANGE << 14 | counter << 18 | bits << 24


class SoftwarePpk2:
    """Answers until closed, and sends `stream` when it is started."""

    def __init__(self, stream=b"", *, meta=META, hang_up=False):
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self.stream, self.meta, self.hang_up = stream, meta, hang_up
        self.received = b""
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.write(self._wake[1], b"x")
        self._thread.join(60)
        for descriptor in self._wake:
            os.close(descriptor)

    def _serve(self):
        while True:
            ready, _, _ = select.select([self._master, self._wake[0]], [], [])
            if self._wake[0] in ready and self._master not in ready:
                break
            data = os.read(self._master, 64)
            self.received += data
            if b"\x19" in data:
                os.write(self._master, self.meta.encode())
            if data.endswith(b"\x06"):
                self._send()
                if self.hang_up:
                    break
        os.close(self._slave)
        os.close(self._master)

    def _send(self):
        os.set_blocking(self._master, False)
        at = 0
        while at < len(self.stream):
            ready, writable, _ = select.select([self._wake[0]], [self._master], [])
            if ready:
                return
            if writable:
                try:
                    at += os.write(self._master, self.stream[at : at + 1021])  # never whole samples
                except BlockingIOError:
                    continue
        os.set_blocking(self._master, True)
