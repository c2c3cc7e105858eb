"""The summary on the terminal: the answer in a sentence, a compact table, what limits it, where the record is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from opjoule.evaluation.quantities.definition import Definition, Topic
from opjoule.opened.answer import Answer, Banner, open_answer
from opjoule.opened.quantities import NONE, row
from opjoule.record.result import StatedAlignment
from opjoule.record.run_record import RunRecord
from opjoule.report.advice import largest_parts, remedies
from opjoule.report.head import head_lines
from opjoule.report.part_lines import part_rows
from opjoule.report.phase_energies import HEAD, phase_rows
from opjoule.report.trace_summary import print_trace
from opjoule.units import Missing

BANNER_STYLES = {
    "simulated": "bold black on yellow",
    "partial": "bold white on red",
    "failed": "bold white on red",
    "altered": "bold white on red",
    "faulty": "bold white on red",
    "warning": "bold black on yellow",
}
SHORT_SIMULATED = "no board was measured; these joules come from a power model"
Line = tuple[str, str, str]


def print_summary(of: Path | RunRecord, console: Console | None = None) -> None:
    """Prints what a run found; reads well in 80 columns, and without colours.

    Args:
        of: the record, or its directory; complete or not.
        console: where to print; stdout if None.
    Raises: RecordFault: no readable run.json.
    """
    console = console or Console(highlight=False, markup=False)
    answer = open_answer(of)
    console.print()
    console.print(Text(answer.sentence, style="bold"), soft_wrap=False)
    for line in head_lines(answer.run):
        console.print(Text(line, style="dim"))
    for banner in answer.banners:
        console.print(_banner(banner))
    if answer.trace_only:
        print_trace(answer, console)
    elif answer.result:
        console.print()
        console.print(_table(answer))
        console.print()
        _print_parts(answer, console)
        _print_phases(answer, console)
        _print_limits(answer, console)
    _print_places(answer.record.directory, console)


def _banner(banner: Banner) -> Text:
    words = SHORT_SIMULATED if banner.kind == "simulated" else banner.text
    return Text.assemble((f" {banner.title} ", BANNER_STYLES[banner.kind]), f" {words}")


def _table(answer: Answer) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(style="dim", overflow="fold")
    for name, value, note in lines(answer):
        _add(table, name, value, note)
    return table


def lines(answer: Answer) -> Iterator[Line]:
    """The table: name, value, and what else belongs on the line."""
    for definition in answer.quantities.shown("line"):
        if definition.line and (definition.required or definition.key in answer.result):
            name, note = definition.line
            yield name, _shown(answer, definition.key), _note(answer, definition, note)


def _shown(answer: Answer, path: str) -> str:
    return row(answer.result, answer.quantities, path).brief


def _note(answer: Answer, of: Definition, note: str) -> str:
    """The note with the texts that it names; of a missing energy the reason, of a missing latency nothing."""
    number = answer.quantity(of.key)
    if isinstance(number, Missing) and of.topic in {Topic.ENERGY, Topic.LATENCY}:
        return number.reason if of.topic is Topic.ENERGY else ""
    if of.top == "alignment":
        return _alignment(answer.concluded.alignment or StatedAlignment())
    named = [part for part in note.split("; ") if all(map(answer.quantities.get, _NAMED.findall(part)))]
    return _NAMED.sub(lambda match: _shown(answer, match[1]), "; ".join(named))


_NAMED = re.compile(r"{([^}]+)}")


def _alignment(alignment: StatedAlignment) -> str:
    failed = [check for check in alignment.checks if not check.passed]
    outcome = "cross-checked" if alignment.checks else "nothing to check it with"
    if failed:
        outcome = "; ".join(check.detail for check in failed)
    return f"rms by {alignment.method or NONE}; {outcome}"


def _print_parts(answer: Answer, console: Console) -> None:
    """What one operation of each kind and what each activity drew, where the study knows of any."""
    rows = part_rows(answer)
    if not rows:
        return
    table = _plain_table()
    for cells in rows:
        _add(table, *cells)
    console.print(table)
    console.print()


def _print_phases(answer: Answer, console: Console) -> None:
    """The phases that a command has marked, where it has."""
    rows = phase_rows(answer.result)
    if not rows:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for heading in HEAD:
        table.add_column(heading, no_wrap=True)
    for cells in rows:
        _add(table, *cells)
    console.print(table)
    console.print()


def _print_limits(answer: Answer, console: Console) -> None:
    table = _plain_table()
    for largest in largest_parts(answer.result, answer.quantities)[:1]:
        _add(table, "largest uncertainty", str(largest))
    words = answer.wording
    run = answer.run
    advice = remedies(answer.result, answer.quantities, words.more(run), words.apart(run), run.plan.idle_s)
    for number, remedy in enumerate(advice):
        _add(table, "to make it better" if number == 0 else "", remedy)
    console.print(table)


def _print_places(record_dir: Path, console: Console) -> None:
    """Never broken over two lines: they are there to be copied, and to be read by other programs."""
    console.print(Text(f"record               {record_dir}"), soft_wrap=True)
    if (record_dir / "report.html").exists():
        console.print(Text(f"report               {record_dir / 'report.html'}"), soft_wrap=True)


def _add(table: Table, *cells: str) -> None:
    """A row of plain text: square brackets in a path or a reason are no markup."""
    table.add_row(*(Text(cell) for cell in cells))


def _plain_table() -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="dim", no_wrap=True, min_width=19)
    table.add_column(overflow="fold")
    return table
