"""Ratios of a comparison with their intervals, one row for each pair."""

import math

from opjoule.pages.drawing.drawing import Drawing, Mark, Ratio, Ratios
from opjoule.pages.drawing.shown import ratio_axis
from opjoule.results.comparison.contrasts import Compared, Contrast
from opjoule.results.comparison.run_warnings import summary_of
from opjoule.results.comparison.sentences import (
    NO_DIFFERENCE,
    chance_name,
    follows_words,
    pair_labels,
)
from opjoule.results.comparison.value_words import noun, quantity_words
from opjoule.runs.evaluation.quantities.definition import Definition


def forest(compared: Compared) -> Drawing:
    """The ratios of each quantity, with the interval of each (95.45 %) and the simultaneous one of all."""
    panels = [ratios(compared, of) for of in compared.with_ratios]
    warnings = summary_of(group.runs for group in compared.groups)
    return Drawing(panels, rest=NO_DIFFERENCE, simulated=compared.simulated, warnings=warnings)


def ratios(compared: Compared, of: Definition) -> Ratios:
    """The ratios of one quantity."""
    contrasts = compared.contrasts_of(of)
    axis = ratio_axis(
        (float(contrast.ratio), contrast.limits, contrast.limits_together or contrast.limits)
        for contrast in contrasts
        if contrast.ratio
    )
    mark = ", SIMULATED" if compared.simulated else ""
    chance = chance_name(max(contrast.judged for contrast in contrasts))
    caption = f"{quantity_words(of)}: ratios by {noun(compared.question.by)}{mark}"
    return Ratios(f"ratio of {quantity_words(of)}", [*map(_ratio, contrasts)], axis, chance, caption)


def _ratio(contrast: Contrast) -> Ratio:
    where, a, b = pair_labels(contrast)
    return Ratio(
        f"{where + ': ' if where else ''}{a} / {b}",
        contrast.ratio.value if contrast.ratio else None,
        contrast.limits if contrast.ratio else (0.0, math.inf),
        contrast.limits_together if contrast.judged > 1 else None,
        Mark.OPEN if contrast.adjusted is None else Mark.DIFFERENT if contrast.differs else Mark.ALIKE,
        contrast.adjusted,
        follows_words(contrast, a),
    )
