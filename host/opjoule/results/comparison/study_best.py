"""Tables of a study: the cost of each system's phases, and the best system of each cell, as CSV and on the terminal."""

import csv
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from rich.table import Table

from opjoule.base.files import csv_text, write_whole
from opjoule.base.scripts import STUDIES, program
from opjoule.base.terminal import print_unbroken, terminal
from opjoule.base.units import NOT_STATED, Quantity, counted, unstated
from opjoule.results.comparison.cell import Group
from opjoule.results.comparison.compared_run import ComparedRun, Place
from opjoule.results.comparison.contrasts import Contrast, judged, why_not_judged
from opjoule.results.comparison.ranking import Ranking, ranked
from opjoule.results.comparison.run_warnings import marks_of, print_above, warnings_of
from opjoule.results.comparison.study_rows import ENERGIES, StudyTable, read_studies
from opjoule.results.comparison.value_words import measure_unit, measure_words
from opjoule.results.rounding import rounded
from opjoule.runs.evaluation.quantities.definition import Definition, Topic

WINNERS: Final = "winners.csv"
"""File in a study's folder with the best systems that its paper prints: figure, measure, phase, system, and a column
for each axis of the figure's cells."""
_COLUMNS: Final = ("figure", "measure", "phase", "system")


@dataclass(frozen=True)
class Winner:
    """The best system of one cell of a printed figure."""

    figure: str
    measure: str
    phase: str
    system: str
    cell: Mapping[str, str]
    """Axis -> value."""

    def is_of(self, measure: str, phase: str, cell: Mapping[str, str]) -> bool:
        """Whether the paper names this winner for a cell of ours; the cell may have axes that the paper lacks."""
        same = (self.measure, self.phase) == (measure, phase)
        return same and all(cell.get(axis) == value for axis, value in self.cell.items())


def winners(study: str, folder: Path = STUDIES) -> list[Winner]:
    """The printed winners of a study; empty if it has none."""
    path = folder / study / WINNERS
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return [
            Winner(
                row["figure"],
                row["measure"],
                row["phase"],
                row["system"],
                {axis: value for axis, value in row.items() if axis not in _COLUMNS},
            )
            for row in csv.DictReader(lines)
        ]


def printed_words(printed: Iterable[Winner]) -> str:
    """Winners of one cell with their figures, as "4.2 sqlite"; figures with the same winner together."""
    figures: dict[str, list[str]] = {}
    for winner in printed:
        figures.setdefault(winner.system, []).append(winner.figure)
    return "; ".join(f"{', '.join(of)} {system}" for system, of in figures.items())


BEST_TABLE: Final = "best.csv"
_OF_ENERGY: Final = (*(name.removesuffix("_j") for name in ENERGIES), "phase_energy")


@dataclass(frozen=True)
class Best:
    """The best system of one cell by one measure."""

    ranking: Ranking
    system: str
    """The best system; that of the best mean if nothing can be concluded."""
    phase: str
    place: Place
    mean: Quantity
    """Mean of the best system."""
    too_short: tuple[tuple[str, float], ...] = ()
    """System -> length of its phase [s], for those too quick for joules: any of them may be better."""

    @property
    def measure(self) -> str:
        """Name of what the systems are ranked by."""
        return self.ranking.quantity.key

    @property
    def single(self) -> bool:
        """Whether a system has a single run; then no winner is named."""
        first, *second = list(self.ranking.groups)[:2]
        return bool(second) and not {first, *second}.isdisjoint(self.ranking.unjudged)

    @property
    def differs(self) -> bool | None:
        """Whether every other system is significantly worse; None if it or the second best is a single run."""
        if self.single or len(self.ranking.groups) < 2:
            return None
        return not (self.ranking.alike or self.ranking.undecided)


def best_systems(study: StudyTable) -> list[Best]:
    """The best system by the mean over its runs, for each measure of the study's [best], phase and cell.

    A system without an answer where others have one did something else, and is not compared with them.
    """
    all_bests = []
    answered = {(row.phase, row.stratum) for row in study.rows if row.answer is not None}
    cells: dict[tuple[str, Place], list[ComparedRun]] = {}
    for row in study.rows:
        same_work = row.answer is not None or (row.phase, row.stratum) not in answered
        if same_work and not row.not_supported and row.phase not in study.definition.unranked:
            cells.setdefault((row.phase, row.stratum), []).append(row)
    for measure, which in study.definition.best.items():
        bests = [_best(measure, which, rows) for rows in cells.values()]
        all_bests += [best for best in bests if best]
    return all_bests


