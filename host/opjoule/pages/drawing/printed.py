"""Drawings for print, by matplotlib: legible in print, in grey, and with any colour vision."""

import io
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import NullLocator

from opjoule.base.files import write_whole
from opjoule.pages.drawing.drawing import (
    Bar,
    Bars,
    Chart,
    Drawing,
    DrawnAxis,
    Grid,
    Limits,
    Mark,
    Panel,
    Ratios,
    Scale,
    interval,
    log_ticks,
    roomy,
    stacked,
    tick_words,
)
from opjoule.results.rounding import NONE, chance_words, with_limits

COLOURS: Final = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB")
"""Source: Paul Tol, Colour Schemes, SRON/EPS/TN/09-002, "bright"."""
GREY: Final = "#E8E8E8"
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
AROUND_IN: Final = 0.7
"""Height of legend and names around the panels [inch]."""
ROW_IN: Final = 0.2
FORMATS: Final[dict[str, dict[str, Any]]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
"""Format -> metadata to leave out, namely the time of writing, so that the same records give the same file."""
PNG_DPI: Final = 200
LINEAR_RANGE: Final = 10.0
"""Largest ratio of values for which bars are drawn from zero, on a linear axis."""
LOG_ROOM: Final = 2.0
"""Factor by which a logarithmic axis of bars extends beyond these at both ends."""
LABEL_ROOM: Final = 1.15
"""The same for a linear axis above texts on bars."""
TICKS, FEW_TICKS = 5, 3
"""About the number of ticks of a logarithmic axis, and of one with little room."""
BARS_WIDTH: Final = 0.8
"""Width of all bars of a group; groups are 1 apart."""
INTERVAL_AT: Final = -0.24
DOTS_AT: Final = {1: (0.2,), 2: (0.06, 0.32)}
"""Number of series of dots -> their distance from a bar's middle, in parts of its width, off its interval."""
LEAST: Final = 0.9
"""Longest lower half of an interval on a logarithmic axis, as a part of its value."""
LETTERS_MAX: Final = 90
UPRIGHT_MAX: Final = 16
"""Maximum number of stacked bars, and of letters in all of their names, for which they are vertical. Others are drawn
horizontally, so that their names are legible."""
LIGHT, FIELD_LIGHT = 0.4, 0.55
"""Opacity of faint bars, and of fields."""
THIN, THICK = 0.7, 2.6
"""Width of the lines of simultaneous intervals, and of a ratio's own."""
NUMBERS_AT: Final = 1.03
"""Left end of the texts beside ratios, as part of the axes' width."""
_SETTINGS: Final[Any] = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.0,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "text.parse_math": False,  # the texts of a record are shown as they are, with their dollar signs
    "figure.constrained_layout.w_pad": 0.06,
    "figure.constrained_layout.h_pad": 0.05,
    "pdf.fonttype": 42,  # text stays text
    "svg.fonttype": "none",
    "svg.hashsalt": "opjoule",  # the same figure gives the same file
}
Known = tuple[float, Limits | None]
"""A value with the ends of its interval."""
_INTERVAL: Final[dict[str, Any]] = {"ecolor": INK, "elinewidth": 0.8, "capsize": 2.0}
_DASHED: Final[dict[str, Any]] = {"color": "#777777", "linewidth": 0.7, "linestyle": (0, (4, 3))}


def printed(drawing: Drawing) -> Figure:
    """The drawing with these settings instead of the user's own."""
    with mpl.rc_context(_SETTINGS):
        return _figure(drawing)


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


