"""Numbers with uncertainty: absence with a reason, JSON."""

from __future__ import annotations

import json
import math

import pytest
from opjoule.base.errors import RecordFault
from opjoule.base.units import Measured, Missing, Unstated, from_json
from opjoule.runs.record.json_file import plain


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
