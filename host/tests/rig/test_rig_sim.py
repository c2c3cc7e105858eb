"""The rig simulator's own interface: truth, files, signals, faults and the live input."""

import itertools
import json
import os
import random
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.cells import Cells
from opjoule.energy.trace.journal import read_edges, read_trace
from opjoule.meters.interface import InputEnded
from opjoule.meters.serial.assembler import PENDING_REQUESTS
from rig_session import FIRMWARE, LIMIT_S, RIG_SIM, record, rig_sim, write_edges, write_profile

pytestmark = pytest.mark.rig

SECONDS = 2.0
NS = 1_000_000_000


def steps(seed=1, end_s=SECONDS):
    """A load that changes each 1 to 30 ms."""
    chance = random.Random(seed)
    rows, time_s = [], 0.0
    while time_s < end_s:
        rows.append((round(time_s, 9), round(chance.uniform(0.2, 1.5), 6)))
        time_s += chance.uniform(1e-3, 30e-3)
    return rows


def energy_j(rows, start_s, end_s, voltage_v, last_s):
    """Independent integral of a step profile."""
    bounds = np.array([time_s for time_s, _ in rows] + [last_s])
    held_s = np.clip(bounds[1:], start_s, end_s) - np.clip(bounds[:-1], start_s, end_s)
    return float(held_s @ np.array([current_a for _, current_a in rows])) * voltage_v


def inputs(folder, rows, edges_s=(), end_s=SECONDS):
    write_profile(folder / "profile.csv", rows, 5.0, end_s)
    write_edges(folder / "edges.csv", list(edges_s))
    return ["--profile", str(folder / "profile.csv"), "--sync", str(folder / "edges.csv")]


def sampling_meter(rig):
    meter = rig.meter()
    meter.open()
    meter.configure()
    meter.start()
    return meter


def test_the_truth_is_the_integral_of_the_profile_and_between_edges(tmp_path):
    rows, edges_s = steps(), [0.1, 0.45, 1.2, 1.7]
    rig = record(tmp_path, rows, edges_s, voltage_v=5.0, end_s=SECONDS)
    assert rig.truth["duration_s"] == SECONDS
    assert rig.truth["total_j"] == pytest.approx(energy_j(rows, 0, SECONDS, 5.0, SECONDS), rel=1e-12)
    between = list(itertools.pairwise(edges_s))
    assert [(i["start_s"], i["end_s"]) for i in rig.truth["intervals"]] == between
    for interval, (start_s, end_s) in zip(rig.truth["intervals"], between, strict=True):
        assert interval["energy_j"] == pytest.approx(energy_j(rows, start_s, end_s, 5.0, SECONDS), rel=1e-12)
    assert rig.truth["simulated"] is True
    assert rig.truth["interrupted"] is False


def test_imperfections_and_seed_do_not_touch_the_truth(tmp_path):
    rows = steps(2)
    options = ["--gain-error", "0.1", "--offset-uv", "500", "--noise-uv", "100", "--clock-error-ppm", "5000"]
    rig = record(tmp_path, rows, [0.5, 1.5], *options, voltage_v=5.0, end_s=SECONDS)
    assert rig.truth["total_j"] == pytest.approx(energy_j(rows, 0, SECONDS, 5.0, SECONDS), rel=1e-12)
    assert rig.total_error > 0.05


def test_the_truth_is_that_of_the_board_s_side_of_the_supply(tmp_path):
    rows = steps(3)
    options = ["--supply-ohm", "0.3", "--ripple", "50,7.3"]
    rig = record(tmp_path, rows, [0.5, 1.5], *options, voltage_v=5.0, end_s=SECONDS)
    times_s = (np.arange(200_000) + 0.5) * 1e-5
    current_a = np.array([a for _, a in rows])[np.searchsorted([t for t, _ in rows], times_s) - 1]
    power_w = current_a * (5.0 - 0.3 * current_a + 0.05 * np.sin(2 * np.pi * 7.3 * times_s))
    assert rig.truth["total_j"] == pytest.approx(float(power_w.sum()) * 1e-5, rel=1e-5)


def test_errors_of_the_bus_voltage_show_in_the_trace(tmp_path):
    rig = record(tmp_path, [(0.0, 0.6)], [], "--bus-gain-error", "0.01", "--bus-offset-mv", "-8", end_s=1.0)
    assert np.nanmedian(rig.trace.voltage_v) == pytest.approx(5.04 * 1.01 - 0.008, abs=0.002)
    assert rig.truth["total_j"] == pytest.approx(0.6 * 5.04)


