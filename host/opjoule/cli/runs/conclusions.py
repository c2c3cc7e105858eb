"""`runs.py conclusions`: compares the conclusions of a study's paper with records."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from opjoule.base.errors import BadInput
from opjoule.base.files import csv_text, write_whole
from opjoule.base.terminal import terminal
from opjoule.cli.runs.options import ConclusionsOptions
from opjoule.results.comparison.index import gather
from opjoule.results.comparison.study_rows import StudyTable, read_studies
from opjoule.results.comparison.verdicts import (
    SIMULATED,
    Logs,
    PaperVerdict,
    name_of,
    on_observation,
    ratio_of,
    same_winners_table,
    verdicts,
)
from opjoule.runs.studies.definition import StudyFolder
from opjoule.runs.studies.folder import find_study, known_studies

COLUMNS: Final = (
    *("study", "question", "where", "place", "paper", "ratio", "low", "high", "joules", "joules_low"),
    *("joules_high", "verdict", "direction", "factor", "caveats", "simulated"),
)

METHODS: Final = "methods.txt"
"""Text beside the figures that write_figures() writes."""


Concluded = tuple[StudyFolder, list[PaperVerdict], StudyTable | None]
"""A study, the verdicts on its paper's conclusions, and the table of its phases; None if it is a workload."""


def verdicts_of(places: Sequence[str], only: StudyFolder | None) -> list[Concluded]:
    """Studies of the given records, each with the verdicts on its paper's conclusions.

    Args:
        only: the only study wanted, which may come from a bundle; None for all.
    Raises: BadInput: no record belongs to a study with conclusions, or to that one.
    """
    runs, _ = gather(places)

    def wanted(name: str) -> bool:
        return only is None or Path(name).name == only.folder.name

    tables = [table for table in read_studies([run.place for run in runs]) if wanted(table.definition.name)]
    concluded: list[Concluded] = []
    for table in tables:
        study = only or find_study(table.definition.name)
        concluded.append((study, verdicts(study, [row for row in table.rows if not row.not_supported]), table))
    for name in dict.fromkeys(name for run in runs if (name := name_of(run)) and wanted(name)):
        study = only or find_study(name)
        concluded.append((study, verdicts(study, [run for run in runs if name_of(run) == name]), None))
    chosen = [one for one in concluded if one[1]]
    if not chosen:
        which = f"of study {only.name}" if only else "of a study with conclusions"
        names = ", ".join(known.name for known in known_studies() if known.conclusions)
        raise BadInput(f"{', '.join(places)}: no record {which}; studies with conclusions are {names}")
    return chosen


def run_conclusions(options: ConclusionsOptions) -> int:
    """Compares the conclusions of studies' papers with records."""
    concluded = verdicts_of(
        [str(place) for place in options.places], find_study(options.study) if options.study else None
    )
    if options.json:
        rows = [row for study, answers, _ in concluded for row in _rows(study, answers)]
        print(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows], indent=1))
        return 0
    console = terminal()
    for study, answers, table in concluded:
        console.print(_table(study, answers))
        if table and (same := same_winners_table(table)):
            console.print(same)
        console.print(*count_lines(answers), *observation_lines(study, answers), sep="\n", soft_wrap=True)
    return 0


def count_lines(answers: Sequence[PaperVerdict]) -> list[str]:
    """How many answers agree with the paper, on the direction and on its factor, one line each."""
    directions = [answer.word for answer in answers]
    factors = [answer.factor_word for answer in answers if answer.factor_word]
    return [f"direction  {_counts(directions)}", f"factor     {_counts(factors) or 'none is judged'}"]


def observation_lines(study: StudyFolder, answers: Sequence[PaperVerdict]) -> list[str]:
    """Each observation of the paper with its verdict, one line each."""
    return [
        f"observation {number} ({statement}): {on_observation(number, answers)[1]}"
        for number, statement in study.observations.items()
    ]


def _counts(words: Sequence[str]) -> str:
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))


def _table(study: StudyFolder, answers: Sequence[PaperVerdict]) -> Table:
    mark = f" ({SIMULATED})" if any(answer.simulated for answer in answers) else ""
    made = Table(title=f"{study.title}: the paper's conclusions{mark}", title_justify="left", show_lines=True)
    for name in ("question", "paper", "here (95 %, all together)", "joules (95 %, all together)", "verdict"):
        made.add_column(name)
    for answer in answers:
        at = ", ".join(f"{axis} {value}" for axis, value in answer.place)
        question = f"{answer.conclusion.question} [{answer.conclusion.where}]" + (f"\n{at}" if at else "")
        ratios = [_ratio(answer, sides) for sides in (answer.sides, answer.joules)]
        made.add_row(question, paper_words(answer), *ratios, answer.words)
    return made


def paper_words(of: PaperVerdict) -> str:
    """The paper's answer, in words."""
    if of.conclusion.only_direction:
        return "more" if of.conclusion.paper > 1 else "less"
    near = f" (within {100 * of.conclusion.about:g} % of 1)" if of.conclusion.about else ""
    return f"{of.conclusion.paper:.3g}{near}"


def _ratio(of: PaperVerdict, sides: Logs | None) -> str:
    if sides is None:
        return "-"
    low, high = of.limits_of(sides)
    return f"{ratio_of(sides):.3g}" + ("" if math.isnan(low) else f" ({low:.3g} to {high:.3g})")


def _row(study: StudyFolder, of: PaperVerdict) -> list[Any]:
    """A verdict as plain values, in the order of COLUMNS; unknown values are empty."""
    return [
        study.folder.name,
        of.conclusion.question,
        of.conclusion.where,
        " ".join(value for _, value in of.place),
        paper_words(of),
        *_numbers(of, of.sides),
        *_numbers(of, of.joules),
        of.words,
        of.word,
        of.factor_word,
        "; ".join(of.caveats),
        SIMULATED if of.simulated else "",
    ]


def _rows(study: StudyFolder, answers: Sequence[PaperVerdict]) -> list[list[Any]]:
    """The verdicts on the conclusions, then on the paper's observations, as plain values in the order of COLUMNS."""
    rows = [_row(study, answer) for answer in answers]
    for number, statement in study.observations.items():
        word, words = on_observation(number, answers)
        known = {"study": study.folder.name, "question": statement, "where": f"observation {number}"}
        known |= {"verdict": words, "direction": word}
        rows.append([known.get(name, "") for name in COLUMNS])
    return rows


def _numbers(of: PaperVerdict, sides: Logs | None) -> list[float | str]:
    """Ratio and the ends of its interval; an end is empty if there is none."""
    known = (ratio_of(sides), *of.limits_of(sides))
    return [number if math.isfinite(number) else "" for number in known]


def write_conclusions(folder: Path, places: Sequence[str], study: StudyFolder) -> Path:
    """Writes the verdicts on one study's conclusions as a CSV table, and their numbers into the text on methods.

    Returns: the path of the table. Raises: as verdicts_of.
    """
    [(_, answers, _)] = verdicts_of(places, study)
    path = folder / f"{study.folder.name}-conclusions.csv"
    write_whole(path, csv_text([COLUMNS, *_rows(study, answers)]).encode())
    caveats = "; ".join(dict.fromkeys(caveat for answer in answers for caveat in answer.caveats))
    lines = [
        f"Conclusions of the paper of {study.title}:",
        *count_lines(answers),
        *observation_lines(study, answers),
        f"caveats    {caveats or 'none'}",
    ]
    with (folder / METHODS).open("a", encoding="utf-8") as text:
        text.write("".join(f"{line}\n" for line in lines))
    return path
