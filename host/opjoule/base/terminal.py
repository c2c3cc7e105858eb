"""The terminal that a program prints to."""

import os
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.measure import Measurement

if TYPE_CHECKING:
    from rich.table import Table

_WIDEST: Final = 1000


def terminal(**more: Any) -> Console:
    """Console on stdout; text is printed as it is. With NO_COLOR it gets no escape codes. Source: no-color.org."""
    plain = False if os.environ.get("NO_COLOR") else None
    return Console(highlight=False, markup=False, force_terminal=plain, **more)


def print_unbroken(console: Console, table: "Table") -> None:
    """Prints a table in its own width, its names and values on one line; a narrower terminal wraps its lines."""
    usual = console.width
    wanted = Measurement.get(console, console.options.update(width=_WIDEST), table).maximum
    console.width = max(wanted, usual)
    console.print(table)
    console.width = usual
