"""The constrained solution is the best of all that obey the rule, and the inverse leaves out what data do not tell."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.attribution.least_squares import inverse, non_negative


def best_by_trying_all(gram, moment, free):
    count, best = moment.size, (0.0, np.zeros(moment.size))
    for used in product([False, True], repeat=count):
        chosen = np.flatnonzero(np.array(used) | free)
        x = np.zeros(count)
        if chosen.size:
            x[chosen] = np.linalg.solve(gram[np.ix_(chosen, chosen)], moment[chosen])
        if np.all(x[~free] >= 0):
            best = min(best, (float(x @ gram @ x - 2 * moment @ x), x), key=lambda candidate: candidate[0])
    return best[1]


@settings(deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_no_other_choice_of_columns_is_better(seed, with_free):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(12, 4))
    gram, moment = rows.T @ rows, rows.T @ rng.normal(size=12)
    free = np.array([with_free, False, False, False])
    expected = best_by_trying_all(gram, moment, free)
    assert non_negative(gram, moment, free) == pytest.approx(expected, abs=1e-8)
    assert non_negative(gram, moment, free, rng.random(4) < 0.5) == pytest.approx(expected, abs=1e-8)


def test_two_equal_columns_share_and_do_not_fail():
    column = np.arange(1.0, 9.0)
    rows = np.stack([column, column], axis=1)
    x = non_negative(rows.T @ rows, rows.T @ (3 * column), np.zeros(2, np.bool_))
    assert x.sum() == pytest.approx(3.0)


def test_a_direction_without_data_is_left_at_nothing():
    gram = np.array([[2.0, 2.0], [2.0, 2.0]])
    assert inverse(gram) @ np.array([4.0, 4.0]) == pytest.approx([1.0, 1.0])
