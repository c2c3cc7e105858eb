"""The known joules of a real engine's run: every part is in what the board draws, once, and costs what it should."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from known_engine import START_S, Timeline, draw  # path set above
from known_medium import Medium
from opjoule.attribution.activities import background_s

EARLIER = Path(__file__).resolve().parents[1] / "support/earlier_record"


@pytest.fixture(scope="module")
def timeline():
    return Timeline.read(EARLIER)


def test_the_parts_are_all_that_the_board_draws_above_idle(timeline):
    drawn = draw(np.random.default_rng(3), timeline)
    whole_j = sum(float(piece.until_j(np.array([1e6]))[0]) for piece in drawn.pieces)
    assert whole_j == pytest.approx(sum(drawn.true_j.values()), rel=1e-9)
    assert {"read", "update", "flush", "compaction", "sync", "write_back", "tail"} <= set(drawn.true_j)
    assert not any(float(piece.until_j(np.array([START_S - 1e-3]))[0]) for piece in drawn.pieces)


def test_an_activity_draws_in_the_seconds_that_are_its_own(timeline):
    """Work of one background thread: a flush inside a compaction, and a sync inside either, is not the outer's."""
    edges_ns = timeline.operations.board_ns[[0, -1]] + np.array([-(10**9), 10**11])
    own_s = background_s(edges_ns, timeline.activities, one_thread=True)
    watt = [
        draw(np.random.default_rng(seed), timeline).true_j["compaction"] / own_s["compaction"][0] for seed in range(40)
    ]
    assert min(watt) > 0.3 * 0.8 and max(watt) < 1.5 * 1.25
    assert max(watt) / min(watt) > 2, "at random"


def test_bytes_are_placed_within_the_samples_in_which_they_were_counted(timeline):
    _, dirtied = timeline.dirtied
    assert np.all(np.diff(dirtied) >= 0)
    counted = timeline.samples["device_written_bytes"].to_numpy()
    grown = np.maximum(np.diff(counted), 0).sum()
    assert 0.5 * grown <= dirtied[-1] <= grown * (1 + 1e-9)
    seen = timeline.seen(dirtied, 0.0 * dirtied)["device_written_bytes"].to_numpy()
    assert np.all(np.diff(seen) >= 0) and seen[-1] == pytest.approx(dirtied[-1], abs=1)


def test_a_medium_is_busy_for_its_bytes_and_holds_its_tail_after_them():
    grid_s = np.arange(0.0, 4.0, 1e-3)
    medium = Medium(100.0, 0.0, 2.0, 0.5, 1.0, 10.0, 1.0)
    course = medium.course(grid_s, np.where(grid_s < 0.5, 0.0, 50.0), np.zeros(0))
    assert course.written_bytes[-1] == 50.0
    assert course.write_back_w.sum() * 1e-3 == pytest.approx(2.0 * 0.5, rel=0.01)
    assert course.tail_w.sum() * 1e-3 == pytest.approx(0.5 * 1.0, rel=0.01)
    assert (course.tail_w / 0.5 + course.write_back_w / 2.0).max() <= 1.0 + 1e-9, "one or the other"
    reads_s = np.array([2.5, 2.9])
    read = medium.course(grid_s, np.where(grid_s < 0.5, 0.0, 50.0), np.zeros(0), reads_s)
    assert read.read_bytes[-1] == 8192.0 and np.array_equal(read.write_back_w, course.write_back_w)
    assert read.tail_w.sum() * 1e-3 == pytest.approx(0.5 * (1.0 + 0.4 + 1.0), rel=0.01)
    late = replace(medium, late=True).course(grid_s, np.where(grid_s < 0.5, 0.0, 50.0), np.zeros(0))
    assert late.tail_w.sum() * 1e-3 == pytest.approx(0.5 * 0.5, rel=0.01)
