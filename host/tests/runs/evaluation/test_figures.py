"""Every figure's interval holds the spread of the repeats; what they share does not average out."""

import numpy as np
import pytest
from msgspec.structs import replace
from opjoule.base.units import Cause, Quantity, mean_shared, missing, unstated
from opjoule.energy.budget import PARTS, Budget
from opjoule.runs.evaluation.quantities.definition import by_repeat, mean_budget, over_repeats
from opjoule.runs.record.result import RepeatValues


def throughputs(values):
    return [Quantity.from_standard(value, 2.5e-5 * value, "1/s") for value in values]


def test_five_runs_that_differ_by_half_are_not_known_to_a_part_in_ten_thousand():
    """The five runs went from 64,759 to 97,572 operations a second."""
    mean = over_repeats(throughputs([64_759.0, 97_572.0, 84_000.0, 88_300.0, 86_673.0]))
    assert mean.u is not None
    assert mean.value == pytest.approx(84_260.8)
    assert 10_000 < mean.u < 20_000


def test_the_interval_of_repeats_holds_the_truth_as_often_as_stated():
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(2000):
        shared = rng.normal(0, 0.01)
        values = 1.0 + shared + rng.normal(0, 0.05, 3)
        mean = over_repeats([Quantity.from_standard(float(value), 0.01, "W") for value in values])
        assert mean.u is not None
        held += mean.covers(1.0)
    assert 0.935 < held / 2000 < 0.975


def test_what_the_repeats_share_does_not_average_out():
    mean = over_repeats([Quantity.from_standard(10.0, 0.1, "J")] * 4)
    assert mean.stated == Quantity(10.0, 0.2, "J")


def test_a_counter_without_an_uncertainty_gets_that_of_the_spread():
    figures = [unstated(value, "1", "a counter") for value in (0.2, 0.3, 0.4)]
    assert over_repeats(figures[:1]) == unstated(0.2, "1", "a counter")
    mean = over_repeats(figures)
    assert mean.u is not None
    assert mean.u == pytest.approx(4.53 * 0.1 / 3**0.5, rel=1e-3)


def test_one_repeat_without_the_figure_takes_it_from_the_whole():
    mean = over_repeats([Quantity.from_standard(1.0, 0.1, "J"), missing("clipped", "J")])
    assert mean == missing("repeat 2: clipped", "J")
    assert over_repeats([missing("no idle", "J")] * 2) == missing("no idle", "J")


def test_a_lower_bound_in_one_repeat_leaves_a_lower_bound():
    bound = Quantity(3.0, None, "J", reason="at least this", cause=Cause.LOWER_BOUND)
    assert over_repeats([Quantity(5.0, 0.1, "J"), bound]) == replace(bound, value=4.0)


def test_each_repeat_is_listed_with_n_and_standard_deviation():
    listed = by_repeat(
        [{"power_w": Quantity.from_standard(1.0, 0.1, "W")}, {"power_w": Quantity.from_standard(3.0, 0.1, "W")}]
    )
    assert listed == {"power_w": RepeatValues(2, "W", (1.0, 3.0), pytest.approx(2**0.5))}
    assert by_repeat([{"power_w": missing("lost", "W")}, {"power_w": Quantity.from_standard(3.0, 0.1, "W")}]) == {}


def test_the_budget_of_a_mean_names_the_spread():
    one = Budget({name: 0.1 for name in PARTS if name != "repeats"}, {"repeats": "one run"})
    assert "repeats" not in mean_budget([one], [1.0]).parts
    both = mean_budget([one, one], [1.0, 2.0])
    assert both.parts["gain"] == pytest.approx(0.1)
    assert both.parts["repeats"] > 1


def test_what_a_figure_shares_with_other_runs_is_scaled_with_it_and_averaged_over_repeats():
    figures = [Quantity(value, 0.1, "J", shared={"gain": 0.02 * value}) for value in (5.0, 7.0)]
    assert mean_shared(figures) == {"gain": pytest.approx(0.12)}
    assert figures[0].scale(-0.5).shared == {"gain": pytest.approx(-0.05)}
    assert mean_shared([Quantity.from_standard(1.0, 0.1, "W")] * 3) == {}
