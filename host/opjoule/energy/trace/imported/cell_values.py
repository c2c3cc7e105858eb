"""Cells of a text table as numbers with their units, and as times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from opjoule.base.errors import BadInput
from opjoule.energy.trace.power_trace import BoolArray, Float64Array

DAY_S: Final = 86_400.0
ABSENT: Final = pa.array(["", "-", "--", "nan", "na", "n/a", "null", "none"])
"""Cells that say that there is no value, in lower case."""
STEP_ROWS: Final = 10_000
"""Number of rows whose digits give the step of a column."""
_NUMBER: Final = r"(?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
_NUMBER_AND_UNIT: Final = rf"^\+?{_NUMBER}\s*(?P<unit>[A-Za-zµμ]*)$"
_DATE: Final = r"(?P<date>[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4})"
_CLOCK: Final = (
    r"(?P<hours>[0-9]{1,3}):(?P<minutes>[0-9]{2})(?::(?P<seconds>[0-9]{2}(?:[.,:][0-9]+)?))?"
    r"\s*(?P<half>[AaPp][Mm])?\s*(?P<zone>Z|UTC|GMT|[-+][0-9]{2}:?[0-9]{2})?"
)
_MOMENT: Final = rf"^(?:{_DATE}[T ,]\s*)?{_CLOCK}$"
_BASIC: Final = r"^([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})"
_EXTENDED: Final = r"\1-\2-\3T\4:\5:\6"
"""The beginning of a moment in ISO 8601's basic format, and what it is in the extended one."""
_COMMAS: Final = r"^\s*[-+]?[0-9]*,[0-9][0-9,]*(?:[eE][-+]?[0-9]+)?\s*[A-Za-zµμ]*\s*$"
_POINT: Final = r"^\s*[-+]?[0-9,]*\.[0-9]+(?:[eE][-+]?[0-9]+)?\s*[A-Za-zµμ]*\s*$"
_THOUSANDS: Final = r"^\s*[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?\s*[A-Za-zµμ]*\s*$"
"""Numbers with commas, with a decimal point, and with commas between thousands."""
_VALUE: Final = re.compile(r"[-+]?(?:[0-9][0-9.,]*|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?(?:\s*[A-Za-zµμ]{1,2})?|nan", re.I)


def looks_like_date(cell: str) -> bool:
    """Whether a cell is a date without a time of day."""
    return bool(re.fullmatch(_DATE, cell))


def looks_like_moment(cell: str) -> bool:
    """Whether a cell is a time of day, with or without a date."""
    return bool(re.match(_MOMENT, re.sub(_BASIC, _EXTENDED, cell)))


def looks_like_value(cell: str) -> bool:
    """Whether a cell is a number, with or without a unit behind it, a date or a time of day."""
    return bool(_VALUE.fullmatch(cell)) or looks_like_date(cell) or looks_like_moment(cell)


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, each array of shape (n,)."""

    values: Float64Array
    """in the column's unit, or in the cells' own base unit if they state one; NaN where a cell is empty or garbled"""
    garbled: BoolArray
    """True where a cell is neither a number nor empty"""
    has_units: bool
    """whether the cells state their units, so that `values` are in base units"""
    step: float
    """smallest difference that the cells' digits show, in the unit of `values`"""


def have_decimal_comma(columns: Iterable[pa.ChunkedArray], separator: str) -> bool:
    """Whether the numbers of a table have a decimal comma.

    Raises: BadInput: the comma may as well separate thousands, or other numbers have a point.
    """
    columns = list(columns)
    with_comma = [column for column in columns if _any(pc.match_substring(column, ","))]
    numbers_of = [column.filter(pc.match_substring_regex(column, _COMMAS)) for column in with_comma]
    with_point = [
        column.filter(points) for column in columns if _any(points := pc.match_substring_regex(column, _POINT))
    ]
    decimal = [
        one
        for one, column in zip(numbers_of, with_comma, strict=True)
        if len(one) == len(column) and not _all(pc.match_substring_regex(one, _THOUSANDS))
    ]
    if with_point and decimal and separator != ",":
        raise BadInput(
            f"'{with_point[0][0]}' has a point and '{decimal[0][0]}' a comma: export it with one decimal sign and "
            "nothing between thousands"
        )
    if not any(map(len, numbers_of)) or with_point:
        return False
    if separator == "," and all(_all(pc.match_substring_regex(one, _THOUSANDS)) for one in numbers_of):
        first = next(one[0] for one in numbers_of if len(one))
        raise BadInput(f"'{first}' has a decimal comma or one between thousands: export it with a point")
    return True


def numbers(column: pa.ChunkedArray, units: Mapping[str, float], *, decimal_comma: bool) -> Numbers:
    """A column of cells as numbers; `units`: unit behind a number -> factor to the base unit.

    A comma that is no decimal comma is allowed between thousands alone.
    """
    text = pc.utf8_trim_whitespace(column)
    if decimal_comma:
        text = pc.replace_substring(text, ",", ".")
    elif _any(pc.match_substring(text, ",")):
        text = pc.if_else(pc.match_substring_regex(text, _THOUSANDS), pc.replace_substring(text, ",", ""), text)
    present = pc.invert(pc.is_in(pc.utf8_lower(text), value_set=ABSENT))
    text = pc.if_else(present, text, None)
    try:
        plain, unit_of_row = pc.cast(text, pa.float64()), None
    except pa.ArrowInvalid:
        parts = pc.extract_regex(text, _NUMBER_AND_UNIT)
        plain = pc.cast(pc.struct_field(parts, "number"), pa.float64())
        unit_of_row = pc.struct_field(parts, "unit")
    values = np.array(pc.fill_null(plain, np.nan).to_numpy(), np.float64)
    has_units, step = False, 10.0 ** -_decimals(text)
    if unit_of_row is not None:
        words, index = _encoded(unit_of_row)
        has_units = any(word in units for word in words)
        without = np.nan if has_units else 1.0
        factors = np.array([units.get(word, np.nan) if word else without for word in words])
        values *= factors[index]
        step *= float(np.nanmin(factors, initial=1.0))
    values[~np.isfinite(values)] = np.nan
    return Numbers(values, np.isnan(values) & _flags(present), has_units, step)


