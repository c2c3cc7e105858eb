"""Drawings of a page over several runs: ratios, bars, energy against time, joules by part, and order in time."""

import math
from collections.abc import Iterator, Sequence

from opjoule.base.units import Quantity
from opjoule.pages.comparison.drift import Drift, drift_of
from opjoule.pages.drawing.markup import Child, Element, element, row, table
from opjoule.pages.drawing.scales import Scale
from opjoule.pages.drawing.scatter import Point, scatter, shape_mark
from opjoule.pages.drawing.strips import (
    axis_head,
    bar_axis,
    bar_strip,
    legend,
    ratio_axis,
    ratio_strip,
    stack_strip,
    swatch,
)
from opjoule.results.comparison.contrasts import Compared, Contrast
from opjoule.results.comparison.plotted import ENERGY, TOTAL, Plotted
from opjoule.results.comparison.sentences import chance_name, chance_number, follows_words, pair_labels
from opjoule.results.comparison.value_words import NAMED, noun, quantity_words
from opjoule.results.quantities import NOT_IDENTIFIABLE
from opjoule.results.rounding import NONE, percent, quantity_text, scaled, with_limits
from opjoule.runs.evaluation.quantities.definition import Definition


def ratio_scale(contrasts: Sequence[Contrast]) -> Scale:
    """Axis for all ratios and both of their intervals, limited to a factor beyond the ratios."""
    return ratio_axis(
        (float(contrast.ratio), contrast.limits, contrast.limits_together or contrast.limits)
        for contrast in contrasts
        if contrast.ratio
    )


def forest(answer: Compared, of: Definition) -> Element:
    """One row per comparison: the ratio with both intervals, its number, its p-value, and the conclusion."""
    contrasts = answer.contrasts_of(of)
    axis = ratio_scale(contrasts)
    mark = ", SIMULATED" if answer.simulated else ""
    caption = f"{quantity_words(of)}: ratios by {noun(answer.question.by)}{mark}"
    chance = chance_name(max(contrast.judged for contrast in contrasts))
    head: list[Child] = ["comparison", axis_head(axis, "ratio"), "ratio (95.45 %)", chance, "follows"]
    return table(head, [_ratio_row(contrast, axis) for contrast in contrasts], caption, class_="strips")


def _ratio_row(contrast: Contrast, axis: Scale) -> Element:
    name, ratio, follows = pair_name(contrast), contrast.ratio, _follows(contrast)
    if ratio is None:
        return row(name, NONE, NONE, _chance(contrast), follows)
    limits, single = (contrast.limits, contrast.limits_together), contrast.adjusted is None
    strip = ratio_strip(axis, float(ratio), *limits, differs=contrast.differs, single=single)
    number = element("span", with_limits(float(ratio), contrast.limits), class_="figure")
    return row(name, strip, number, _chance(contrast), follows)


def pair_name(contrast: Contrast) -> str:
    """Stratum and both sides of a comparison."""
    where, a, b = pair_labels(contrast)
    return f"{where + ': ' if where else ''}{a} / {b}"


def _chance(contrast: Contrast) -> str:
    return chance_number(contrast).replace(" ", "\N{NO-BREAK SPACE}")


def _follows(contrast: Contrast) -> Element:
    words = follows_words(contrast, contrast.a.label)
    if contrast.adjusted is None:
        return element("span", words, class_="reason")
    return element("strong" if contrast.differs else "span", words)


def bars(cells: Plotted, of: Definition) -> Element:
    """One row per cell: a bar with its interval (95 %) and a point for each run."""
    numbers = [cell.number(of.key) for cell in cells.cells]
    known = [(number.value, _u(number)) for number in numbers if number.value is not None]
    axis = bar_axis(known)
    unit_scale, unit = scaled([value for value, _ in known], numbers[0].unit or of.unit)
    body = []
    for cell, number in zip(cells.cells, numbers, strict=True):
        points = [float(number.value) for number in cell.numbers(of.key) if number.value is not None]
        u = number.u
        strip = bar_strip(axis, number.value, u, points, cells.series.index(cells.series_of(cell)))
        reason = number.reason if number.value is None else None
        text = element("span", cell.text(of.key), class_="figure", title=reason)
        body.append(row(cells.name_of(cell), strip, text, str(len(points))))
    mark = ", SIMULATED" if cells.simulated else ""
    head: list[Child] = ["cell", axis_head(axis, unit, unit_scale), "mean (95 %)", "runs"]
    caption = f"{quantity_words(of)}: bars with interval, a point for each run{mark}"
    made = table(head, body, caption, class_="strips")
    return element("div", legend(cells.series), made) if len(cells.series) > 1 else made


def plane(cells: Plotted) -> list[Element]:
    """Joules above idle per operation against seconds per operation, one point per cell that has both."""
    known = [(cell, cell.delay, cell.number(ENERGY)) for cell in cells.cells]
    known = [item for item in known if item[1].value is not None and item[2].value is not None]
    if not known:
        return []
    x_scale, x_unit = scaled([of.value or 0.0 for _, of, _ in known], "s")
    y_scale, y_unit = scaled([of.value or 0.0 for *_, of in known], "J")
    points = [
        Point(
            (x.value or 0.0) * x_scale,
            (y.value or 0.0) * y_scale,
            cells.series.index(cells.series_of(cell)),
            cells.groups.index(cells.group_of(cell)),
            f"{cells.name_of(cell)}: {quantity_text(y)}, {quantity_text(x)} an operation",
            _u(x) * x_scale,
            _u(y) * y_scale,
        )
        for cell, x, y in known
    ]
    label = "Energy above idle against time, both per operation, one point per cell; the tables have the numbers."
    shapes = enumerate(cells.groups if len(cells.groups) > 1 else ())
    groups = [element("li", shape_mark(at), f" {name}") for at, name in shapes]
    drawing = scatter(
        points,
        f"time per operation, {x_unit}",
        f"above idle per operation, {y_unit}",
        label,
        logarithmic=True,
        guides=_equal_products,
    )
    note = "Further down and to the left is better. Intervals: 95 %. Dashed: equal energy times time, by tens."
    return [legend(cells.series, *groups), drawing, element("p", note, class_="reason")]


