"""Operations and intervals by window, from cumulative sums: every part of each is counted once."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.attribution import overlap
from opjoule.attribution.activities import Intervals
from opjoule.attribution.overlap import Waits, operations_in, overlap_s
from opjoule.energy.operations.operation_table import OperationTable

EVER = Waits(np.full(3, 1 << 60, np.int64))
spans = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 400), st.integers(0, 2)), min_size=1, max_size=40)


def table(rows):
    start, length, kind = (np.array(column) for column in zip(*sorted(rows), strict=True))
    count = len(rows)
    return OperationTable(
        start.astype(np.int64), length.astype(np.int64), kind.astype(np.uint8), np.zeros(count, np.uint16),
        np.zeros(count, np.int64), np.ones(count, np.bool_), ("a", "b", "c"),
    )  # fmt: skip


def inside(start, end, low, high):
    return max(min(end, high) - max(start, low), 0)


@settings(deadline=None)
@given(spans)
def test_seconds_of_intervals_are_those_of_a_look_at_each(rows):
    edges = np.array([0, 130, 131, 500, 900], np.int64)
    start = np.array([row[0] for row in rows], np.int64)
    end = start + np.array([row[1] for row in rows])
    overlap_ns = overlap_s(edges, start, end) * 1e9
    expected = [sum(inside(s, e, low, high) for s, e in zip(start, end, strict=True)) for low, high in pairwise(edges)]
    assert overlap_ns == pytest.approx(expected, abs=1e-6)


@settings(deadline=None)
@given(spans)
def test_an_operation_across_an_edge_counts_on_both_sides_as_much_as_it_lasts_there(rows):
    edges = np.array([0, 130, 131, 500, 900, 2000], np.int64)
    count, busy_s = operations_in(edges, table(rows), EVER)
    for window, (low, high) in enumerate(pairwise(edges)):
        for kind in range(3):
            operations = [(s, max(length, 1)) for s, length, k in rows if k == kind]
            parts = [inside(s, s + length, low, high) for s, length in operations]
            assert count[window, kind] == pytest.approx(
                sum(part / length for part, (_, length) in zip(parts, operations, strict=True)), abs=1e-6
            )
            assert busy_s[window, kind] * 1e9 == pytest.approx(sum(parts), abs=1.1 * len(operations))


def test_operations_are_counted_the_same_a_few_at_a_time(monkeypatch):
    rng = np.random.default_rng(1)
    rows = list(zip(*(rng.integers(0, high, 500).tolist() for high in (5000, 30, 3)), strict=True))
    edges = np.arange(0, 6000, 70)
    whole = operations_in(edges, table(rows), EVER)
    monkeypatch.setattr(overlap, "ROWS", 7)
    for one, other in zip(whole, operations_in(edges, table(rows), EVER), strict=True):
        assert one == pytest.approx(other)
    assert whole[0].sum() == pytest.approx(500)


def test_an_operation_that_waits_is_not_busy_all_the_while():
    rows = [(start, 9, 0) for start in range(0, 10_000, 10)] + [(10_000, 50_000, 0)]
    waits = Waits.of(table(rows), 0.99)
    assert waits.longest_ns[0] == 27
    _, busy_s = operations_in(np.array([0, 30_000, 70_000]), table(rows), waits)
    assert busy_s.sum() * 1e9 == pytest.approx(9 * 1000 + 27)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 5)), min_size=1, max_size=40))
def test_merged_intervals_cover_the_same_times_without_overlap(stretches):
    start_ns = np.array([start for start, _ in stretches], np.int64)
    end_ns = start_ns + np.array([length for _, length in stretches], np.int64)
    merged = Intervals.of(start_ns, end_ns).merged
    assert np.all(merged.start_ns[1:] > merged.end_ns[:-1])
    for start, end in zip(start_ns, end_ns, strict=True):
        assert np.any((merged.start_ns <= start) & (merged.end_ns >= end))
    assert (merged.start_ns.min(), merged.end_ns.max()) == (start_ns.min(), end_ns.max())
