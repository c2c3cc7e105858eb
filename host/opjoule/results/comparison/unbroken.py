"""Tables on a terminal whose names and values are not broken into lines."""

from typing import Final

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

_WIDEST: Final = 1000


def print_unbroken(console: Console, table: Table) -> None:
    """Prints a table in its own width; a narrower terminal wraps its lines."""
    usual = console.width
    wanted = Measurement.get(console, console.options.update(width=_WIDEST), table).maximum
    console.width = max(wanted, usual)
    console.print(table)
    console.width = usual
