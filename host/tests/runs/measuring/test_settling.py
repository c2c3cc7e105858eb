"""Settle ends when writes are done and the power is at rest; what was not over is said, and what it spoils."""

import itertools

import pytest
from opjoule.base.notices import NoticeKind
from opjoule.runs.measuring.settling import HELD_S, Rest
from settling_clock import SettlingClock


def test_a_tail_of_0_8_w_and_12_s_is_waited_for(monkeypatch):
    clock = SettlingClock(monkeypatch, lambda at_s: 3.8 if at_s < 13.0 else 3.0)
    unsettled, waited_s = clock.wait()
    assert unsettled is None
    assert waited_s == pytest.approx(17.0, abs=0.5)  # the tail's end, and five seconds at rest


def test_a_board_at_rest_is_waited_for_no_longer_than_it_takes_to_see(monkeypatch):
    unsettled, waited_s = SettlingClock(monkeypatch, lambda at_s: 3.0).wait()
    assert unsettled is None
    assert waited_s == pytest.approx(5.0, abs=0.3)


def test_the_board_is_not_asked_for_pending_writes_where_the_loader_saw_to_them(monkeypatch):
    clock = SettlingClock(monkeypatch, lambda at_s: 3.0, lambda now_s: 1 << 30)
    assert clock.wait()[0] is None
    assert clock.queried_s == []


def test_pending_writes_come_back_to_their_level_before_the_run_and_no_further(monkeypatch):
    """A log on the root medium keeps some megabytes dirty for ever."""
    clock = SettlingClock(monkeypatch, lambda at_s: 3.0, lambda now_s: 8 << 20 if now_s > 4 else 100 << 20)
    unsettled, waited_s = clock.wait(8 << 20, synced=False)
    assert unsettled is None
    assert waited_s == pytest.approx(3.5 + 5.0, abs=0.5)
    assert max(b - a for a, b in itertools.pairwise(clock.queried_s)) >= 0.5  # seldom: each question costs the board


def test_writes_that_do_not_end_are_reported_and_spoil_idle(monkeypatch):
    unsettled, waited_s = SettlingClock(monkeypatch, lambda at_s: 3.0, lambda now_s: 9 << 20).wait(
        synced=False, limit_s=2.0
    )
    assert unsettled is not None
    assert unsettled.withholds
    assert unsettled.kind is NoticeKind.UNSETTLED and "9 MB" in unsettled.line and " 2 s " in unsettled.line
    assert waited_s == pytest.approx(HELD_S + 2.0, abs=0.6)


def test_a_medium_that_gets_on_with_its_writes_is_waited_for_beyond_the_limit(monkeypatch):
    """A card of 14 MB/s with 1 GB before it."""
    unsettled, waited_s = SettlingClock(
        monkeypatch, lambda at_s: 3.0, lambda now_s: max(0, 10**9 - 14_000_000 * now_s)
    ).wait(synced=False, limit_s=10.0)
    assert unsettled is None
    assert waited_s == pytest.approx(10**9 / 14e6 + 5.0, abs=1.0)


def test_a_medium_that_stops_in_the_middle_is_reported(monkeypatch):
    stops = SettlingClock(monkeypatch, lambda at_s: 3.0, lambda now_s: max(5 * 10**8, 10**9 - 14_000_000 * now_s))
    unsettled, waited_s = stops.wait(synced=False, limit_s=10.0)
    assert unsettled is not None and unsettled.withholds and "500 MB still wait" in unsettled.line
    assert waited_s == pytest.approx(5 * 10**8 / 14e6 + 10.0, abs=2.0)


def test_a_limit_in_mid_tail_is_reported_and_spoils_idle(monkeypatch):
    unsettled, _ = SettlingClock(monkeypatch, lambda at_s: 3.8 if at_s < 13.0 else 3.0).wait(limit_s=8.0)
    assert unsettled is not None
    assert unsettled.withholds
    assert "+800 mW from idle" in unsettled.line


def test_a_limit_before_anything_could_be_seen_spoils_idle(monkeypatch):
    unsettled, _ = SettlingClock(monkeypatch, lambda at_s: 3.0).wait(limit_s=2.0)
    assert unsettled is not None
    assert unsettled.withholds
    assert unsettled.remedy == "raise --settle-limit"


def test_a_board_that_stays_a_little_warmer_is_reported_and_spoils_nothing(monkeypatch):
    unsettled, _ = SettlingClock(monkeypatch, lambda at_s: 3.05).wait(limit_s=10.0)
    assert unsettled is not None
    assert not unsettled.withholds
    assert "warmer" in unsettled.line and "pending" not in unsettled.line


def test_without_idle_power_only_the_writes_are_waited_for(monkeypatch):
    unsettled, waited_s = SettlingClock(monkeypatch, lambda at_s: 9.0).wait(rest=None)
    assert unsettled is None
    assert waited_s == 0


