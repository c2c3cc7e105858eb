"""All figures of some records, with their tables and methods, in one folder."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import matplotlib as mpl

from opjoule.base.errors import BadInput
from opjoule.base.files import csv_text, write_whole
from opjoule.base.settings import MEDIUM
from opjoule.pages.drawing.drawing import Drawing
from opjoule.pages.drawing.printed import printed, save
from opjoule.pages.plots.cells import Plot, plots
from opjoule.pages.plots.phases import cold_figures, curve_figures, grid_figures, series_figures, study_figures
from opjoule.results.comparison.cell import ComparedCell, Plotted, check_drawable, plotted
from opjoule.results.comparison.compared_run import ComparedRun, kind_of
from opjoule.results.comparison.index import gather
from opjoule.results.comparison.run_warnings import SIMULATED, marks_of, warnings_of
from opjoule.results.comparison.run_warnings import methods as methods_of
from opjoule.results.comparison.study_best import BEST_TABLE, TABLE, as_csv, best_csv
from opjoule.results.comparison.study_rows import StudyTable, read_studies
from opjoule.results.comparison.value_words import noun
from opjoule.results.rounding import MINUS, NONE, rounded_quantity
from opjoule.runs.studies.definition import DEVICE, StudyFolder

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


def _number(cell: ComparedCell, path: str) -> str:
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


NamedDrawing = tuple[str, Callable[[], Drawing | None]]
"""(name of a figure's files, function that makes its drawing)."""
FIGURES: Final[dict[str, Plot]] = {plot.name: plot for plot in plots()}


def write_figures(
    places: Sequence[str], folder: Path, although: Iterable[str] = (), study: StudyFolder | None = None
) -> Iterator[str]:
    """Draws every figure of the runs in or below some places, which may be patterns.

    `although`: groups of settings that may differ, as for a comparison; `study`: draws only the counterparts of its
    paper's figures, in the paper's order.
    Yields: the warnings of the runs, one line for each thing written, and one for each record that was left out.
    Raises: BadInput: there is no run with a result, or a comparison would refuse the runs.
    """
    layout = plotted(*gather(places))
    yield from map(str, warnings_of(cell.runs for cell in layout.cells))
    allowed = frozenset(although)
    for shown in (layout, *figures_of_studies(layout.runs).values()):
        yield from check_drawable(shown, allowed)
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"--out {folder} is a file: name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    tables = read_studies([run.place for run in layout.runs])
    everything = chain(_of_runs(layout), *map(_of_phases, tables))
    parts = set()
    for name, draw in _of_paper(layout, tables, study) if study else everything:
        if (drawing := draw()) is None:
            continue
        made = save(printed(drawing), folder, name)
        parts.add(name.partition("-")[0])
        yield f"{made[0].with_suffix('')}: {', '.join(path.suffix[1:] for path in made)}"
    for at, part in enumerate(study.counterparts if study else (), 1):
        if part.drawn and f"{at:02}" not in parts:
            yield f"not drawn: {part.paper} ({part.shows}): these records have nothing of it to compare"
    texts = {"table.csv": csv_table(layout), "table.tex": latex_table(layout), "methods.txt": methods(layout)}
    for table in tables:
        name = Path(table.definition.name).name
        texts |= {f"{name}-{TABLE}": as_csv(table), f"{name}-{BEST_TABLE}": best_csv(table)}
    for name, text in texts.items():
        write_whole(folder / name, text.encode())
        yield str(folder / name)
    for plot in () if study else FIGURES.values():
        if plot.draw(layout) is None:
            yield f"not drawn: {plot.name}: {plot.lacking}"
    for line in layout.left_out:
        yield f"left out: {line}"


def _of_paper(layout: Plotted, tables: Sequence[StudyTable], study: StudyFolder) -> Iterator[NamedDrawing]:
    """The counterparts of a paper's figures, numbered in its order."""
    of_runs, media = dict(_of_runs(layout)), {run.value(MEDIUM) for run in layout.runs}
    for at, part in enumerate(study.counterparts, 1):
        fitting = (any(fnmatch(medium, pattern) for pattern in part.media) for medium in media)
        if part.media and not all(fitting):
            continue
        there = dict(of_runs)
        for table in [study_table.with_phases(part.phases) for study_table in tables]:
            there |= dict([*_of_phases(table), *curve_figures(table)])
        for name in [name for name in there if any(fnmatch(name, pattern) for pattern in part.drawn)]:
            paper = "".join(letter if letter.isalnum() else "-" for letter in part.paper.lower())
            yield f"{at:02}-{paper}-{name}", there[name]


def _of_runs(layout: Plotted) -> Iterator[NamedDrawing]:
    """Figures of any runs, or of the figures of a workload study."""
    figures = figures_of_studies(layout.runs)
    for of, shown in figures.items():
        for name, plot in FIGURES.items():
            if plot.of_study:
                yield f"{of}-{name}", partial(plot.of_study, shown)
    others = [run for run in layout.runs if not figures or not run.asked.get("figures")]
    rest = layout if not figures else plotted(others) if others else None
    for name, plot in FIGURES.items():
        if rest:
            yield name, partial(plot.draw, rest)


def _of_phases(study: StudyTable) -> Iterator[NamedDrawing]:
    yield from (*study_figures(study), *cold_figures(study), *series_figures(study), *grid_figures(study))


SCALE: Final = "scale"
NAMED: Final = (SCALE, "journal")
"""Axes whose values are only clear with the name of the axis."""


def figures_of_studies(runs: Iterable[ComparedRun]) -> dict[str, Plotted]:
    """Name (`s1-figure-7`) -> its cells, by the study's axes, without figures that have only one value to compare.

    A figure that does not compare boards is drawn once for each board (`s1-figure-3-rpi4`). The records state which
    figures show them, and by which axes (`figures` in `asked` of run.json).
    """
    shown: dict[str, list[ComparedRun]] = {}
    about: dict[str, list[str]] = {}
    for run in runs:
        for figure, by in (run.asked.get("figures") or {}).items():
            name = f"{Path(str(run.asked['folder'])).name}-figure-{figure}"
            shown.setdefault(name, []).append(run)
            about[name] = [str(axis) for axis in by]

    def words(run: ComparedRun, axis: str) -> str:
        return f"{axis} {run.value(axis)}" if axis in NAMED else run.words(axis)

    return {
        part: plotted(few, words=words, axes=[*few[0].asked["cell"], SCALE])
        for name, figure_runs in sorted(shown.items())
        for part, few in _parts(name, figure_runs, about[name])
        if any(len({run.value(axis) for run in few}) > 1 for axis in about[name])
    }


def _parts(name: str, runs: Sequence[ComparedRun], about: Sequence[str]) -> Iterator[tuple[str, list[ComparedRun]]]:
    """A figure as a whole, or divided by board."""
    boards = sorted({run.value(DEVICE) for run in runs})
    if DEVICE in about or len(boards) == 1:
        yield name, list(runs)
        return
    for board in boards:
        yield f"{name}-{board}", [run for run in runs if run.value(DEVICE) == board]
