"""The long table of a record: a row for each quantity, in the mean and in each repeat, of the whole work and of each
phase, with label and meaning from the table of quantities. All that shows a number of a record reads it here.

Everything in result.json that has a value and a unit is listed, even if the table does not know it, so that a report
leaves nothing out.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from opjoule.base.units import Cause, Quantity, exact, from_json, missing, unstated
from opjoule.results.rounding import NONE, Rounded, quantity_text, rounded, rounded_quantity
from opjoule.runs.evaluation.quantities.definition import ALL_TOLD, Quantities, told_path, total
from opjoule.runs.record.result import Conclusion

NOT_IDENTIFIABLE: Final = "not identifiable"
BY_PHASE: Final = "by_phase."
"""Beginning of the paths of each phase that the work marked."""
_SENSOR = re.compile(r"by_sensor\.(?P<number>\d+)\.(?P<key>.+)")
"""Path of a quantity from an additional sensor."""


@dataclass(frozen=True)
class Row:
    """A row of the long table: one quantity of a record, in the mean or in one repeat, with its label and meaning."""

    path: str
    label: str
    meaning: str
    quantity: Quantity
    repeat: int | None = None
    """None: the mean over the repeats."""

    @property
    def phase(self) -> str | None:
        """The phase that the work marked, whose name may have dots; None for the whole work."""
        return self.path.removeprefix(BY_PHASE).rpartition(".")[0] if self.path.startswith(BY_PHASE) else None

    @property
    def name(self) -> str:
        """Path of the quantity within its phase."""
        return self.path if self.phase is None else self.path.rpartition(".")[2]

    @property
    def shown(self) -> Rounded | None:
        """Value and uncertainty as texts, a fraction in per cent; None if the value is missing."""
        of = self.quantity
        if of.value is None or not self.path.endswith("_fraction"):
            return rounded_quantity(of)
        return rounded(100 * of.value, None if of.u is None else 100 * of.u, "%", digits_without_u=3)

    @property
    def text(self) -> str:
        """The value rounded to its uncertainty, with unit; a dash if there is none."""
        return str(self.shown or NONE)

    @property
    def brief(self) -> str:
        """Short text, without an uncertainty that is below the four digits shown (the full table has it)."""
        of = self.quantity
        if of.u is not None and 0 < of.u < 1e-4 * abs(float(of)):
            return str(rounded(float(of), None, of.unit))
        if of.value is not None and of.u is None and not self.path.endswith("_fraction"):
            return str(rounded(of.value, None, of.unit, digits_without_u=3))
        return self.text

    @property
    def reason(self) -> str:
        """Reason why the value or its uncertainty is missing; empty if both are known."""
        return "" if self.quantity.u is not None else self.quantity.reason


def _entry(result: Mapping[str, Any], path: str) -> Any:
    entry: Any = result
    for part in path.split("."):
        if is_quantity(entry):
            break
        entry = entry.get(part) if isinstance(entry, Mapping) else None
    return entry


def number_of(path: str, entry: Any) -> Quantity:
    """The entry at a path of result.json as a quantity; Missing if it is no number.

    A bare count is exact; another bare number has no stated uncertainty.
    """
    if is_quantity(entry):
        return from_json(entry)
    if isinstance(entry, int) and not isinstance(entry, bool):
        return exact(entry, "1")
    if isinstance(entry, float):
        return unstated(float(entry), "s" if path.endswith("_s") else "1", "")
    return missing(Cause.ABSENT)


def by_kind(result: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Figures of each kind of operation in result.json; empty if the record has none, or withholds all of them."""
    entries = result.get("by_operation") or {}
    return {} if is_quantity(entries) else entries


def all_told_paths(result: Mapping[str, Any]) -> dict[str, str]:
    """Kind -> path of what one of its operations costs all told; empty with one kind, whose cost is the headline."""
    kinds = by_kind(result)
    if len(kinds) < 2:
        return {}
    return {kind: told_path(kind) for kind, entry in kinds.items() if ALL_TOLD in entry}


def rows(of: Conclusion, table: Quantities) -> list[Row]:
    """The means of all quantities: those of the table in reading order, then the rest in the file's order."""
    listed = [path for path, entry in numbers(of.numbers) if is_quantity(entry) or table.get(path)]
    all_means = means(of, table)
    found = {path: all_means[path] for path in listed}
    known = [definition.key for definition in table.shown("table") if definition.label and definition.key in found]
    return [row(table, path, found[path]) for path in [*known, *(path for path in found if path not in known)]]


