"""What a comparison keeps of a run reads as before, and takes less memory."""

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.results.comparison.settings import kept, settings_of
from opjoule.results.long_table import means, number_of, numbers
from opjoule.runs.evaluation.wording import YCSB_QUANTITIES as YCSB
from opjoule.runs.record.result import read_result

ROOT = Path(__file__).resolve().parents[4]
CONTENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@given(CONTENTS)
def test_contents_are_the_same(contents):
    assert kept(contents) == contents


def test_each_number_of_a_result_is_a_row_with_its_shared_errors_and_the_spread_of_its_repeats():
    of = read_result(ROOT / "runs/example")
    table = means(of, YCSB)
    stated = dict(numbers(of.numbers))
    for path, row in table.items():
        assert row.stated == number_of(path, stated[path])
    headline = YCSB.headline
    spread = of.by_repeat[headline.key].standard_deviation / of.repeats**0.5
    assert table[headline.key].spread_u == pytest.approx(spread)
    assert table[headline.key].shared == of.numbers["shared"][headline.budget]


def test_results_of_many_runs_take_a_fifth_less_memory():
    sizes = []
    for keep in (lambda of: of.numbers, lambda of: means(of, YCSB)):
        keep(read_result(ROOT / "runs/example"))
        tracemalloc.start()
        held = [keep(read_result(ROOT / "runs/example")) for _ in range(20)]
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert len(held) == 20
    assert sizes[1] < sizes[0] * 4 / 5  # Python 3.13 has smaller dictionaries itself: there a quarter is not reached


def test_runs_with_equal_settings_share_them():
    run = json.dumps({"loader": {"run-1": {"workload": {"fieldcount": 10, "fieldlength": 100}}}})
    made = [settings_of(json.loads(run))["value_size"] for _ in range(2)]
    assert made[0] == {"fieldcount": "10", "fieldlength": "100"}
    assert made[0] is made[1]
