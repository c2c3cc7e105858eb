"""study.csv: every row of a study as a table."""

from __future__ import annotations

import csv
import io
from typing import Final

from opjoule.comparison.study.rows import StudyTable

TABLE: Final = "study.csv"


def as_csv(study: StudyTable) -> str:
    """Every row as a table: cell, phase, measures with their uncertainties."""
    axes = list(dict.fromkeys(axis for row in study.rows for axis in row.cell))
    measures = list(dict.fromkeys(name for row in study.rows for name in row.measures))
    stated = [name for name in measures if any(name in row.u for row in study.rows)]
    columns = [part for name in measures for part in ((name, f"{name}.u") if name in stated else (name,))]
    sink = io.StringIO()
    table = csv.writer(sink, lineterminator="\n")
    table.writerow(
        [
            "study",
            *axes,
            "phase",
            "block",
            "operations",
            *columns,
            "not_supported",
            "without_joules",
            "simulated",
            "record",
            "warnings",
        ]
    )
    for row in study.rows:
        values = {**row.measures, **{f"{name}.u": value for name, value in row.u.items()}}
        cells = [f"{values[name]:.9g}" if name in values else "" for name in columns]
        axis_values = [row.cell.get(axis, "") for axis in axes]
        last = [
            row.not_supported,
            row.why,
            "SIMULATED" if row.simulated else "",
            row.record.name,
            "; ".join(row.warnings),
        ]
        table.writerow([row.study, *axis_values, row.phase, row.block, row.operations, *cells, *last])
    return sink.getvalue()
