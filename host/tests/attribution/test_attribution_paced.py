"""A client that begins its operations at even distances, SIMULATED: neighbours tell little of what all kinds draw."""

import numpy as np
import pytest
from opjoule.attribution.columns import PartColumns
from opjoule.attribution.fit import fits
from opjoule.attribution.overlap import Waits
from opjoule.attribution.run_windows import blurred
from opjoule.attribution.window_groups import groups
from opjoule.operations.operation_table import OperationTable
from opjoule.simulation.known_power import Steady

NS = 1_000_000_000
WINDOW_NS, LENGTH_NS = 5_475_000, 20_000


def blur(starts_s, length_ns=LENGTH_NS):
    """What neighbours miss of operations of one thread that begin at these times."""
    starts_ns = (np.asarray(starts_s) * NS).astype(np.int64)
    operations = OperationTable(
        starts_ns,
        np.full(starts_ns.size, length_ns, np.int64),
        np.zeros(starts_ns.size, np.uint8),
        np.zeros(starts_ns.size, np.uint16),
        np.zeros(starts_ns.size, np.int64),
        np.ones(starts_ns.size, np.bool_),
        ("read",),
    )
    edge_ns = np.arange(0, int(starts_ns[-1]), WINDOW_NS)
    return blurred(edge_ns, operations, Waits.of(operations))


def test_operations_at_even_distances_are_blurred_by_those_at_the_edges():
    """Two or three of them are in a window: of 0.2 that their number varies by a shift of 0.1 ms moves half."""
    assert blur(np.arange(10_000) * 2e-3) == pytest.approx(0.1 / (2 * 0.2), rel=0.2)


def test_operations_that_come_as_they_will_are_not_blurred():
    gaps_s = np.random.default_rng(1).exponential(2e-3, 10_000)
    assert blur(np.cumsum(gaps_s)) == 0.0


def test_a_client_that_works_all_the_time_is_not_blurred():
    assert blur(np.arange(10_000) * 2e-3, 1_500_000) == 0.0


def told(blurred_by):
    """Energies of reads and updates over the true ones: 500 a second, whose energy lies around each of them."""
    rng = np.random.default_rng(1)
    begin_s = np.arange(20_000) * 2e-3 + rng.gamma(4.0, 10e-6, 20_000)
    kind = rng.integers(0, 2, begin_s.size)
    energy_j = np.where(kind == 1, 193e-6, 141e-6) * rng.uniform(0.75, 1.25, begin_s.size)
    edge_s = np.arange(9_000) * WINDOW_NS / NS
    length_s = np.where(kind == 1, 23e-6, 14e-6) * rng.uniform(0.8, 1.2, begin_s.size)

    def by_window(weight):
        columns = [np.histogram(begin_s[kind == at], edge_s, weights=weight[kind == at])[0] for at in (0, 1)]
        return np.stack(columns, axis=1)

    count, busy_s = by_window(np.ones(begin_s.size)), by_window(length_s)
    drawn = Steady(begin_s - 125e-6, begin_s + 125e-6, energy_j)
    window_j = np.diff(drawn.until_j(edge_s)) + rng.normal(0.0, 2e-5, edge_s.size - 1)
    settling = edge_s[:-1] > begin_s[-1]
    group = groups({}, np.diff(edge_s), settling, np.arange(settling.size) // 48)
    columns = PartColumns.of({"read": 0, "update": 1}, count, busy_s, {}, group, blurred_by)
    whole, _ = fits(columns.matrix, window_j, group, columns.sets, columns.parts, [slice(0, settling.size)])
    return whole.energy_j[:2] / [energy_j[kind == 0].sum(), energy_j[kind == 1].sum()]


def test_far_windows_tell_what_all_kinds_of_a_paced_client_draw():
    assert told(0.12) == pytest.approx([1.0, 1.0], abs=0.015)


def test_neighbours_alone_would_tell_it_wrong():
    assert np.abs(told(0.0) - 1.0).max() > 0.03
