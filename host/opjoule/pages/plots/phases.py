"""Time and energy of a study's phases by system: each phase, cold against repeated phases, and bulk measures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Final

from opjoule.base.units import Quantity
from opjoule.pages.drawing.drawing import Bar, Bars, Drawing, interval
from opjoule.results.comparison.study.rows import PhaseRow, Place, StudyTable
from opjoule.results.comparison.study.table import mean_of
from opjoule.results.comparison.value_words import measure_unit, measure_words
from opjoule.results.rounding import NONE, rounded

NOT_SUPPORTED: Final = "n/s"
Value = tuple[float | None, float | None]
"""A value and its expanded uncertainty; None: not known, not stated."""
Slot = tuple[int, str, Sequence[PhaseRow], bool]
"""Place of a bar: its group and system, the rows of which it is the mean, whether it is faint."""
_CALLS: Final = "calls"
"""Figure reported by the job: number of operations of a phase in one of its runs."""


def study_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Drawing]]]:
    """(name of its files, function that draws it) of a figure for each place in which systems are compared."""
    for place in dict.fromkeys(row.place for row in study.rows):
        yield figure_name(study, place, "phases"), partial(phases_figure, study, place)


def cold_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Drawing]]]:
    """(name, function that draws it) of a figure of the phases in [cold] and one of [bars], for each place."""
    for place in dict.fromkeys(row.place for row in study.rows):
        reported = {row.phase for row in study.rows if row.place == place}
        if reported & set(study.cold):
            yield figure_name(study, place, "cold"), partial(cold_figure, study, place)
        if reported & set(study.bars.values()):
            yield figure_name(study, place, "bulk"), partial(bars_figure, study, place)


def figure_name(study: StudyTable, place: Place, *words: str, also: str = "") -> str:
    """Name of a figure's files from study, place and `words`; only letters, digits and characters in `also`."""
    name = "-".join([study.name.rpartition("/")[2], *(f"{axis}-{value}" for axis, value in place), *words])
    return "".join(letter if letter.isalnum() or letter in also else "-" for letter in name)


def phases_figure(study: StudyTable, place: Place) -> Drawing:
    """Bars with a colour for each system; n/s: the system does not support the phase; a dash: its value is unknown."""
    rows = [row for row in study.rows if row.place == place]
    phases = [phase for phase in study.phases if any(row.phase == phase for row in rows)]
    systems = _systems(rows)
    slots = [(at, name, rows_of(rows, phase, name), False) for at, phase in enumerate(phases) for name in systems]
    which = f"per {study.per}" if study.per else "of a phase"
    time = partial(_mean, names=[f"per_{study.per}_us"]) if study.per else seconds
    energy = "energy_per_operation_j" if study.per else "energy_j"
    above = _bars(study, slots, time, Bars(f"time {which}", "µs" if study.per else "s", (), phases))
    below = _bars(study, slots, None, Bars(f"energy {which}", "J", (), phases), energy)
    return _drawing(study, rows, [above, below])


def cold_figure(study: StudyTable, place: Place) -> Drawing:
    """Cold and repeated bar for each system and phase, with their ratio; upper panel: seconds, lower panel: joules."""
    rows = [row for row in study.rows if row.place == place]
    phases = [phase for phase in study.phases if phase in study.cold]
    slots = [
        (at, system, rows_of(rows, name, system), name == phase)
        for at, phase in enumerate(phases)
        for system in _systems(rows)
        for name in (study.cold[phase], phase)
    ]
    above = _bars(study, slots, seconds, Bars("time", "s", (), phases))
    below = _bars(study, slots, None, Bars("energy", "J", (), phases))
    panels = [replace(of, labels=[*_ratios(of.bars)]) for of in (above, below)]
    return replace(_drawing(study, rows, panels), faint=("left: cold", "right: repeated"))


def bars_figure(study: StudyTable, place: Place) -> Drawing:
    """Panels of each measure of [bars] and of the joules of each of their phases; a bar from 0 for each system.

    Each has its value as text, because small bars are invisible on a linear axis.
    """
    rows = [row for row in study.rows if row.place == place]
    panels = []
    for measure, phase in [*study.bars.items(), *(("", phase) for phase in dict.fromkeys(study.bars.values()))]:
        slots = [(0, system, rows_of(rows, phase, system), False) for system in _systems(rows)]
        unit = "J" if not measure else measure_unit(measure) if "_per_" not in measure else "1"
        empty = Bars("", "", (), [""], title=f"{phase}: {measure_words(measure or 'energy_j')}")
        made = _bars(study, slots, partial(_mean, names=[measure]) if measure else None, empty)
        known = [(bar.place, bar.value, bar.limits) for bar in made.bars if bar.value is not None]
        tops = [(place, value, limits[1] if limits else value) for place, value, limits in known]
        labels = [(0, place, top, str(rounded(value, top - value or None, unit, 3))) for place, value, top in tops]
        panels.append(replace(made, labels=labels))
    return replace(_drawing(study, rows, panels), across=len(panels))


