"""`runs.py conclusions`: compares the conclusions of a study's paper with records."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from opjoule.cli.runs.options import ConclusionsOptions
from opjoule.comparison.contrasts import Contrast
from opjoule.comparison.index import gather
from opjoule.comparison.study.rows import read_studies
from opjoule.comparison.study.verdicts import (
    PaperVerdict,
    name_of,
    samples_of_job,
    samples_of_workload,
    verdicts,
)
from opjoule.errors import BadInput
from opjoule.files import csv_text, write_whole
from opjoule.studies.definition import StudyFolder
from opjoule.studies.folder import find_study, known_studies
from opjoule.terminal import terminal

COLUMNS: Final = (
    *("study", "question", "where", "place", "paper", "ratio", "low", "high"),
    *("joules", "joules_low", "joules_high", "verdict", "papers_factor_inside", "simulated"),
)
SIMULATED: Final = "SIMULATED"


def verdicts_of(places: Sequence[str], only: str) -> list[tuple[StudyFolder, list[PaperVerdict]]]:
    """Studies of the given records, each with the verdicts on its paper's conclusions.

    Args:
        only: name of the only study wanted; empty for all.
    Raises: BadInput: no record belongs to a study with conclusions, or to that one.
    """
    runs, _ = gather(places)
    tables = [table for table in read_studies([run.place for run in runs]) if only in ("", table.name)]
    samples = [(find_study(table.name), samples_of_job(table)) for table in tables]
    for name in dict.fromkeys(name for run in runs if (name := name_of(run)) and only in ("", name)):
        study = find_study(name)
        measures = [conclusion.measure for conclusion in study.conclusions]
        of_study = [run for run in runs if name_of(run) == name]
        samples.append((study, samples_of_workload(of_study, measures)))
    concluded = [(study, verdicts(study.conclusions, of_study)) for study, of_study in samples]
    chosen = [(study, answers) for study, answers in concluded if answers]
    if not chosen:
        which = f"of study {only}" if only else "of a study with conclusions"
        names = ", ".join(known.name for known in known_studies() if known.conclusions)
        raise BadInput(f"{', '.join(places)}: no record {which}; studies with conclusions are {names}")
    return chosen


def run_conclusions(options: ConclusionsOptions) -> int:
    """Compares the conclusions of studies' papers with records."""
    concluded = verdicts_of([str(place) for place in options.places], options.study or "")
    if options.json:
        rows = [_row(study, answer) for study, answers in concluded for answer in answers]
        print(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows], indent=1))
        return 0
    console = terminal()
    for study, answers in concluded:
        console.print(_table(study, answers))
        words = [answer.word for answer in answers]
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        console.print(f"answers    {counts}", soft_wrap=True)
    return 0


def _table(study: StudyFolder, answers: Sequence[PaperVerdict]) -> Table:
    mark = f" ({SIMULATED})" if any(answer.simulated for answer in answers) else ""
    made = Table(title=f"{study.title}: the paper's conclusions{mark}", title_justify="left", show_lines=True)
    for name in ("question", "paper", "here (95 %)", "joules (95 %)", "verdict"):
        made.add_column(name)
    inside = {None: "", True: "; the paper's factor is inside", False: "; the paper's factor is outside"}
    for answer in answers:
        at = ", ".join(f"{axis} {value}" for axis, value in answer.place)
        question = f"{answer.conclusion.question} [{answer.conclusion.where}]" + (f"\n{at}" if at else "")
        word = answer.word + ("" if answer.conclusion.about else inside[answer.holds_the_papers])
        made.add_row(question, paper_words(answer), _ratio(answer.contrast), _ratio(answer.joules), word)
    return made


def paper_words(of: PaperVerdict) -> str:
    """The paper's answer, in words."""
    if of.conclusion.only_direction:
        return "more" if of.conclusion.paper > 1 else "less"
    near = f" (within {100 * of.conclusion.about:g} % of 1)" if of.conclusion.about else ""
    return f"{of.conclusion.paper:.3g}{near}"


def _ratio(of: Contrast | None) -> str:
    if of is None:
        return "-"
    value = of.side_a.value / of.side_b.value
    if of.cannot:
        return f"{value:.3g}"
    low, high = of.limits
    return f"{value:.3g} ({low:.3g} to {high:.3g})"


def _row(study: StudyFolder, of: PaperVerdict) -> list[Any]:
    """A verdict as plain values, in the order of COLUMNS; unknown values are empty."""
    inside = of.holds_the_papers
    return [
        study.name,
        of.conclusion.question,
        of.conclusion.where,
        " ".join(value for _, value in of.place),
        paper_words(of),
        *_numbers(of.contrast),
        *_numbers(of.joules),
        of.word,
        "" if inside is None else ("yes" if inside else "no"),
        SIMULATED if of.simulated else "",
    ]


def _numbers(of: Contrast | None) -> list[float | str]:
    """Ratio and the ends of its interval; an end is empty if there is none."""
    if of is None:
        return ["", "", ""]
    ends = ("", "") if of.cannot else tuple(limit if math.isfinite(limit) else "" for limit in of.limits)
    return [of.side_a.value / of.side_b.value, *ends]


def write_conclusions(folder: Path, places: Sequence[str], name: str) -> Path:
    """Writes the verdicts on one study's conclusions as a CSV table; returns its path. Raises: as verdicts_of."""
    study, answers = verdicts_of(places, name)[-1]
    path = folder / f"{Path(study.name).name}-conclusions.csv"
    write_whole(path, csv_text([COLUMNS, *(_row(study, answer) for answer in answers)]).encode())
    return path
