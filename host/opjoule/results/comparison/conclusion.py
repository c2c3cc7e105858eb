"""Outputs of a comparison, and of all comparisons of a campaign: terminal, JSON, CSV, and the verdict on a change."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from opjoule.base.errors import WORSE_EXIT, DataFault, OpJouleError
from opjoule.base.files import csv_text
from opjoule.base.notices import Notice
from opjoule.base.scripts import program
from opjoule.base.terminal import print_unbroken, terminal
from opjoule.results.comparison.cell import Plotted, check_drawable, plotted
from opjoule.results.comparison.compared_run import (
    NOT_JUDGED,
    SHORT,
    SIDE,
    TWO_COSTS,
    ComparedRun,
    costs,
    costs_in,
    kind_of,
    time_beside,
    told_by,
)
from opjoule.results.comparison.contrasts import (
    LIMIT,
    TOO_SHORT_RUNS,
    Compared,
    Contrast,
    Question,
    compare,
    judged_together,
)
from opjoule.results.comparison.index import (
    COMPLETE,
    ConditionRun,
    cell_of,
    compared_by,
    measured_again,
    names_of,
    read_index,
    with_result,
)
from opjoule.results.comparison.ranking import rankings
from opjoule.results.comparison.run_warnings import marks_of, print_above, warnings_of
from opjoule.results.comparison.sentences import RATES, chance_name, sentence
from opjoule.results.comparison.value_words import quantity_words
from opjoule.results.comparison.winners import conclusions
from opjoule.results.long_table import part_text
from opjoule.results.rounding import NONE, chance_number, with_limits
from opjoule.runs.evaluation.quantities.definition import Definition
from opjoule.runs.record.json_file import Schema, plain
from opjoule.runs.studies.definition import COMMAND

SCHEMA: Final = Schema("comparison", 3)


def verdict(compared: Compared) -> tuple[str, int]:
    """Verdict as a word and as an exit status. Raises: DataFault: no contrast is judged; with the reason."""
    judged = [contrast for contrast in compared.contrasts if contrast.adjusted is not None]
    if not judged:
        why = "before and after need at least two runs each, or a run of at least two repeats (--repeats)"
        if any(contrast.cannot == TOO_SHORT_RUNS for contrast in compared.contrasts):
            why = f"{compared.warnings[0]}; judge them anyway with --although {SHORT}; {why} in any case"
        raise DataFault(f"no verdict: {why}")
    is_worse = {  # after, compared with before
        (float(contrast.side_a) > float(contrast.side_b)) is not (contrast.quantity.unit in RATES)
        for contrast in judged
        if contrast.differs
    }
    if True in is_worse:
        return "worse", WORSE_EXIT
    return ("better", 0) if is_worse else ("no change shown", 0)


def to_json(compared: Compared) -> dict[str, Any]:
    """The comparison as JSON. Schema: docs/how-to/compare-runs.md."""
    question = compared.question
    groups = [
        {
            **({"condition": dict(group.stratum)} if group.stratum else {}),
            "name": group.name,
            "metric": quantity.key,
            "value": mean.value,
            "u": mean.u,
            "unit": mean.unit,
            "runs": [str(run.place) for run in group.runs],
            "warnings": marks_of(group.runs),
        }
        for quantity in compared.shown
        for group in compared.groups
        for mean in [group.mean(quantity)]
        if mean.value is not None
    ]
    contrasts = [
        {
            "metric": contrast.quantity.key,
            **({"condition": dict(contrast.stratum)} if contrast.stratum else {}),
            "a": contrast.a.name,
            "b": contrast.b.name,
            "ratio": contrast.ratio.value if contrast.ratio else None,
            "ratio_limits": _ends(contrast),
            "p": contrast.probability,
            "p_holm": contrast.adjusted,
            "differs": contrast.differs,
            "not_judged": contrast.cannot,
            "sentence": sentence(contrast, compared),
        }
        for contrast in compared.contrasts
    ]
    last = {"verdict": verdict(compared)[0]} if question.by == (SIDE,) else {}
    return {
        "schema": plain(SCHEMA),
        "simulated": compared.simulated,
        "by": list(question.by),
        "although": sorted(question.although),
        "limit": LIMIT,
        "tolerance": question.tolerance,
        "notices": plain(compared.warnings),
        "conclusions": conclusions([compared]),
        "groups": groups,
        "contrasts": contrasts,
        "undecided": _undecided(compared),
        "notes": list(compared.notes),
        **last,
    }


def _undecided(compared: Compared) -> list[dict[str, Any]]:
    """The undecided groups, each with the group that it is compared with and the forecast of further repeats."""
    if compared.question.by == (SIDE,) or compared.question.against:
        return []
    found = [ranking for quantity in compared.quantities for ranking in rankings(compared, quantity)]
    return [
        {
            "metric": ranking.quantity.key,
            **({"condition": dict(ranking.stratum)} if ranking.stratum else {}),
            "name": of.contrast.a.name,
            "against": of.contrast.b.name,
            "more": of.more,
        }
        for ranking in found
        for of in ranking.undecided
    ]


def _ends(contrast: Contrast) -> list[float | None] | None:
    """Limits of the ratio's interval, the upper one None if infinite; None without a ratio."""
    if contrast.ratio is None:
        return None
    return [end if math.isfinite(end) else None for end in contrast.limits]


