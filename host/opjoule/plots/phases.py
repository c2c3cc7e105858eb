"""What each phase of a study took: systems beside each other in each phase, seconds above and joules below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from opjoule.comparison.study.best import mean_with_u
from opjoule.comparison.study.rows import PhaseRow, StudyTable
from opjoule.opened.quantities import NONE
from opjoule.plots.style import COLOURS, HATCHES, INK, canvas, legend, name_places

HEIGHT_IN: Final = 5.2
WIDTH: Final = 0.84
"""Width of all bars of one phase; phases are 1 apart."""
NOT_SUPPORTED: Final = "n/s"
LINEAR_RANGE: Final = 10.0
"""Bars whose values lie within this factor begin at zero; a logarithmic axis has no zero to begin at."""
LOWEST: Final = 0.9
"""Longest lower half of an interval on a logarithmic axis, as a part of its value."""
_CALLS: Final = "calls"
"""The job's own figure: operations of a phase in one of its runs."""

Place = tuple[tuple[str, str], ...]


def study_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """A figure for each place where systems are held against each other: a name for its files, and what draws it."""
    for place in dict.fromkeys(row.place for row in study.rows):
        yield place_name(study, place, "phases"), partial(phases_figure, study, place)


def place_name(study: StudyTable, place: Place, what: str) -> str:
    """Name of the files of a figure of one place."""
    words = [study.name.rpartition("/")[2], *(f"{axis}-{value}" for axis, value in place), what]
    return "-".join("".join(letter if letter.isalnum() else "-" for letter in word) for word in words)


def phases_figure(study: StudyTable, place: Place) -> Figure:
    """Bars: of each system a colour, n/s where it has no such phase, a dash where nobody knows."""
    rows = [row for row in study.rows if row.place == place]
    looks = systems_of(study, rows)
    phases = [phase for phase in study.phases if any(row.phase == phase for row in rows)]
    figure = canvas(HEIGHT_IN)
    above, below = figure.subplots(2, 1, sharex=True)
    above.set_ylabel(f"time per {study.per} [µs]" if study.per else "time of a phase [s]")
    below.set_ylabel(f"energy {f'per {study.per}' if study.per else 'of a phase'} [J]\n(points: above idle)")
    rows_of = {
        (phase, system): [row for row in rows if (row.phase, row.system) == (phase, system)]
        for phase in phases
        for system in looks
    }
    values = {bars: _of_bars(own, study.per) for bars, own in rows_of.items()}
    scale_upwards(above, [time for time, *_ in values.values()])
    scale_upwards(below, [energy_j for _, *energies in values.values() for energy_j in energies])
    width = WIDTH / len(looks)
    for (phase, system), own in rows_of.items():
        x = phases.index(phase) + ([*looks].index(system) - (len(looks) - 1) / 2) * width
        time, energy_j, marginal_energy_j = values[phase, system]
        bar(above, own, time, x, width, looks[system])
        u = joules_u(own, "energy_per_operation_j" if study.per else "energy_j")
        bar(below, own, energy_j, x, width, looks[system], u)
        point(below, marginal_energy_j, x)
    for axes in (above, below):
        axes.set_xlim(-0.6, len(phases) - 0.4)
    name_places(below, phases)
    above.tick_params(axis="x", length=0)
    patches = [patch(looks_so, system) for system, looks_so in looks.items()]
    legend(figure, [*patches, above_idle()], simulated=study.simulated, warnings=study.warnings)
    return figure


def _of_bars(rows: Sequence[PhaseRow], per: str) -> tuple[float | None, float | None, float | None]:
    """Time [s], energy and energy above idle [J] of one run of a phase; [us] and [J] of an operation with a name."""
    if not per:
        return seconds(rows), joules(rows, "energy_j"), joules(rows, "marginal_energy_j")
    names = (f"per_{per}_us", "energy_per_operation_j", "marginal_energy_per_operation_j")
    time, energy_j, marginal_energy_j = (_mean([row.measures.get(name) for row in rows]) for name in names)
    return time, energy_j, marginal_energy_j


def systems_of(study: StudyTable, rows: Sequence[PhaseRow]) -> dict[str, dict[str, Any]]:
    """The systems of some rows of a study -> how their bars look: the same in all of its figures."""
    there = {row.system for row in rows}
    return {system: _look(at) for at, system in enumerate(study.systems) if system in there}


def scale_upwards(axes: Axes, values: Iterable[float | None]) -> None:
    """An axis for bars of these values, with its lines: from zero, or logarithmic where they lie far apart."""
    known = [value for value in values if value is not None and value > 0]
    if known and max(known) > LINEAR_RANGE * min(known):
        axes.set_yscale("log")
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def seconds(rows: Sequence[PhaseRow]) -> float | None:
    """Duration of one run of a phase [s]: what the job has timed, else the mark's; the mean over records."""
    return _mean([row.measures.get("mean_s", row.measures.get("duration_s")) for row in rows])


def joules(rows: Sequence[PhaseRow], name: str) -> float | None:
    """Energy of one run of a phase [J], as many calls as one run has where its job repeats it; mean over records."""
    return _mean([_of_one_run(row.measures, row, name) for row in rows])


def joules_u(rows: Sequence[PhaseRow], name: str) -> float | None:
    """Expanded uncertainty of the same mean [J]; None where it is not known."""
    found = [
        (value, _of_one_run(row.u, row, name))
        for row in rows
        if (value := _of_one_run(row.measures, row, name)) is not None
    ]
    return mean_with_u(found)[1] if found else None


def _of_one_run(numbers: Mapping[str, float], row: PhaseRow, name: str) -> float | None:
    per_call = name.replace("_j", "_per_operation_j")
    if per_call in numbers and _CALLS in row.measures:
        return numbers[per_call] * row.measures[_CALLS]
    return numbers.get(name)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def bar(
    axes: Axes,
    rows: Sequence[PhaseRow],
    value: float | None,
    x: float,
    width: float,
    look: Mapping[str, Any],
    u: float | None = None,
) -> None:
    """One bar with its interval; in its place why there is none: n/s or a dash."""
    if value is not None and value > 0:
        axes.bar(x, value, width * 0.92, **look)
        if u is not None:
            low = min(u, (LOWEST if axes.get_yscale() == "log" else 1.0) * value)
            axes.errorbar(x, value, yerr=[[low], [u]], ecolor=INK, elinewidth=0.7, capsize=1.4)
        return
    refused = any(row.not_supported for row in rows)
    axes.annotate(
        NOT_SUPPORTED if refused else NONE,
        (x, 0.01),
        xycoords=("data", "axes fraction"),
        ha="center",
        va="bottom",
        rotation=90 if refused else 0,
        fontsize=5.5,
        color=INK,
    )


def point(axes: Axes, value: float | None, x: float) -> None:
    """One point, of energy above idle."""
    if value is not None and value > 0:
        axes.plot([x], [value], **_LOOK)


def _look(number: int) -> dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "hatch": HATCHES[number % len(HATCHES)],
        "edgecolor": INK,
        "linewidth": 0.4,
    }


def patch(look: Mapping[str, Any], name: str) -> Patch:
    """The legend's entry of bars that look so."""
    rest = dict(look)
    return Patch(label=name, facecolor=rest.pop("color"), **rest)


def above_idle() -> Line2D:
    """The legend's entry of the points."""
    return Line2D([], [], label="above idle", **_LOOK)


_LOOK: Final[dict[str, Any]] = {
    "marker": "D",
    "markersize": 3.2,
    "markerfacecolor": INK,
    "markeredgecolor": "white",
    "markeredgewidth": 0.5,
    "linestyle": "none",
}
