"""Current, voltage, power and time of a text table."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opjoule.base.errors import BadInput
from opjoule.base.units import counted
from opjoule.energy.trace.imported.cell_values import (
    Numbers,
    have_decimal_comma,
    looks_like_moment,
    moments,
    numbers,
)
from opjoule.energy.trace.imported.columns import (
    SMARTPOWER3,
    Column,
    Format,
    cell_units,
    find_columns,
    missing_columns,
    recognise,
)
from opjoule.energy.trace.imported.device_stamps import stamped_s
from opjoule.energy.trace.imported.program_files import Signals
from opjoule.energy.trace.imported.text_table import TextTable, find_table
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Int64Array

AGREE: Final = 0.03
"""Largest difference of the mean power, relative, that is not rounding: readings of one sample at different moments."""


def disagreement_w(power: Numbers, voltage: Numbers, current: Numbers) -> tuple[float, float] | None:
    """(mean power, mean of voltage times current) [W] if they differ by more than rounding; None if they agree."""
    product_w = voltage.values * current.values
    known = ~(np.isnan(power.values) | np.isnan(product_w))
    if not known.any():
        return None
    stated_w, made_w = float(np.mean(power.values[known])), float(np.mean(product_w[known]))
    amperes, volts = (float(np.mean(np.abs(column.values[known]))) for column in (current, voltage))
    rounding_w = power.step + amperes * voltage.step + volts * current.step
    size_w = float(np.mean(np.abs(power.values[known])))
    return None if abs(stated_w - made_w) <= rounding_w + AGREE * size_w else (stated_w, made_w)


GARBLED_MAX: Final = 0.1
"""Largest share of rows that are left out, if they are more than one; more show that the file is no such table."""
FAR_STEPS: Final = 10
"""Distance of a time from those of the rows around it, in usual steps, above which it is garbled."""
SPANS_AGREE: Final = 0.02
"""Largest relative difference between the spans of two columns of time that measure the same."""
RESOLUTION_S: Final = 2.0
"""Difference between two spans that whole seconds can cause."""

SHOWN: Final = 60
"""Number of characters of a cell or a line that a message shows."""

Texts = Mapping[int, pa.ChunkedArray]


def table_signals(path: Path, mapping: Mapping[str, str], rate_hz: float | None) -> Signals:
    """The signals of a text table. Raises: BadInput: see read_trace_file()."""
    table = find_table(path)
    form = _without_channels_off(table, recognise(table))
    found = find_columns(table, form, mapping)
    missing_columns(table, found, has_rate=rate_hz is not None)
    wanted = {index for of_role in found.values() for column in of_role for index in column.indices}
    stamps = None if rate_hz is not None or "time" in mapping else form.stamps
    texts = table.read(wanted if stamps is None else wanted | {stamps})
    comma = _decimal_comma(table, texts)
    cells = {
        role: [_values(table, role, one, texts, decimal_comma=comma) for one in of_role]
        for role, of_role in found.items()
    }
    if rate_hz is not None:
        rows = len(next(iter(texts.values())))
        found.pop("time", None)
        cells["time"] = [Numbers(np.arange(rows) / rate_hz, np.zeros(rows, np.bool_), False, 0.0)]
    kept = _kept(cells)
    columns = {role: of_role[0] for role, of_role in found.items()}
    left_out = _left_out(table, columns, cells, kept, texts)
    notes = [left_out] if left_out else []
    cells = {role: [_rows(one, kept) for one in of_role] for role, of_role in cells.items()}
    rows_kept = np.flatnonzero(kept)
    if rate_hz is not None:
        notes.append(f"time from the row number and --rate {rate_hz:g}")
    elif form.name == "pymonsoon":
        cells["time"] = [_spread(cells["time"][0])]
        notes.append("time from the row number: several rows share one time stamp, and lost rows do not show")
    elif stamps is not None and (time := _stamped(cells["time"][0], texts[stamps], kept)):
        columns["time"], cells["time"] = Column(stamps, table.names[stamps], 1e-6), [time]
        notes.append(f"time from {table.names[stamps]}, whose turns are counted by the column {found['time'][0].name}")
    else:
        at = _best_time(table, found["time"], cells["time"], rows_kept, texts)
        columns["time"], cells["time"] = found["time"][at], [cells["time"][at]]
    _check_power(table, columns, cells, mapping, notes)
    return Signals(
        kind=form.name,
        columns={role: column.name for role, column in columns.items()},
        time_s=cells["time"][0].values,
        values={role: of_role[0].values for role, of_role in cells.items() if role != "time"},
        notes=notes,
        place=lambda row: f"line {table.line_of(int(rows_kept[row]))}",
    )


def _without_channels_off(table: TextTable, form: Format) -> Format:
    """A SmartPower3's format without the columns of channels that are off in the whole file, if one is on."""
    if form.name != "smartpower3":
        return form
    switches = [name for name in SMARTPOWER3 if name.startswith("ch") and name.endswith("_on")]
    texts = table.read(table.names.index(name) for name in switches)
    off = [name for name in switches if set(texts[table.names.index(name)].unique().to_pylist()) <= {"0", ""}]
    table.other_lines.clear()
    if len(off) == len(switches):
        return form
    return replace(form, aside=form.aside | {name for one in off for name in SMARTPOWER3 if name[:3] == one[:3]})


