"""The best system of every cell as a grid coloured by system, as study S2 shows its results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from opjoule.base.units import NOT_STATED, unstated
from opjoule.pages.drawing.drawing import Drawing, Grid
from opjoule.pages.plots.phases import figure_name
from opjoule.results.comparison.study.rows import StudyTable, apart_from
from opjoule.results.comparison.study.table import Best, best_systems, value_words


def grid_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Drawing]]]:
    """A grid for each measure of the study's [best] except `also`, and for each combination of the other axes."""
    if not study.grid:
        return
    inside = [study.grid["down"], *study.grid["across"]]
    bests = best_systems(study)
    also = study.grid.get("also")
    for place in dict.fromkeys(apart_from(inside, best.place) for best in bests):
        there = [best for best in bests if apart_from(inside, best.place) == place]
        for measure in study.best:
            place_bests = [best for best in there if best.measure in (measure, also)]
            if measure != also and any(best.measure == measure for best in place_bests):
                name = figure_name(study, place, "winners", measure)
                yield name, partial(grid_figure, study, place_bests)


def grid_figure(study: StudyTable, bests: Sequence[Best]) -> Drawing:
    """Grid of the best systems. Rows: phases and the measure `also`, by the axis `down`; columns: the axes `across`."""
    across = study.grid["across"]
    rows = _rows(study, bests, study.grid["down"])
    columns = sorted(dict.fromkeys(_values(best, across) for best in bests), key=_numbers_first)
    fields = [
        (
            rows.index(_row(study, best)),
            columns.index(_values(best, across)),
            study.systems.index(best.system),
            _words(best),
        )
        for best in bests
    ]
    names = [f"{name}  {value}" for name, value in rows], ["\n".join(column) for column in columns]
    return Drawing([Grid(*names, fields)], study.systems, simulated=study.simulated, warnings=study.warnings)


def _rows(study: StudyTable, bests: Sequence[Best], down: str) -> list[tuple[str, str]]:
    """(name, value) of each row: phases in the study's order, then `also`, each with every value of `down`."""
    also = study.grid.get("also", "")
    values = list(dict.fromkeys(dict(best.place).get(down, "") for best in bests))
    kinds = [(best.phase, best.measure) for best in bests]
    names = [phase for phase in study.phases if any(kind != (phase, also) for kind in kinds)]
    there = {_row(study, best) for best in bests}
    wanted = [(name, value) for name in [*names, also.replace("_", " ")] for value in values]
    return [row for row in wanted if row in there]


def _row(study: StudyTable, best: Best) -> tuple[str, str]:
    name = best.measure.replace("_", " ") if best.measure == study.grid.get("also") else best.phase
    return name, dict(best.place).get(study.grid["down"], "")


def _numbers_first(values: Sequence[str]) -> list[tuple[int, int, str]]:
    return [(0, int(value), "") if value.isdecimal() else (1, 0, value) for value in values]


def _values(best: Best, across: Sequence[str]) -> tuple[str, ...]:
    place: Mapping[str, str] = dict(best.place)
    return tuple(place.get(axis, "") for axis in across)


def _words(best: Best) -> str:
    doubt = "~" if best.differs is False else ""
    value = value_words(unstated(float(best.mean), "", NOT_STATED), best.measure)
    return f"{doubt}{best.system}\n{value}{' [1 run]' if best.single else ''}"
