"""Time that the host grants a simulated rig: what comes out depends on nothing but what went in."""

import random
import time
from contextlib import contextmanager

import numpy as np
import pytest
from granted_clock import GrantedClock
from opjoule.clocks.exchanges import METER_EXCHANGES, Exchange, read_exchanges
from opjoule.meters.interface import InputEnded, Samples
from rig_session import LIMIT_S, rig_sim, write_edges, write_profile

pytestmark = pytest.mark.rig

SECONDS = 1.0


class Hesitating(GrantedClock):
    """That of a host which other programs keep from running now and then."""

    chance = random.Random(3)

    def _step(self, kind: bytes, until_ns: int) -> None:
        time.sleep(self.chance.choice([0, 0, 0, 0.001, 0.02]))
        super()._step(kind, until_ns)


@contextmanager
def playing(folder, *options):
    folder.mkdir()
    chance = random.Random(2)
    rows = [(round(n * 0.013, 9), round(chance.uniform(0.2, 1.5), 6)) for n in range(75)]
    write_profile(folder / "profile.csv", rows, 5.0, SECONDS)
    write_edges(folder / "edges.csv", [0.2, 0.45, 0.8])
    inputs = ["--profile", str(folder / "profile.csv"), "--sync", str(folder / "edges.csv")]
    with rig_sim(folder, *inputs, *options) as rig:
        yield rig


def everything(folder, *options, hesitating=False):
    """All events of a recording, with the moment at which each came [host_ns]; and the truth."""
    with playing(folder, *options) as rig:
        if hesitating:
            rig.clock = Hesitating(rig.clock._rig, LIMIT_S)
        meter, events = rig.meter(), []
        meter.open()
        meter.configure()
        meter.start()
        with pytest.raises(InputEnded):
            while True:
                meter.clock_exchange()
                events += [(rig.clock.now_ns(), event) for event in meter.read(0.05)]
        meter.close()
        return events, rig.played()


def same(one, other):
    if isinstance(one, Samples):
        return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vars(one))
    return one == other


@pytest.mark.parametrize("options", [(), ("--drop-bytes", "0.002", "--clock-error-ppm", "80")])
def test_a_recording_is_the_same_to_the_last_bit_however_busy_the_computer(tmp_path, options):
    events, truth = everything(tmp_path / "one", *options)
    again, truth_again = everything(tmp_path / "two", *options, hesitating=True)
    assert [type(event) for _, event in events] == [type(event) for _, event in again]
    assert all(at == at_again for (at, _), (at_again, _) in zip(events, again, strict=True))
    assert all(same(one, other) for (_, one), (_, other) in zip(events, again, strict=True))
    assert truth == truth_again


def test_a_round_trip_takes_what_it_takes_on_the_line(tmp_path):
    """500,000 baud: request and reply of some 12 bytes each, the step in which the rig looks at them, and the 1 ms
    after which the firmware looks again. While a reply is due, it seldom sees the next request later."""
    events, _ = everything(tmp_path / "one")
    trips = [event for _, event in events if isinstance(event, Exchange)]
    assert len(trips) > SECONDS / 0.05
    on_the_way_ns = np.array(
        [trip.received_ns - trip.sent_ns - (trip.far_sent_ns - trip.far_received_ns) for trip in trips]
    )
    assert on_the_way_ns.min() > 0.2e6
    assert np.quantile(on_the_way_ns, 0.98) < 4e6
    usual = [trip for trip, time_ns in zip(trips, on_the_way_ns, strict=True) if time_ns < 4e6]
    rates = np.diff([trip.far_received_ns for trip in usual]) / np.diff([trip.sent_ns for trip in usual])
    assert rates == pytest.approx(1, abs=0.15)


def test_time_passes_on_both_sides_before_the_host_has_said_anything(tmp_path):
    with playing(tmp_path / "one") as rig:
        rig.clock.sleep(1.5)
        assert rig.clock.now_ns() == 1_500_000_000
        summary = rig.capture()
        assert rig.played()["duration_s"] == SECONDS
    assert summary.losses.lost_samples == 0
    made = read_exchanges(tmp_path / "one" / "raw" / METER_EXCHANGES)
    assert made and all(exchange.sent_ns >= 1_500_000_000 for exchange in made)


def test_a_host_that_takes_its_time_back_ends_the_rig_with_the_truth_so_far(tmp_path):
    with playing(tmp_path / "one") as rig:
        meter = rig.meter()
        meter.open()
        meter.configure()
        meter.start()
        while not meter.read(0.1):
            pass
        rig.clock._rig.close()
        assert rig.process.wait(LIMIT_S) == 1
        assert rig.process.stderr.read() == "rig-sim: the host closed --grant before the end\n"
        meter.close()
    assert rig.truth()["interrupted"] is True
    assert 0 < rig.truth()["duration_s"] < SECONDS


@pytest.mark.parametrize("line", [b"wait 5\n", b"pass\n", b"pass 5\nread 4\n", b"pass -1\n"])
def test_what_is_no_grant_is_refused_in_one_line(tmp_path, line):
    with playing(tmp_path / "one") as rig:
        rig.clock._rig.sendall(line)
        assert rig.process.wait(LIMIT_S) == 2
        message = rig.process.stderr.read()
    assert message.startswith("rig-sim: --grant: not pass NS or read NS") and message.count("\n") == 1