def _best(measure: str, which: str, rows: Sequence[ComparedRun]) -> Best | None:
    """The best system of one cell; None if no system has the measure."""
    by_system: dict[str, list[ComparedRun]] = {}
    for row in rows:
        if measure in row.means:
            by_system.setdefault(row.system, []).append(row)
    if not by_system:
        return None
    of = Definition(measure, next(iter(by_system.values()))[0].means[measure].unit, Topic.PART)
    groups = [Group({}, of_system, name) for name, of_system in by_system.items()]
    contrasts = [
        Contrast(of, *pair, *sides, cannot=why_not_judged(*sides, too_short=False))
        for pair in itertools.combinations(groups, 2)
        for sides in [(pair[0].mean(of), pair[1].mean(of))]
    ]
    ranking = ranked(of, groups, judged(contrasts), is_rate=which == "most")
    left_out = [row for row in rows if row.system not in by_system]
    too_short = _too_short(left_out) if measure.startswith(_OF_ENERGY) else ()
    best = ranking.best or next(iter(ranking.groups))
    mean = ranking.groups[best].mean(of)
    return Best(ranking, best, rows[0].phase, rows[0].stratum, _stated(mean), too_short)


def mean_of(records: Sequence[Quantity]) -> Quantity:
    """Mean of the records of one cell; the uncertainty of a single record that is exact in its own is not stated."""
    return _stated(Quantity.mean(records))


def _stated(mean: Quantity) -> Quantity:
    return mean if mean.is_repeated or mean.u else unstated(float(mean), mean.unit, NOT_STATED)


def _too_short(rows: Sequence[ComparedRun]) -> tuple[tuple[str, float], ...]:
    """Systems whose phase was too quick for joules, the quickest first."""
    lengths: dict[str, list[float]] = {}
    for row in rows:
        if row.short_s is not None:
            lengths.setdefault(row.system, []).append(row.short_s)
    means = [(name, fmean(lengths_s)) for name, lengths_s in lengths.items()]
    return tuple(sorted(means, key=lambda mean: mean[1]))


def best_csv(study: StudyTable) -> str:
    """The best systems as CSV: measure, phase, cell, system, its value and interval, and systems too quick for it.

    The column `paper` has the systems that are best in the cell's figures of the study's paper.
    """
    bests, printed = best_systems(study), winners(study.definition.name)
    axes = list(dict.fromkeys(axis for best in bests for axis, _ in best.place))
    last = ["system", "value", "u", "differs_from_second", "too_short_s", "paper", "simulated"]
    rows: list[list[object]] = [["measure", "phase", *axes, *last]]
    apart = {None: "single run", True: "yes", False: "no"}
    several = len(study.systems) > 1
    for best in bests:
        place = dict(best.place)
        u = "" if best.mean.u is None else f"{best.mean.u:.3g}"
        short = "; ".join(f"{system} {length_s:.3g}" for system, length_s in best.too_short)
        cells = [best.system, f"{best.mean.value:.9g}", u, apart[best.differs] if several else "", short]
        simulated = "SIMULATED" if study.simulated else ""
        paper = printed_words(winner for winner in printed if winner.is_of(best.measure, best.phase, place))
        rows.append([best.measure, best.phase, *(place.get(axis, "") for axis in axes), *cells, paper, simulated])
    return csv_text(rows)


TABLE: Final = "study.csv"


def as_csv(study: StudyTable) -> str:
    """All rows as CSV: cell, phase, measures with their uncertainties."""
    axes = list(dict.fromkeys(axis for row in study.rows for axis in row.cell))
    measures = list(dict.fromkeys(name for row in study.rows for name in row.means))
    stated = [name for name in measures if any(name in row.means and row.means[name].u for row in study.rows)]
    columns = [part for name in measures for part in ((name, f"{name}.u") if name in stated else (name,))]
    last = ["not_supported", "without_joules", "simulated", "record", "software", "warnings"]
    rows: list[list[object]] = [["study", *axes, "phase", "block", "operations", *columns, *last]]
    for row in study.rows:
        values = {name: of.value for name, of in row.means.items()}
        values |= {f"{name}.u": of.u for name, of in row.means.items() if of.u}
        cells = [f"{values[name]:.9g}" if name in values else "" for name in columns]
        axis_values = [row.cell.get(axis, "") for axis in axes]
        simulated = "SIMULATED" if row.simulated else ""
        more = [
            row.not_supported,
            row.why,
            simulated,
            row.place.name,
            row.software,
            "; ".join(dict.fromkeys((*marks_of([row]), *row.caveats))),
        ]
        rows.append([study.definition.name, *axis_values, row.phase, row.block, row.operations, *cells, *more])
    return csv_text(rows)


ONE_RUN = "[1 run]"
"""Mark of a value from single runs."""


