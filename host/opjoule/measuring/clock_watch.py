"""Exchanges time stamps with the board five times a second, all through the measurement."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from opjoule.clocks.exchanges import Exchange, ExchangeFile
from opjoule.errors import OpJouleError

PERIOD_S = 0.2


class ClockWatch:
    """A thread that files every exchange; a board that does not answer is a gap, not an end."""

    def __init__(self, exchange: Callable[[], Exchange], file: ExchangeFile) -> None:
        """The file is closed when the thread ends."""
        self._exchange = exchange
        self._file = file
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clock-watch", daemon=True)
        self._error: OSError | None = None

    def start(self) -> None:
        """Begins at once."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread once an exchange on its way is over; its file is whole then. Raises: OSError: it is not."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._error:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                with suppress(OpJouleError):
                    self._file.append(self._exchange())
                self._stop.wait(PERIOD_S)
            self._file.close()
        except OSError as error:
            self._error = error
