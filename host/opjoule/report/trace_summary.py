"""The answer of a power trace on its own, on the terminal: power, voltage and energy, with what is known of them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from opjoule.opened.answer import Answer
from opjoule.opened.quantities import quantity_text
from opjoule.units import Measured, Missing, Unstated

SIMULATED = "SIMULATED: a program was at the other end of the port, not a meter"
CLOCKS = {"host": "this computer's clock", "board": "the board's clock", "meter": "the meter's own clock"}


def print_trace(answer: Answer, console: Console | None = None) -> None:
    """Prints a line for each number; simulated ones say so above.

    Args:
        answer: of a record without a workload.
        console: where to print; stdout if None.
    """
    console = console or Console(highlight=False, markup=False)
    if answer.record.simulated:
        console.print(Text(SIMULATED, style="bold black on yellow"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(style="dim", overflow="fold")
    for line in lines(answer):
        table.add_row(*(Text(cell) for cell in line))
    if table.row_count:
        console.print(table)


def lines(answer: Answer) -> Iterator[tuple[str, str, str]]:
    """Name, value with interval, and what must be known of it."""
    for definition in answer.quantities.shown("traced"):
        key, number = definition.key, answer.quantity(definition.key)
        if key not in answer.result:
            continue
        note = number.reason if isinstance(number, Missing | Unstated) else f"k = {number.k:.3g}"
        if key == "duration_s" and isinstance(number, Measured):
            clock = answer.concluded.timebase.clock
            note = f"k = 2, by {CLOCKS.get(clock, clock)}"
        yield definition.traced, quantity_text(number), note
