"""A serial device in software behind a pty: it hears bytes and sends bytes at its own pace until it is closed."""

import os
import pty
import select
import termios
import threading
import time
import tty


class SoftwarePort:
    """Calls `heard` with each byte from the host, and `due` when it may send; a subclass defines both."""

    PERIOD_S = 0.005

    def __init__(self):
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        self.received = b""
        self._ended = threading.Event()
        self._out = b""
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.pull()
        self._thread.join(60)

    def pull(self):
        """Pulls the cable."""
        self._ended.set()

    def send(self, data):
        """Sends bytes; what the host does not read in time is lost, as in a device's buffer."""
        self._out = (self._out + data)[-(1 << 16) :]

    @property
    def speed(self):
        """The termios constant of the speed that the host has set."""
        return termios.tcgetattr(self._master)[5]

    def heard(self, byte):
        """Takes one byte of the host."""

    def due(self, now_s):
        """Called about every PERIOD_S."""

    def _serve(self):
        while not self._ended.is_set():
            readable, _, _ = select.select([self._master], [], [], self.PERIOD_S)
            if readable:
                for byte in os.read(self._master, 256):
                    self.received += bytes((byte,))
                    self.heard(bytes((byte,)))
            self.due(time.monotonic())
            try:
                while self._out:
                    self._out = self._out[os.write(self._master, self._out[:4093]) :]
            except BlockingIOError:
                pass
        os.close(self._slave)
        os.close(self._master)
