"""Exchanges in a text file, one a line as they happen, so that a killed run keeps them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from opjoule.clocks.exchanges import Exchange
from opjoule.errors import RecordFault
from opjoule.system_errors import naming

METER_EXCHANGES = "meter-exchanges.csv"
BOARD_EXCHANGES = "board-exchanges.csv"
"""Names under raw/ of a record."""
_FIELDS = [field.name for field in dataclasses.fields(Exchange)]


class ExchangeFile:
    """Appends to a new CSV file; every line reaches the kernel at once. One thread at a time.

    Raises: FileExistsError: the file is there already: raw data is never overwritten.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("x", buffering=1)
        with naming(path):
            self._file.write(",".join(_FIELDS) + "\n")

    def append(self, exchange: Exchange) -> None:
        """One exchange; stamps in ns."""
        with naming(self._path):
            self._file.write(",".join(str(value) for value in dataclasses.astuple(exchange)) + "\n")

    def close(self) -> None:
        """Ends the file."""
        with naming(self._path):
            self._file.close()


def read_exchanges(path: Path) -> list[Exchange]:
    """The exchanges of a file in order, a torn last line left out; none where there is no file.

    Raises: RecordFault: a line that holds something else.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text().splitlines(keepends=True)[1:]
        return [Exchange(*map(int, line.split(","))) for line in lines if line.endswith("\n")]
    except (ValueError, TypeError) as fault:
        raise RecordFault(f"{path} is corrupt: {fault}") from None
