"""Every figure's interval holds the spread of the repeats; what they share does not average out."""

import numpy as np
import pytest
from opjoule.base.units import Measured, Missing, Unstated
from opjoule.energy.budget import PARTS, Budget
from opjoule.runs.evaluation.quantities.figures import Figure, by_repeat, mean_budget, mean_shared, over_repeats
from opjoule.runs.record.result import RepeatValues


def throughputs(values):
    return [Figure(value, "1/s", 2.5e-5 * value) for value in values]


def test_five_runs_that_differ_by_half_are_not_known_to_a_part_in_ten_thousand():
    """The five runs went from 64,759 to 97,572 operations a second."""
    mean = over_repeats(throughputs([64_759.0, 97_572.0, 84_000.0, 88_300.0, 86_673.0]))
    assert isinstance(mean, Measured)
    assert mean.value == pytest.approx(84_260.8)
    assert 10_000 < mean.u < 20_000


def test_the_interval_of_repeats_holds_the_truth_as_often_as_stated():
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(2000):
        shared = rng.normal(0, 0.01)
        values = 1.0 + shared + rng.normal(0, 0.05, 3)
        mean = over_repeats([Figure(float(value), "W", 0.01) for value in values])
        assert isinstance(mean, Measured)
        held += mean.covers(1.0)
    assert 0.935 < held / 2000 < 0.975


def test_what_the_repeats_share_does_not_average_out():
    mean = over_repeats([Figure(10.0, "J", 0.1)] * 4)
    assert mean == Measured(10.0, 0.2, "J")


def test_a_counter_without_an_uncertainty_gets_that_of_the_spread():
    figures = [Figure(value, "1", None, "counter of the board") for value in (0.2, 0.3, 0.4)]
    assert over_repeats(figures[:1]) == Unstated(0.2, "1", "counter of the board")
    mean = over_repeats(figures)
    assert isinstance(mean, Measured)
    assert mean.u == pytest.approx(4.53 * 0.1 / 3**0.5, rel=1e-3)


def test_one_repeat_without_the_figure_takes_it_from_the_whole():
    mean = over_repeats([Figure(1.0, "J", 0.1), Missing("clipped", "J")])
    assert mean == Missing("repeat 2: clipped", "J")
    assert over_repeats([Missing("no idle", "J")] * 2) == Missing("no idle", "J")


def test_a_lower_bound_in_one_repeat_leaves_a_lower_bound():
    bound = Figure.energy(Unstated(3.0, "J", "at least this"))
    assert over_repeats([Figure.energy(Measured(5.0, 0.1, "J")), bound]) == Unstated(4.0, "J", "at least this")


def test_each_repeat_is_listed_with_n_and_standard_deviation():
    listed = by_repeat([{"power_w": Figure(1.0, "W", 0.1)}, {"power_w": Figure(3.0, "W", 0.1)}])
    assert listed == {"power_w": RepeatValues(2, "W", (1.0, 3.0), pytest.approx(2**0.5))}
    assert by_repeat([{"power_w": Missing("lost", "W")}, {"power_w": Figure(3.0, "W", 0.1)}]) == {}


def test_the_budget_of_a_mean_names_the_spread():
    one = Budget({name: 0.1 for name in PARTS if name != "repeats"}, {"repeats": "one run"})
    assert "repeats" not in mean_budget([one], [1.0]).parts
    both = mean_budget([one, one], [1.0, 2.0])
    assert both.parts["gain"] == pytest.approx(0.1)
    assert both.parts["repeats"] > 1


def test_what_a_figure_shares_with_other_runs_is_scaled_with_it_and_averaged_over_repeats():
    figures = [Figure.energy(Measured(value, 0.1, "J"), {"gain": 0.02 * value}) for value in (5.0, 7.0)]
    assert mean_shared(figures) == {"gain": pytest.approx(0.12)}
    assert figures[0].scale(-0.5).shared == {"gain": pytest.approx(-0.05)}
    assert mean_shared([Figure(1.0, "W", 0.1)] * 3) == {}
