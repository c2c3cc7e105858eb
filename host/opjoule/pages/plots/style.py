"""Style and files of figures, which are legible in print, in grey, and with any colour vision."""

import io
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, LogFormatterSciNotation

from opjoule.base.files import write_whole
from opjoule.base.units import Quantity
from opjoule.pages.drawing.scales import limits_from_zero

COLOURS: Final = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB")
"""Source: Paul Tol, Colour Schemes, SRON/EPS/TN/09-002, "bright"."""
HATCHES: Final = ("", "////", "\\\\\\\\", "xx", "--", "++", "||")
"""Hatchings made only of lines, because a pattern of dots takes 150 kB in an SVG file."""
FILLS: Final = ("full", "left", "bottom", "right", "top")
"""Fill styles of points, so that series also differ without colour."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
INK: Final = "#222222"
WARNING: Final = "#A50026"
SIMULATED: Final = "SIMULATED: no board was measured; these joules come from a power model"
WARNING_LETTERS: Final = 95
"""Maximum number of letters in a line of warnings."""
WARNING_LINE_IN: Final = 0.14
"""Height of a line of warnings, which is added to the figure [inch]."""
LETTERS_A_LINE: Final = 85
"""Number of letters that fit into the width of a figure."""
COLUMNS: Final = 6
"""Maximum number of columns of a legend."""
WIDTH_IN: Final = 6.3
"""Width of the text of an A4 page with usual margins [inch]."""
FORMATS: Final[dict[str, dict[str, Any]]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
"""Format -> metadata to leave out, namely the time of writing, so that the same records give the same file."""
PNG_DPI: Final = 200
_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SETTINGS: Final[Any] = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "axes.axisbelow": True,
    "text.parse_math": False,  # the texts of a record are shown as they are, with their dollar signs
    "figure.constrained_layout.w_pad": 0.06,
    "figure.constrained_layout.h_pad": 0.05,
    "pdf.fonttype": 42,  # text stays text
    "svg.fonttype": "none",
    "svg.hashsalt": "opjoule",  # the same figure gives the same file
}


class _Powers(LogFormatter):
    """Labels of a logarithmic axis as plain text (10⁻³), where matplotlib's own are formulas."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        if not super().__call__(x, pos):
            return ""
        power = math.floor(math.log10(x) + 1e-9)
        factor = f"{x / 10.0**power:.3g}"
        return f"{'' if factor == '1' else f'{factor} · '}10{str(power).translate(_RAISED)}"


def drawn(draw: Callable[[], Figure]) -> Figure:
    """Draws a figure with these settings instead of the user's own."""
    with mpl.rc_context(_SETTINGS):
        figure = draw()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        for labels, put in (
            (axis.get_major_formatter(), axis.set_major_formatter),
            (axis.get_minor_formatter(), axis.set_minor_formatter),
        ):
            if isinstance(labels, LogFormatterSciNotation):
                put(_Powers(labelOnlyBase=labels.labelOnlyBase))
    return figure


def canvas(height_in: float) -> Figure:
    """An empty figure as wide as a page's text."""
    return Figure(figsize=(WIDTH_IN, height_in), layout="constrained")


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes a figure in every format. Returns: the files."""
    return [save_as(figure, folder / f"{name}.{kind}") for kind in FORMATS]


def save_as(figure: Figure, path: Path) -> Path:
    """Writes a figure in the format given by the file's suffix, one of `FORMATS`."""
    out, kind = io.BytesIO(), path.suffix[1:].lower()
    with mpl.rc_context(_SETTINGS):
        figure.savefig(out, format=kind, dpi=PNG_DPI, metadata=FORMATS[kind])
    write_whole(path, out.getvalue())
    return path


def legend(figure: Figure, handles: Sequence[Any], *, simulated: bool, warnings: str = "") -> Figure:
    """The figure with a legend above its axes; the runs' warnings, in one line, are above the legend."""
    lines = [SIMULATED] if simulated else []
    warned = wrap(warnings, WARNING_LETTERS)
    title = "\n".join([*lines, *warned])
    figure.set_figheight(figure.get_figheight() + WARNING_LINE_IN * len(warned))
    for rows in range(math.ceil(len(handles) / COLUMNS), len(handles) + 1):
        made = figure.legend(
            handles=handles,
            loc="outside upper center",
            ncols=math.ceil(len(handles) / rows),
            frameon=False,
            handlelength=1.8,
            columnspacing=1.4,
            title=title or None,
            title_fontproperties={"size": 8, "weight": "bold"},
        )
        made.get_title().set_color(WARNING)
        if made.get_window_extent().width <= figure.bbox.width or rows == len(handles):
            break
        made.remove()
    return figure


def ends(values: Iterable[Quantity], scale: float) -> tuple[float, float]:
    """Limits of an axis that begins at 0 or below. An interval that reaches far beyond all values is cut.

    Intervals of very few runs are many times their value. An interval that leaves the axis has no cap there.
    """
    known = [(of.value * scale, (of.u or 0.0) * scale) for of in values if of.value is not None]
    low, high = limits_from_zero(known)
    span = high - low
    return low - (0.05 * span if low < 0 else 0.0), high + 0.07 * span


LINEAR_RANGE: Final = 10.0
"""Largest ratio of values for which bars are drawn from zero, on a linear axis."""


def lie_apart(values: Iterable[float | None]) -> bool:
    """True if bars need a logarithmic axis to be visible: all values are positive and far apart."""
    known = [value for value in values if value]
    return bool(known) and min(known) > 0 and max(known) > LINEAR_RANGE * min(known)


def name_places(axes: Axes, names: Sequence[str]) -> None:
    """Writes names below the places 0, 1, 2, ...; on several lines, or turned if they would overlap."""
    lines = [name.replace(", ", "\n") for name in names]
    longest = max(len(line) for name in lines for line in name.split("\n"))
    turned = len(names) * (longest + 2) > LETTERS_A_LINE
    axes.set_xticks(range(len(names)), names if turned else lines)
    axes.tick_params(axis="x", length=0)
    for text in axes.get_xticklabels() if turned else ():
        text.set(rotation=35, ha="right", rotation_mode="anchor")


def error_limits(of: Quantity, scale: float) -> list[list[float]] | None:
    """Lengths of an error bar below and above a value, times `scale`; above 0, it ends at 0. None if unstated."""
    if of.value is None or of.u is None:
        return None
    value, u = of.value * scale, of.u * scale
    return [[min(u, value) if value > 0 else u], [u]]


def fill(number: int, linewidth: float = 0.5) -> dict[str, Any]:
    """Style of a series' bars: colour and hatching."""
    style = {"facecolor": COLOURS[number % len(COLOURS)], "hatch": HATCHES[number % len(HATCHES)]}
    return {**style, "edgecolor": INK, "linewidth": linewidth}
