"""What a comparison says: sentences, a table, JSON, CSV, and the verdict on a change."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from opjoule.campaign.contrasts import LIMIT, SIDE, Compared, Contrast
from opjoule.errors import WORSE_EXIT, DataFault
from opjoule.record.definition import Definition
from opjoule.record.json_file import Schema, plain
from opjoule.report.quantities import NONE
from opjoule.report.rounding import rounded, with_limits

SCHEMA: Final = Schema("comparison", 1)
RATES: Final = ("1/s", "B/s")
"""Units of quantities of which more is better."""


def sentence(contrast: Contrast, tolerance: float = 0.0) -> str:
    """What one comparison says, with its probability among all that were looked at."""
    what = f"{contrast.quantity.label or contrast.quantity.key}{_inside(contrast.stratum)}"
    apart = f"{contrast.a} against {contrast.b}"
    found, beyond = contrast.ratio, f" by more than {100 * tolerance:g} %" if tolerance else ""
    if contrast.adjusted is None:
        size = f", ratio {found.value:.3g}" if found else ""
        return (
            f"{what}: {apart}{size}, of a single run: how much runs differ is not known, and nothing can be "
            "concluded; measure more repeats"
        )
    if not contrast.differs:
        size = f": ratio {_times(contrast)}" if found else ""
        alone = (contrast.probability or 0.0) < LIMIT
        among = (
            f" (alone p = {contrast.probability:.2g}, among all p = {contrast.adjusted:.2g})" if alone else ""
        )
        return f"{what}: {contrast.a} and {contrast.b} cannot be told apart{beyond}{size}{among}"
    more = "more" if contrast.side_a.value > contrast.side_b.value else "less"
    if found is None:
        return f"{what}: {contrast.a} is {more} than {contrast.b}{beyond} ({_chance(contrast.adjusted)})"
    return (
        f"{what}: {contrast.a} is {_times(contrast)} times {contrast.b}, {more}{beyond} "
        f"({_chance(contrast.adjusted)})"
    )


def _inside(stratum: Mapping[str, str]) -> str:
    return f" [{', '.join(f'{axis} {value}' for axis, value in stratum.items())}]" if stratum else ""


def _times(contrast: Contrast) -> str:
    return with_limits(contrast.ratio.value, contrast.limits) if contrast.ratio else ""


def _chance(probability: float) -> str:
    return "p < 0.0001" if probability < 1e-4 else f"p = {probability:.2g}"


def summaries(compared: Compared) -> Iterator[str]:
    """Over all strata: how often a value was found above and below another; nothing where there is one stratum."""
    if len({tuple(each.stratum.items()) for each in compared.groups}) < 2:
        return
    pairs: dict[tuple[str, str, str], list[Contrast]] = {}
    for each in compared.contrasts:
        a, b = sorted((each.a, each.b))
        pairs.setdefault((each.quantity.label or each.quantity.key, a, b), []).append(each)
    yield from (_summary(label, a, b, own) for (label, a, b), own in pairs.items())


def _summary(label: str, a: str, b: str, contrasts: Sequence[Contrast]) -> str:
    """One pair of values over all strata, the one that was above the other more often first."""
    judged = [each for each in contrasts if each.adjusted is not None]
    if not judged:
        return f"{label}: {a} against {b}: single runs, of which nothing can be concluded"
    counts = {name: sum(each.differs and _greater(each) == name for each in judged) for name in (a, b)}
    if counts[b] > counts[a]:
        a, b = b, a
    ratios = [each.ratio.value ** (1 if each.a == a else -1) for each in judged if each.ratio]
    ends = dict.fromkeys(f"{each(ratios):.3g}" for each in (min, max)) if ratios else ()
    span = f"; {a} was {' to '.join(ends)} times {b}" if ends else ""
    neither = len(judged) - counts[a] - counts[b]
    if not counts[a]:
        return f"{label}: {a} and {b} cannot be told apart in any of {len(judged)} comparisons{span}"
    where = f"all {len(judged)}" if counts[a] == len(judged) else f"{counts[a]} of {len(judged)}"
    rest = f", below in {counts[b]}" if counts[b] else ""
    rest += f", not told apart in {neither}" if neither else ""
    return f"{label}: {a} is above {b} in {where} comparisons{rest}{span}"


def _greater(contrast: Contrast) -> str:
    return contrast.a if contrast.side_a.value > contrast.side_b.value else contrast.b


def conclusions(compared: Compared) -> list[str]:
    """What can be said in few lines: over all strata where there are several, else each comparison."""
    return list(summaries(compared)) or [
        sentence(each, compared.question.tolerance) for each in compared.contrasts
    ]


def is_worse(contrast: Contrast) -> bool | None:
    """Is a (after) worse than b (before), beyond the tolerance? None where they are not found different."""
    if not contrast.differs:
        return None
    return (contrast.side_a.value > contrast.side_b.value) is not _more_is_better(contrast.quantity)


def _more_is_better(quantity: Definition) -> bool:
    return quantity.unit in RATES


def verdict(compared: Compared) -> tuple[str, int]:
    """In a word and as exit status: of a change that is worse in anything, WORSE_EXIT.

    Raises: DataFault: nothing can be said, since a side is a single run.
    """
    judged = [each for each in compared.contrasts if each.adjusted is not None]
    if not judged:
        raise DataFault(
            "no verdict: before and after need at least two runs each, or a run of at least two repeats (--repeats)"
        )
    found = [is_worse(each) for each in judged]
    if any(found):
        return "worse", WORSE_EXIT
    return ("better", 0) if False in found else ("no change shown", 0)


def to_json(compared: Compared) -> dict[str, Any]:
    """The comparison as a value. Schema: docs/how-to/compare-runs.md."""
    question = compared.question
    groups = [
        {
            **({"condition": dict(group.stratum)} if group.stratum else {}),
            "name": group.name,
            "metric": key,
            "value": side.value,
            "u": side.expanded_u,
            "unit": side.unit,
            "runs": [str(run.place) for run in group.runs],
        }
        for (key, at), side in compared.sides.items()
        for group in [compared.groups[at]]
    ]
    contrasts = [
        {
            "metric": each.quantity.key,
            **({"condition": dict(each.stratum)} if each.stratum else {}),
            "a": each.a,
            "b": each.b,
            "ratio": None if each.ratio is None else plain(each.ratio),
            "ratio_limits": _ends(each),
            "probability": each.probability,
            "adjusted_probability": each.adjusted,
            "differs": each.differs,
            "sentence": sentence(each, question.tolerance),
        }
        for each in compared.contrasts
    ]
    last = {"verdict": verdict(compared)[0]} if question.by == (SIDE,) else {}
    return {
        "schema": plain(SCHEMA),
        "simulated": compared.simulated,
        "by": list(question.by),
        "although": sorted(question.although),
        "limit": LIMIT,
        "tolerance": question.tolerance,
        "groups": groups,
        "contrasts": contrasts,
        "notes": list(compared.notes),
        **last,
    }


def _ends(contrast: Contrast) -> list[float | None] | None:
    """Of the ratio's interval, the upper one None where there is none; None without a ratio."""
    if contrast.ratio is None:
        return None
    return [end if math.isfinite(end) else None for end in contrast.limits]


