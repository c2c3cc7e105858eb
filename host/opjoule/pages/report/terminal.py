"""The summary on the terminal: the answer in a sentence, tables, the largest uncertainty, advice, and the record."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from opjoule.base.notices import Grade, NoticeKind
from opjoule.base.terminal import terminal
from opjoule.base.units import Cause, Quantity, exact
from opjoule.energy.sensor_calibration import CALIBRATION
from opjoule.pages.report.sections import HEAD, head_lines, phase_rows, shares
from opjoule.results.answer import Answer, open_answer
from opjoule.results.long_table import all_told_paths, by_kind, row
from opjoule.results.rounding import NONE, percent, quantity_text
from opjoule.runs.evaluation.quantities.definition import ALL_TOLD, Definition, Topic
from opjoule.runs.record.result import StatedAlignment
from opjoule.runs.record.run_record import RunRecord

BANNER_STYLES = {
    Grade.NOTE: "bold black on yellow",
    **dict.fromkeys((Grade.ENDING, Grade.FAULT), "bold white on red"),
}
SHORT_SIMULATED = "no board was measured; these joules come from a power model"
Line = tuple[str, str, str]


def print_summary(of: Path | RunRecord, console: Console | None = None) -> None:
    """Prints the results of a run in 80 columns. Raises: RecordFault: no readable run.json."""
    console = console or terminal()
    answer = open_answer(of)
    console.print()
    console.print(Text(answer.sentence, style="bold"), soft_wrap=False)
    for line in head_lines(answer.run):
        console.print(Text(line, style="dim"))
    for notice in answer.notices:
        words = SHORT_SIMULATED if notice.kind is NoticeKind.SIMULATED else notice.sentence
        console.print(Text.assemble((f" {notice.title} ", BANNER_STYLES[notice.kind.grade]), f" {words}"))
    if answer.trace_only:
        print_trace(answer, console)
    elif answer.result:
        console.print()
        tables = [
            _table(lines(answer), *_NUMBER_COLUMNS),
            _table(part_rows(answer), *_WORD_COLUMNS),
            _table(phase_rows(answer), *({"header": name, "no_wrap": True} for name in HEAD)),
        ]
        for shown in (table for table in tables if table.row_count):
            console.print(shown)
            console.print()
        console.print(_table(_limits(answer), *_WORD_COLUMNS))
    # These lines are never broken, since they are copied, and read by other programs.
    directory = answer.record.directory
    console.print(Text(f"record               {directory}"), soft_wrap=True)
    if (directory / "report.html").exists():
        console.print(Text(f"report               {directory / 'report.html'}"), soft_wrap=True)


_NUMBER_COLUMNS: Final = (
    {"style": "dim", "no_wrap": True},
    {"style": "bold", "no_wrap": True},
    {"style": "dim", "overflow": "fold"},
)
"""Columns of a table of numbers: name, value and note."""
_WORD_COLUMNS: Final = ({"style": "dim", "no_wrap": True, "min_width": 19}, {"overflow": "fold"})


def _table(rows: Iterable[Sequence[str]], *columns: Mapping[str, Any]) -> Table:
    """Table of plain texts; square brackets in a path or a reason are not markup."""
    has_head = any("header" in column for column in columns)
    table = Table(box=None, show_header=has_head, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(**column)
    for cells in rows:
        table.add_row(*map(Text, cells))
    return table


def lines(answer: Answer) -> Iterator[Line]:
    """Rows of the main table: name, value and note."""
    for definition in answer.quantities.shown("line"):
        if definition.line and (definition.required or definition.key in answer.result):
            name, note = definition.line
            yield name, _shown(answer, definition.key), _note(answer, definition, note)


def _shown(answer: Answer, path: str) -> str:
    return row(answer.quantities, path, answer.quantity(path)).brief


def _note(answer: Answer, of: Definition, note: str) -> str:
    """The note, with the values that it names filled in; a missing energy gives its reason, a missing latency none."""
    number = answer.quantity(of.key)
    if number.value is None and of.topic in {Topic.ENERGY, Topic.LATENCY}:
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


def _limits(answer: Answer) -> Iterator[tuple[str, str]]:
    """The largest part of the uncertainty, and advice on how to improve the result."""
    for name, share in largest_parts(answer)[:1]:
        yield "largest uncertainty", f"{name}, {percent(share)} of the variance"
    words, run = answer.wording, answer.run
    noted = answer.concluded.notices
    more = next((notice.remedy for notice in noted if notice.kind is NoticeKind.TOO_SHORT), "") or words.more(run)
    advice = remedies(answer, more, words.apart(run), run.plan.idle_s)
    for number, remedy in enumerate(advice):
        yield "to make it better" if number == 0 else "", remedy


_SHOWN_ELSEWHERE: Final = ("idle", "harness", "foreground")
_TOGETHER: Final = "unseparated"


def part_rows(answer: Answer) -> list[tuple[str, str]]:
    """(name, energy with a note) of each kind and each activity; an activity that never began is left out.

    Parts that cannot be separated share one row; the last row gives the reasons in short.
    """
    parts = [*_kinds(answer), *_activities(answer)]
    unknown = {name: number.cause or number.reason for name, number, _ in parts if number.value is None}
    rows = [
        (name, f"{quantity_text(number)}  {note}")
        for name, number, note in parts
        if name not in unknown and name != _TOGETHER
    ]
    together = answer.quantity(f"by_activity.{_TOGETHER}")
    # Without the kinds if the energy of all kinds is known.
    foreground = answer.quantity("by_activity.foreground").value is not None
    kinds = [name for name, *_ in _kinds(answer)] if foreground else []
    names = [name for name in unknown if name not in kinds]
    if names and together.value is not None:
        note = "together" if len(names) > 1 else "what the other parts leave"
        rows.append((" + ".join(names), f"{quantity_text(together)}  {note}"))
        if len(names) == 1:
            del unknown[names[0]]
    reasons = [f"{name} ({why})" for name, why in unknown.items()]
    return [*rows, *([("not identifiable", ", ".join(reasons))] if reasons else [])]


def _kinds(answer: Answer) -> list[tuple[str, Quantity, str]]:
    """Rows of each kind: what one operation costs all told, if there are several kinds, and the parts of that."""
    told, rows = all_told_paths(answer.result), []
    for kind, entry in by_kind(answer.result).items():
        parts = _PARTS_OF_A_KIND if kind in told else _PARTS_OF_A_KIND[1:2]
        if kind in told and answer.quantity(f"by_operation.{kind}.background_energy_per_operation_j") == _NOTHING:
            parts = _PARTS_OF_A_KIND[:1]
        for key, words, note in parts:
            energy = answer.quantity(f"by_operation.{kind}.{key}")
            if key in entry and energy != _NOTHING:
                rows.append((f"{kind}{words}", energy, note))
    return rows


_NOTHING: Final = exact(0.0, "J")
_PARTS_OF_A_KIND: Final = (
    (ALL_TOLD, ", all told", "each, above idle, with all that it causes"),
    ("energy_per_operation_j", "", "each, while it is carried out"),
    ("background_energy_per_operation_j", ", later", "each: syncs, background work, write-back and tail"),
)


def _activities(answer: Answer) -> list[tuple[str, Quantity, str]]:
    rows = []
    for definition in answer.quantities.below("by_activity"):
        is_part = definition.topic is Topic.PART and definition.label not in _SHOWN_ELSEWHERE
        energy = answer.quantity(definition.key)
        if is_part and definition.top in answer.result and energy.cause is not Cause.NOT_REPORTED:
            rows.append((definition.label.replace("_", "-"), energy, definition.meaning))
    return rows


SIMULATED_TRACE = "SIMULATED: a program was at the other end of the port, not a meter"
CLOCKS = {"host": "this computer's clock", "board": "the board's clock", "meter": "the meter's own clock"}


def print_trace(answer: Answer, console: Console | None = None) -> None:
    """Prints a line for each number of a record without a workload; a simulated one is marked SIMULATED first."""
    console = console or terminal()
    if answer.record.simulated:
        console.print(Text(SIMULATED_TRACE, style="bold black on yellow"))
    table = _table(trace_lines(answer), *_NUMBER_COLUMNS)
    if table.row_count:
        console.print(table)


def trace_lines(answer: Answer) -> Iterator[tuple[str, str, str]]:
    """Rows of a trace's table: name, value with interval, and a note."""
    for definition in answer.quantities.shown("traced"):
        key, number = definition.key, answer.quantity(definition.key)
        if key not in answer.result:
            continue
        note = number.reason if number.u is None else f"k = {number.k:.3g}"
        if key == "duration_s" and number.u is not None:
            clock = answer.concluded.timebase.clock
            note = f"k = 2, by {CLOCKS.get(clock, clock)}"
        yield definition.traced, quantity_text(number), note