def test_a_medium_of_14_mb_a_second_with_5_gb_before_it_is_waited_for_with_the_time_that_remains(monkeypatch):
    clock = SettlingClock(monkeypatch, lambda at_s: 3.0, lambda now_s: max(0, 5 * 10**9 - 14_000_000 * int(now_s)))
    unsettled, waited_s = clock.wait(synced=False)
    assert unsettled is None
    assert waited_s == pytest.approx(5 * 10**9 / 14e6 + 5.0, abs=1.5)
    [told_s] = [left for at, left in clock.shown if at == pytest.approx(100.0, abs=0.2)][-1:]
    assert told_s == pytest.approx(5 * 10**9 / 14e6 - 100.0, abs=15.0)


def test_a_workload_that_saw_to_its_writes_and_still_left_some_is_waited_for_by_their_bytes(monkeypatch):
    """A simulated medium, or a drive's bridge: syncfs() has returned, the medium goes on."""

    def left(now_s):
        return max(0, 3 * 10**9 - 14_000_000 * int(now_s))

    clock = SettlingClock(monkeypatch, lambda at_s: 3.3 if left(at_s) else 3.0, left)
    unsettled, waited_s = clock.wait()
    assert unsettled is None
    assert waited_s == pytest.approx(3 * 10**9 / 14e6 + 5.0, abs=2.0)


def test_dirty_pages_that_linux_leaves_for_30_s_are_waited_for(monkeypatch):
    """Nothing syncs them: dirty_expire_centisecs."""
    clock = SettlingClock(monkeypatch, lambda at_s: 3.0, lambda now_s: 200 << 20 if now_s < 34.0 else 0)
    unsettled, waited_s = clock.wait(synced=False, limit_s=10.0)
    assert unsettled is None
    assert waited_s == pytest.approx(33.0 + 5.0, abs=1.0)


def test_pending_bytes_are_named_with_the_medium_and_not_the_temperature(monkeypatch):
    clock = SettlingClock(monkeypatch, lambda at_s: 3.3, lambda now_s: 700 << 20)
    unsettled, _ = clock.wait()
    assert unsettled is not None and unsettled.withholds
    assert "734 MB" in unsettled.line and "medium" in unsettled.line and "warmer" not in unsettled.line


def test_a_program_that_writes_without_end_does_not_hold_the_measurement_for_ever(monkeypatch):
    clock = SettlingClock(monkeypatch, lambda at_s: 3.3, lambda now_s: 0 if int(now_s) % 7 == 0 else 50 << 20)
    unsettled, waited_s = clock.wait()
    assert unsettled is not None and unsettled.withholds and waited_s < 300


def test_bursts_that_a_short_idle_did_not_show_are_reported_and_spoil_nothing(monkeypatch):
    """A monitor that wakes each 5 s for 0.1 s."""
    clock = SettlingClock(monkeypatch, lambda at_s: 3.6 if at_s % 5.0 < 0.1 else 3.0)
    unsettled, _ = clock.wait(limit_s=30.0)
    assert unsettled is not None and not unsettled.withholds
    assert "bursts" in unsettled.line and "raise --idle" in unsettled.remedy


@pytest.mark.parametrize(
    ("power_w", "limit_s", "raised_s"),
    [
        (lambda at_s: 3.8 if at_s < 40.0 else 3.0, 20.0, 60.0),
        (lambda at_s: 3.0 + 0.05 * 0.5 ** (at_s / 60.0), 20.0, 300.0),
        (lambda at_s: 3.0, 2.0, 10.0),
    ],
    ids=["tail", "warmer", "too short to see"],
)
def test_raising_the_settle_limit_helps_wherever_it_is_advised(monkeypatch, power_w, limit_s, raised_s):
    unsettled, _ = SettlingClock(monkeypatch, power_w).wait(limit_s=limit_s)
    assert unsettled is not None and "raise --settle-limit" in unsettled.remedy
    assert SettlingClock(monkeypatch, power_w).wait(limit_s=raised_s)[0] is None


def test_raising_idle_helps_against_bursts(monkeypatch):
    clock = SettlingClock(monkeypatch, lambda at_s: 3.6 if at_s % 5.0 < 0.1 else 3.0)
    clock._pass(30.0)
    rest = Rest.of(clock.history, 10_000_000_000, 30_000_000_000)
    assert clock.wait(rest=rest)[0] is None


def test_a_tail_of_20_mw_that_falls_is_not_taken_for_another_temperature(monkeypatch):
    clock = SettlingClock(monkeypatch, lambda at_s: 3.0 + 0.25 * 0.5 ** (at_s / 20.0))
    unsettled, _ = clock.wait(limit_s=30.0)
    assert unsettled is not None and unsettled.withholds and "not at rest" in unsettled.line
