"""How long the run's operations took, drawn as a histogram with logarithmic axes: one outline a kind.

Both axes are logarithmic: the one operation in ten thousand that waits for a compaction is as visible as the rest. Bins
are equal steps of the logarithm, so that an outline's heights at two places compare counts over equal ratios.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opjoule.operations.operation_table import OperationTable
from opjoule.report.markup import Element, element
from opjoule.report.packing import Floats

BINS_PER_DECADE = 20
WIDTH, HEIGHT = 400, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 22, 18, 34
COLOURS = 6
"""kind-0 to kind-5 in report.css, in the order in which the chart's panels use them"""
CAPTION = "How long the run's operations took"
UNITS = {-9: "ns", -6: "\N{MICRO SIGN}s", -3: "ms", 0: "s"}
MOST_TICKS = 7


@dataclass(frozen=True)
class LatencyCounts:
    """Operations by latency.

    bounds_s: edges of the bins [s], equal steps of the logarithm, shape (n + 1,).
    counts: by kind, operations in each bin, shape (n,).
    marks_s: name of a percentile of all of them -> latency [s].
    """

    bounds_s: Floats
    counts: Mapping[str, npt.NDArray[np.int64]]
    marks_s: Mapping[str, float]


def counted_latency(operations: OperationTable) -> LatencyCounts | None:
    """Counts of the operations' latencies in bins that hold all of them; None without an operation."""
    if len(operations) == 0:
        return None
    ends = _bins(np.array([operations.duration_ns.min(), operations.duration_ns.max()])).tolist()
    first, last = ends[0], max(ends[1] + 1, ends[0] + BINS_PER_DECADE)
    edges = np.arange(first, last + 1, dtype=np.float64) / BINS_PER_DECADE
    shape = len(operations.kinds), last - first
    counted = np.zeros(shape[0] * shape[1], np.int64)
    for part in operations.parts():
        place = part.kind.astype(np.int64) * shape[1] + (_bins(part.duration_ns) - first)
        counted += np.bincount(place, minlength=counted.size)
    by_code = counted.reshape(shape)
    counts = {name: by_code[operations.kinds.index(name)] for name in operations.counts()}
    overall = operations.latency
    marks = {"50 %": overall.p50, "99 %": overall.p99} if overall else {}
    return LatencyCounts(10.0**edges, counts, marks)


def _bins(duration_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number of the bin of each; the clock counts nanoseconds, so that 0 is one below 1 ns and belongs to its bin."""
    exponent = np.log10(np.maximum(duration_ns, 1)) - 9
    return np.asarray(np.floor(exponent * BINS_PER_DECADE), np.int64)


@dataclass(frozen=True)
class _Axes:
    """Logarithms of latency [s] and count at the four sides of the drawing."""

    low: float
    high: float
    top: float
    floor: float = math.log10(0.5)
    """below one operation, so that a bin of one stands clear of an empty one"""

    def x(self, exponent: float) -> float:
        return LEFT + (exponent - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)

    def y(self, count: float) -> float:
        share = (math.log10(max(count, 0.5)) - self.floor) / (self.top - self.floor)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def latency_histogram(found: LatencyCounts | None) -> list[Element]:
    """The drawing, or nothing where no operation was logged."""
    if found is None:
        return []
    most = max(int(counts.max()) for counts in found.counts.values())
    bounds = np.log10(found.bounds_s)
    axes = _Axes(float(bounds[0]), float(bounds[-1]), max(math.log10(most * 1.3), 1.0))
    outlines = [
        element("path", d=_outline(axes, bounds, counts), class_=f"kind kind-{number % COLOURS}")
        for number, counts in enumerate(found.counts.values())
    ]
    kinds = ", ".join(f"{int(counts.sum()):,} {name}" for name, counts in found.counts.items())
    drawn = [*_count_axis(axes), *_time_axis(axes), *_marks(axes, found.marks_s), *outlines, *_key(found)]
    return [
        element("h3", CAPTION),
        element(
            "svg",
            *drawn,
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label=f"{CAPTION}: {kinds}; logarithmic axes. The table above has the percentiles.",
            class_="histogram",
        ),
    ]


def _outline(axes: _Axes, bounds: Floats, counts: npt.NDArray[np.int64]) -> str:
    """Steps from the first bin that holds an operation to the last."""
    held = np.flatnonzero(counts)
    parts = [f"M{axes.x(bounds[held[0]]):.1f} {axes.y(0):.1f}"]
    for i in range(held[0], held[-1] + 1):
        parts.append(f"V{axes.y(float(counts[i])):.1f}H{axes.x(bounds[i + 1]):.1f}")
    return "".join([*parts, f"V{axes.y(0):.1f}"])


def _count_axis(axes: _Axes) -> list[Element]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts = [_text(0, 0, "operations a bin", "middle", transform=f"translate(10 {middle:.0f}) rotate(-90)")]
    for power in range(0, math.floor(axes.top) + 1):
        y = axes.y(10.0**power)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "grid"))
        name = f"{10**power}" if power < 3 else f"{10 ** (power % 3)}{'kMG'[power // 3 - 1]}"
        parts.append(_text(LEFT - 4, y + 3, name, "end"))
    return parts


def _time_axis(axes: _Axes) -> list[Element]:
    powers = range(math.ceil(axes.low), math.floor(axes.high) + 1)
    parts = [_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, "latency, on the board's clock", "middle")]
    for power in powers[:: -(-len(powers) // MOST_TICKS) or 1]:
        unit = min(max(power // 3 * 3, -9), 0)
        parts.append(_line(axes.x(power), TOP, axes.x(power), HEIGHT - BOTTOM, "grid"))
        parts.append(
            _text(axes.x(power), HEIGHT - BOTTOM + 12, f"{10 ** (power - unit)} {UNITS[unit]}", "middle")
        )
    return parts


def _marks(axes: _Axes, marks_s: Mapping[str, float]) -> list[Element]:
    """Percentiles as dashed lines, their names turned away from each other."""
    parts = []
    for (name, second), anchor in zip(marks_s.items(), ("end", "start"), strict=False):
        x = axes.x(max(math.log10(max(second, 1e-9)), axes.low))
        parts += [_line(x, TOP - 10, x, HEIGHT - BOTTOM, "mark")]
        parts += [_text(x + (3 if anchor == "start" else -3), TOP - 4, name, anchor)]
    return parts


def _key(found: LatencyCounts) -> list[Element]:
    return [
        _text(WIDTH - RIGHT - 3, TOP + 12 + 13 * number, name, "end", class_=f"kind kind-{number % COLOURS}")
        for number, name in enumerate(found.counts)
    ]


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Element:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return element("line", **{name: f"{value:.1f}" for name, value in ends.items()}, class_=class_)


def _text(x: float, y: float, words: str, anchor: str, **more: str) -> Element:
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **more)