def test_a_clock_that_drifts_stamps_edges_with_its_own_time(tmp_path):
    edges_s = [0.25 * index for index in range(1, 24)]
    options = ["--clock-error-ppm", "-2000", "--clock-warmup", "3000,2", "--seed", "5"]
    rig = record(tmp_path, [(0.0, 0.6)], edges_s, *options, end_s=6.0)
    by_cycle_ns = np.array(rig.truth["mcu"]["edge_cycles"]) / 0.016
    assert np.ptp(rig.edges_ns - by_cycle_ns) < 2000
    # From -2000 ppm to -2000 + 3000 (1 - exp(-3)): the first and the last quarter second tell.
    rates = np.diff(rig.edges_ns) * 1e-9 / 0.25
    assert rates[0] < 1 - 1000e-6
    assert rates[-1] > 1 + 700e-6


def test_a_conversion_time_that_drifts_by_2_percent_costs_no_conversion_and_no_energy(tmp_path):
    clock = ["--sensor-clock-error-ppm", "-60000", "--sensor-clock-warmup", "20000,2"]
    rig = record(tmp_path, steps(6, 5.0), [1.0, 4.0], *clock, end_s=5.0)
    assert rig.truth["sensor"]["shunt"]["missed"] == rig.truth["sensor"]["shunt"]["read_twice"] == 0
    assert rig.summary.losses.lost_samples == 0
    assert abs(rig.total_error) < 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense", "1"], "unknown option --nonsense"),
        (["--profile", "absent.csv", "--truth", "t"], "--elf is missing"),
        (["--elf", "absent.elf", "--profile", "profile.csv", "--truth", "t"], "cannot read absent.elf"),
        (["--elf", "profile.csv", "--profile", "profile.csv", "--truth", "t"], "profile.csv"),
        (["--elf", FIRMWARE, "--profile", "absent.csv", "--truth", "t"], "cannot read absent.csv"),
        (["--elf", FIRMWARE, "--profile", "bad.csv", "--truth", "t"], "bad.csv line 2: 'x'"),
        (["--elf", FIRMWARE, "--profile", "profile.csv"], "--truth is missing"),
        (
            ["--elf", FIRMWARE, "--profile", "profile.csv", "--truth", "t", "--pace", "3"],
            "expected 0, 1 or host",
        ),
        (
            ["--elf", FIRMWARE, "--profile", "profile.csv", "--truth", "t", "--pty", "bad.csv"],
            "bad.csv",
        ),
        (["--elf", FIRMWARE, "--live", "absent", "--truth", "t"], "mkfifo"),
        (["--clock-warmup", "30"], "--clock-warmup 30: expected PPM,TAU_S"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, arguments, message):
    (tmp_path / "profile.csv").write_text("0,1,5\n1,0,5\n")
    (tmp_path / "bad.csv").write_text("0,1,5\n1,x,5\n")
    done = subprocess.run(
        [RIG_SIM, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("rig-sim: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not (tmp_path / "t").exists()


def test_help_shows_an_example_and_the_formats():
    done = subprocess.run([RIG_SIM, "--help"], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    for word in ("SIMULATED", "time_s,current_a,voltage_v", "--clock-error-ppm", "record --meter", "30 J"):
        assert word in done.stdout


def test_a_stale_link_is_replaced_and_the_own_one_removed(tmp_path):
    link = tmp_path / "meter"
    link.symlink_to("/dev/nothing")
    options = inputs(tmp_path, steps())
    command = [RIG_SIM, "--elf", FIRMWARE, "--pty", link, "--truth", tmp_path / "truth.json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert "SIMULATED meter at /dev/pts/" in process.stdout.readline()
        assert str(link.readlink()).startswith("/dev/pts/")
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 130
    assert not link.is_symlink()
    assert json.loads((tmp_path / "truth.json").read_text())["total_j"] == 0


def test_a_terminated_run_leaves_the_truth_so_far(tmp_path):
    rows = steps(3, 600.0)
    with rig_sim(tmp_path, *inputs(tmp_path, rows, end_s=600.0), pace="1") as rig:
        meter = sampling_meter(rig)
        while not meter.read(0.1):
            pass
        rig.process.send_signal(signal.SIGTERM)
        assert rig.process.wait(LIMIT_S) == 143
        meter.close()
    truth = rig.truth()
    assert truth["interrupted"] is True
    assert 0 < truth["duration_s"] < 600
    assert truth["total_j"] == pytest.approx(energy_j(rows, 0, truth["duration_s"], 5.0, 600.0))


def test_a_host_that_reads_late_still_gets_every_byte(tmp_path):
    with rig_sim(tmp_path, *inputs(tmp_path, steps()), pace="0") as rig:
        meter = sampling_meter(rig)
        # Unpaced, the profile would be over in a fraction of this; the pty holds much less. (On a busy computer the
        # simulator may need longer anyway: what it would have thrown away is counted below.)
        with pytest.raises(subprocess.TimeoutExpired):
            rig.process.wait(2)
        with pytest.raises(InputEnded):
            while True:
                meter.read(0.1)
        losses = meter.losses
        meter.close()
        assert rig.process.wait(LIMIT_S) == 0
    assert rig.truth()["link"]["bytes_discarded"] == 0
    assert losses.lost_samples == 0
    assert losses.link["lost_frames"] == losses.link["bad_crc"] == losses.link["bad_cobs"] == 0


def test_commands_that_pile_up_while_the_rig_is_kept_from_running_cost_no_sample(tmp_path):
    """They come at the line's full rate afterwards: the meter counts a byte that it loses, which costs two commands."""
    with rig_sim(tmp_path, *inputs(tmp_path, steps(3, 600.0), end_s=600.0), pace="1") as rig:
        meter = sampling_meter(rig)
        while not meter.read(0.1):
            pass
        rig.process.send_signal(signal.SIGSTOP)
        for _ in range(PENDING_REQUESTS):
            meter.clock_exchange()
        rig.process.send_signal(signal.SIGCONT)
        answers, lost, end_s = 0, 0, time.monotonic() + LIMIT_S
        while answers < PENDING_REQUESTS - 2 * lost:
            answers += sum(isinstance(event, Exchange) for event in meter.read(0.1))
            lost = meter.losses.faults.get("receive_overrun", 0)
            assert time.monotonic() < end_s
        meter.stop()
        losses = meter.losses
        meter.close()
    assert losses.lost_samples == 0
    assert "transmit_full" not in losses.faults


def test_clock_requests_one_after_the_other_cost_no_sample(tmp_path):
    exchanges = 0
    with rig_sim(tmp_path, *inputs(tmp_path, steps(3, 3.0), end_s=3.0)) as rig:
        meter = sampling_meter(rig)
        meter.clock_exchange()
        with pytest.raises(InputEnded):
            while True:
                if any(isinstance(event, Exchange) for event in meter.read(0.1)):
                    exchanges += 1
                    meter.clock_exchange()
        losses = meter.losses
        meter.close()
    assert exchanges > 10
    assert losses.lost_samples == 0, losses.faults


def test_a_pulled_cable_ends_the_recording_and_keeps_what_came(tmp_path):
    with rig_sim(tmp_path, *inputs(tmp_path, steps()), "--unplug-at", "1.2") as rig:
        summary = rig.capture()
        assert rig.process.wait(LIMIT_S) == 0
    assert "port closed" in summary.ended
    assert read_trace(tmp_path).gaps[-1].reason == summary.ended
    recorded_s = float(np.ptp(read_trace(tmp_path).meter_ns)) * 1e-9
    assert 1.0 < recorded_s < 1.3
    assert rig.truth()["duration_s"] == SECONDS


def test_a_brown_out_in_mid_run_is_seen_as_a_reset(tmp_path):
    with rig_sim(tmp_path, *inputs(tmp_path, steps()), "--reset-at", "0.9") as rig:
        summary = rig.capture()
        rig.terminate()
    assert "brown" in summary.ended
    assert "brown" in read_trace(tmp_path).gaps[-1].reason
    assert rig.truth()["mcu"]["resets"] == 1


def test_a_sensor_that_stops_answering_is_a_counted_fault(tmp_path):
    with rig_sim(tmp_path, *inputs(tmp_path, steps()), "--sensor-fail-at", "1") as rig:
        summary = rig.capture()
    assert summary.losses.faults.get("i2c_nack", 0) > 0
    assert any("did not answer" in fault.text and "i2c_nack" in fault.text for fault in summary.notices())
    assert summary.samples < 2000


class LiveLoad(threading.Thread):
    """Writes a live input in real time: a new current each 10 ms, an edge each 0.3 to 0.6 s."""

    MARGIN_NS = NS // 10
    LEAST_EDGES = 6

    def __init__(self, fifo, length_s, held_s=0.0):
        """Ends `length_s` and LEAST_EDGES after `measured`, which is set once the meter has run for a while.

        `held_s`: for so long from the start nothing of it arrives, then all at once; edges come from the start on, else
        only once they are measured.
        """
        super().__init__(daemon=True)
        self.fifo, self.length_s, self.held_s = fifo, length_s, held_s
        self.edges_ns, self.measured = [], threading.Event()

    def run(self):
        chance = random.Random(4)
        start_ns = time.monotonic_ns()
        next_edge_ns = start_ns + NS // 2
        measured_ns = unmeasured = None
        with self.fifo.open("w", buffering=1 << 20) as sink:
            for past_ns in range(start_ns - NS, start_ns, NS // 100):
                sink.write(f"p {past_ns} 0.5 5.0\n")
            while (now_ns := time.monotonic_ns()) < start_ns + LIMIT_S * NS:
                if self.measured.is_set() and measured_ns is None:
                    measured_ns, unmeasured = now_ns, len(self.edges_ns)
                if (
                    measured_ns
                    and now_ns > measured_ns + self.length_s * NS
                    and len(self.edges_ns) >= unmeasured + self.LEAST_EDGES
                ):
                    break
                sink.write(f"p {now_ns} {chance.uniform(0.4, 1.2):.6f} 5.0\n")
                if now_ns > next_edge_ns and (measured_ns or self.held_s):
                    self.edges_ns.append(now_ns)
                    sink.write(f"e {now_ns} {len(self.edges_ns) % 2}\n")
                    next_edge_ns = now_ns + int(chance.uniform(0.3, 0.6) * NS)
                sink.write(f"w {now_ns - self.MARGIN_NS}\n")
                if now_ns > start_ns + self.held_s * NS:
                    sink.flush()
                time.sleep(0.01)
            sink.write(f"p {start_ns} 9 5\n")  # long simulated: must be left out
            sink.write(f"w {now_ns}\nq\n")


def test_a_live_input_that_ends_before_the_host_comes_ends_the_rig(tmp_path):
    fifo = tmp_path / "live"
    os.mkfifo(fifo)
    with rig_sim(tmp_path, "--live", str(fifo), pace="1") as rig:
        fifo.write_text("p 1000000000 0.5 5.0\nq\n")
        assert rig.process.wait(LIMIT_S) == 0
    assert rig.truth()["duration_s"] == 0


@pytest.mark.parametrize("held_s", [0.0, 1.2], ids=["in time", "later than the start"])
def test_a_live_input_is_measured_in_its_own_time(tmp_path, held_s):
    fifo = tmp_path / "live"
    os.mkfifo(fifo)
    load = LiveLoad(fifo, 4, held_s)
    course = tmp_path / "course.csv"
    with rig_sim(tmp_path, "--live", str(fifo), "--delay-ms", "400", "--course", str(course), pace="1") as rig:
        load.start()
        summary = rig.capture(running_for_1_s=load.measured)
        load.join(LIMIT_S)
        assert rig.process.wait(LIMIT_S) == 0
        assert "1 rows of the live input" in rig.process.stderr.read()
    truth, edges, cells = rig.truth(), read_edges(tmp_path), Cells.of(read_trace(tmp_path))
    assert truth["late_rows"] == 1
    assert summary.losses.lost_samples == 0
    boot_ns = truth["boot_board_ns"]
    sent_ns = np.array([at for at in load.edges_ns if at > boot_ns])
    unseen = len(sent_ns) - edges.meter_ns.size if held_s else 0  # by a meter that started late
    sent_ns = sent_ns[unseen:][: edges.meter_ns.size]
    assert edges.meter_ns.size == sent_ns.size >= 4
    board_ns, energy_j = np.loadtxt(course, delimiter=",", skiprows=1).T
    assert np.all(np.diff(board_ns) > 0)
    for interval in truth["intervals"]:
        at_ns = np.array([interval["start_s"], interval["end_s"]]) * 1e9 + boot_ns
        assert np.diff(np.interp(at_ns, board_ns, energy_j)) == pytest.approx(interval["energy_j"], rel=1e-5)
    offset_ns = sent_ns - boot_ns - edges.meter_ns
    assert np.ptp(offset_ns) < 2000
    for start_ns, end_ns, interval in zip(
        edges.meter_ns[:-1], edges.meter_ns[1:], truth["intervals"][unseen:], strict=False
    ):
        measured_j = float(cells.power.between(int(start_ns), int(end_ns)))
        # A load that changes each 10 ms, seen half of the time, for 0.3 s: some 0.2 % r.m.s.
        assert measured_j == pytest.approx(interval["energy_j"], rel=0.015)