def to_csv(compared: Compared) -> str:
    """The comparisons as CSV, one row each."""
    head = ["metric", *compared.axes, "a", "b", "a_value", "b_value", "unit"]
    last = ["ratio", "ratio_low", "ratio_high", "p", "p_holm", "differs"]
    rows = [
        [
            contrast.quantity.key,
            *contrast.stratum.values(),
            *(contrast.a.name, contrast.b.name, contrast.side_a.value, contrast.side_b.value, contrast.side_a.unit),
            contrast.ratio.value if contrast.ratio else "",
            *(_ends(contrast) or (None, None)),
            *(contrast.probability, contrast.adjusted),
            str(contrast.differs).lower(),
            str(compared.simulated).lower(),
            "; ".join(compared.marks(contrast)),
        ]
        for contrast in compared.contrasts
    ]
    return csv_text([[*head, *last, "simulated", "warnings"], *rows])


def print_compared(compared: Compared) -> None:
    """Prints the warnings, the conclusions, each group's means, the ratios, why some are not judged, and notes."""
    console = terminal()
    first = conclusions([compared])
    print_above(console, compared.warnings, first, simulated=compared.simulated)
    console.print()
    mark = " (SIMULATED)" if compared.simulated else ""
    judged, by_kind = compared.judged, {kind_of(of): of for of in compared.told}
    by_words = {quantity_words(of): of for of in compared.shown if of not in compared.told}
    print_unbroken(console, means_table(compared, f"means, 95 %{mark}", by_words))
    by_words = {quantity_words(of): of for of in compared.quantities}
    print_unbroken(console, ratios(compared, f"ratios, 95 %{mark}", by_words, chance_name(judged)))
    if by_kind:
        print_unbroken(console, means_table(compared, f"all told, means, 95 %{mark}", by_kind))
    if any(map(compared.contrasts_of, compared.told)):
        print_unbroken(console, ratios(compared, f"all told, ratios, 95 %{mark}", by_kind))
    console.print()
    several = f" All {judged} contrasts are judged together by Holm's rule." if judged > 1 else ""
    unjudged = [contrast for contrast in compared.answering if contrast.adjusted is None]
    sentences = [sentence(contrast, compared) for contrast in unjudged]
    for line in (
        *(line for line in sentences if line not in first),
        f"Intervals hold the true value in 95.45 % of cases. A difference counts where {chance_name(judged)} < {LIMIT}."
        f"{several}",
        *([TWO_COSTS] if costs_in(compared.quantities) else []),
        *([NOT_JUDGED] if by_kind else []),
        *(f"note: {line}" for line in compared.notes),
    ):
        console.print(line, soft_wrap=True)


def means_table(compared: Compared, title: str, columns: Mapping[str, Definition]) -> Table:
    """A row for each group; `columns`: heading -> quantity."""
    by = "" if compared.question.by == (SIDE,) else ", ".join(compared.question.by)
    shown = Table(*compared.axes, by, *columns, "runs", box=None, title=title, title_justify="left")
    for group in compared.groups:
        means = [part_text(of.key, group.mean(of)) for of in columns.values()]
        shown.add_row(*group.stratum.values(), group.name, *means, str(len(group.runs)))
    return shown


