"""True figures of a simulated measurement next to the measured ones. No part of the estimate imports this module.

The definitions are those of docs/method/energy.md, with the simulator's exact energy instead of the trace.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from opjoule.base.errors import RecordFault
from opjoule.base.units import Quantity, counted, exact, from_json
from opjoule.bench.simulation.parts import COURSE, PARTS, READING, TAIL, WRITE_BACK, PartCourse
from opjoule.energy.operations.operation_table import ACTIVITIES
from opjoule.results.answer import open_answer
from opjoule.results.comparison.cell import ComparedCell
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.long_table import kinds_in, means
from opjoule.results.rounding import quantity_text, rounded, with_unit
from opjoule.runs.evaluation.mixes import WriteCosts, WrittenRun
from opjoule.runs.evaluation.quantities.definition import Definition, told_path
from opjoule.runs.evaluation.quantities.operations import READS
from opjoule.runs.record.phases import MIX, RUN, Cycle, Phase, Role, worked_repeats
from opjoule.runs.record.run import Run

UNSEEN: Final = 0.1
"""Energy of the medium's reads over a figure's uncertainty up to which it does not matter which kind caused them."""
WHOLE = "energy_j"
"""Column of the file with the total energy of all parts."""


def true_figures(course: PartCourse, phases: Sequence[Phase], operations: float) -> dict[str, float]:
    """True values of figures of result.json, means over the repeats."""
    by_repeat = [_true_repeat(course, cycle) for cycle in _cycles(phases)]
    keys = [key for key in by_repeat[0] if all(key in figures for figures in by_repeat)]
    means = {key: fmean(figures[key] for figures in by_repeat) for key in keys}
    for key in ("energy_j", "marginal_energy_j"):
        if key in means and operations:
            means[key.replace("_j", "_per_operation_j")] = means[key] / operations
    return means


def _cycles(phases: Sequence[Phase]) -> list[Cycle]:
    cycles = [Cycle.of(phases, repeat) for repeat in worked_repeats(phases)]
    return [cycle for cycle in cycles if cycle]


def true_parts(course: PartCourse, cycles: Sequence[Cycle]) -> dict[str, float]:
    """Energy above idle of each part in run and settle [J], means over the cycles."""
    spans = [(cycle.work.start_board_ns, (cycle.drain or cycle.work).end_board_ns) for cycle in cycles]
    by_cycle = [course.between(*span) for span in spans]
    return {name: fmean(parts[name] for parts in by_cycle) for name in course.energy_j}


def _true_repeat(course: PartCourse, cycle: Cycle) -> dict[str, float]:
    def energy_j(phase: Phase) -> float:
        return course.between(phase.start_board_ns, phase.end_board_ns)[WHOLE]

    def power_w(phase: Phase) -> float:
        return energy_j(phase.steady) / phase.steady.duration_s

    run = cycle.work
    figures = {"run_energy_j": energy_j(run), "power_w": energy_j(run) / run.duration_s}
    if not cycle.baselines:
        return figures
    idle_w = fmean(power_w(phase) for phase in cycle.baselines)
    drain = cycle.drain
    write_back_j = energy_j(drain) - idle_w * drain.duration_s if drain else 0.0
    whole_j = figures["run_energy_j"] + write_back_j
    marginal_j = whole_j - idle_w * run.duration_s
    figures |= {"idle_power_w": idle_w, "energy_j": whole_j, "marginal_energy_j": marginal_j}
    return figures | ({"write_back_energy_j": write_back_j} if drain else {})


SHOWN = {
    "marginal_energy_per_operation_j": "marginal energy of an operation",
    "energy_j": "energy",
    "run_energy_j": "energy of the run alone",
    "write_back_energy_j": "energy of settle",
    "idle_power_w": "idle power",
}


@dataclass(frozen=True)
class KnownFigure:
    """One figure of a result with its true value."""

    about: str
    true: float
    stated: Quantity

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval that could contain the true value."""
        return self.stated.u is not None

    @property
    def holds(self) -> bool:
        """Whether the stated interval contains the true value."""
        return self.has_interval and self.stated.covers(self.true)

    def __str__(self) -> str:
        """The line for the terminal."""
        digit_u = None if self.stated.u is None else self.stated.u / 10  # one digit more than the stated figure
        shown = rounded(self.true, digit_u, self.stated.unit)
        known = f"SIMULATED truth: {self.about} {with_unit(shown.value, shown.unit)}"
        if not self.has_interval:
            return f"{known}; not stated"
        return f"{known}; stated {quantity_text(self.stated)} {'holds it' if self.holds else 'DOES NOT HOLD IT'}"


