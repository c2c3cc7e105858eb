"""Operations in step with a meter that sees part of the time, SIMULATED: what it saw of them, and that it is said."""

from dataclasses import replace

import numpy as np
import pytest
from known_meter import KINDS, RUN_STARTS_S, experiment, watched  # path set above
from known_work import Choice, work
from opjoule.attribution.attribute import attribute_runs
from opjoule.attribution.overlap import SeenClock, Waits, operations_seen_in
from opjoule.base.units import Cause
from opjoule.energy.operations.operation_table import OperationTable

IN_STEP_SEED = 25
"""Seeds as in host/validate.py's experiments."""


def test_of_an_operation_counts_what_a_conversion_saw():
    seen = SeenClock.of(np.arange(5, dtype=np.int64) * 1000, 0.5)
    starts = np.array([0, 1250, 2500], np.int64)
    lengths = np.array([250, 500, 500], np.int64)
    operations = OperationTable(
        starts,
        lengths,
        np.array([0, 0, 1], np.uint8),
        np.zeros(3, np.uint16),
        np.zeros(3, np.int64),
        np.ones(3, np.bool_),
        ("read", "update"),
    )
    waits = Waits(np.array([10_000, 10_000]))
    count, busy_s = operations_seen_in(np.array([0, 2000, 4000]), operations, waits, seen)
    assert count == pytest.approx(np.array([[2.0, 0.0], [0.0, 1.0]]))
    assert busy_s * 1e9 == pytest.approx(np.array([[1000.0, 0.0], [0.0, 500.0]]))
    assert seen.at(np.array([-7, 4100])).tolist() == [-7, 4100]


def test_kinds_in_step_with_a_meter_that_sees_half_are_not_told():
    made = experiment(IN_STEP_SEED, Choice())
    assert made.known.drawn["family"] == "in step" and made.work.seen_fraction == 0.5
    attribution = attribute_runs([made.work])[0]
    assert {attribution.operations[name].cause for name in ("read", "update")} == {Cause.IN_STEP}
    all_seen = attribute_runs([replace(made.work, seen_fraction=1.0)])[0]
    assert not any(all_seen.operations[name].reason for name in ("read", "update"))


def test_kinds_in_step_with_nothing_are_told():
    rng = np.random.default_rng(2)
    choice = Choice(mix=(0.5, 0.5), family="steady", engine="plain", seconds=20.0)
    made = watched(rng, KINDS[1], work(rng, choice, RUN_STARTS_S, KINDS[1].period_s))
    assert made.work.seen_fraction == 0.5
    assert not any(share.reason for share in attribute_runs([made.work])[0].operations.values())