def conclude_studies(folder: Path, *, json: bool = False) -> list[str]:
    """Writes study.csv and best.csv of a folder's records, prints the best systems, and returns the faults.

    With `json`, stdout is reserved for JSON and the output goes to stderr.
    """
    console = terminal(stderr=json)
    faults = []
    for study in read_studies(sorted(path for path in folder.iterdir() if path.is_dir())):
        write_whole(folder / TABLE, as_csv(study).encode())
        write_whole(folder / BEST_TABLE, best_csv(study).encode())
        print_above(console, warnings_of(study.runs), (), simulated=False)
        for table in best_tables(study):
            console.print(table.title, style="italic", soft_wrap=True)
            table.title = None
            print_unbroken(console, table)
        lines = [*how_sure(study), *too_short(study), *not_supported(study)]
        lines += [f"FAULT: {fault}" for fault in study.faults]
        systems = {row.system for row in study.rows if row.answer is not None}
        if len(systems) > 1 and not study.faults:
            lines.append(f"answers    the same in all of {', '.join(sorted(systems))}")
        software = dict.fromkeys(row.software for row in study.rows if row.software)
        lines += [f"measured   {words}" for words in (*software, *study.caveats)]
        lines.append(f"tables     {folder / TABLE}, {folder / BEST_TABLE}")
        lines.append(f"plots      {program('runs')} figures {folder} --out figures")
        for line in lines:
            console.print(line, soft_wrap=True)
        faults += study.faults
    return faults


def best_tables(study: StudyTable) -> list[Table]:
    """One table per measure: the best system and its value by phase and cell, the shorter axis across."""
    tables = []
    for measure, which in study.definition.best.items():
        bests = [best for best in best_systems(study) if best.measure == measure]
        phases = [phase for phase in study.definition.phases if any(best.phase == phase for best in bests)]
        if not phases:
            continue
        mark = " (SIMULATED)" if study.simulated else ""
        places = list(dict.fromkeys(best.place for best in bests))
        texts = {(best.place, best.phase): best_cell(best) for best in bests}
        words = {place: " ".join(value for _, value in place) for place in places}
        single = ", of single runs: no winner" if all(best.single for best in bests) else ""
        title = f"{which} {measure_words(measure)}{single}{mark}"
        if len(places) <= len(phases):
            shown = Table("", *words.values(), title=title, box=None)
            for phase in phases:
                shown.add_row(phase, *(texts.get((place, phase), "") for place in places))
        else:
            shown = Table("", *phases, title=title, box=None)
            for place in places:
                shown.add_row(words[place], *(texts.get((place, phase), "") for phase in phases))
        tables.append(shown)
    return tables


def best_cell(best: Best) -> str:
    """System and value, marked if it is no winner (`how_sure`); in brackets if quicker systems have no joules."""
    doubt = "~" if best.differs is False else ""
    single = f" {ONE_RUN}" if best.single else ""
    words = f"{doubt}{best.system} {value_words(best.mean, best.measure)}{single}"
    return f"({words})" if best.too_short else words


def how_sure(study: StudyTable) -> list[str]:
    """Legend of the marks that occur in the tables."""
    bests = best_systems(study)
    lines = []
    if any(best.single for best in bests):
        lines.append(f"{ONE_RUN}: the lowest or highest of single runs, which name no winner (--repeats)")
    if any(best.differs is False for best in bests):
        lines.append("~: another system does not differ from the best, or is undecided")
    return lines


def value_words(of: Quantity, measure: str) -> str:
    """A value with the unit at the end of the measure's name."""
    value, u = float(of), of.u
    if measure.endswith("_per_s"):
        return str(rounded(value, u, f"{measure_unit(measure.removesuffix('_per_s'))}/s"))
    if measure.endswith("_us"):
        return str(rounded(1e-6 * value, None if u is None else 1e-6 * u, "s"))
    return str(rounded(value, u, measure_unit(measure)))


def too_short(study: StudyTable) -> list[str]:
    """Systems whose phase was too short for joules while others' was not, with its length, by phase."""
    lengths: dict[str, dict[str, set[float]]] = {}
    for best in best_systems(study):
        for system, length_s in best.too_short:
            lengths.setdefault(best.phase, {}).setdefault(system, set()).add(length_s)
    lines = []
    for phase, systems in lengths.items():
        words = []
        for system, lengths_s in systems.items():
            ends = dict.fromkeys(str(rounded(end(lengths_s), None, "s", 2)) for end in (min, max))
            words.append(f"{system} {' to '.join(ends)}")
        lines.append(
            f"{phase} was too short to measure joules on {', '.join(words)}. In brackets: best of the systems "
            "whose phase was long enough"
        )
    return lines


def not_supported(study: StudyTable) -> list[str]:
    """Unsupported phases of systems, records left out, and phases without joules: each once, with the reason."""
    refused = [row for row in study.rows if row.not_supported]
    lines = [f"not supported: {row.phase} in {row.system}: {row.not_supported}" for row in refused]
    whys = [row.why for row in study.rows if row.why]
    if study.of_other_jobs:
        lines.append(f"left out: {counted(study.of_other_jobs, 'record')} of another version of the job")
    lines += [f"without joules: {whys.count(why)} phases {why}" for why in dict.fromkeys(whys)]
    return list(dict.fromkeys(lines))
