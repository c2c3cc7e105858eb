"""A run as CSV files in a folder: its tables, its phases, every number of its result, and its warnings."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from opjoule.base.errors import RecordFault
from opjoule.base.files import rewriting
from opjoule.results.long_table import long_table
from opjoule.results.recorded import table_of
from opjoule.results.run import OpenedRun
from opjoule.runs.record.json_file import plain

_FORMULA: Final = r"^([=+\-@\t\r])"
"""First characters that turn a cell into a formula. Source: OWASP, CSV Injection."""


def write(run: OpenedRun, folder: Path) -> Iterator[str]:
    """Writes each table that the record has, a simulated one with SIMULATED in its name; yields a line per table.

    If the trace cannot be read, there is no time axis: tables of the board's clock are written without `time_s`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mark = "-SIMULATED" if run.simulated else ""
    for name, read in _TABLES.items():
        try:
            table, remark = read(run), ""
        except RecordFault as fault:
            table, remark = _untimed(run, name), f", without time_s: {fault}"
            if table is None:
                yield f"no {name}: {fault}"
                continue
        if not table.num_columns:
            yield f"no {name}: the record has none"
            continue
        path = folder / f"{name}{mark}.csv"
        with rewriting(path) as file:
            pa_csv.write_csv(_plain(table), file)
        yield f"{path}: {table.num_rows} rows{remark}"


def _untimed(run: OpenedRun, name: str) -> pa.Table | None:
    """A table without its times on the trace's time axis; None if it cannot be read, or has no others."""
    record = run.answer.record
    if name == "phases":
        return pa.Table.from_pylist(plain(record.run.phases))
    try:
        return table_of(record, name) if name in _OF_BOARD else None
    except RecordFault:
        return None


def _plain(table: pa.Table) -> pa.Table:
    """The table without dictionaries, which the writer does not support, and without text that acts as a formula."""
    fields = [field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in table.schema]
    plain = table.cast(pa.schema(fields))
    for place, field in enumerate(plain.schema):
        if pa.types.is_string(field.type):
            plain = plain.set_column(place, field, pc.replace_substring_regex(plain[place], _FORMULA, r"'\1"))
    return plain


def _numbers(run: OpenedRun, *, in_repeats: bool) -> pa.Table:
    """The means of the long table, or its values in each repeat."""
    table = long_table(run.answer.concluded, run.answer.quantities)
    table = table.filter(pc.is_valid(table["repeat"]) if in_repeats else pc.is_null(table["repeat"]))
    table = table.append_column("simulated", pa.array([run.simulated] * len(table), pa.bool_()))
    shown = ("path", "repeat", "value", "unit", "simulated") if in_repeats else _OF_MEANS
    return table.select([*shown, "phase", "quantity"]) if len(table) else pa.table({})


_OF_MEANS: Final = ("path", "value", "u", "unit", "reason", "simulated", "cause")


_OF_BOARD: Final = ("operations", "events", "system")
"""Tables on the board's clock."""
_TABLES: Final[dict[str, Callable[[OpenedRun], pa.Table]]] = {
    "power": lambda run: run.power.arrow,
    "operations": lambda run: run.operations.arrow,
    "events": lambda run: run.events.arrow,
    "system": lambda run: run.system.arrow,
    "phases": lambda run: pa.Table.from_pylist([vars(phase) for phase in run.phases]),
    "result": partial(_numbers, in_repeats=False),
    "repeats": partial(_numbers, in_repeats=True),
    "warnings": lambda run: pa.Table.from_pylist(
        [{"kind": notice.kind, "title": notice.title, "text": notice.sentence} for notice in run.answer.notices]
    ),
}
