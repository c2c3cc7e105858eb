"""The numbers under the figures, as CSV and LaTeX, and a paragraph that says how they were measured."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Final

import matplotlib as mpl

from opjoule.plots.cells import AXES, Plotted, PlottedCell
from opjoule.record.run import Run
from opjoule.report.answer import Answer
from opjoule.report.quantities import rounded_quantity
from opjoule.report.rounding import MINUS
from opjoule.units import Quantity

SHOWN: Final[Mapping[str, str]] = {
    "marginal_energy_per_operation_j": "above idle per operation",
    "energy_per_operation_j": "in all per operation",
    "power_w": "power",
    "throughput_per_s": "throughput",
    "latency_s.p99": "latency, 99 \\%",
}
"""Columns of the LaTeX table, by path."""
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
    """A row a cell: its settings, how many runs, whether simulated, and value and u (k = 2) of each number."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*AXES, "runs", "simulated", *(name for path in ALL for name in (path, f"{path}, u"))])
    for cell in plotted.cells:
        found = [cell.number(path) for path in ALL]
        numbers = [value for of in found for value in (of.value, of.u)]
        said = str(plotted.simulated).lower()
        writer.writerow([*cell.values.values(), len(cell.runs), said, *numbers])
    return out.getvalue()


def latex_table(plotted: Plotted) -> str:
    """A table for inclusion with \\input; needs no package."""
    axes = [axis for axis in AXES if axis in (*plotted.series_axes, *plotted.group_axes)]
    warning = (
        rf"\multicolumn{{{len(axes) + len(SHOWN)}}}{{l}}{{\textbf{{SIMULATED}}: no board was measured}} \\"
    )
    lines = [
        r"\begin{tabular}{" + "l" * len(axes) + "r" * len(SHOWN) + "}",
        *([warning] if plotted.simulated else []),
        r"\hline",
        " & ".join([*axes, *SHOWN.values()]) + r" \\",
        r"\hline",
        *(" & ".join(_row(cell, axes)) + r" \\" for cell in plotted.cells),
        r"\hline",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _row(cell: PlottedCell, axes: Iterable[str]) -> list[str]:
    return [*(_escaped(cell.values[axis]) for axis in axes), *(_number(cell.number(path)) for path in SHOWN)]


def _number(of: Quantity) -> str:
    """`$1.23 \\pm 0.05$\\,mJ`; a dash for a missing one."""
    shown = rounded_quantity(of)
    if shown is None:
        return "--"
    interval = "" if shown.u is None else rf" \pm {shown.u}"
    unit = _escaped(shown.unit).replace("µ", r"$\mu$")
    value = shown.value.replace(MINUS, "-")
    return f"${value}{interval}$".replace(",", "{,}") + (rf"\,{unit}" if unit else "")


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def methods(plotted: Plotted) -> str:
    """How the runs were made, from what their records say: what a paper's section on methods needs."""
    answers = [run for cell in plotted.cells for run in cell.runs]
    runs = [each.run for each in answers]
    engines = {f"{of.summary.database} {of.summary.database_version}" for of in runs if of.summary.database}
    text = _METHODS.format(
        versions=_each(_version(run) for run in runs),
        runs=len(runs),
        repeats=_each(str(answer.concluded.repeats or "?") for answer in answers),
        boards=_each(_board_words(answer) for answer in answers),
        media=_each(run.found.storage or "" for run in runs) or "its own medium",
        engines=_each(sorted(engines)) or "none",
        durability=_each(run.summary.settings.get("durability", "") for run in runs) or "not stated",
        work=_each(answer.wording.work(answer.run) for answer in answers),
        meters=_each(_meter(answer) for answer in answers),
        matplotlib=mpl.__version__,
    )
    left_out = "".join(f"Left out: {line}\n" for line in plotted.left_out)
    return (SIMULATED if plotted.simulated else "") + text + left_out


SIMULATED: Final = """\
SIMULATED: no board was measured; the joules come from a power model of board and medium.
"""
_METHODS: Final = """\
Energy was measured with OpJoule {versions} in {runs} runs (repeats in each: {repeats}) on {boards} with {media}.
Databases: {engines}; durability: {durability}.
Workloads: {work}.
Meter: {meters}.
Energy is the integral of voltage times current at the board's supply, over the run, and above idle over the time after
it until writes were done and the power was back at rest. Energy above idle is without idle power, which was measured
before and after each run. Intervals are expanded uncertainties (k = 2), which hold the sensor's errors, noise, lost
samples, clocks, idle's drift and the spread of repeats and runs (JCGM 100:2008); where none is drawn, none is stated.
Figures were drawn with matplotlib {matplotlib}.
"""


def _version(run: Run) -> str:
    found = run.found
    return f"{found.opjoule}{f' ({found.commit[:12]})' if found.commit else ''}"


def _board_words(answer: Answer) -> str:
    """The board as it was asked for and, if it was there, as it names itself."""
    name, model = answer.subject.device, answer.run.found.device.model
    return f"{name} ({model})" if model and not answer.record.simulated else name


def _meter(answer: Answer) -> str:
    meter, found = answer.run.found.meter, answer.run.found
    chips = _each(each.model or "" for each in meter.sensors)
    firmware = f", firmware {meter.firmware_version}" if meter.firmware_version else ""
    calibrated = "; ".join(found.calibrations.values()) or "not calibrated"
    return f"{meter.kind or 'unknown'}{f' with {chips}' if chips else ''}{firmware}, {calibrated}"


def _each(texts: Iterable[str]) -> str:
    """Each text once, in order."""
    return ", ".join(dict.fromkeys(text for text in texts if text))
