"""The histogram of latencies: every operation in a bin that holds its latency, and drawn where the axis says."""

from __future__ import annotations

import re

import numpy as np
import pytest
from opjoule.energy.operations.operation_table import LOADER_KINDS, OperationTable
from opjoule.pages.drawing.page import text_of
from opjoule.pages.drawing.shown import WIDTH
from opjoule.pages.report.latency_histogram import LEFT, RIGHT, counted_latency, latency_histogram


def operations(**duration_ns: list[int]) -> OperationTable:
    """Operations of some kinds with these durations."""
    made = OperationTable.empty(sum(len(times_ns) for times_ns in duration_ns.values()))
    made.duration_ns[:] = [one for times_ns in duration_ns.values() for one in times_ns]
    made.kind[:] = [LOADER_KINDS.index(name) for name, times_ns in duration_ns.items() for _ in times_ns]
    return made


@pytest.mark.parametrize("duration_ns", [1, 999, 1000, 1001, 10**6, 123_456_789, 10**10])
def test_an_operation_is_counted_where_its_latency_lies(duration_ns: int) -> None:
    counted = counted_latency(operations(read=[duration_ns]))
    assert counted
    (bin_,) = np.flatnonzero(counted.counts["read"])
    assert counted.bounds_s[bin_] * (1 - 1e-9) <= duration_ns * 1e-9 <= counted.bounds_s[bin_ + 1]


def test_every_operation_is_counted_once_whatever_its_latency() -> None:
    """Durations of 0 too: the clock's step can be longer than an operation."""
    rng = np.random.default_rng(1)
    reads = [0, *(rng.lognormal(9, 4, 5000)).astype(np.int64).tolist()]
    counted = counted_latency(operations(read=reads, scan=[5, 5, 7]))
    assert counted
    assert {name: int(counts.sum()) for name, counts in counted.counts.items()} == {"read": 5001, "scan": 3}
    assert counted.marks_s["50 %"] == pytest.approx(float(np.median([*reads, 5, 5, 7])) * 1e-9, rel=0.01)


def test_nothing_logged_is_nothing_drawn() -> None:
    assert counted_latency(OperationTable.empty()) is None
    assert latency_histogram(None) == []


def test_ticks_stand_at_their_decades_and_the_last_ends_with_the_drawing() -> None:
    """Centred under its tick, "100 ms" would be cut at the right edge."""
    drawn = text_of(*latency_histogram(counted_latency(operations(read=[100, 1000, 10_000, 99_000_000]))))
    labels = re.findall(r'x="([\d.]+)" y="[\d.]+" text-anchor="middle">(\d+) (ns|µs|ms|s)<', drawn)
    places = {f"{number} {unit}": float(x) for x, number, unit in labels}
    assert list(places) == ["100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]
    assert re.search(rf'x="{WIDTH - 1:.1f}" y="[\d.]+" text-anchor="end">100 ms<', drawn)
    steps = np.diff(list(places.values()))
    assert steps == pytest.approx([steps[0]] * 5, abs=0.2)
    assert LEFT <= min(places.values()) <= max(places.values()) <= WIDTH - RIGHT
