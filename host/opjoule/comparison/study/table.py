"""Tables of a study: the cost of each system's phases, and the best system of each cell."""

from pathlib import Path

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from opjoule.comparison.run_warnings import print_above, warnings_of
from opjoule.comparison.study.best import BEST_TABLE, TABLE, Best, as_csv, best_csv, best_systems
from opjoule.comparison.study.rows import StudyTable, read_studies
from opjoule.comparison.value_words import measure_unit, measure_words
from opjoule.files import write_whole
from opjoule.opened.rounding import rounded
from opjoule.units import counted

ONE_RUN = "[1 run]"
"""Mark of a value from single runs."""
_WIDEST = 1000


def conclude_studies(folder: Path, *, json: bool = False) -> list[str]:
    """Writes study.csv and best.csv of a folder's records, prints the best systems, and returns the faults.

    With `json`, stdout is reserved for JSON and the output goes to stderr.
    """
    console = Console(highlight=False, markup=False, stderr=json)
    faults, usual = [], console.width
    for study in read_studies(sorted(path for path in folder.iterdir() if path.is_dir())):
        write_whole(folder / TABLE, as_csv(study).encode())
        write_whole(folder / BEST_TABLE, best_csv(study).encode())
        print_above(console, warnings_of(study.runs), (), simulated=False)
        for table in best_tables(study):
            console.print(table.title, style="italic", soft_wrap=True)
            table.title = None
            # Names and values are not broken; a narrower terminal wraps such lines.
            wanted = Measurement.get(console, console.options.update(width=_WIDEST), table).maximum
            console.width = max(wanted, usual)
            console.print(table)
            console.width = usual
        lines = [*how_sure(study), *too_short(study), *not_supported(study)]
        lines += [f"FAULT: {fault}" for fault in study.faults]
        systems = {row.system for row in study.rows if row.answer is not None}
        if len(systems) > 1 and not study.faults:
            lines.append(f"answers    the same in all of {', '.join(sorted(systems))}")
        software = dict.fromkeys(row.software for row in study.rows if row.software)
        lines += [f"measured   {words}" for words in software]
        lines.append(f"tables     {folder / TABLE}, {folder / BEST_TABLE}")
        lines.append(f"plots      host/runs.py figures {folder} --out figures")
        for line in lines:
            console.print(line, soft_wrap=True)
        faults += study.faults
    return faults


def best_tables(study: StudyTable) -> list[Table]:
    """One table per measure: the best system and its value by phase and cell, the shorter axis across."""
    tables = []
    for measure, which in study.best.items():
        bests = [best for best in best_systems(study) if best.measure == measure]
        phases = [phase for phase in study.phases if any(best.phase == phase for best in bests)]
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
    words = f"{doubt}{best.system} {value_words(best.value, best.u, best.measure)}{single}"
    return f"({words})" if best.too_short else words


def how_sure(study: StudyTable) -> list[str]:
    """Legend of the marks that occur in the tables."""
    bests = best_systems(study)
    lines = []
    if any(best.single for best in bests):
        lines.append(f"{ONE_RUN}: the lowest or highest of single runs, which name no winner (--repeats)")
    if any(best.differs is False for best in bests):
        lines.append("~: no difference from the second best was found")
    return lines


def value_words(value: float, u: float | None, measure: str) -> str:
    """A value with the unit at the end of the measure's name."""
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
