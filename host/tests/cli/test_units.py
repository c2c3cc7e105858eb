"""Numbers with uncertainty: absence with a reason, JSON."""

from __future__ import annotations

import json
import math

import pytest
from opjoule.base.errors import RecordFault
from opjoule.base.units import Quantity, from_json, missing, unstated
from opjoule.runs.record.json_file import plain


@pytest.mark.parametrize("arguments", [(math.nan, 0.0), (1.0, math.nan), (1.0, -1.0), (math.inf, 1.0)])
def test_what_is_not_a_number_is_not_measured(arguments):
    with pytest.raises(ValueError, match="give None and the reason"):
        Quantity(*arguments, "J")


def test_a_missing_value_needs_a_reason():
    with pytest.raises(ValueError, match="reason"):
        missing(" ")


@pytest.mark.parametrize(
    "quantity",
    [Quantity(1.5, 0.25, "J"), unstated(1.0, "s", "a percentile"), missing("no sync line", "W")],
)
def test_json_keeps_a_quantity(quantity):
    assert from_json(json.loads(json.dumps(plain(quantity)))) == quantity


def test_a_damaged_record_has_an_exit_code_of_its_own():
    assert str(RecordFault("a: gone")) == "a: gone"
    assert RecordFault.exit_code == 4


def test_a_whole_number_of_a_file_is_a_value_like_any_other():
    assert float(from_json({"value": 3, "u": 0, "unit": "1"})) == 3.0
    with pytest.raises(ValueError, match="no sync line"):
        float(missing("no sync line", "W"))


def test_only_the_stated_fields_of_a_quantity_are_written():
    mean = Quantity.mean([Quantity(value, 0.1, "J", shared={"gain": 0.02}) for value in (1.0, 1.2)])
    assert plain(mean.stated).keys() <= {"value", "u", "unit", "k", "reason"}
    assert from_json(plain(mean.stated)).u == mean.u


def test_what_is_missing_stays_missing_in_every_calculation():
    none = missing("no idle", "J")
    assert none.scale(2.0) == none.over(4, "no operation") == none
    assert none.over(4, "no operation", "J/B").unit == "J/B"
    assert Quantity(8.0, 0.4, "J").over(4, "no operation") == Quantity(2.0, 0.1, "J")
    assert Quantity(8.0, 0.4, "J").over(0, "no operation") == missing("no operation", "J")


def test_shared_errors_of_a_sum_add_with_their_signs_and_cancel_in_a_difference():
    a, b = (Quantity.from_standard(value, 0.05, "J", shared={"gain": 0.04}) for value in (3.0, 2.0))
    assert Quantity.sum_of([a, b]).standard_u == pytest.approx(math.hypot(0.08, 0.03, 0.03))
    assert Quantity.sum_of([a, -b]).standard_u == pytest.approx(math.hypot(0.03, 0.03))
