"""The long table of a record: a row for each quantity, in the mean and in each repeat, of the whole work and of each
phase. Exports and `open_runs` read all of it; comparisons, figures and studies read the means."""

import sys
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from opjoule.base.units import Quantity, unstated
from opjoule.results.quantities import Row, number_of, numbers, rows
from opjoule.runs.evaluation.quantities.definition import Quantities
from opjoule.runs.record.result import Conclusion

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
    yield from rows(of.numbers, quantities)
    for path, repeats in of.by_repeat.items():
        for number, value in enumerate(repeats.values, 1):
            yield Row(path, "", "", unstated(value, repeats.unit, OF_A_REPEAT), number)


_BY_KIND: Final = "by_operation."
_NO_QUANTITIES: Final = ("schema", "shared", "by_repeat")
"""Keys of result.json without quantities of their own."""


def means(of: Conclusion, quantities: Quantities) -> dict[str, Quantity]:
    """The means by path: each with its errors in common with other quantities, and with the spread of its repeats."""
    found = {}
    own = {key: entry for key, entry in of.numbers.items() if key not in _NO_QUANTITIES}
    for path, entry in numbers(own):
        known = quantities.get(path)
        in_common = of.shared.get(known.budget if known and known.budget else path)
        number, repeats = number_of(path, entry), of.by_repeat.get(path)
        if repeats:
            number = number.of_repeats(repeats.values, in_common, repeats.standard_deviation)
        elif in_common:
            number = replace(number, shared=in_common)
        found[sys.intern(path)] = number
    return found


def kinds_in(paths: Iterable[str]) -> list[str]:
    """The kinds of operation among the paths of a record; none if it withholds all of them."""
    return list(dict.fromkeys(path.split(".")[1] for path in paths if path.startswith(_BY_KIND)))
