"""Answer of `compare -- COMMAND COMMAND`: by what factor commands differ in energy and time."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from opjoule.base.errors import OpJouleError
from opjoule.base.scripts import program
from opjoule.base.terminal import terminal
from opjoule.results.comparison.comparison import notes, print_comparison
from opjoule.results.comparison.conclusion import means_table, to_json
from opjoule.results.comparison.contrasts import Compared, Contrast, Question, compare
from opjoule.results.comparison.index import ConditionRun, read_index, with_result
from opjoule.results.comparison.run_warnings import print_above
from opjoule.results.comparison.sentences import chance_words, factor_words, place_words
from opjoule.results.comparison.value_words import sentence_case
from opjoule.results.rounding import rounded
from opjoule.runs.evaluation.quantities.definition import Definition
from opjoule.runs.studies.definition import COMMAND

WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "marginal_energy_j": ("used", "energy above idle"),
    "energy_j": ("used", "energy in all"),
    "duration_s": ("took", "time"),
}
"""Key of each compared quantity -> the verb and the noun of its sentence."""


def compared_commands(directory: Path) -> tuple[Compared, list[ConditionRun]]:
    """The comparison of a folder's commands, the greater side of each pair first, and all its runs.

    Raises: OpJouleError: nothing to compare.
    """
    runs, _ = read_index(directory)
    compared = compare(with_result(runs), Question((COMMAND,), tuple(WORDS)))
    return replace(compared, contrasts=tuple(pair.greater_first for pair in compared.contrasts)), runs


def print_campaign(directory: Path) -> None:
    """Prints the answer of a folder of several conditions: of commands in their own words.

    Raises: RecordFault: no readable index.
    """
    runs, _ = read_index(directory)
    if not any(COMMAND in run.condition for run in runs):
        return print_comparison(directory)
    try:
        compared, runs = compared_commands(directory)
    except OpJouleError:  # fewer than two commands have a result: the table says what is there
        return print_comparison(directory)
    console = terminal()
    print_above(console, compared.warnings, [], simulated=compared.simulated)
    columns = {WORDS[of.key][1]: of for of in compared.quantities}
    mark = " (SIMULATED)" if compared.simulated else ""
    console.print(means_table(compared, f"means of the blocks{mark}, 95 %", columns))
    count = sum(contrast.adjusted is not None for contrast in compared.contrasts)
    corrected = [f"p is corrected for all {count} contrasts (Holm)."] if count > 1 else []
    for line in (
        *factor_lines(compared),
        *corrected,
        *(f"note: {line}" for line in compared.notes),
        *notes(runs),
        f"records    {directory}",
        f"report     {directory / 'report.html'}",
        f"compare    {program('compare')} {directory} --by {COMMAND} --metric power_w",
    ):
        console.print(line, soft_wrap=True)
    return None


def commands_json(directory: Path) -> str:
    """The comparison of a folder's commands as JSON. Raises: OpJouleError: nothing to compare."""
    return json.dumps(to_json(compared_commands(directory)[0]), indent=2)


def factor_lines(compared: Compared) -> list[str]:
    """Each command against the one with the least, by each quantity: "A used 1.8 ± 0.2 times ..."."""
    return [
        _factor_line(contrast, compared)
        for quantity in compared.quantities
        for contrast in _against_the_least(compared, quantity)
    ]


def _against_the_least(compared: Compared, quantity: Definition) -> Iterator[Contrast]:
    """Contrasts of a quantity whose `b`, the smaller side, is the least of its stratum."""
    for stratum in {tuple(group.stratum.items()): group.stratum for group in compared.groups}.values():
        contrasts = compared.contrasts_of(quantity, stratum)
        least = min((float(contrast.side_b) for contrast in contrasts), default=0.0)
        yield from (contrast for contrast in contrasts if contrast.side_b.value == least)


def _factor_line(contrast: Contrast, compared: Compared) -> str:
    verb, what = WORDS[contrast.quantity.key]
    place, a, b = place_words(contrast.a), _name(contrast.a.name), _name(contrast.b.name)
    if contrast.ratio is None:
        return sentence_case(f"{place}{a} and {b} have no ratio of {what}: one is not above 0.")
    factor = rounded(float(contrast.ratio), contrast.ratio.u, "1")
    chance = "no p: single runs" if contrast.adjusted is None else chance_words(contrast)
    known = f"({factor_words(contrast)[1]}; {chance})"
    if contrast.differs:
        return f"{place}{a} {verb} {factor} times the {what} of {b} {known}."
    found = "no difference was found" if contrast.adjusted is not None else "nothing can be concluded"
    return sentence_case(f"{place}{found} between {a} and {b} in {what}: the ratio is {factor} {known}.")


def _name(command: str) -> str:
    """A command's name in a sentence: in quotes if it has several words."""
    return f"'{command}'" if " " in command else command
