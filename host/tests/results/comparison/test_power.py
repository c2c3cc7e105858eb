"""Power of a campaign: what the preview promises is what simulated campaigns find."""

from __future__ import annotations

import numpy as np
import pytest
from opjoule.base.units import Quantity
from opjoule.energy.comparison import ratio_limits, same_probability
from opjoule.results.comparison.contrasts import LIMIT
from opjoule.results.comparison.power import POWER, TYPICAL_SPREAD, Spread, contrast_count, power_words


def side(values) -> Quantity:
    return Quantity.mean([Quantity.from_standard(float(value), 0.0, "J") for value in values])


@pytest.mark.parametrize(("blocks", "contrasts"), [(3, 1), (5, 1), (5, 9), (12, 3)])
def test_a_difference_that_the_preview_names_is_found_as_often_as_it_says(blocks, contrasts):
    """Campaigns are drawn whose cells differ by it; each is judged as a comparison judges it.

    With few blocks the estimated spreads of two cells differ, which costs up to 8 of 100 campaigns.
    """
    spread = Spread(0.1)
    factor = 1 + spread.difference_found(blocks, contrasts)
    chance = np.random.default_rng(7)
    draws = 1 + spread.relative * chance.standard_normal((400, 2, blocks))
    found = [(same_probability(side(factor * a), side(b)) or 0.0) < LIMIT / contrasts for a, b in draws]
    assert np.mean(found) == pytest.approx(POWER, abs=0.1)


def test_an_interval_is_as_wide_as_expected_from_the_spread():
    spread, chance = Spread(0.05), np.random.default_rng(3)
    widths = []
    for a, b in 1 + spread.relative * chance.standard_normal((300, 2, 8)):
        low, high = ratio_limits(side(a), side(b))
        widths.append((high - low) / 2)
    assert np.mean(widths) == pytest.approx(spread.half_width(8), rel=0.06)


def test_what_no_block_reduces_limits_interval_and_difference():
    spread = Spread(0.01, fixed=0.05)
    assert spread.half_width(1000) > 2 * 0.05
    assert spread.blocks_for(0.1, 100) is None and spread.blocks_to_find(0.1, 1, 100) is None


def test_the_fewest_blocks_reach_what_one_block_less_does_not():
    spread = Spread(0.1)
    blocks = spread.blocks_for(0.05, 100)
    assert blocks and spread.half_width(blocks) <= 0.05 < spread.half_width(blocks - 1)
    found = spread.blocks_to_find(0.1, 3, 100)
    assert found and spread.difference_found(found, 3) <= 0.1 < spread.difference_found(found - 1, 3)


def test_contrasts_are_the_pairs_of_each_axis_in_each_stratum():
    cells = [{"db": db, "storage": storage} for db in ("a", "b") for storage in ("sd", "emmc", "ssd")]
    assert contrast_count(cells) == 2 * 3 + 3 * 1
    assert contrast_count(cells[:1]) == 0
    assert contrast_count([{"command": name} for name in "abcd"]) == 6


def test_the_preview_names_difference_blocks_and_where_the_spread_is_from():
    said = power_words(Spread.of([]), 5, 1)
    assert "5 blocks" in said and " 24 %" in said
    assert f"{100 * TYPICAL_SPREAD:.1f} %" in said.replace("\N{NO-BREAK SPACE}", " ") and "assumed" in said
    assert "that of 12 runs so far; 9 contrasts" in power_words(Spread(0.02, runs=12), 5, 9)
    assert "no difference" in power_words(Spread(0.1), 1, 1)
