"""A trace that another program recorded, from a file of any known kind."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from opjoule.base.errors import BadInput
from opjoule.base.units import counted
from opjoule.energy.trace.imported.program_files import Signals, is_jls, jls_signals, ppk2_signals
from opjoule.energy.trace.imported.table_signals import table_signals
from opjoule.energy.trace.power_trace import SPAN_MAX_S, BoolArray, Float64Array, Gap, Int64Array

GAP_STEPS: Final = 1.5
"""Distance of two rows, in longest usual distances of the rows around, above which samples are missing between them."""
PACE_ROWS: Final = 64
"""Number of distances that give the usual ones of their part of a trace."""
USUAL: Final = 0.9
"""Quantile of these distances that is the longest usual one."""
ROWS_MAX: Final = 1e9
"""Largest number of rows of a trace, including missing ones."""
MISSING: Final = "missing in the imported file"
LOST_ROWS_MAX: Final = 1_000_000
"""Maximum number of consecutive rows that count as missing; a longer stretch is a pause of the recording."""
PAUSE: Final = "pause in the imported file"
VOLTAGE_MAX_V: Final = 1000.0
CURRENT_MAX_A: Final = 200.0
LIMITS: Final = {
    "voltage": (0.0, VOLTAGE_MAX_V, "V"),
    "current": (-CURRENT_MAX_A, CURRENT_MAX_A, "A"),
}
"""Role -> limits that no board's supply comes near; a value beyond them shows a column in another unit."""


@dataclass
class ImportedTrace:
    """Contents of a file; arrays of shape (n,)."""

    kind: str
    """format of the file: 'powertool', 'pymonsoon', 'ppk2', 'joulescope', another of formats.py, or 'csv'"""
    columns: dict[str, str]
    """role -> name of its column or signal"""
    meter_ns: Int64Array
    """from 0 at the first row"""
    current_a: Float64Array
    voltage_v: Float64Array
    notes: list[str] = field(default_factory=list)
    """assumptions made, for the record"""
    voltage_stated: bool = False
    """True if the voltage was stated by the user, not measured"""

    def parts(self) -> Iterator[Gap | slice]:
        """Stretches of samples, and the gaps between them, in order."""
        good = np.flatnonzero(~(np.isnan(self.current_a) | np.isnan(self.voltage_v)))
        steps_ns = np.diff(self.meter_ns[good]).astype(np.float64)
        usual_ns, longest_ns = _pace(np.diff(self.meter_ns).astype(np.float64))
        before = good[:-1]
        first, cuts = (
            0,
            np.flatnonzero((steps_ns > GAP_STEPS * longest_ns[before]) | (np.diff(good) > 1)).tolist(),
        )
        for cut in [*cuts, good.size - 1]:
            yield slice(int(good[first]), int(good[cut]) + 1)
            first = cut + 1
            if first < good.size:
                around = int(self.meter_ns[good[cut]]), int(self.meter_ns[good[first]])
                yield _gap(*around, round(usual_ns[good[cut]]))