def _decimal_comma(table: TextTable, texts: Texts) -> bool:
    try:
        return have_decimal_comma(texts.values(), table.separator)
    except BadInput as error:
        raise BadInput(f"{table.path}: {error}") from None


def _values(table: TextTable, role: str, column: Column, texts: Texts, *, decimal_comma: bool) -> Numbers:
    """The cells of a column, in base units."""
    text = texts[column.index]
    if column.date is not None:
        text = pc.binary_join_element_wise(texts[column.date], text, " ")
    if role == "time" and looks_like_moment(table.first_row[column.index]):
        return moments(text, column.name)
    read = numbers(text, cell_units(role), decimal_comma=decimal_comma)
    factor = 1.0 if read.has_units else column.factor
    return replace(read, values=read.values * factor, step=read.step * factor)


def _rows(column: Numbers, kept: BoolArray) -> Numbers:
    return replace(column, values=column.values[kept], garbled=column.garbled[kept])


def _kept(cells: Mapping[str, list[Numbers]]) -> BoolArray:
    """Rows without a garbled cell, and with a time that is not far off, shape (n,)."""
    garbled = np.any([one.garbled for of_role in cells.values() for one in of_role], axis=0)
    time_s = cells["time"][0].values
    return np.asarray(~(garbled | np.isnan(time_s) | _far_off(time_s)), np.bool_)


def _left_out(
    table: TextTable,
    columns: Mapping[str, Column],
    cells: Mapping[str, list[Numbers]],
    kept: BoolArray,
    texts: Texts,
) -> str:
    """Note on the rows that are left out; empty if none is. Raises: BadInput: they are too many."""
    rows, lines = int(np.count_nonzero(~kept)), len(table.other_lines)
    if not rows + lines:
        return ""
    if rows:
        row = int(np.argmin(kept))
        wrong = [role for role, column in columns.items() if cells[role][0].garbled[row]] or ["time"]
        column = columns[wrong[0]]
        first = f"line {table.line_of(row)}: {column.name} is '{_shown(texts[column.index][row])}'"
    else:
        first = f"'{_shown(table.other_lines[0])}' has another number of cells than the first row"
    said = f"{counted(rows + lines, 'row')} left out, the first: {first}"
    if rows + lines > max(GARBLED_MAX * (kept.size + lines), 1):
        raise BadInput(f"{table.path}: {said}: too many for a table; are they of another format?")
    return said


def _shown(text: object) -> str:
    """The beginning of a cell or a line, on one line."""
    return " ".join(str(text).split())[:SHOWN]


