"""What accompanies figures from several runs: their notices, and the methods section of a paper."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.settings import MEDIUM
from opjoule.base.units import counted
from opjoule.results.answer import Answer, open_answer
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.value_words import label
from opjoule.runs.evaluation.stability import Repeated, scatter, unequal

SIMULATED: Final = "no board was measured; the joules come from a power model of board and medium."
_SINGLE: Final = (
    "{single} of {all} cells rest on a single run. How much runs differ is unknown there and is missing from the "
    "intervals (--repeats)."
)


def print_above(console: Console, warnings: Iterable[Notice], lines: Iterable[str], *, simulated: bool) -> None:
    """Prints warnings above some lines; none is wrapped."""
    mark = [f"SIMULATED: {SIMULATED}"] if simulated else []
    for line in (*mark, *(f"WARNING  {warning}" for warning in warnings), *lines):
        console.print(line, soft_wrap=True)


def is_single(runs: Sequence[ComparedRun]) -> bool:
    """Whether a cell has only one run of one repeat."""
    return len(runs) == 1 and (runs[0].repeats or 1) < 2


def warnings_of(cells: Iterable[Sequence[ComparedRun]]) -> list[Notice]:
    """Every kind of notice in the runs of some cells once, with the names of its runs; the gravest first.

    The text is that of the first run. The runs' own reports have the others.
    """
    known = [list(cell) for cell in cells if cell]
    first: dict[tuple[str, ...], Notice] = {}
    names: dict[tuple[str, ...], dict[str, None]] = {}
    for run in (run for runs in known for run in runs):
        for notice in run.warnings:
            key = (notice.mark, notice.line) if notice.kind in (NoticeKind.FAULT, NoticeKind.NOTE) else (notice.mark,)
            first.setdefault(key, notice)
            names.setdefault(key, {})[run.place.name] = None
    made = [replace(notice, runs=tuple(names[key])) for key, notice in first.items()]
    for cell in known:
        in_order = sorted(cell, key=lambda run: run.started_utc)
        of_cell = tuple(run.place.name for run in in_order)
        made += [Notice(NoticeKind.UNSTEADY_CELL, line, runs=of_cell) for line in _unsteady_lines(in_order)]
    if single := sum(map(is_single, known)):
        made.append(Notice(NoticeKind.ONE_RUN, _SINGLE.format(single=single, all=len(known))))
    return sorted(made, key=lambda notice: notice.kind.rank)


def marks_of(runs: Sequence[ComparedRun]) -> list[str]:
    """Notices of one cell in one or two words each, for a column of a table."""
    return list(dict.fromkeys(notice.mark for notice in warnings_of([runs])))


def summary_of(cells: Iterable[Sequence[ComparedRun]]) -> str:
    """One line for a figure: each kind of notice with the number of its runs; empty without a notice."""
    known = [list(cell) for cell in cells if cell]
    count = len({run.place for runs in known for run in runs})
    runs_of: dict[str, set[str]] = {}
    for notice in warnings_of(known):
        runs_of.setdefault(notice.mark, set()).update(notice.runs)
    parts = [
        f"{mark}: {len(names)} of {count} runs"
        if names
        else f"{mark}: {sum(map(is_single, known))} of {len(known)} cells"
        for mark, names in runs_of.items()
    ]
    return f"WARNING  {'; '.join(parts)}" if parts else ""


def _unsteady_lines(runs: Sequence[ComparedRun]) -> list[str]:
    """One line on the energies of a cell's runs, one on their writes, where they are unsteady.

    Args:
        runs: in the order of measuring, by which the lines number them.
    """
    headlines = _headlines(runs)
    lines = [scatter(headlines) if headlines else "", _writes(runs)]
    return [f"{line} (runs in the order of measuring)" for line in lines if line]


def _headlines(runs: Sequence[ComparedRun]) -> Repeated | None:
    """The headline of each run; None if one has no interval."""
    if not runs:
        return None
    headline = runs[0].quantities.headline
    sides = [run.side(headline) for run in runs]
    if not all(side.has_interval for side in sides):
        return None
    own_u = [math.hypot(side.own_u, side.spread_u) for side in sides]
    return Repeated(headline.label, [float(side) for side in sides], own_u, "run")


def _writes(runs: Sequence[ComparedRun]) -> str:
    """The bytes that the runs wrote, if they are unequal for equal numbers of operations."""
    written = [run.number("disk_written_bytes").value for run in runs]
    counts = [run.number("operations").value for run in runs]
    per_operation = [
        of_run / count for of_run, count in zip(written, counts, strict=True) if of_run is not None and count
    ]
    if len(per_operation) < len(runs) or not unequal(per_operation):
        return ""
    usual = fmean(count for count in counts if count)
    amounts = ", ".join(f"{each * usual / 1e6:.3g}" for each in per_operation)
    return (
        f"for equal numbers of operations the runs wrote {amounts} MB to the medium; the energy of each contains what "
        "it wrote"
    )


_METHODS: Final = """\
Energy was measured with OpJoule {versions} in {runs} (repeats in each: {repeats}) on {boards} with {media}.
Databases: {engines}; durability: {durability}.
Workloads: {work}.
Meter: {meters}.
Energy is the integral of voltage times current at the board's supply, over the run, and above idle over the time after
it until writes were done and the power was back at rest. Energy above idle excludes idle power, which was measured
before and after each run. Intervals are expanded uncertainties (95 %), which hold the sensor's errors, noise, lost
samples, clocks, idle's drift and the spread of repeats and runs (JCGM 100:2008); where none is drawn, none is stated.
"""


def methods(cells: Sequence[Sequence[ComparedRun]]) -> str:
    """A paragraph on the runs of some cells, one sentence per line, then their warnings; reads each record again."""
    facts: dict[str, dict[str, None]] = {}
    runs = [run for cell in cells for run in cell]
    for run in runs:
        for name, words in _said(open_answer(run.place)).items():
            facts.setdefault(name, {})[words] = None
    text = {name: ", ".join(word for word in words if word) for name, words in facts.items()}
    text["media"] = text["media"] or "its own medium"
    text["engines"] = text["engines"] or "none"
    text["durability"] = text["durability"] or "not stated"
    return _METHODS.format(runs=counted(len(runs), "run"), **text) + "".join(
        f"{warning}\n" for warning in warnings_of(cells)
    )


def _said(answer: Answer) -> dict[str, str]:
    """Phrases from one record, by their place in the paragraph."""
    run, name = answer.run, answer.run.asked.device or "unknown board"
    facts, model = run.found, run.found.device.model
    return {
        "versions": f"{facts.opjoule}{f' ({facts.commit[:12]})' if facts.commit else ''}",
        "repeats": str(answer.concluded.repeats or "?"),
        # The requested name and, if there is one, the name that the device reports.
        "boards": f"{name} ({model})" if model and not answer.record.simulated else name,
        "media": label(MEDIUM, facts.medium or ""),
        "engines": run.database,
        "durability": run.summary.settings.get("durability", ""),
        "work": answer.wording.work(run),
        "meters": _meter(answer),
    }


def _meter(answer: Answer) -> str:
    meter, facts = answer.run.found.meter, answer.run.found
    chips = ", ".join(dict.fromkeys(sensor.model for sensor in meter.sensors if sensor.model))
    firmware = f", firmware {meter.firmware_version}" if meter.firmware_version else ""
    calibrated = "; ".join(facts.calibrations.values()) or "not calibrated"
    return f"{meter.kind or 'unknown'}{f' with {chips}' if chips else ''}{firmware}, {calibrated}"