def _pace(steps_ns: Float64Array) -> tuple[Float64Array, Float64Array]:
    """(usual, longest usual) distance of two rows around each row but the last [ns], each of shape (n - 1,)."""
    length = min(PACE_ROWS, steps_ns.size)
    pieces = steps_ns[: steps_ns.size // length * length].reshape(-1, length)
    usual_ns, longest_ns = np.quantile(pieces, [0.5, USUAL], axis=1)
    ends_ns = np.pad(longest_ns, 1, "edge")  # the pace may change between two pieces
    beside_ns = np.max([ends_ns[:-2], longest_ns, ends_ns[2:]], axis=0)
    of_row = np.minimum(np.arange(steps_ns.size) // length, pieces.shape[0] - 1)
    return usual_ns[of_row], beside_ns[of_row]


def _gap(last_ns: int, next_ns: int, period_ns: int) -> Gap:
    """The gap between two rows: missing rows, or a pause if it is too long for that."""
    lost = max(round((next_ns - last_ns) / period_ns) - 1, 1)
    if lost <= LOST_ROWS_MAX:
        return Gap.between(last_ns, next_ns, lost, MISSING)
    return Gap(last_ns + period_ns // 2, next_ns - period_ns // 2, 0, None, PAUSE)


def read_trace_file(
    path: Path, mapping: Mapping[str, str], supply_v: float | None = None, rate_hz: float | None = None
) -> ImportedTrace:
    """Reads a trace.

    Args:
        mapping: role (time, current, voltage, power) -> NAME or NAME:UNIT, for columns or units missing in the header;
            NAME may be the column's number, from 1.
        supply_v: supply voltage [V], used if the file has none.
        rate_hz: rows a second, if the file has no time that increases.
    Raises: BadInput: the file is unreadable, lacks a unit or a voltage, or its time goes back; or it is not clear which
        columns are the supply's.
    """
    read = ppk2_signals if zipfile.is_zipfile(path) else jls_signals if is_jls(path) else None
    if read is None:
        return _trace(path, table_signals(path, mapping, rate_hz), supply_v)
    if mapping or rate_hz is not None:
        raise BadInput(f"{path}: it says itself what it contains: leave out --columns and --rate")
    return _trace(path, read(path), supply_v)


def _trace(path: Path, signals: Signals, supply_v: float | None) -> ImportedTrace:
    """The trace of a file's signals. Raises: BadInput: see read_trace_file()."""
    values, notes, time_s = signals.values, signals.notes, signals.time_s
    if time_s.size < 2 or any(np.all(np.isnan(column)) for column in values.values()):
        raise BadInput(f"{path}: fewer than two rows of numbers")
    stated = "voltage" not in values and not {"current", "power"} <= values.keys()
    if stated:
        if supply_v is None:
            raise BadInput(f"{path}: no voltage: state the supply's with --voltage VOLTS")
        values["voltage"] = np.full(time_s.size, supply_v)
        notes.append(f"voltage {supply_v:g} V as stated by the user, not measured")
    for role in values.keys() & LIMITS.keys():
        _check_range(path, signals, role, values[role])
    if not {"voltage", "current"} <= values.keys():
        values |= _by_power(path, signals)
        _check_range(path, signals, "current", values["current"])
    current_a, voltage_v = values["current"], values["voltage"]
    if np.count_nonzero(np.isfinite(current_a) & np.isfinite(voltage_v)) < 2:
        raise BadInput(f"{path}: fewer than two rows of numbers")
    meter_ns = _from_first_ns(path, time_s)
    return ImportedTrace(signals.kind, signals.columns, meter_ns, current_a, voltage_v, notes, stated)


def _from_first_ns(path: Path, time_s: Float64Array) -> Int64Array:
    """Times from the first one [ns]. Raises: BadInput: they span too long, or follow each other too closely."""
    span_s = float(time_s[-1] - time_s[0])
    remedy = "check the unit, and state it with --columns time=NAME:UNIT"
    if not span_s < SPAN_MAX_S:
        raise BadInput(f"{path}: it spans {span_s:.12g} s; the limit is {SPAN_MAX_S:.12g} s: {remedy}")
    rows = span_s / float(np.median(np.diff(time_s)))
    if not rows < ROWS_MAX:
        raise BadInput(
            f"{path}: it spans {rows:.3g} sampling periods, and most of them have no row: split it into parts"
        )
    meter_ns = np.rint((time_s - time_s[0]) * 1e9).astype(np.int64)
    if not bool(np.all(np.diff(meter_ns) > 0)):
        row = int(np.argmin(np.diff(meter_ns) > 0)) + 1
        raise BadInput(
            f"{path}: rows {row} and {row + 1} of data are less than 1 ns apart, or time goes back: {remedy}"
        )
    return np.asarray(meter_ns, np.int64)


def _by_power(path: Path, signals: Signals) -> dict[str, Float64Array]:
    """Voltage and current from power and one of both; in each row their product is the power.

    A row whose current is 0, or rounded so that the quotient is no voltage of a supply, has the voltage of the nearest
    row. Raises: BadInput: no row gives a voltage, or most give one that no board's supply has.
    """
    power_w, current_a = signals.values["power"], signals.values.get("current")
    with np.errstate(divide="ignore", invalid="ignore"):
        voltage_v = signals.values["voltage"] if current_a is None else power_w / current_a
    known = (voltage_v > 0.0) & (voltage_v <= VOLTAGE_MAX_V)
    if current_a is None:
        lacking = (voltage_v == 0.0) & (power_w != 0.0)
    else:
        signals.notes.append("voltage from power and current")
        lacking = ~known & ~np.isnan(power_w) & ~np.isnan(current_a)
        beyond = np.where(lacking & np.isfinite(voltage_v), voltage_v, 0.0)
        if np.count_nonzero(known) < np.count_nonzero(beyond):
            _check_range(path, signals, "voltage", beyond)
    if lacking.any():
        voltage_v = _nearest(path, signals.time_s, voltage_v, known, lacking)
        signals.notes.append(f"voltage of {counted(int(lacking.sum()), 'row')} from the nearest row that gives one")
    with np.errstate(divide="ignore", invalid="ignore"):  # no power is no current, if the row has a voltage
        quotient_a = np.where(power_w == 0.0, 0.0 * voltage_v, power_w / voltage_v)
    return {
        "voltage": voltage_v,
        "current": quotient_a if current_a is None else np.where(lacking, quotient_a, current_a),
    }


def _nearest(
    path: Path, time_s: Float64Array, values: Float64Array, known: BoolArray, lacking: BoolArray
) -> Float64Array:
    """The values, in `lacking` rows those of the `known` row nearest in time. Raises: BadInput: no row is known."""
    if not known.any():
        raise BadInput(f"{path}: no row gives a voltage above 0 V: add --columns voltage=NAME:UNIT")
    rows = np.flatnonzero(known)
    nearest = np.rint(np.interp(time_s[lacking], time_s[rows], np.arange(rows.size))).astype(np.int64)
    filled = values.copy()
    filled[lacking] = values[rows[nearest]]
    return filled


def _check_range(path: Path, signals: Signals, role: str, values: Float64Array) -> None:
    """Checks the values of a role. Raises: BadInput: a number that no board's supply has; names its place."""
    least, most, unit = LIMITS[role]
    wrong = (values < least) | (values > most)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise BadInput(
            f"{path}: {signals.place(row)}: {role} of {values[row]:.6g} {unit}, expected {least:g} to {most:g}: check "
            f"the unit, and state it with --columns {role}=NAME:UNIT"
        )