def _any(flags: pa.ChunkedArray) -> bool:
    return bool(pc.any(flags).as_py())


def _all(flags: pa.ChunkedArray) -> bool:
    return bool(pc.all(flags).as_py())


def _decimals(text: pa.ChunkedArray) -> int:
    """Largest number of digits behind the decimal point."""
    digits = pc.struct_field(pc.extract_regex(text.slice(0, STEP_ROWS), r"\.(?P<digits>[0-9]+)"), "digits")
    return int(pc.max(pc.utf8_length(digits)).as_py() or 0)


def moments(column: pa.ChunkedArray, name: str) -> Numbers:
    """A column of times of day, with or without a date, as seconds; times without a date go on after midnight.

    Raises: BadInput: the order of day and month is unknown; names the column.
    """
    text = pc.replace_substring_regex(pc.utf8_trim_whitespace(column), pattern=_BASIC, replacement=_EXTENDED)
    parts = pc.extract_regex(text, _MOMENT)
    field = {part: pc.struct_field(parts, part) for part in ("date", "hours", "minutes", "seconds", "half", "zone")}
    fractions = pc.replace_substring_regex(field["seconds"], pattern="[,:]", replacement=".")
    half = pc.utf8_upper(field["half"])
    is_half, afternoon = (_flags(pc.is_in(half, value_set=pa.array(of_day))) for of_day in (["AM", "PM"], ["PM"]))
    hours = _floats(field["hours"])
    hours = np.where(is_half, hours % 12, hours) + 12.0 * afternoon
    time_s = 3600.0 * hours + 60.0 * _floats(field["minutes"]) + _floats(fractions, absent=0.0)
    time_s -= _of_words(field["zone"], _zone_s)
    days = _days(field["date"], name)
    if days is None:
        known = np.flatnonzero(~np.isnan(time_s))
        midnights = np.cumsum(np.diff(time_s[known], prepend=time_s[known[:1]]) < -DAY_S / 2)
        time_s[known] += DAY_S * midnights
    else:
        time_s += DAY_S * days
    garbled = np.isnan(time_s) & _flags(pc.not_equal(text, ""))
    return Numbers(time_s, garbled, True, 10.0 ** -_decimals(fractions))


def _floats(column: pa.ChunkedArray, absent: float = np.nan) -> Float64Array:
    parsed = pc.if_else(pc.equal(column, ""), None, column)
    return np.array(pc.fill_null(pc.cast(parsed, pa.float64()), absent).to_numpy(), np.float64)


def _flags(column: pa.ChunkedArray) -> BoolArray:
    return np.asarray(pc.fill_null(column, False).to_numpy(), np.bool_)


def _encoded(column: pa.ChunkedArray) -> tuple[list[str], npt.NDArray[np.int32]]:
    """(the words of a column, index of the word of each row); a missing word is empty."""
    encoded = pc.fill_null(column, "").combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def _of_words(column: pa.ChunkedArray, value: Callable[[str], float]) -> Float64Array:
    """A number for each row, made from its word."""
    words, index = _encoded(column)
    return np.array([value(word) for word in words], np.float64)[index]


def _zone_s(zone: str) -> float:
    """Offset of a time zone from UTC [s]; 0 if none is stated."""
    if not zone.startswith(("+", "-")):
        return 0.0
    size_s = 3600.0 * int(zone[1:3]) + 60.0 * int(zone[-2:])
    return -size_s if zone.startswith("-") else size_s


def _days(column: pa.ChunkedArray, name: str) -> Float64Array | None:
    """Days since the first date, shape (n,); None if the cells have no date. Raises: BadInput: see moments()."""
    words, _ = _encoded(column)
    dates = [[int(part) for part in re.split(r"[-/.]", word)] for word in words if word]
    if not dates:
        return None
    year_first = all(parts[0] > 999 for parts in dates)
    day_first, month_first = (any(parts[place] > 12 for parts in dates) for place in (0, 1))
    if len(dates) > 1 and not year_first and day_first == month_first:
        raise BadInput(
            f"column '{name}': the order of day and month in '{words[0]}' is unknown: write dates as YYYY-MM-DD"
        )
    order = (0, 1, 2) if year_first else (2, 1, 0) if day_first else (2, 0, 1)
    days = _of_words(column, lambda word: _day(word, order))
    return days - np.nanmin(days) if np.isfinite(days).any() else days


def _day(word: str, order: tuple[int, int, int]) -> float:
    """Number of a date's day; NaN if it is none. `order`: places of year, month and day in the word."""
    parts = re.split(r"[-/.]", word)
    try:
        year, month, day = (int(parts[place]) for place in order)
        return float(date(year + 2000 * (year < 100), month, day).toordinal())
    except (ValueError, IndexError):
        return np.nan
