"""Output of a comparison: terminal, JSON, CSV, and the verdict on a change."""

import math
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from opjoule.comparison.compared_run import SHORT, SIDE
from opjoule.comparison.contrasts import LIMIT, TOO_SHORT_RUNS, Compared, Contrast
from opjoule.comparison.run_warnings import marks_of, print_above
from opjoule.comparison.sentences import RATES, chance_words, follows_words, ratio_words, sentence
from opjoule.comparison.value_words import quantity_words
from opjoule.comparison.winners import conclusions
from opjoule.errors import WORSE_EXIT, DataFault
from opjoule.evaluation.quantities.definition import Definition
from opjoule.files import csv_text
from opjoule.opened.quantities import NONE, quantity_text
from opjoule.record.json_file import Schema, plain
from opjoule.units import from_json

SCHEMA: Final = Schema("comparison", 2)


def verdict(compared: Compared) -> tuple[str, int]:
    """Verdict as a word and as an exit status. Raises: DataFault: no contrast is judged; with the reason."""
    judged = [contrast for contrast in compared.contrasts if contrast.adjusted is not None]
    if not judged:
        why = "before and after need at least two runs each, or a run of at least two repeats (--repeats)"
        if any(contrast.cannot == TOO_SHORT_RUNS for contrast in compared.contrasts):
            why = f"{compared.warnings[0]}; judge them anyway with --although {SHORT}; {why} in any case"
        raise DataFault(f"no verdict: {why}")
    is_worse = {  # after, compared with before
        (contrast.side_a.value > contrast.side_b.value) is not (contrast.quantity.unit in RATES)
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
            **{name: mean[name] for name in ("value", "u", "unit")},
            "runs": [str(run.place) for run in group.runs],
            "warnings": marks_of(group.runs),
        }
        for quantity in compared.quantities
        for group in compared.groups
        if quantity.key in group.means
        for mean in [group.mean(quantity)]
    ]
    contrasts = [
        {
            "metric": contrast.quantity.key,
            **({"condition": dict(contrast.stratum)} if contrast.stratum else {}),
            "a": contrast.a,
            "b": contrast.b,
            "ratio": contrast.ratio.value if contrast.ratio else None,
            "ratio_limits": _ends(contrast),
            "probability": contrast.probability,
            "adjusted_probability": contrast.adjusted,
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
        "warnings": [str(warning) for warning in compared.warnings],
        "conclusions": conclusions([compared]),
        "groups": groups,
        "contrasts": contrasts,
        "notes": list(compared.notes),
        **last,
    }


def _ends(contrast: Contrast) -> list[float | None] | None:
    """Limits of the ratio's interval, the upper one None if infinite; None without a ratio."""
    if contrast.ratio is None:
        return None
    return [end if math.isfinite(end) else None for end in contrast.limits]


def to_csv(compared: Compared) -> str:
    """The comparisons as CSV, one row each."""
    head = ["metric", *compared.axes, "a", "b", "a_value", "b_value", "unit"]
    last = ["ratio", "ratio_low", "ratio_high", "probability", "adjusted_probability", "differs"]
    rows = [
        [
            contrast.quantity.key,
            *contrast.stratum.values(),
            *(contrast.a, contrast.b, contrast.side_a.value, contrast.side_b.value, contrast.side_a.unit),
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
    """Prints the warnings, the conclusions, each group's mean, every contrast, and the notes."""
    console = Console(highlight=False, markup=False)
    first = conclusions([compared])
    print_above(console, compared.warnings, first, simulated=compared.simulated)
    console.print()
    mark = " (SIMULATED)" if compared.simulated else ""
    for quantity in compared.quantities:
        console.print(_means(compared, quantity, mark))
        console.print(_ratios(compared, quantity, mark))
    console.print()
    judged = sum(contrast.adjusted is not None for contrast in compared.contrasts)
    several = f" All {judged} contrasts are judged together by Holm's rule." if judged > 1 else ""
    sentences = [sentence(contrast, compared) for contrast in compared.contrasts]
    for line in (
        *(line for line in sentences if line not in first),
        f"Intervals hold the true value in 95.45 % of cases. A difference counts where p < {LIMIT}.{several}",
        *(f"note: {line}" for line in compared.notes),
    ):
        console.print(line, soft_wrap=True)


def _means(compared: Compared, quantity: Definition, mark: str) -> Table:
    by = "" if compared.question.by == (SIDE,) else ", ".join(compared.question.by)
    shown = Table(*compared.axes, by, "mean (95 %)", "runs", box=None)
    shown.title, shown.title_justify = f"{quantity_words(quantity)}{mark}", "left"
    for group in compared.groups:
        value = quantity_text(from_json(group.mean(quantity))) if quantity.key in group.means else NONE
        shown.add_row(*group.stratum.values(), group.name, value, str(len(group.runs)))
    return shown


def _ratios(compared: Compared, quantity: Definition, mark: str) -> Table:
    shown = Table(*compared.axes, "contrast", "ratio", "95 %", "p among all", "follows", box=None)
    shown.title, shown.title_justify = f"ratios{mark}", "left"
    for contrast in compared.contrasts_of(quantity):
        ratio, _, limits = ratio_words(contrast).partition(", 95 %: ")
        named = [*contrast.stratum.values(), f"{contrast.a} / {contrast.b}"]
        chance, follows = chance_words(contrast.adjusted), follows_words(contrast)
        shown.add_row(*named, ratio or NONE, limits or NONE, chance, follows)
    return shown