def row(table: Quantities, path: str, of: Quantity) -> Row:
    """The quantity with the label and meaning of its path, which names one that the table does not know."""
    sensor = _SENSOR.fullmatch(path)
    known = table.get(sensor["key"] if sensor else path)
    label = known.label if known else ""
    if sensor and label:
        label = f"sensor {sensor['number']}: {label}"
    return Row(
        path,
        label or path.replace("_", " ").replace(".", ", "),
        known.meaning if known and label else "",
        of,
    )


def part_text(path: str, of: Quantity) -> str:
    """The same for a quantity at a path; a part of a breakdown that has no value is not identifiable."""
    is_part = path.startswith("by_") and of.value is None and of.cause is not Cause.ABSENT
    return NOT_IDENTIFIABLE if is_part else quantity_text(of)


def is_quantity(entry: object) -> bool:
    """True for a quantity, and for an object with a value, an uncertainty and a unit."""
    return isinstance(entry, Quantity) or (isinstance(entry, Mapping) and {"value", "u", "unit"} <= entry.keys())


def numbers(entry: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """All quantities and bare numbers below an entry by path, in the file's order; a name in a path may have dots."""
    for key, value in entry.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, int | float) or is_quantity(value):
            yield here, value
        elif isinstance(value, Mapping):
            yield from numbers(value, here)


SCHEMA: Final = pa.schema(
    {
        "path": pa.string(),
        "phase": pa.string(),
        "quantity": pa.string(),
        "repeat": pa.int32(),
        "value": pa.float64(),
        "u": pa.float64(),
        "unit": pa.string(),
        "cause": pa.string(),
        "reason": pa.string(),
    }
)
"""`path` in result.json; `phase` that the work marked (null: the whole work), and `quantity` in it; `repeat` (null: the
mean over all of them); expanded uncertainty `u`; cause and reason of what is missing."""
OF_A_REPEAT: Final = "the interval of a single repeat is not stored"


def long_table(of: Conclusion, quantities: Quantities) -> pa.Table:
    """All rows of a record; none without a result."""
    listed = []
    for row in long_rows(of, quantities):
        number = {name: getattr(row.quantity, name) for name in ("value", "u", "unit", "cause")}
        place = {"path": row.path, "phase": row.phase, "quantity": row.name, "repeat": row.repeat}
        listed.append({**place, **number, "reason": row.reason})
    return pa.Table.from_pylist(listed, schema=SCHEMA)


def long_rows(of: Conclusion, quantities: Quantities) -> Iterator[Row]:
    """The same as rows: first the means, then each repeat."""
    yield from rows(of, quantities)
    for path, repeats in of.by_repeat.items():
        for number, value in enumerate(repeats.values, 1):
            yield Row(path, "", "", unstated(value, repeats.unit, OF_A_REPEAT), number)


_BY_KIND: Final = "by_operation."
_NO_QUANTITIES: Final = ("schema", "shared", "by_repeat")
"""Keys of result.json without quantities of their own."""


def means(of: Conclusion, quantities: Quantities) -> dict[str, Quantity]:
    """The means by path: each with its errors in common with other quantities, and with the spread of its repeats."""
    own = {key: entry for key, entry in of.numbers.items() if key not in _NO_QUANTITIES}
    return {sys.intern(path): _mean(of, quantities, path, entry) for path, entry in numbers(own)}


def mean(of: Conclusion, quantities: Quantities, path: str) -> Quantity:
    """The mean at a dotted path, as in `means`; a part of a missing group has the group's reason."""
    return _mean(of, quantities, path, _entry(of.numbers, path))


def _mean(of: Conclusion, quantities: Quantities, path: str, entry: Any) -> Quantity:
    known = quantities.get(path)
    in_common = of.shared.get(known.budget if known and known.budget else path)
    number, repeats = number_of(path, entry), of.by_repeat.get(path)
    if repeats:
        deviation = repeats.standard_deviation
        if known and known.over is total and deviation is not None:  # a sum, whose spread is larger than a mean's
            deviation *= len(repeats.values)
        return number.of_repeats(repeats.values, in_common, deviation)
    return replace(number, shared=in_common) if in_common else number


def kinds_in(paths: Iterable[str]) -> list[str]:
    """The kinds of operation among the paths of a record; none if it withholds all of them."""
    return list(dict.fromkeys(path.split(".")[1] for path in paths if path.startswith(_BY_KIND)))