def _bars(
    study: StudyTable,
    slots: Sequence[Slot],
    value: Callable[[Sequence[PhaseRow]], Value] | None,
    panel: Bars,
    energy: str = "energy_j",
) -> Bars:
    """The panel with a bar for each slot, or n/s or a dash where there is no value above 0.

    `value`: what is drawn of the rows; None: an energy, with a point for its part above idle.
    """
    bars, above_idle = [], []
    places = len(slots) // len(panel.groups)
    for at, (group, system, rows, faint) in enumerate(slots):
        number, u = value(rows) if value else joules(rows, energy)
        bar = Bar("", group, at % places, None, faint=faint)
        if number is None or number <= 0:
            supported = not any(row.not_supported for row in rows)
            bars.append(replace(bar, text=NONE if supported else NOT_SUPPORTED))
        else:
            parts = [(number, study.systems.index(system))]
            bars.append(replace(bar, value=number, limits=interval(number, u), parts=parts))
        marginal_j, _ = joules(rows, f"marginal_{energy}")
        if marginal_j is not None and marginal_j > 0:
            above_idle.append((group, at % places, marginal_j, None))
    return replace(panel, bars=bars, places=places, dots={} if value else {"above idle": above_idle})


def _ratios(bars: Sequence[Bar]) -> Iterator[tuple[int, float, float, str]]:
    """The ratio of each cold bar to the repeated one, above both and their intervals."""
    for cold, repeated in zip(bars[::2], bars[1::2], strict=True):
        if cold.value is not None and repeated.value is not None:
            words = f"\N{MULTIPLICATION SIGN}{rounded(cold.value / repeated.value, None, '1', 3)}"
            top = max(bar.limits[1] if bar.limits else bar.value or 0.0 for bar in (cold, repeated))
            yield cold.group, cold.place + 0.5, top, words


def _systems(rows: Sequence[PhaseRow]) -> list[str]:
    return sorted({row.system for row in rows})


def _drawing(study: StudyTable, rows: Sequence[PhaseRow], panels: Sequence[Bars]) -> Drawing:
    """The drawing with the legend of its systems, whose colours are the same in all figures of the study."""
    names = [system if system in _systems(rows) else "" for system in study.systems]
    return Drawing(panels, names, simulated=study.simulated, warnings=study.warnings)


def rows_of(rows: Sequence[PhaseRow], phase: str, system: str) -> list[PhaseRow]:
    """The rows of one phase on one system."""
    return [row for row in rows if (row.phase, row.system) == (phase, system)]


def seconds(rows: Sequence[PhaseRow]) -> Value:
    """Duration of one run of a phase [s], measured by the job, else from the marks; mean over records."""
    return _mean(rows, ["mean_s", "duration_s"])


def joules(rows: Sequence[PhaseRow], name: str) -> Value:
    """Energy of one run of a phase [J] and its expanded uncertainty, None if they are not known.

    For a repeated phase, of the calls of one run; mean over records.
    """
    sides = _of_one_run(rows, name)
    mean = mean_of(sides) if sides else None
    return (mean.value, mean.u) if mean else (None, None)


def _of_one_run(rows: Sequence[PhaseRow], name: str) -> list[Quantity]:
    """Energy of one run of a phase [J] in each row that has it."""
    per_call = name.replace("_j", "_per_operation_j")
    sides: list[Quantity] = []
    for row in rows:
        if {per_call, _CALLS} <= row.measures.keys():
            sides.append(row.measures[per_call].scale(float(row.measures[_CALLS])))
        elif name in row.measures:
            sides.append(row.measures[name])
    return sides


def _mean(rows: Sequence[PhaseRow], names: Sequence[str]) -> Value:
    """Mean over the rows of the first of some measures that a row has, without an interval; None if none has any."""
    there = [next((row.measures[name] for name in names if name in row.measures), None) for row in rows]
    known = [float(of) for of in there if of]
    return (fmean(known) if known else None), None
