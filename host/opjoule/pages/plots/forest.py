"""Ratios with their intervals, one row for each comparison, for print."""

from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from opjoule.pages.comparison.drawings import pair_name, ratio_scale
from opjoule.pages.drawing.scales import Scale
from opjoule.pages.drawing.strips import TICKS
from opjoule.pages.plots.style import COLOURS, INK, canvas, legend
from opjoule.results.comparison.contrasts import Compared, Contrast
from opjoule.results.comparison.run_warnings import summary_of
from opjoule.results.comparison.sentences import NO_DIFFERENCE, chance_words, follows_words
from opjoule.results.comparison.value_words import quantity_words
from opjoule.results.rounding import NONE, with_limits
from opjoule.runs.evaluation.quantities.definition import Definition

ROW_IN: Final = 0.2
AROUND_IN: Final = 0.75
"""Height in addition to the rows, for the axis and its name [inch]."""
LEGEND_IN: Final = 0.5
_MARK: Final[dict[str, Any]] = {"linestyle": "none", "markeredgecolor": INK, "markersize": 5.5}
NUMBERS_AT: Final = 1.03
"""Left end of the numbers, as part of the axes' width."""


def forest(compared: Compared) -> Figure:
    """The ratios of each quantity; thick lines: 95.45 % interval of each ratio, thin lines: of all ratios together."""
    rows = [compared.contrasts_of(of) for of in compared.with_ratios]
    heights_in = [AROUND_IN + ROW_IN * len(contrasts) for contrasts in rows]
    figure = canvas(sum(heights_in) + LEGEND_IN)
    places = figure.subplots(len(rows), 1, squeeze=False, height_ratios=heights_in)[:, 0]
    for axes, contrasts, quantity in zip(places, rows, compared.with_ratios, strict=True):
        _quantity(axes, contrasts, quantity)
    several = max((contrast.judged for contrast in compared.contrasts), default=1) > 1
    handles = _handles(compared, several=several)
    warnings = summary_of(group.runs for group in compared.groups)
    return legend(figure, handles, simulated=compared.simulated, warnings=warnings)


def _quantity(axes: Axes, contrasts: list[Contrast], of: Definition) -> None:
    scale = ratio_scale(contrasts)
    axes.set(xscale="log", xlim=(scale.low, scale.high), ylim=(len(contrasts) - 0.4, -0.6))
    axes.xaxis.set_major_locator(FixedLocator(scale.ticks(TICKS)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1.0, color=INK, linewidth=0.7)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.5)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0, pad=8)
    axes.set_yticks(range(len(contrasts)), [pair_name(contrast) for contrast in contrasts])
    axes.set_xlabel(f"ratio of {quantity_words(of)}")
    for at, contrast in enumerate(contrasts):
        _ratio(axes, at, contrast, scale)
        place: dict[str, Any] = {"xy": (NUMBERS_AT, at), "xycoords": ("axes fraction", "data")}
        axes.annotate(_numbers(contrast), **place, va="center", color=INK)


def _numbers(contrast: Contrast) -> str:
    if contrast.ratio is None:
        return NONE
    number = with_limits(float(contrast.ratio), contrast.limits)
    return f"{number}, {follows_words(contrast) if contrast.adjusted is None else chance_words(contrast)}"


def _ratio(axes: Axes, at: int, contrast: Contrast, scale: Scale) -> None:
    """Draws a ratio; an arrow shows that an interval continues beyond the axes."""
    ratio = contrast.ratio
    if ratio is None:
        return
    widest = contrast.limits_together or contrast.limits
    for limits, width in ((widest, 0.7), (contrast.limits, 2.6)):
        low, high = max(limits[0], scale.low), min(limits[1], scale.high)
        axes.plot([low, high], [at, at], color=INK, linewidth=width, solid_capstyle="butt")
    beyond = [(scale.low, "<")] if widest[0] < scale.low else []
    beyond += [(scale.high, ">")] if widest[1] > scale.high else []
    for end, marker in beyond:
        axes.plot([end], [at], marker=marker, color=INK, markersize=4.0, clip_on=False)
    # Filled if the two differ; a square if nothing can be concluded.
    colour = COLOURS[0] if contrast.differs else "white"
    mark = "s" if contrast.adjusted is None else "o"
    axes.plot([float(ratio)], [at], zorder=5, marker=mark, color=colour, markeredgewidth=0.9, **_MARK)


def _handles(compared: Compared, *, several: bool) -> list[Line2D]:
    handles = [Line2D([], [], color=INK, linewidth=2.6, label="interval, 95.45 %")]
    if several:
        handles.append(Line2D([], [], color=INK, linewidth=0.7, label="all together"))
    handles.append(Line2D([], [], color=COLOURS[0], label="different", marker="o", **_MARK))
    handles.append(Line2D([], [], color="white", label=NO_DIFFERENCE, marker="o", **_MARK))
    if any(contrast.adjusted is None for contrast in compared.contrasts):
        handles.append(Line2D([], [], color="white", label="no conclusion", marker="s", **_MARK))
    return handles
