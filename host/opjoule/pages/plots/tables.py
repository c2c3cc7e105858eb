"""The numbers of the figures as CSV and LaTeX, and a paragraph on how they were measured."""

from collections.abc import Mapping
from typing import Final

import matplotlib as mpl

from opjoule.base.files import csv_text
from opjoule.results.comparison.costs import kind_of
from opjoule.results.comparison.methods import methods as methods_of
from opjoule.results.comparison.plotted import Plotted, PlottedCell
from opjoule.results.comparison.run_warnings import SIMULATED, marks_of
from opjoule.results.comparison.value_words import noun
from opjoule.results.rounding import MINUS, NONE, rounded_quantity

SHOWN: Final[Mapping[str, str]] = {
    "marginal_energy_per_operation_j": "above idle per operation",
    "energy_per_operation_j": "in all per operation",
    "power_w": "power",
    "throughput_per_s": "throughput",
    "latency_s.p99": "latency, 99 %",
}
"""Path of a quantity -> heading of its column in the LaTeX table."""
ALL: Final = (
    *SHOWN,
    *("marginal_energy_j", "energy_j", "run_energy_j", "write_back_energy_j", "idle_power_w", "duration_s"),
    *("bandwidth_bytes_per_s", "latency_s.mean", "latency_s.p50", "cpu_fraction", "disk_read_bytes"),
    *("disk_written_bytes", "peak_memory_bytes", "write_amplification"),
)
"""Columns of the CSV file."""
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def csv_table(plotted: Plotted) -> str:
    """One row for each cell: settings, number of runs, simulated or not, and value and u (95 %) of each number."""
    paths = [*ALL, *(of.key for of in plotted.told)]
    numbers_of = [name for path in paths for name in (path, f"{path}, u")]
    rows: list[list[object]] = [[*plotted.cells[0].values, "runs", "simulated", *numbers_of, "warnings"]]
    for cell in plotted.cells:
        quantities = [cell.number(path) for path in paths]
        numbers = [value for of in quantities for value in (of.value, of.u)]
        about = [*cell.values.values(), len(cell.runs), str(plotted.simulated).lower()]
        rows.append([*about, *numbers, "; ".join(marks_of(cell.runs))])
    return csv_text(rows)


def latex_table(plotted: Plotted) -> str:
    """A table to be included with \\input; needs no LaTeX package."""
    axes = [axis for axis in plotted.cells[0].values if axis in (*plotted.series_axes, *plotted.group_axes)]
    marks = [", ".join(marks_of(cell.runs)) or "--" for cell in plotted.cells]
    warned = any(marks_of(cell.runs) for cell in plotted.cells)
    shown = {**SHOWN, **{of.key: f"{kind_of(of)}, all told" for of in plotted.told}}
    columns = len(axes) + len(shown) + warned
    simulated = [r"\textbf{SIMULATED}: no board was measured"] if plotted.simulated else []
    warning = [rf"\textbf{{{_escaped(plotted.warnings)}}}"] if warned else []
    head = [
        *(_escaped(noun([axis])) for axis in axes),
        *map(_escaped, shown.values()),
        *(["warnings"] * warned),
    ]
    rows = [
        [
            *(_escaped(cell.values[axis]) for axis in axes),
            *(_number(cell, path) for path in shown),
            *([mark] * warned),
        ]
        for cell, mark in zip(plotted.cells, marks, strict=True)
    ]
    lines = [
        r"\begin{tabular}{" + "l" * len(axes) + "r" * len(shown) + "l" * warned + "}",
        *(rf"\multicolumn{{{columns}}}{{l}}{{{line}}} \\" for line in (*simulated, *warning)),
        *(r"\hline", " & ".join(head) + r" \\", r"\hline"),
        *(" & ".join(row) + r" \\" for row in rows),
        *(r"\hline", r"\end{tabular}"),
    ]
    return "\n".join(lines) + "\n"


def _number(cell: PlottedCell, path: str) -> str:
    """`$1.23 \\pm 0.05$\\,mJ` or `$16 (0 to 59)$\\,kB`; a dash for a missing one, or that it is not identifiable."""
    shown = rounded_quantity(cell.number(path))
    if shown is None:
        return cell.text(path).replace(NONE, "--")
    unit = _escaped(shown.unit).replace("µ", r"$\mu$")
    figure = shown.figure.replace(MINUS, "-").replace("±", r"\pm").replace(" to ", r"\mbox{ to }")
    return f"${figure}$".replace(",", "{,}") + (rf"\,{unit}" if unit else "")


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def methods(plotted: Plotted) -> str:
    """Text on the methods behind the figures, and on records that were left out."""
    simulated = f"SIMULATED: {SIMULATED}\n" if plotted.simulated else ""
    drawn = f"Figures were drawn with matplotlib {mpl.__version__}.\n"
    left_out = "".join(f"Left out: {line}\n" for line in plotted.left_out)
    return simulated + methods_of([cell.runs for cell in plotted.cells]) + drawn + left_out