CALIBRATE = "host/calibrate.py, docs/how-to/calibrate.md"
UNTIL_U = "3%"
"""Advised interval of the headline; once it is reached, more repeats are no longer advised."""
REMEDIES = {
    "gain": f"calibrate the sensor ({CALIBRATE}), or state tighter bounds of shunt and chip if you know "
    "them (shunt_tolerance=, kelvin=, genuine=)",
    "offset": f"calibrate the sensor's zero ({CALIBRATE}): its offset is taken from the data sheet",
    "heating": f"calibrate with points of a minute ({CALIBRATE}), or use a smaller shunt: its own current heats it",
    "wire": (
        "state the resistance of the wire after the sense point ([supply] sense_ohm in rig.toml), or "
        "sense at the board's pins"
    ),
    "quantisation": "measure longer ({more}) or use a smaller sensor range",
    "voltage": "use a stiffer supply (shorter, thicker cable), or read the voltage more often (bus_every=32)",
    "timebase": (
        "all seconds come from the clock named under timebase: use a board or a host with a more accurate clock"
    ),
    "alignment": "wire the sync line, or measure longer ({more})",
    "loss": "find out where samples are lost: cable, hub or a busy host (host/measure.py doctor)",
    "baseline": "use longer idle phases (--idle {idle:g})",
    "repeats": f"repeat until the energy above idle is known to {UNTIL_U} (--until-u {UNTIL_U}), on a quieter board",
}
OF_A_CALIBRATION = {
    "gain": "calibrate against a better reference; state the room's temperature ([room] temperature_c in rig.toml)",
    "offset": "calibrate with more and longer points at small currents",
    "heating": "calibrate with points of a minute (--seconds 60) up to the greatest current",
}
"""Replacements of the same remedies for a calibrated sensor."""
OF_MORE = ("quantisation", "alignment", "baseline", "repeats")
"""Parts that shrink with more of the same measurement; not advised once the headline is known to UNTIL_U."""
LONGER_IDLE = 4.0
"""Factor by which longer idle phases are advised; it halves their part of the uncertainty."""
LARGE_MARGINAL_U = 0.25


