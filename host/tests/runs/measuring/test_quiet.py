"""At rest or not, from the power of the trace so far."""

import numpy as np
import pytest
from opjoule.energy.trace.power_history import BLOCK_NS, PowerHistory
from opjoule.runs.measuring.settling import QUIET_S, Rest, calm

PERIOD_NS = 532_000
IDLE_W, NOISE_W = 3.0, 0.02


def history_of(power_w):
    """The history of a trace with these powers [W], added in pieces of odd lengths."""
    history, at = PowerHistory(), 0
    meter_ns = np.arange(power_w.size, dtype=np.int64) * PERIOD_NS
    while at < power_w.size:
        piece = slice(at, at + 1 + at % 97)
        history.add(meter_ns[piece], power_w[piece])
        at = piece.stop
    return history


def noisy(seconds, level_w=IDLE_W, seed=1):
    rng = np.random.default_rng(seed)
    return level_w + rng.normal(0, NOISE_W, int(seconds * 1e9 / PERIOD_NS))


def rest_of(power_w):
    history = history_of(power_w)
    rest = Rest.of(history, 0, history.end_ns)
    assert rest
    return rest


def test_block_means_are_those_of_the_samples_inside():
    power_w = noisy(3.0)
    history = history_of(power_w)
    centre = np.arange(power_w.size) * PERIOD_NS // BLOCK_NS
    expected = [power_w[centre == block].mean() for block in range(int(history.end_ns // BLOCK_NS))]
    assert history.blocks_w(0, history.end_ns) == pytest.approx(expected)


def test_a_stretch_without_samples_is_left_out():
    history = PowerHistory()
    history.add(np.array([0, 50, 5 * BLOCK_NS, 7 * BLOCK_NS]), np.array([1.0, 3.0, 4.0, 5.0]))
    assert history.blocks_w(0, history.end_ns).tolist() == [2.0, 4.0]


@pytest.mark.slow
def test_noise_as_at_rest_is_quiet_in_nearly_every_case():
    quiet = 0
    for seed in range(200):
        rest = rest_of(noisy(3.0, seed=seed))
        now = calm(history_of(noisy(QUIET_S + 1, seed=1000 + seed)), rest, 0)
        quiet += now is not None and now.quiet
    assert quiet >= 195


@pytest.mark.parametrize("extra_w", [0.05, 0.8])
def test_a_tail_above_the_noise_is_not_quiet_however_even_it_is(extra_w):
    rest = rest_of(noisy(3.0))
    now = calm(history_of(noisy(QUIET_S + 1, IDLE_W + extra_w, seed=7)), rest, 0)
    assert now is not None
    assert not now.quiet
    assert now.steady
    assert now.above_w == pytest.approx(extra_w, abs=0.01)


def test_a_tail_that_falls_is_not_steady():
    rest = rest_of(noisy(3.0))
    falling = noisy(QUIET_S + 1, seed=8)
    falling += 0.8 * np.exp(-np.arange(falling.size) * PERIOD_NS * 1e-9 / 3.0)
    now = calm(history_of(falling), rest, 0)
    assert now is not None
    assert not now.quiet
    assert not now.steady


def test_one_burst_in_the_last_seconds_is_not_quiet():
    rest = rest_of(noisy(3.0))
    power_w = noisy(QUIET_S + 1, seed=9)
    power_w[-3000:-2000] += 0.3
    now = calm(history_of(power_w), rest, 0)
    assert now is not None
    assert not now.quiet


def test_before_five_seconds_have_passed_nothing_is_known():
    rest = rest_of(noisy(3.0))
    history = history_of(noisy(QUIET_S + 1))
    assert calm(history, rest, history.end_ns - 4_000_000_000) is None


def test_a_constant_power_allows_for_the_steps_of_the_sensor():
    rest = rest_of(np.full(6000, IDLE_W))
    assert rest.noise_w == pytest.approx(0.0, abs=1e-12)
    now = calm(history_of(np.full(12000, IDLE_W * 1.0003)), rest, 0)
    assert now is not None
    assert now.quiet


def test_an_offset_of_0_2_percent_after_a_2_s_idle_is_rest_and_after_a_60_s_idle_is_none():
    """A steady 1.3 s cannot show how an idle board wanders."""
    for seconds, quiet in ((1.3, True), (60.0, False)):
        rng = np.random.default_rng(3)
        rest = rest_of(IDLE_W + rng.normal(0, 0.005, int(seconds * 1e9 / PERIOD_NS)))
        now = calm(history_of(noisy(QUIET_S + 1, 1.002 * IDLE_W, seed=8) * 1.0), rest, 0)
        assert now is not None
        assert now.quiet is quiet


def test_a_meter_of_10_readings_a_second_that_come_unevenly_is_enough():
    rng = np.random.default_rng(5)
    at_ns = np.sort((np.arange(120) * 100_000_000 + rng.uniform(-40e6, 60e6, 120)).astype(np.int64))
    history = PowerHistory()
    history.add(at_ns - at_ns[0], IDLE_W + rng.normal(0, 0.01, at_ns.size))
    rest = Rest.of(history, 0, 5_000_000_000)
    assert rest
    now = calm(history, rest, 5_000_000_000)
    assert now is not None and now.quiet


def test_a_step_of_4_mv_on_5_v_is_rest():
    rest = rest_of(np.full(60_000, IDLE_W))
    now = calm(history_of(np.full(12_000, IDLE_W * (1 + 4e-3 / 5.0))), rest, 0)
    assert now is not None and now.quiet


def test_bursts_each_5_s_are_no_tail():
    rest = rest_of(noisy(3.0))
    power_w = noisy(21, seed=9)
    power_w[(np.arange(power_w.size) * PERIOD_NS * 1e-9) % 5.0 < 0.1] += 0.6
    now = calm(history_of(power_w), rest, 0)
    assert now is not None and not now.quiet and now.steady and now.in_bursts