def _figure(drawing: Drawing) -> Figure:
    panels, across = drawing.panels, min(drawing.across, len(drawing.panels))
    heights_in = [_height_in(panel, drawing) for panel in panels[::across]]
    figure = Figure(figsize=(WIDTH_IN, AROUND_IN + sum(heights_in)), layout="constrained")
    first, on = panels[0], {(panel.x, panel.y) for panel in panels if isinstance(panel, Chart)}
    alike = isinstance(first, Chart) and len(on) == 1 < len(panels)
    of_axes = figure.subplots(
        len(heights_in), across, sharex=alike, sharey=alike, squeeze=False, height_ratios=heights_in
    )
    for axes in of_axes.flat[len(panels) :]:
        axes.set_visible(False)
    for at, (axes, panel) in enumerate(zip(of_axes.flat, panels, strict=False)):
        axes.spines[["top", "right"]].set_visible(False)
        match panel:
            case Chart():
                _chart(axes, panel, named=not alike)
            case Ratios():
                _ratios(axes, panel)
            case Bars():
                _bars(axes, panel, drawing, named=at + across >= len(panels))
            case Grid():
                _grid(axes, panel)
    if alike and isinstance(first, Chart):
        figure.supxlabel(_label(first.x.words, first.x.unit), fontsize=8)
        figure.supylabel(_label(first.y.words, first.y.unit), fontsize=8)
    elif drawing.lacking:
        axes = of_axes.flat[len(panels) - 1]
        axes.set_xlabel(f"{axes.get_xlabel()}\n{drawing.lacking}")
    return _with_legend(figure, drawing)


def _height_in(panel: Panel, drawing: Drawing) -> float:
    alone = len(drawing.panels) == 1
    match panel:
        case Grid():
            return 1.5 * ROW_IN * (len(panel.rows) + 1)
        case Chart():
            return 2.9 if alone else 2.2
        case Ratios():
            return 0.6 + ROW_IN * len(panel.rows)
    if _lie(panel):
        return 0.6 + ROW_IN * len(panel.bars)
    return 2.2 if alone or drawing.across > 1 or len(drawing.panels) == 2 else 1.6


def _with_legend(figure: Figure, drawing: Drawing) -> Figure:
    """The figure with a legend above its axes; the runs' warnings, in one line, are above the legend."""
    warned = wrap(drawing.warnings, WARNING_LETTERS)
    title = "\n".join([*([SIMULATED] if drawing.simulated else []), *warned])
    figure.set_figheight(figure.get_figheight() + WARNING_LINE_IN * len(warned))
    handles = _handles(drawing)
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


def _handles(drawing: Drawing) -> list[Patch | Line2D]:
    """Entries of the legend, as the kind of the first panel needs them."""
    match drawing.panels[0]:
        case Chart() as chart:
            return _keys_of_points(chart, drawing)
        case Ratios():
            return _keys_of_ratios(drawing)
        case Grid():
            colours = enumerate(drawing.series)
            return [Patch(facecolor=_of(COLOURS, at), alpha=FIELD_LIGHT, label=name) for at, name in colours]
        case Bars():
            return _keys_of_bars(drawing)


def _key(label: str, **style: Any) -> Line2D:
    return Line2D([], [], label=label, **style)


def _keys_of_points(of: Chart, drawing: Drawing) -> list[Patch | Line2D]:
    series = [_key(name, **_points(of, at, at * of.joined)) for at, name in enumerate(drawing.series)]
    shape: dict[str, Any] = {"color": "white", "markeredgecolor": INK, "linestyle": "none"}
    groups = [_key(name, marker=_of(MARKERS, at), **shape) for at, name in enumerate(drawing.groups)]
    return [*series, *groups, *([_key(of.guide, **_DASHED)] if of.guides else [])]


def _keys_of_ratios(drawing: Drawing) -> list[Patch | Line2D]:
    rows = [row for panel in drawing.panels if isinstance(panel, Ratios) for row in panel.rows]
    names = {Mark.DIFFERENT: "different", Mark.ALIKE: drawing.rest, Mark.OPEN: "no conclusion"}
    there = {row.mark for row in rows} | {Mark.DIFFERENT, Mark.ALIKE}
    lines = [("interval, 95.45 %", THICK), *([("all together", THIN)] if any(row.together for row in rows) else [])]
    return [
        *(_key(name, color=INK, linewidth=width) for name, width in lines),
        *(_key(name, **_mark(mark)) for mark, name in names.items() if mark in there),
    ]


def _keys_of_bars(drawing: Drawing) -> list[Patch | Line2D]:
    entries = [*enumerate(drawing.series), (None, drawing.rest)]
    grey: dict[str, Any] = {"facecolor": INK, "edgecolor": INK, "linewidth": 0.5}
    dots = {name: order for of in drawing.panels if isinstance(of, Bars) for order, name in enumerate(of.dots)}
    return [
        *(Patch(label=name, **_fill(at, apart=bool(drawing.rest))) for at, name in entries if name),
        *(
            Patch(label=name, alpha=alpha, **grey)
            for name, alpha in zip(drawing.faint or (), (1.0, LIGHT), strict=False)
        ),
        *(_key(name, **_marker(order)) for name, order in dots.items()),
    ]