def ratios(compared: Compared, title: str, columns: Mapping[str, Definition], chance: str = "") -> Table:
    """A row for each pair of groups, with the ratio by each quantity.

    Args:
        columns: heading -> quantity.
        chance: heading of the p-values; empty for quantities that are not judged.
    """
    heads = [head for name in columns for head in ((name, chance) if chance else (name,))]
    shown = Table(*compared.axes, "contrast", *heads, box=None, title=title, title_justify="left")
    by_pair: dict[tuple[str, ...], dict[str, Contrast]] = {}
    for contrast in compared.contrasts:
        pair = (*contrast.stratum.values(), f"{contrast.a.name} / {contrast.b.name}")
        by_pair.setdefault(pair, {})[contrast.quantity.key] = contrast
    for pair, contrasts in by_pair.items():
        of_pair = [contrasts.get(of.key) for of in columns.values()]
        if any(of_pair):
            shown.add_row(*pair, *(text for one in of_pair for text in _ratio(one)[: 1 + bool(chance)]))
    return shown


def _ratio(contrast: Contrast | None) -> tuple[str, str]:
    """Ratio with its interval, and p-value."""
    if contrast is None:
        return NONE, NONE
    ratio = contrast.ratio
    return with_limits(float(ratio), contrast.limits) if ratio else NONE, chance_number(contrast.adjusted)


@dataclass(frozen=True)
class Answers:
    """The comparisons of some runs."""

    compared: Sequence[Compared]
    """One for each axis with several values, the comparison with the fewest strata first."""
    cells: Plotted | None
    """All cells; None without a run that can be drawn."""
    refused: str
    """Reason why the cells must not be in one figure; empty if they may."""
    troubles: Sequence[str]
    """Reasons why an axis is not compared or the cells are not drawn, and notes of the comparisons."""

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of all runs."""
        return warnings_of(cell.runs for cell in self.cells.cells) if self.cells else []

    @cached_property
    def conclusions(self) -> list[str]:
        """Lines that answer the question: winners by each axis, then what they depend on."""
        return conclusions(self.compared)


def answers_of(runs: Sequence[ComparedRun]) -> Answers:
    """The comparisons of the runs of a campaign that have a result."""
    troubles: list[str] = []
    cells, refused = None, ""
    try:
        cells = plotted(runs)
        check_drawable(cells)
    except OpJouleError as error:
        refused = str(error) if cells else ""
        troubles.append(str(error))
    compared: list[Compared] = []
    for axis in dict.fromkeys(axis for run in runs for axis in run.condition):
        if len({run.condition[axis] for run in runs if axis in run.condition}) > 1:
            try:
                compared.append(compare(runs, Question((axis,))))
            except OpJouleError as error:
                troubles.append(f"by {axis}: {error}")
    compared = sorted(
        judged_together(compared),
        key=lambda one: len({tuple(group.stratum.items()) for group in one.groups}),
    )
    troubles += [line for comparison in compared for line in comparison.notes]
    return Answers(compared, cells, refused, list(dict.fromkeys(troubles)))


SIDE_BY_SIDE_MAX = 4
"""Greatest number of conditions side by side on a terminal."""


def cells(runs: Sequence[ConditionRun]) -> list[tuple[str, list[str]]]:
    """Rows of the table: each quantity's words, and its value in each condition, rounded and with its unit."""
    of_names = [cell_of(runs, name) for name in names_of(runs)]
    counted = "runs with a result", [_count(runs, name) for name in names_of(runs)]
    means = [(quantity_words(of), [part_text(of.key, cell.mean(of)) for cell in of_names]) for of in compared_by(runs)]
    return [counted, *means]


def _count(runs: Sequence[ConditionRun], name: str) -> str:
    """Number of blocks with a result, of all blocks; a run that was interrupted and repeated counts as one block."""
    condition_runs = [run for run in runs if run.name == name]
    with_result = {run.block for run in condition_runs if run.run}
    return f"{len(with_result)} of {len({run.block for run in condition_runs})}"


