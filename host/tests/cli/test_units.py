"""Numbers with uncertainty: propagation, absence with a reason, JSON."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.errors import RecordFault
from opjoule.record.json_file import plain
from opjoule.units import Measured, Missing, Unstated, add, from_json, subtract

values = st.floats(-1e6, 1e6)
measured = st.builds(Measured, values, st.floats(0, 1e3), st.just("J"))


@given(measured, measured)
def test_independent_uncertainties_add_in_quadrature(a, b):
    assert add([a, b]).u == pytest.approx(math.hypot(a.u, b.u))
    assert subtract(a, b).value == pytest.approx(a.value - b.value, abs=1e-6)
    assert subtract(a, b).u == add([a, b]).u


def test_different_units_are_not_added():
    with pytest.raises(ValueError, match="cannot add J, W"):
        add([Measured(1, 0, "J"), Measured(1, 0, "W")])


@pytest.mark.parametrize("arguments", [(math.nan, 0.0), (1.0, math.nan), (1.0, -1.0), (math.inf, 1.0)])
def test_what_is_not_a_number_is_not_measured(arguments):
    with pytest.raises(ValueError, match="use Missing"):
        Measured(*arguments, "J")


def test_a_missing_value_needs_a_reason():
    with pytest.raises(ValueError, match="reason"):
        Missing(" ")


@pytest.mark.parametrize(
    "quantity",
    [Measured(1.5, 0.25, "J"), Unstated(1.0, "s", "a percentile"), Missing("no sync line", "W")],
)
def test_json_keeps_a_quantity(quantity):
    assert from_json(json.loads(json.dumps(plain(quantity)))) == quantity


def test_a_damaged_record_has_an_exit_code_of_its_own():
    assert str(RecordFault("a: gone")) == "a: gone"
    assert RecordFault.exit_code == 4
