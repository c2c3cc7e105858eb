"""Ratios of a comparison with their intervals, one row for each pair."""

from dataclasses import replace

from opjoule.pages.drawing.drawing import Bar, Bars, Drawing, Mark
from opjoule.pages.drawing.shown import ratio_axis
from opjoule.results.comparison.contrasts import Compared, Contrast
from opjoule.results.comparison.run_warnings import summary_of
from opjoule.results.comparison.sentences import (
    NO_DIFFERENCE,
    chance_name,
    chance_number,
    chance_words,
    follows_words,
    pair_labels,
)
from opjoule.results.comparison.value_words import noun, quantity_words
from opjoule.results.rounding import NONE, with_limits
from opjoule.runs.evaluation.quantities.definition import Definition


def forest(compared: Compared) -> Drawing:
    """The ratios of each quantity, with the interval of each (95.45 %) and the simultaneous one of all."""
    panels = [ratios(compared, of) for of in compared.with_ratios]
    warnings = summary_of(group.runs for group in compared.groups)
    return Drawing(panels, rest=NO_DIFFERENCE, simulated=compared.simulated, warnings=warnings)


def ratios(compared: Compared, of: Definition) -> Bars:
    """The ratios of one quantity."""
    contrasts = compared.contrasts_of(of)
    axis = ratio_axis(
        (float(contrast.ratio), contrast.limits, contrast.limits_together or contrast.limits)
        for contrast in contrasts
        if contrast.ratio
    )
    mark = ", SIMULATED" if compared.simulated else ""
    chance = chance_name(max(contrast.judged for contrast in contrasts))
    rows = [_ratio(at, contrast) for at, contrast in enumerate(contrasts)]
    return Bars(
        f"ratio of {quantity_words(of)}",
        "ratio",
        rows,
        [row.name for row in rows],
        axis=axis,
        caption=f"{quantity_words(of)}: ratios by {noun(compared.question.by)}{mark}",
        heads=("comparison", "ratio (95.45 %)", chance, "follows"),
    )


def _ratio(at: int, contrast: Contrast) -> Bar:
    where, a, b = pair_labels(contrast)
    mark = Mark.OPEN if contrast.adjusted is None else Mark.DIFFERENT if contrast.differs else Mark.ALIKE
    more = chance_number(contrast).replace(" ", "\N{NO-BREAK SPACE}"), follows_words(contrast, a)
    row = Bar(f"{where + ': ' if where else ''}{a} / {b}", at, 0, None, mark=mark, text=NONE, beside=NONE, more=more)
    if contrast.ratio is None:
        return row
    number = with_limits(float(contrast.ratio), contrast.limits)
    return replace(
        row,
        value=float(contrast.ratio),
        limits=contrast.limits,
        together=contrast.limits_together if contrast.judged > 1 else None,
        text=number,
        beside=f"{number}, {follows_words(contrast) if mark is Mark.OPEN else chance_words(contrast)}",
    )
