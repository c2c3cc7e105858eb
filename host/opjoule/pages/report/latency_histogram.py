"""Histogram of the operations' latencies: one outline per kind, in bins of equal width on a logarithmic axis.

Both axes are logarithmic, so that the one operation in ten thousand that waits for a compaction is as visible as the
rest.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opjoule.energy.operations.operation_table import OperationTable
from opjoule.pages.drawing.page import Element, element
from opjoule.pages.drawing.scales import Scale
from opjoule.pages.drawing.shown import KINDS, WIDTH, drawing, legend, line, text, x_axis, y_axis
from opjoule.results.tracks import Floats

BINS_PER_DECADE = 20
HEIGHT = 210
LEFT, RIGHT, TOP, BOTTOM = 30, 14, 40, 34
CAPTION = "How long the run's operations took"
UNITS = {-9: "ns", -6: "\N{MICRO SIGN}s", -3: "ms", 0: "s"}
MOST_TICKS = 7


@dataclass(frozen=True)
class LatencyCounts:
    """Operations by latency."""

    bounds_s: Floats
    """Edges of the bins [s], shape (n + 1,)."""
    counts: Mapping[str, npt.NDArray[np.int64]]
    """Kind -> operations in each bin, shape (n,)."""
    marks_s: Mapping[str, float]
    """Name of a percentile of all operations -> latency [s]."""


def counted_latency(operations: OperationTable) -> LatencyCounts | None:
    """Counts of the operations' latencies in bins that cover all of them; None without operations."""
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
    """Number of each latency's bin. The clock counts nanoseconds, so that 0 means below 1 ns and goes to that bin."""
    exponent = np.log10(np.maximum(duration_ns, 1)) - 9
    return np.asarray(np.floor(exponent * BINS_PER_DECADE), np.int64)


def latency_histogram(latencies: LatencyCounts | None) -> list[Element]:
    """The drawing; nothing if no operation was logged."""
    if latencies is None:
        return []
    most = max(int(counts.max()) for counts in latencies.counts.values())
    first_s, last_s = latencies.bounds_s[[0, -1]].tolist()
    x = Scale(first_s, last_s, LEFT, WIDTH - RIGHT, logarithmic=True)
    # The axis begins below one operation, so that a bin with one operation differs from an empty one.
    y = Scale(0.5, max(most * 1.3, 10.0), HEIGHT - BOTTOM, TOP, logarithmic=True)
    outlines = [
        element("path", d=_outline(x, y, latencies.bounds_s, counts), class_=f"line kind-{number % KINDS}")
        for number, counts in enumerate(latencies.counts.values())
    ]
    kinds = ", ".join(f"{int(counts.sum()):,} {name}" for name, counts in latencies.counts.items())
    drawn = drawing(
        *y_axis(y, _counts(y), LEFT, WIDTH - RIGHT, "operations in a bin", TOP - 14),
        *x_axis(x, _times(x), TOP, HEIGHT - BOTTOM, "latency, on the board's clock"),
        *_marks(x, latencies.marks_s),
        *outlines,
        height=HEIGHT,
        label=f"{CAPTION}: {kinds}; logarithmic axes. The table above has the percentiles.",
    )
    return [element("h3", CAPTION), legend(latencies.counts), drawn]


def _outline(x: Scale, y: Scale, bounds_s: Floats, counts: npt.NDArray[np.int64]) -> str:
    """Steps from the first bin with an operation to the last."""
    held = np.flatnonzero(counts)
    parts = [f"M{x(bounds_s[held[0]]):.1f} {y(0):.1f}"]
    for i in range(held[0], held[-1] + 1):
        parts.append(f"V{y(float(counts[i])):.1f}H{x(bounds_s[i + 1]):.1f}")
    return "".join([*parts, f"V{y(0):.1f}"])


def _counts(y: Scale) -> list[tuple[float, str]]:
    powers = range(math.floor(math.log10(y.high)) + 1)
    return [(10.0**power, f"{10 ** (power % 3)}{('', 'k', 'M', 'G')[power // 3]}") for power in powers]


def _times(x: Scale) -> list[tuple[float, str]]:
    powers = range(math.ceil(math.log10(x.low) - 1e-9), math.floor(math.log10(x.high) + 1e-9) + 1)
    ticks = []
    for power in powers[:: -(-len(powers) // MOST_TICKS) or 1]:
        unit = min(max(power // 3 * 3, -9), 0)
        ticks.append((10.0**power, f"{10 ** (power - unit)} {UNITS[unit]}"))
    return ticks


def _marks(x: Scale, marks_s: Mapping[str, float]) -> list[Element]:
    """Percentiles as dashed lines, with their names on opposite sides."""
    parts = []
    for (name, second), anchor in zip(marks_s.items(), ("end", "start"), strict=False):
        place = x(second)
        parts += [line(place, TOP - 10, place, HEIGHT - BOTTOM, "mark")]
        parts += [text(place + (3 if anchor == "start" else -3), TOP - 4, name, anchor)]
    return parts