def largest_parts(answer: Answer) -> list[tuple[str, float]]:
    """The largest part of each budget and its share of the variance; the headline's budget comes first."""
    budgets = [shares(answer.result.get(definition.budget)) for definition in answer.quantities.shown("budget")]
    return [next(iter(budget.items())) for budget in budgets if budget]


def remedies(answer: Answer, more: str, apart: str = "", idle_s: float = 15.0) -> list[str]:
    """Advice on how to improve the result, most useful first; empty without a budget.

    `more` and `apart`: options that measure more, or that separate kinds, in the words of the run's study.
    """
    parts = [name for name, _ in largest_parts(answer)]
    shared = answer.result.get("shared")
    errors = [name for errors in shared.values() for name in errors] if isinstance(shared, Mapping) else []
    is_calibrated = any(str(name).startswith(CALIBRATION) for name in errors)
    known = REMEDIES | (OF_A_CALIBRATION if is_calibrated else {})
    headline = next((answer.quantity(shown.key) for shown in answer.quantities.shown("headline")), None)
    limit_percent = float(UNTIL_U.rstrip("%"))
    enough = headline is not None and 100 * headline.relative_u <= limit_percent
    wanted = [part for part in parts if not (enough and part in OF_MORE)]
    advice = dict.fromkeys(known[part].format(more=more, idle=LONGER_IDLE * idle_s) for part in wanted)
    lines = list(advice)
    if parts and "repeats" not in shares(answer.result.get("budget")):
        lines.append("measure more than one run (--repeats 5): one run does not show how much runs differ")
    marginal = answer.quantity("marginal_energy_j")
    if marginal.u is not None and marginal.relative_u > LARGE_MARGINAL_U and "repeats" not in parts:
        lines.append(f"measure more work ({more}): the energy above idle is small compared with its uncertainty")
    return lines + _for_kinds(answer, more, apart)


def _for_kinds(answer: Answer, more: str, apart: str) -> list[str]:
    energies = {kind: answer.quantity(f"by_operation.{kind}.energy_per_operation_j") for kind in by_kind(answer.result)}
    mixed = [name for name, energy in energies.items() if energy.cause in (Cause.COLLINEAR, Cause.TOO_WIDE)]
    short = [name for name, energy in energies.items() if energy.cause is Cause.FEW_WINDOWS]
    lines = []
    if mixed and apart:
        lines.append(f"run in mix blocks ({apart}): they separate {' and '.join(mixed)}")
    elif mixed or short:
        lines.append(f"measure more work ({more}) to determine the cost of {' and '.join([*mixed, *short])}")
    return lines