def _chart(axes: Axes, of: Chart, *, named: bool) -> None:
    """Draws points with their intervals; `named`: with the axes' names."""
    axes.set_title(of.title)
    for which, axis in (("x", of.x), ("y", of.y)):
        _set_scale(axes, which, axis, TICKS if named else FEW_TICKS)
        if named:
            getattr(axes, f"set_{which}label")(_label(axis.words, axis.unit))
    axes.grid()
    for x, y in of.guides:
        axes.plot(x, y, zorder=0, **_DASHED)
    for series, group in dict.fromkeys((point.series, point.group) for point in of.points):
        alike = [point for point in of.points if (point.series, point.group) == (series, group)]
        axes.errorbar(
            [point.x for point in alike],
            [point.y for point in alike],
            xerr=_lengths([(point.x, interval(point.x, point.x_u)) for point in alike], of.x),
            yerr=_lengths([(point.y, interval(point.y, point.y_u)) for point in alike], of.y),
            **_INTERVAL,
            **_points(of, series, group),
        )


def _lengths(values: Sequence[Known], on: DrawnAxis | Scale) -> list[list[float]] | None:
    """Lengths of error bars below and above values; one of a value above 0 ends above 0. None without any."""
    known = [(value, limits or (value, value)) for value, limits in values]
    ends = [max(low, (1 - LEAST if on.logarithmic else 0.0) * value) if value > 0 else low for value, (low, _) in known]
    below = [value - end for (value, _), end in zip(known, ends, strict=True)]
    above = [high - value for value, (_, high) in known]
    return [below, above] if any(above) else None


def _set_scale(axes: Axes, which: str, of: DrawnAxis | Scale, most: int = TICKS) -> None:
    """Gives an axis its ends, and a logarithmic one the ticks that it has in a page."""
    if of.logarithmic:
        getattr(axes, f"set_{which}scale")("log")
        ticks = log_ticks(of.low, of.high, most)
        getattr(axes, f"set_{which}ticks")(ticks, [tick_words(tick) for tick in ticks])
        getattr(axes, f"{which}axis").set_minor_locator(NullLocator())
    getattr(axes, f"set_{which}lim")(of.low, of.high)


def _label(words: str, unit: str) -> str:
    return f"{words} [{unit}]" if unit else words


def _lie(of: Bars) -> bool:
    """Whether bars lie, one below another: they are many and have a name each."""
    many = len(of.groups) > UPRIGHT_MAX or sum(map(len, of.groups)) > LETTERS_MAX
    return of.places == 1 and not of.dots and many


def _bars(axes: Axes, of: Bars, drawing: Drawing, *, named: bool) -> None:
    """Draws bars; `named`: with the groups' names."""
    lie = _lie(of)
    known = [(bar.value, bar.limits) for bar in of.bars if bar.value is not None]
    tops = [limits[1] if limits else value for value, limits in known] if of.has_texts else []
    scale = _scale_of_bars(known, tops, may_be_log=not (of.stacked or of.title))
    _set_scale(axes, "x" if lie else "y", scale)
    axes.grid(axis="x" if lie else "y")
    if scale.low < 0:
        (axes.axvline if lie else axes.axhline)(0.0, color=INK, linewidth=0.6)
    slots = product(range(len(of.groups)), range(of.places))
    bars = {slot: Bar("", *slot, None, text=NONE) for slot in slots} | {(bar.group, bar.place): bar for bar in of.bars}
    for bar in bars.values():
        _bar(axes, of, bar, scale, drawing)
    words = _label(of.words, of.unit)
    if lie:
        _name_rows(axes, of.groups, words)
        return
    axes.set(xlim=(-0.5, len(of.groups) - 0.5), title=of.title, ylabel=f"{words}  (bars)" if of.right else words)
    axes.tick_params(axis="x", length=0)
    if of.title:
        axes.set(yticks=[], ylabel="", xlim=(-BARS_WIDTH / 2, BARS_WIDTH / 2))
        axes.grid(visible=False)
        axes.spines["left"].set_visible(False)
    _name_groups(axes, of.groups if named and not of.title else [])
    if of.dots:
        _dots(axes, of, scale)