def _equal_products(x: Scale, y: Scale) -> Iterator[str]:
    """Lines of equal energy-delay product, a factor of ten apart; straight on logarithmic axes.

    Source: Gonzalez, Horowitz, Energy dissipation in general purpose microprocessors, IEEE JSSC 31 (1996).
    """
    if not x.logarithmic:
        return
    for power in range(math.ceil(math.log10(x.low * y.low)), math.floor(math.log10(x.high * y.high)) + 1):
        product = 10.0**power
        left, right = max(x.low, product / y.high), min(x.high, product / y.low)
        yield f"M{x(left):.1f} {y(product / left):.1f}L{x(right):.1f} {y(product / right):.1f}"


def stacks(cells: Plotted) -> list[Element]:
    """Joules above idle of each cell, by kind of operation and by activity; empty if no cell has them."""
    if not any(cells.stacks):
        return []
    names = cells.part_names
    totals = [cell.number(TOTAL) for cell in cells.cells]
    sums = [sum(max(part, 0.0) for part in of_cell.values()) for of_cell in cells.stacks]
    below = [sum(min(part, 0.0) for part in of_cell.values()) for of_cell in cells.stacks]
    axis = bar_axis([(value, 0.0) for value in (*sums, *below)])
    scale, unit = scaled(sums, "J")
    body = []
    for cell, total, of_cell in zip(cells.cells, totals, cells.stacks, strict=True):
        strip = [(part, None if name == NOT_IDENTIFIABLE else names.index(name)) for name, part in of_cell.items()]
        shares = [
            f"{name} {percent(of_cell[name] / total.value) if total.value and name in of_cell else NONE}"
            for name in (*names, NOT_IDENTIFIABLE)
        ]
        text = element("span", quantity_text(total), class_="figure")
        body.append(row(cells.name_of(cell), stack_strip(axis, strip), text, element("span", ", ".join(shares))))
    untold = element("li", swatch("untold"), f" {NOT_IDENTIFIABLE}")
    mark = ", SIMULATED" if cells.simulated else ""
    head: list[Child] = ["cell", axis_head(axis, unit, scale), "above idle", "parts"]
    made = table(head, body, f"Energy above idle by kind and activity{mark}", class_="strips parts")
    return [legend(names, untold), made]


def course(cells: Plotted, of: Definition) -> list[Element]:
    """Each run relative to the mean of its cell, in order of time, and the effect of a drift on the comparisons."""
    drift = drift_of(cells, of.key)
    if len(drift.runs) < 2:
        return []
    points = [
        Point(
            run.time_s / 60,
            100 * run.share,
            cells.series.index(cells.series_of(cells.cells[run.cell])),
            words=f"{cells.name_of(cells.cells[run.cell])}: {percent(run.share)}",
        )
        for run in drift.runs
    ]
    label = f"{of.label or of.key} of each run against the mean of its cell, over the time of measuring."
    drawing = scatter(
        points, "since the first run began, min", "against the cell's mean, %", label,
        guides=lambda x, y: _drift_line(drift, x, y),
    )  # fmt: skip
    return [legend(cells.series), drawing, element("p", _drift_words(drift)), *_shifts(cells, drift)]


def _drift_line(drift: Drift, x: Scale, y: Scale) -> Iterator[str]:
    if drift.slope_per_s is None:
        return
    middle_min = sum(run.time_s for run in drift.runs) / len(drift.runs) / 60
    ends = (0.0, drift.length_s / 60)
    at = [(x(end), y(100 * float(drift.slope_per_s) * 60 * (end - middle_min))) for end in ends]
    yield f"M{at[0][0]:.1f} {at[0][1]:.1f}L{at[1][0]:.1f} {at[1][1]:.1f}"


def _drift_words(drift: Drift) -> str:
    whole = drift.whole
    if whole is None:
        return "Drift cannot be judged: that needs at least two cells of several runs each."
    seen = "no drift is seen" if whole.covers(0.0) else "a drift is seen"
    change = quantity_text(whole.scale(100.0, "%"))
    return (
        f"From the first run to the last a straight line through all of them changes by {change} (95.45 %): {seen}. "
        "Dashed: that line."
    )


def _shifts(cells: Plotted, drift: Drift) -> list[Element]:
    """For each value of each axis: its mean place in time, and the shift of its mean by the drift."""
    body = []
    measured = {run.cell for run in drift.runs}
    for axis in (*cells.series_axes, *cells.group_axes):
        for value in dict.fromkeys(cell.values[axis] for cell in cells.cells):
            of_value = [at for at in measured if cells.cells[at].values[axis] == value]
            if not of_value:
                continue
            shift = drift.shift(of_value)
            words = NONE if shift is None else quantity_text(shift.scale(100.0, "%"))
            name = value if axis in NAMED else f"{noun([axis])} {value}"
            body.append(row(name, f"{drift.time_s(of_value) / 60:.1f} min", words))
    head = ["value", "mean time of its runs", "shift of its mean by the drift"]
    return [table(head, body, "Effect of the drift on each compared value")]


def _u(of: Quantity) -> float:
    return of.u or 0.0