def _far_off(time_s: Float64Array) -> BoolArray:
    """Times that lie far outside the times of the rows before and after, which increase."""
    far = np.zeros(time_s.size, np.bool_)
    known = np.flatnonzero(~np.isnan(time_s))
    if known.size > 2:
        before, here, after = time_s[known[:-2]], time_s[known[1:-1]], time_s[known[2:]]
        off_s = np.maximum(before - here, here - after)
        step_s = float(np.median(np.abs(np.diff(time_s[known]))))
        far[known[1:-1]] = (before < after) & (off_s > FAR_STEPS * step_s)
    return far


def _spread(time: Numbers) -> Numbers:
    """Times at equal distances over the same span."""
    span_s = float(time.values[-1] - time.values[0]) if time.values.size else 0.0
    return replace(time, values=np.linspace(0.0, span_s, time.values.size))


def _stamped(time: Numbers, stamps: pa.ChunkedArray, kept: BoolArray) -> Numbers | None:
    """Times by the device's stamps, as seconds; None if they do not give any."""
    stamps_us = numbers(stamps, {}, decimal_comma=False).values[kept]
    time_s = stamped_s(time.values, stamps_us)
    return None if time_s is None else Numbers(time_s, time.garbled, False, 1e-6)


def _best_time(
    table: TextTable, columns: Sequence[Column], times: Sequence[Numbers], rows: Int64Array, texts: Texts
) -> int:
    """Index of the column of time: of those that increase, the one with the smallest step.

    Raises: BadInput: none increases, or two that do measure different times.
    """
    rising = [index for index, time in enumerate(times) if bool(np.all(np.diff(time.values) > 0))]
    if not rising or rows.size < 2:
        if rows.size > 1:
            raise BadInput(_not_increasing(table, columns[0], times[0].values, rows, texts))
        return 0
    spans_s = [float(times[index].values[-1] - times[index].values[0]) for index in rising]
    if max(spans_s) - min(spans_s) > SPANS_AGREE * max(spans_s) + RESOLUTION_S:
        names = [columns[index].name for index in rising]
        raise BadInput(
            f"{table.path}: columns of time that differ: "
            f"{', '.join(f'{name} {span_s:g} s' for name, span_s in zip(names, spans_s, strict=True))}: say which "
            f"counts, for example --columns {shlex.quote(f'time={names[0]}')}"
        )
    return min(rising, key=lambda index: times[index].step)


def _not_increasing(table: TextTable, column: Column, time_s: Float64Array, rows: Int64Array, texts: Texts) -> str:
    late = int(np.argmin(np.diff(time_s) > 0)) + 1
    text = [_shown(texts[column.index][int(rows[place])]) for place in (late - 1, late)]
    span_s = float(np.max(time_s) - np.min(time_s))
    rate = f"--rate {(time_s.size - 1) / span_s:.4g}" if span_s > 0 else "--rate N"
    return (
        f"{table.path}: time does not increase at row {late + 1} of data ({column.name} is {text[0]}, then {text[1]}): "
        f"export it with more digits, map another column with --columns time=NAME:UNIT or, if the rows are evenly "
        f"spaced, state how many there are a second, which seem to be {rate}"
    )


def _check_power(
    table: TextTable,
    columns: Mapping[str, Column],
    cells: Mapping[str, list[Numbers]],
    mapping: Mapping[str, str],
    notes: list[str],
) -> None:
    """Checks that power, voltage and current belong to each other, if the file has all three.

    Raises: BadInput: they do not, and the user has not named voltage and current.
    """
    if not {"power", "voltage", "current"} <= cells.keys():
        return
    found = [disagreement_w(power, cells["voltage"][0], cells["current"][0]) for power in cells["power"]]
    if None in found or not found[0]:
        return
    power_w, product_w = found[0]
    names = {role: columns[role].name for role in ("power", "voltage", "current")}
    product = f"{names['voltage']} times {names['current']} is {product_w:.6g} W"
    said = f"{names['power']} is {power_w:.6g} W on average, {product}"
    if {"voltage", "current"} <= mapping.keys():
        notes.append(said)
        return
    answer = " ".join(f"--columns {shlex.quote(f'{role}={names[role]}')}" for role in ("voltage", "current"))
    raise BadInput(f"{table.path}: {said}: check columns and units, and name the supply's, for example {answer}")
