"""Clocks that ran as no oscillator does are found over every stretch; those within their bounds never are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.clocks.clock_map import ClockMap, Knot
from opjoule.clocks.exchanges import Exchange, odd_stretch, odd_stretch_of_map

S = 1_000_000_000
BOUND = 8.66e-3


def exchanges_of(near_ns: np.ndarray, far_ns: np.ndarray, trips_ns: np.ndarray) -> list[Exchange]:
    """Round trips that enclose the far reading somewhere."""
    rng = np.random.default_rng(3)
    out_ns = (rng.random(near_ns.size) * trips_ns).astype(np.int64)
    columns = near_ns - out_ns, far_ns, far_ns, near_ns - out_ns + trips_ns
    return [Exchange(*times_ns) for times_ns in np.stack(columns, axis=1).tolist()]


def run_of(seconds: float, trip_ns: int = 400_000) -> tuple[np.ndarray, np.ndarray]:
    """Host time of exchanges, five a second, and the length of each."""
    near_ns = 7 * S + np.arange(round(5 * seconds), dtype=np.int64) * (S // 5)
    return near_ns, np.full(near_ns.size, trip_ns, np.int64)


@given(
    ppm=st.floats(-8000, 8000),
    seconds=st.sampled_from([1, 4, 30, 600]),
    trip_ns=st.sampled_from([100_000, 3_000_000, 200_000_000]),
)
def test_a_resonator_within_its_bound_is_never_odd(ppm, seconds, trip_ns):
    near_ns, trips_ns = run_of(seconds, trip_ns)
    far_ns = 5 * S + np.rint((near_ns - near_ns[0]) * (1 + ppm * 1e-6)).astype(np.int64)
    assert odd_stretch(exchanges_of(near_ns, far_ns, trips_ns), BOUND) is None


@pytest.mark.parametrize("rate", [0.13, 0.8, 0.97, 1.05])
def test_a_host_that_runs_at_another_rate_all_along_is_odd_and_its_rate_is_reported(rate):
    near_ns, trips_ns = run_of(10)
    far_ns = np.rint((near_ns - near_ns[0]) / rate).astype(np.int64)
    odd = odd_stretch(exchanges_of(near_ns, far_ns, trips_ns), BOUND)
    assert odd is not None and odd.rate == pytest.approx(rate, rel=0.01)


def test_a_pause_in_the_middle_is_odd_though_the_whole_hour_keeps_the_bound():
    """A suspended computer: its CLOCK_MONOTONIC stood still for 2 s, 560 ppm of the hour."""
    near_ns, trips_ns = run_of(3600)
    far_ns = near_ns - near_ns[0] + np.where(near_ns > near_ns[9000], 2 * S, 0)
    odd = odd_stretch(exchanges_of(near_ns, far_ns, trips_ns), BOUND)
    assert odd is not None and odd.unexplained_s == pytest.approx(2, abs=0.05)
    assert odd.start_s <= 1800.2 and odd.end_s >= 1801.8 and odd.end_s - odd.start_s < 10


def test_a_clock_that_was_set_back_is_odd():
    near_ns, trips_ns = run_of(60)
    far_ns = near_ns - near_ns[0] + S - np.where(near_ns > near_ns[150], S // 2, 0)
    odd = odd_stretch(exchanges_of(near_ns, far_ns, trips_ns), BOUND)
    assert odd is not None and odd.unexplained_s == pytest.approx(0.5, abs=0.05)


def test_answers_that_were_held_up_are_no_fault_of_a_clock():
    """A busy host: every eighth answer late by up to a second, on the way back, with an honest round trip."""
    near_ns, trips_ns = run_of(60)
    rng = np.random.default_rng(1)
    late_ns = np.where(rng.random(near_ns.size) < 0.125, rng.integers(0, S, near_ns.size), 0)
    made = exchanges_of(near_ns, near_ns - near_ns[0], trips_ns)
    held = [Exchange(*one) for one in _late(made, late_ns)]
    assert odd_stretch(held, BOUND) is None


def _late(made: list[Exchange], late_ns: np.ndarray) -> list[tuple[int, int, int, int]]:
    return [
        (one.sent_ns, one.far_received_ns, one.far_sent_ns, one.received_ns + int(late))
        for one, late in zip(made, late_ns, strict=True)
    ]


def test_a_meter_whose_data_came_late_once_is_no_fault_of_a_clock():
    """Arrivals say "at most 20 ms before" and are wrong for those that a busy host fetched late."""
    near_ns, _ = run_of(60)
    late_ns = np.where(np.arange(near_ns.size) % 40 == 20, S // 2, 0)
    far_ns = near_ns - near_ns[0]
    made = [
        Exchange(int(near + late) - 20_000_000, int(far), int(far), int(near + late))
        for near, far, late in zip(near_ns, far_ns, late_ns, strict=True)
    ]
    assert odd_stretch(made, BOUND) is None


def test_fewer_than_two_exchanges_say_nothing():
    assert odd_stretch([], BOUND) is None
    assert odd_stretch([Exchange(0, 5, 5, 10)], BOUND) is None


def test_a_map_is_held_against_the_bound_from_knot_to_knot():
    def through(jump_ns: float) -> ClockMap:
        places = [(0, 0.0), (10 * S, 0.0), (11 * S, jump_ns), (60 * S, jump_ns)]
        knots = tuple(Knot(at, away, 500.0, 1.0, 1e-7) for at, away in places)
        return ClockMap("board", "meter", 0, 0, 1.0, 500.0, 1e-8, "sync-edges", 500.0, 60, knots)

    assert odd_stretch_of_map(through(5e6), (0, 60 * S), BOUND) is None
    odd = odd_stretch_of_map(through(0.2 * S), (0, 60 * S), BOUND)
    assert odd is not None and odd.rate == pytest.approx(1 / 1.2, rel=0.01)


@pytest.mark.parametrize("answer_ns", [1_500_000, 400_000])
def test_a_far_clock_so_fast_that_its_answers_take_longer_than_the_wait_is_odd(answer_ns):
    """As in a rig simulated at ten times the pace: 0.9 ms of this computer's time, 1.5 ms of the meter's."""
    made = [
        Exchange(sent_ns, 10 * sent_ns, 10 * sent_ns + answer_ns, sent_ns + 900_000)
        for sent_ns in range(0, 1_000_000_000, 200_000_000)
    ]
    odd = odd_stretch(made, 0.009)
    assert odd is not None and odd.rate == pytest.approx(0.1, rel=0.01)


def test_an_answer_a_tick_longer_than_the_wait_is_no_fault_of_a_clock():
    made = [
        Exchange(sent_ns, sent_ns, sent_ns + 100_500, sent_ns + 100_000)
        for sent_ns in range(0, 10_000_000_000, 200_000_000)
    ]
    assert odd_stretch(made, 0.0001) is None
