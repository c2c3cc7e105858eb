"""What a comparison keeps of a run reads as before, and takes less memory."""

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.base.units import Quantity, from_json
from opjoule.results.comparison.settings import kept, settings_of
from opjoule.results.quantities import quantity

ROOT = Path(__file__).resolve().parents[4]
FINITE = st.floats(-1e300, 1e300)
NUMBERS = st.fixed_dictionaries(
    {
        "value": st.none() | FINITE,
        "u": st.none() | st.floats(0, 1e300),
        "unit": st.text(),
    },
    optional={"k": st.floats(1, 3), "reason": st.text("abc", min_size=1)},
)
CONTENTS = st.recursive(
    NUMBERS | st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def read(contents):
    """The contents with each number as a quantity."""
    if isinstance(contents, dict):
        return from_json(contents) if "unit" in contents else {key: read(entry) for key, entry in contents.items()}
    return [read(entry) for entry in contents] if isinstance(contents, list) else contents


@pytest.mark.slow
@given(CONTENTS)
def test_contents_are_the_same(contents):
    assert kept(contents) == read(contents)


@given(NUMBERS)
def test_a_number_becomes_a_quantity_that_reads_alike(entry):
    number = kept({"a": {"b": entry}})
    assert isinstance(number["a"]["b"], Quantity)
    assert quantity(number, "a.b") == from_json(entry)


def test_results_of_many_runs_take_a_fifth_less_memory():
    text = (ROOT / "runs/example/result.json").read_text()
    kept(json.loads(text))
    sizes = []
    for keep in (lambda contents: contents, kept):
        tracemalloc.start()
        held = [keep(json.loads(text)) for _ in range(20)]
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert len(held) == 20
    assert sizes[1] < sizes[0] * 4 / 5  # Python 3.13 has smaller dictionaries itself: there a quarter is not reached


def test_runs_with_equal_settings_share_them():
    run = json.dumps({"loader": {"run-1": {"workload": {"fieldcount": 10, "fieldlength": 100}}}})
    made = [settings_of(json.loads(run))["value_size"] for _ in range(2)]
    assert made[0] == {"fieldcount": "10", "fieldlength": "100"}
    assert made[0] is made[1]
