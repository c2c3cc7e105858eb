"""The summary on the terminal: the answer in a sentence, a compact table, what limits it, where the record is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from opjoule.report.advice import largest_part, remedies
from opjoule.report.answer import Answer, Banner, open_answer
from opjoule.report.head import head_lines
from opjoule.report.quantities import NONE, Row, words
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


def print_summary(record_dir: Path, console: Console | None = None) -> None:
    """Prints what a run found; reads well in 80 columns, and without colours.

    Args:
        record_dir: directory of the record, complete or not.
        console: where to print; stdout if None.
    Raises: RecordFault: no readable run.json.
    """
    console = console or Console(highlight=False, markup=False)
    answer = open_answer(record_dir)
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
        _print_limits(answer, console)
    _print_places(record_dir, console)


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

    def shown(path: str) -> str:
        return Row(path, *words(answer.result, path), answer.quantity(path)).brief

    def reason(path: str) -> str:
        found = answer.quantity(path)
        return found.reason if isinstance(found, Missing) else ""

    def energy(path: str, name: str, note: str) -> Line:
        return name, shown(path), reason(path) or note

    yield energy("marginal_energy_j", "above idle", "energy less idle power times the run's time")
    if "settle_energy_j" in answer.result:  # schema version 1
        yield energy("energy_j", "energy", "run and settle, idle power in it")
        yield energy("settle_energy_j", "settle", f"{shown('settle_s')} after the last operation")
    else:
        yield energy("energy_j", "energy", "run, and settle above idle")
        yield energy("run_energy_j", "run alone", f"{shown('duration_s')}, idle power in it")
        yield energy(
            "write_back_energy_j",
            "write-back",
            f"above idle, {shown('settle_s')} from the last operation to rest",
        )
    yield energy("harness_energy_j", "loader alone", "above idle, the work without a database")
    yield "power", shown("power_w"), f"mean of the run; idle {shown('idle_power_w')}"
    yield "throughput", shown("throughput_per_s"), f"operations; {shown('bandwidth_bytes_per_s')} of values"
    yield "latency", shown("latency_s.mean"), _percentiles(answer, shown)
    yield "CPU", shown("cpu_fraction"), f"of all cores; peak memory {shown('peak_memory_bytes')}"
    yield "disk", shown("disk_written_bytes"), f"written, {shown('disk_read_bytes')} read"
    yield "alignment", shown("alignment.residual_s"), _alignment(answer.result.get("alignment") or {})
    yield "lost samples", shown("lost_samples"), ""


def _percentiles(answer: Answer, shown: Callable[[str], str]) -> str:
    if isinstance(answer.quantity("latency_s.p50"), Missing):
        return ""
    names = {"p50": "median", "p95": "95 %", "p99": "99 %", "max": "longest"}
    return "mean; " + ", ".join(f"{words} {shown(f'latency_s.{name}')}" for name, words in names.items())


def _alignment(alignment: Mapping[str, Any]) -> str:
    checks = alignment.get("checks") or []
    failed = [check for check in checks if not check.get("passed")]
    outcome = "cross-checked" if checks else "nothing to check it with"
    if failed:
        outcome = "; ".join(str(check.get("detail")) for check in failed)
    return f"rms by {alignment.get('method', NONE)}; {outcome}"


def _print_limits(answer: Answer, console: Console) -> None:
    table = _plain_table()
    largest = largest_part(answer.result)
    if largest:
        _add(table, "largest uncertainty", str(largest))
    for number, remedy in enumerate(remedies(answer.result)):
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
