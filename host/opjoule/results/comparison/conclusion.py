"""Output of a comparison: terminal, JSON, CSV, and the verdict on a change."""

import math
from collections.abc import Mapping
from typing import Any, Final

from rich.table import Table

from opjoule.base.errors import WORSE_EXIT, DataFault
from opjoule.base.files import csv_text
from opjoule.base.terminal import print_unbroken, terminal
from opjoule.results.comparison.compared_run import NOT_JUDGED, SHORT, SIDE, TWO_COSTS, costs_in, kind_of
from opjoule.results.comparison.contrasts import LIMIT, TOO_SHORT_RUNS, Compared, Contrast
from opjoule.results.comparison.ranking import rankings
from opjoule.results.comparison.run_warnings import marks_of, print_above
from opjoule.results.comparison.sentences import RATES, chance_name, sentence
from opjoule.results.comparison.value_words import quantity_words
from opjoule.results.comparison.winners import conclusions
from opjoule.results.long_table import part_text
from opjoule.results.rounding import NONE, chance_number, with_limits
from opjoule.runs.evaluation.quantities.definition import Definition
from opjoule.runs.record.json_file import Schema, plain

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