def true_values(record: Path) -> dict[str, float]:
    """True values of figures of a simulated record, by their keys in result.json; empty if they are not known."""
    if not (record / COURSE).exists() or not (record / "result.json").exists():
        return {}
    answer = open_answer(record)
    if answer.run.status == "partial":  # the simulator ended before the run and lacks the true values of the rest
        return {}
    operations = answer.quantity("operations").value or 0.0
    return true_figures(PartCourse.read(record / COURSE), answer.run.phases, operations)


def known_figures(record: Path) -> list[KnownFigure]:
    """The figures of a simulated record whose true value is known.

    They include kinds of operation and activities, identifiable or not, if the simulated board knows their energy. An
    energy without a stated interval is left out.
    """
    true = true_values(record)
    if not true:
        return []
    answer = open_answer(record)
    stated = means(answer.concluded, answer.quantities)
    whole = [
        KnownFigure(about, true[key], stated[key]) for key, about in SHOWN.items() if key in true and key in stated
    ]
    known = [figure for figure in whole if figure.has_interval]
    if not (record / PARTS).exists():  # of a board without a loader on this computer
        return known
    course = PartCourse.read(record / PARTS)
    parts_j = true_parts(course, _cycles(answer.run.phases))
    later_j = _later(PartCourse.read(record / COURSE), course, answer.run)
    return known + _kinds(parts_j, stated, true.get("marginal_energy_j"), later_j) + _activities(parts_j, stated)


def _later(whole: PartCourse, parts: PartCourse, run: Run) -> Mapping[str, float]:
    """Energy that one operation of each of several kinds that write causes later [J]; empty without other mixes.

    Each kind's energy while it is carried out is exact. The exact energy of the rest is divided by the equations of the
    runs in other mixes, as the evaluation divides what it measured: a truth only if these costs are additive.
    """

    def written(role: Role, name: str) -> Iterator[WrittenRun]:
        for number in worked_repeats(run.phases, role):
            cycle, summary = Cycle.of(run.phases, number), run.loader.get(f"{name}-{number}")
            if cycle and cycle.baselines and summary:
                counts = {kind: of.count for kind, of in summary.by_kind.items() if kind not in READS}
                own = true_parts(parts, [cycle])
                own_j = math.fsum(own.get(kind, 0.0) for kind in summary.by_kind)
                rest_j = _true_repeat(whole, cycle)["marginal_energy_j"] - own_j
                yield WrittenRun(counts, exact(rest_j, "J"))

    repeats, mixes = list(written(Role.WORK, RUN)), list(written(Role.MIX, MIX))
    costs = WriteCosts.of(repeats, mixes) if mixes and repeats else None
    return dict(zip(costs.kinds, costs.cost_j.tolist(), strict=True)) if costs else {}


def _kinds(
    parts_j: Mapping[str, float],
    stated: Mapping[str, Quantity],
    above_idle_j: float | None,
    later_j: Mapping[str, float],
) -> list[KnownFigure]:
    """Each kind of operation with energy: what it causes in all, and while it is carried out.

    A single kind has caused the medium's reads. Of several kinds it is not known which did: a figure that could show
    these reads is left out.
    """
    counts = {kind: float(stated[f"by_operation.{kind}.count"]) for kind in kinds_in(stated)}
    own_j = {kind: parts_j[kind] for kind in counts if parts_j.get(kind)}
    reading_j = parts_j.get(READING, 0.0)
    if len(counts) == 1:
        own_j = {kind: drawn_j + reading_j for kind, drawn_j in own_j.items()}
        reading_j = 0.0
    told_j = dict(own_j)
    writing = [kind for kind in told_j if kind not in READS]
    told_apart = bool(writing) and all(kind in later_j for kind in writing)
    if len(counts) == 1 and above_idle_j is not None:
        told_j = dict.fromkeys(counts, above_idle_j)
    elif len(writing) == 1 and above_idle_j is not None:
        told_j |= {writing[0]: above_idle_j - math.fsum(told_j.values()) + told_j[writing[0]]}
    elif told_apart:
        told_j |= {kind: told_j[kind] + counts[kind] * later_j[kind] for kind in writing}
    figures = []
    for kind, count in counts.items():
        if not (own_j.get(kind) and count):
            continue
        known = [KnownFigure(kind, own_j[kind] / count, stated[f"by_operation.{kind}.energy_per_operation_j"])]
        told = stated.get(told_path(kind))
        if told and above_idle_j is not None and (len(writing) == 1 or len(counts) == 1 or told_apart):
            known.insert(0, KnownFigure(f"{kind}, all told", told_j[kind] / count, told))
        figures += [one for one in known if reading_j <= UNSEEN * (one.stated.u or math.inf) * count]
    return figures