def to_csv(compared: Compared) -> str:
    """The comparisons, a row each."""
    axes = list(dict.fromkeys(axis for each in compared.contrasts for axis in each.stratum))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    head = [
        "metric",
        *axes,
        "a",
        "b",
        "a_value",
        "b_value",
        "unit",
        "ratio",
        "ratio_u",
        "ratio_low",
        "ratio_high",
    ]
    rows.writerow([*head, "probability", "adjusted_probability", "differs", "simulated"])
    for each in compared.contrasts:
        found = each.ratio
        rows.writerow(
            [
                each.quantity.key,
                *(each.stratum.get(axis, "") for axis in axes),
                *(each.a, each.b, each.side_a.value, each.side_b.value, each.side_a.unit),
                *((found.value, found.u) if found else ("", "")),
                *("" if end is None else end for end in _ends(each) or (None, None)),
                *("" if one is None else one for one in (each.probability, each.adjusted)),
                str(each.differs).lower(),
                str(compared.simulated).lower(),
            ]
        )
    return text.getvalue()


def print_compared(compared: Compared, console: Console | None = None) -> None:
    """Prints each group's mean, every comparison as a sentence, what follows over all, and what else is to be known."""
    console = console or Console(highlight=False, markup=False)
    mark = " (SIMULATED)" if compared.simulated else ""
    for quantity in compared.quantities:
        axes = list(dict.fromkeys(axis for each in compared.groups for axis in each.stratum))
        by = "" if compared.question.by == (SIDE,) else ", ".join(compared.question.by)
        shown = Table(*axes, by, quantity.label or quantity.key, "runs", box=None)
        shown.title, shown.title_justify = f"{quantity.label or quantity.key}{mark}", "left"
        for at, group in enumerate(compared.groups):
            side = compared.sides.get((quantity.key, at))
            value = NONE if side is None else str(rounded(side.value, side.expanded_u, side.unit))
            shown.add_row(*(group.stratum[axis] for axis in axes), group.name, value, str(len(group.runs)))
        console.print(shown)
    console.print()
    for each in compared.contrasts:
        console.print(sentence(each, compared.question.tolerance), soft_wrap=True)
    for line in summaries(compared):
        console.print(line, soft_wrap=True)
    judged = sum(each.adjusted is not None for each in compared.contrasts)
    several = f", judged together by Holm's rule ({judged} comparisons)"
    console.print(
        f"intervals for 95.45 %; a difference counts where p < {LIMIT}{several if judged > 1 else ''}",
        soft_wrap=True,
    )
    for line in compared.notes:
        console.print(f"note: {line}", soft_wrap=True)
    if compared.simulated:
        console.print(
            "SIMULATED: no board was measured; these joules come from a power model", soft_wrap=True
        )