def notes(runs: Sequence[ConditionRun]) -> list[str]:
    """One line for each run that has no result or ended with faults."""
    lines = []
    again = measured_again(runs)
    for run in runs:
        if run.run and run.status == COMPLETE:
            continue
        outcome = run.status if run.run else f"no result: {run.why}"
        counted_as = f"; measured again as {again[run.folder]}" if run.folder in again else ""
        lines.append(f"{run.folder} (block {run.block}, {run.name}): {outcome}{counted_as}")
    return lines


def print_comparison(directory: Path) -> None:
    """Prints the warnings, the conclusions, the table of all conditions, reasons for missing runs, and file locations.

    Raises: RecordFault: no readable index.
    """
    runs, simulated = read_index(directory)
    console = terminal()
    answers = answers_of(with_result(runs))
    print_above(console, answers.warnings, answers.conclusions, simulated=simulated)
    mark = f"{' (SIMULATED)' if simulated else ''}, 95 %"
    if len(names_of(runs)) > SIDE_BY_SIDE_MAX:
        print_unbroken(console, _by_condition(runs, f"means of the blocks{mark}", _costs_and_time(runs)))
        if told := told_by(with_result(runs)):
            by_kind = {kind_of(of): of for of in told}
            print_unbroken(console, _by_condition(runs, f"all told{mark}", by_kind))
    else:
        shown = Table("", *names_of(runs), box=None, title=f"means of the blocks{mark}", title_justify="left")
        for words, values in cells(runs):
            shown.add_row(words, *values)
        print_unbroken(console, shown)
        for compared in answers.compared:
            if any(map(compared.contrasts_of, compared.told)):
                title = f"all told, ratios by {', '.join(compared.question.by)}{mark}"
                by_kind = {kind_of(of): of for of in compared.told}
                print_unbroken(console, ratios(compared, title, by_kind))
    _print_places(directory, runs)


def _print_places(directory: Path, runs: Sequence[ConditionRun]) -> None:
    """Prints the reasons for missing runs, and where everything is."""
    axes = ", ".join(dict.fromkeys(axis for run in runs for axis in run.condition))
    for line in (
        *notes(runs),
        f"records    {directory}",
        f"report     {directory / 'report.html'}",
        f"compare    {program('compare')} {directory} --by AXIS, of {axes}",
    ):
        terminal().print(line, soft_wrap=True)


def _by_condition(runs: Sequence[ConditionRun], title: str, columns: Mapping[str, Definition]) -> Table:
    """A table with one line per condition; `columns`: heading -> quantity."""
    shown = Table("", "with a result", *columns, box=None, title=title, title_justify="left")
    for name in names_of(runs):
        values = [part_text(of.key, cell_of(runs, name).mean(of)) for of in columns.values()]
        shown.add_row(name, _count(runs, name), *values)
    return shown


def _costs_and_time(runs: Sequence[ConditionRun]) -> dict[str, Definition]:
    """Heading -> quantity of the costs of the work and its time; empty without a result."""
    tables = [run.run.quantities for run in runs if run.run][:1]
    return {quantity_words(of): of for table in tables for of in (*costs(table), time_beside(table)) if of}


OF_COMMANDS: Final = ("marginal_energy_j", "energy_j", "duration_s")
"""Quantities by which commands are compared."""


def compared_commands(directory: Path) -> tuple[Compared, list[ConditionRun]]:
    """The comparison of a folder's commands, the greater side of each pair first, and all its runs.

    Raises: OpJouleError: nothing to compare.
    """
    runs, _ = read_index(directory)
    compared = compare(with_result(runs), Question((COMMAND,), OF_COMMANDS))
    return replace(compared, contrasts=tuple(pair.greater_first for pair in compared.contrasts)), runs


def print_campaign(directory: Path) -> None:
    """Prints the answer of a folder of several conditions; of commands, their comparison by energy and time.

    Raises: RecordFault: no readable index.
    """
    runs, _ = read_index(directory)
    if not any(COMMAND in run.condition for run in runs):
        return print_comparison(directory)
    try:
        compared, runs = compared_commands(directory)
    except OpJouleError:  # fewer than two commands have a result: the table says what is there
        return print_comparison(directory)
    print_compared(compared)
    return _print_places(directory, runs)


def commands_json(directory: Path) -> str:
    """The comparison of a folder's commands as JSON. Raises: OpJouleError: nothing to compare."""
    return json.dumps(to_json(compared_commands(directory)[0]), indent=2)