def _activities(true_j: Mapping[str, float], stated: Mapping[str, Quantity]) -> list[KnownFigure]:
    """Each activity with energy."""
    drawn = [name for name in (*ACTIVITIES, WRITE_BACK, TAIL) if true_j.get(name)]
    given = {name: stated[path] for name in drawn if (path := f"by_activity.{name}") in stated}
    figures = [KnownFigure(_ACTIVITIES.get(name, name), true_j[name], energy) for name, energy in given.items()]
    together, kinds = (stated.get(f"by_activity.{name}") for name in ("unseparated", "foreground"))
    unidentified = [name for name, energy in given.items() if energy.value is None]
    if unidentified and together and together.u and kinds and kinds.value is not None:
        about = " + ".join(unidentified) + (" together" if len(unidentified) > 1 else "")
        figures.append(KnownFigure(about, math.fsum(true_j[name] for name in unidentified), together))
    return figures


_ACTIVITIES = {WRITE_BACK: "the medium's write-back", TAIL: "the medium's tail"}


def held_line(record: Path) -> str:
    """One line for a record: how many of its stated intervals contain the true values; empty if none is known."""
    held = _held(_stated_figures(record), "stated intervals")
    return f"{_MARK}{held}{_HOLD}" if held else ""


def cells_line(cells: Iterable[Sequence[ComparedRun]], quantities: Iterable[Definition]) -> str:
    """The same for the records of some cells, and for the means of the cells with several records.

    The true value of a mean is the mean over its records; a mean that leaves a record out is not counted.
    """
    known = [list(cell) for cell in cells]
    places = dict.fromkeys(run.place for cell in known for run in cell)
    figures = [figure for place in places for figure in _stated_figures(place)]
    if not figures:
        return ""
    true_by_place = {place: true_values(place) for place in places}
    several = [cell for cell in known if len(cell) > 1]
    means = [mean for of in quantities for cell in several if (mean := _mean(cell, of, true_by_place))]
    parts = [
        _held(figures, f"stated intervals of {counted(len(places), 'record')}"),
        _held(means, "of their means"),
    ]
    return f"{_MARK}{' and '.join(filter(None, parts))}{_HOLD}"


def print_cells_line(
    cells: Iterable[Sequence[ComparedRun]], quantities: Iterable[Definition], *, as_json: bool
) -> None:
    """Prints `cells_line` if it is not empty, on stderr beside JSON."""
    if line := cells_line(cells, quantities):
        print(line, file=sys.stderr if as_json else sys.stdout)


_MARK: Final = "SIMULATED truth: "
_HOLD: Final = " hold the true value"


def _held(figures: Sequence[KnownFigure], of: str) -> str:
    """For example "9 of 10 stated intervals"; empty without a figure."""
    return f"{sum(figure.holds for figure in figures)} of {len(figures)} {of}" if figures else ""


def _stated_figures(record: Path) -> list[KnownFigure]:
    """The record's figures with an interval and a true value; none if the simulator's files are damaged."""
    with suppress(OSError, ValueError, LookupError, RecordFault):
        return [figure for figure in known_figures(record) if figure.has_interval]
    return []


def _mean(
    cell: Sequence[ComparedRun], of: Definition, true_by_place: Mapping[Path, Mapping[str, float]]
) -> KnownFigure | None:
    """The mean of a cell beside the mean of the true values; None if it has no interval or leaves a record out."""
    mean = ComparedCell({}, cell).stated(of)
    true = [true_by_place[run.place][of.key] for run in cell if of.key in true_by_place[run.place]]
    if not len(true) == len(cell) == mean.get("runs"):
        return None
    figure = KnownFigure(of.label, fmean(true), from_json(mean))
    return figure if figure.has_interval else None