def _name_rows(axes: Axes, names: Sequence[str], words: str) -> None:
    """Writes names beside rows at 0, 1, 2, ... from the top, and words below the axis."""
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5), xlabel=words)
    axes.tick_params(axis="y", length=0)


def _x(of: Bars, group: int, place: float) -> float:
    """Middle of a bar; groups are 1 apart."""
    return group + (place - (of.places - 1) / 2) * BARS_WIDTH / of.places


def _scale_of_bars(
    values: Sequence[tuple[float, Limits | None]], labels: Sequence[float], *, may_be_log: bool
) -> Scale:
    """Scale from zero, or a logarithmic one if the values lie far apart, with room for texts at the heights `labels`.

    Intervals of very few runs are many times their value. An interval that leaves the axis has no cap there.
    """
    known = [value for value, _ in values if value]
    if may_be_log and known and min(known) > 0 and max(known) > LINEAR_RANGE * min(known):
        return Scale(min(known) / LOG_ROOM, LOG_ROOM * max(*known, *(2 * at for at in labels)), logarithmic=True)
    low, high = roomy((value, limits[1] - value if limits else 0.0) for value, limits in values)
    return Scale(low, max([high if high > low else 1.0, *(LABEL_ROOM * at for at in labels)]))


def _bar(axes: Axes, of: Bars, bar: Bar, scale: Scale, drawing: Drawing) -> None:
    """Draws one bar, or the words that it has in place of a value."""
    lie, step, x = _lie(of), BARS_WIDTH / of.places, _x(of, bar.group, bar.place)
    if bar.value is None:
        at, on = ((0.02, x), ("axes fraction", "data")) if lie else ((x, 0.03), ("data", "axes fraction"))
        ha, va = ("left", "center") if lie else ("center", "bottom")
        turned = 0 if lie or bar.text == NONE else 90
        axes.annotate(bar.text, at, xycoords=on, color=INK, fontsize=6.5, rotation=turned, ha=ha, va=va)
        return
    for (start, end), (_, number) in zip(stacked(length for length, _ in bar.parts), bar.parts, strict=True):
        style = {"alpha": LIGHT if bar.faint else 1.0, **_fill(number, apart=bool(drawing.rest))}
        (axes.barh if lie else axes.bar)(x, end - start, 0.92 * step, start, **style)
    if of.has_texts and bar.text:
        _text_above(axes, x, bar.limits[1] if bar.limits else bar.value, bar.text)
    lengths = _lengths([(bar.value, bar.limits)], scale)
    if lengths and lie:
        axes.errorbar(bar.value, x, xerr=lengths, **_INTERVAL)
    elif lengths:
        axes.errorbar(x + (INTERVAL_AT * step if of.dots else 0.0), bar.value, yerr=lengths, **_INTERVAL)


def _text_above(axes: Axes, x: float, height: float, words: str) -> None:
    at: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center", "va": "bottom"}
    axes.annotate(words, (x, height), fontsize=6.5, color=INK, **at)


def _ratios(axes: Axes, of: Ratios) -> None:
    """Draws ratios; an arrow shows that an interval continues beyond the axes."""
    scale = of.axis
    _set_scale(axes, "x", scale)
    axes.grid(axis="x")
    axes.axvline(1.0, color=INK, linewidth=0.6)
    for at, row in enumerate(of.rows):
        words = row.follows if row.mark is Mark.OPEN else chance_words(of.chance, row.chance)
        beside = NONE if row.value is None else f"{with_limits(row.value, row.limits)}, {words}"
        axes.annotate(beside, (NUMBERS_AT, at), xycoords=("axes fraction", "data"), va="center", color=INK)
        if row.value is None:
            continue
        widest = row.together or row.limits
        for (low, high), width in ((widest, THIN), (row.limits, THICK)):
            ends = max(low, scale.low), min(high, scale.high)
            axes.plot(ends, [at, at], color=INK, linewidth=width, solid_capstyle="butt")
        arrows = (scale.low, "<", widest[0] < scale.low), (scale.high, ">", widest[1] > scale.high)
        for end, marker, is_beyond in arrows:
            if is_beyond:
                axes.plot([end], [at], marker=marker, color=INK, markersize=4.0, clip_on=False)
        axes.plot([row.value], [at], zorder=5, **_mark(row.mark))
    _name_rows(axes, [row.name for row in of.rows], of.words)
    axes.spines["left"].set_visible(False)


