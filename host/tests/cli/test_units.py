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
