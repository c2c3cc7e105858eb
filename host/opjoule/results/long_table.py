"""The long table of a record: a row for each quantity, in the mean and in each repeat, of the whole work and of each
phase. Exports and `open_runs` read it."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from opjoule.results.quantities import rows
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
_BY_PHASE: Final = "by_phase."


def long_table(of: Conclusion, quantities: Quantities) -> pa.Table:
    """All rows of a record; none without a result."""
    return pa.Table.from_pylist([*_means(of, quantities), *_repeats(of)], schema=SCHEMA)


def _means(of: Conclusion, quantities: Quantities) -> Iterator[dict[str, Any]]:
    for row in rows(of.numbers, quantities):
        number = {name: getattr(row.quantity, name) for name in ("value", "u", "unit", "cause")}
        yield {**_place(row.path), **number, "reason": row.reason}


def _repeats(of: Conclusion) -> Iterator[dict[str, Any]]:
    for path, repeats in of.by_repeat.items():
        for number, value in enumerate(repeats.values, 1):
            yield {**_place(path), "repeat": number, "value": value, "unit": repeats.unit}


def _place(path: str) -> dict[str, str | None]:
    """Path, phase and quantity; a phase's name may have dots."""
    if not path.startswith(_BY_PHASE):
        return {"path": path, "phase": None, "quantity": path}
    phase, _, quantity = path.removeprefix(_BY_PHASE).rpartition(".")
    return {"path": path, "phase": phase, "quantity": quantity}