def _dots(left: Axes, of: Bars, scale: Scale) -> None:
    """Draws points beside the bars, on their axis or against one at the right."""
    axes = left
    if of.right:
        axes = left.twinx()
        axes.spines["top"].set_visible(False)
        axes.set_ylabel(f"{_label(*of.right)}  (points)")
        scale = _scale_of_bars([at[2:] for dots in of.dots.values() for at in dots], [], may_be_log=True)
        _set_scale(axes, "y", scale)
    for order, dots in enumerate(of.dots.values()):
        for group, place, value, limits in sorted(dots, key=lambda at: at[:2]):
            x = _x(of, group, place + DOTS_AT[len(of.dots)][order])
            style = {**_INTERVAL, **_marker(order)}
            axes.errorbar(x, value, yerr=_lengths([(value, limits)], scale), zorder=5, **style)


def _name_groups(axes: Axes, names: Sequence[str]) -> None:
    """Writes names below the places 0, 1, 2, ...; on several lines, or turned if they would overlap."""
    lines = [name.replace(", ", "\n") for name in names]
    longest = max((len(line) for name in lines for line in name.split("\n")), default=0)
    turned = len(names) * (longest + 2) > LETTERS_A_LINE
    axes.set_xticks(range(len(names)), names if turned else lines)
    for text in axes.get_xticklabels() if turned else ():
        text.set(rotation=35, ha="right", rotation_mode="anchor")


def _mark(mark: Mark) -> dict[str, Any]:
    """Style of a ratio's mark: filled if the two differ; a square if nothing can be concluded."""
    colour = COLOURS[0] if mark is Mark.DIFFERENT else "white"
    edge = {"markeredgecolor": INK, "markersize": 5.5, "markeredgewidth": 0.9}
    return {"color": colour, "marker": "s" if mark is Mark.OPEN else "o", "linestyle": "none", **edge}


def _grid(axes: Axes, of: Grid) -> None:
    axes.set(xlim=(0, len(of.columns)), ylim=(len(of.rows), 0))
    axes.set_xticks([at + 0.5 for at in range(len(of.columns))], of.columns)
    axes.set_yticks([at + 0.5 for at in range(len(of.rows))], of.rows)
    axes.tick_params(length=0, labelsize=6.5)
    axes.spines[:].set_visible(False)
    for row, column, number, words in of.fields:
        colour = _of(COLOURS, number)
        axes.add_patch(
            Rectangle((column + 0.02, row + 0.04), 0.96, 0.92, facecolor=colour, alpha=FIELD_LIGHT, linewidth=0)
        )
        axes.text(column + 0.5, row + 0.5, words, ha="center", va="center", fontsize=5, color=INK)


def _of(choices: Sequence[str], number: int) -> str:
    return choices[number % len(choices)]


def _fill(number: int | None, *, apart: bool) -> dict[str, Any]:
    """Style of a bar or part; `apart`: from the grey of what cannot be told apart."""
    edge: dict[str, Any] = {"edgecolor": INK, "linewidth": 0.5}
    if number is None:
        return {"facecolor": GREY, **edge}
    return {"facecolor": _of(COLOURS[:-1] if apart else COLOURS, number), "hatch": _of(HATCHES, number), **edge}


def _marker(order: int) -> dict[str, Any]:
    """Style of dark points with a light edge, which are visible on bars of every colour."""
    marker, face, edge = ("o", "white", INK) if order % 2 else ("D", INK, "white")
    colours = {"markerfacecolor": face, "markeredgecolor": edge, "markeredgewidth": 0.7}
    return {"marker": marker, "markersize": 4.2, **colours, "linestyle": "none"}


def _points(of: Chart, series: int, group: int) -> dict[str, Any]:
    """Style of points, and of the line that joins them."""
    style = {"color": _of(COLOURS, series), "fillstyle": _of(FILLS, series), "marker": _of(MARKERS, group)}
    edge = {"markerfacecoloralt": "white", "markeredgecolor": INK, "markeredgewidth": 0.7}
    line = {"markersize": 4.0, "linewidth": 0.9} if of.joined else {"markersize": 6.5, "linestyle": "none"}
    return {**style, **edge, **line}
