"""Recording while a meter runs: its trace, the exchanges of time stamps, and seals of both."""

import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from opjoule.clocks.exchanges import BOARD_EXCHANGES, METER_EXCHANGES, Exchange, ExchangeFile
from opjoule.errors import OpJouleError, of_system
from opjoule.meters.capture import Capture
from opjoule.meters.interface import Meter
from opjoule.record.run_record import RunRecord
from opjoule.record.seals import SealWatch
from opjoule.trace.journal import TraceJournal

PERIOD_S = 0.2
"""Interval between exchanges of time stamps with the board."""


class ClockWatch:
    """A thread that records every exchange; a board that does not answer causes a gap, not an end."""

    def __init__(self, exchange: Callable[[], Exchange], file: ExchangeFile) -> None:
        """The file is closed when the thread ends."""
        self._exchange = exchange
        self._file = file
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clock-watch", daemon=True)
        self._error: OSError | None = None

    def start(self) -> None:
        """Starts immediately."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after a pending exchange, with a complete file. Raises: OSError: the file is incomplete."""
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


class Recording:
    """Records from the start of a `with` block to its end; after that its raw files do not change.

    A write error (a full disk, a missing folder) is raised at the end of the block, unless another error ended it, and
    is a fault of the record in any case.
    """

    def __init__(
        self, record: RunRecord, meter: Meter, board_exchange: Callable[[], Exchange] | None = None
    ) -> None:
        """`board_exchange`: one round trip between host and board; None without a board."""
        self._record = record
        raw = record.directory / "raw"
        self._journal = TraceJournal(record.directory)
        self._seals = SealWatch(record.directory)
        self._exchanges = ExchangeFile(raw / METER_EXCHANGES)
        self.capture = Capture(meter, self._journal, self._exchanges)
        self._watch = None
        if board_exchange:
            self._watch = ClockWatch(board_exchange, ExchangeFile(raw / BOARD_EXCHANGES))

    def __enter__(self) -> Self:
        self._seals.start()
        try:
            self.capture.start()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        if self._watch:
            self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ends: list[Callable[[], object]] = [self._watch.stop] if self._watch else []
        ends += [self.capture.stop, self._journal.close, self._exchanges.close, self._seals.stop]
        failures = [error] if isinstance(error, OSError) else []
        for end in ends:
            try:
                end()
            except OSError as failure:
                failures.append(failure)
        for line in dict.fromkeys(map(of_system, failures)):
            self._record.add_fault(line)
        if failures and error is None:
            raise failures[0]
