"""The serial meter on the real firmware in the rig simulator, unpaced, against the simulator's truth."""

import json
import random
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from opjoule.meters import Capture, open_meter
from opjoule.trace.journal import TraceJournal, read_edges, read_trace
from rig_session import LIMIT_S

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 5.0

pytestmark = pytest.mark.rig


def write_inputs(folder):
    """A load that switches each 20 to 120 ms, and sync edges each 0.1 to 0.9 s."""
    chance = random.Random(5)
    rows, time_s = ["time_s,current_a,voltage_v"], 0.0
    while time_s < SECONDS:
        rows.append(f"{time_s:.6f},{chance.uniform(0.4, 1.3):.6f},5.04")
        time_s += chance.uniform(0.02, 0.12)
    (folder / "profile.csv").write_text("\n".join([*rows, f"{SECONDS},0.5,5.04"]) + "\n")
    edges, time_s = [], 0.3
    while time_s < SECONDS - 0.3:
        edges.append(time_s)
        time_s += round(chance.uniform(0.1, 0.9), 6)
    lines = [f"{at:.6f},{1 - i % 2}" for i, at in enumerate(edges)]
    (folder / "edges.csv").write_text("\n".join(["time_s,level", *lines]) + "\n")
    return np.array(edges)


def record(folder, *imperfections):
    """Trace, edges, summary and the simulator's truth of one whole profile."""
    sent_edges_s = write_inputs(folder)
    link, truth = folder / "meter", folder / "truth.json"
    command = [ROOT / "build/rig-sim/rig-sim", "--elf", ROOT / ".pio/build/uno/firmware.elf", "--pace", "0"]
    command += ["--profile", folder / "profile.csv", "--sync", folder / "edges.csv"]
    command += ["--pty", link, "--truth", truth, "--patience-s", str(LIMIT_S), *imperfections]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as simulator:
        try:
            end_s = time.monotonic() + LIMIT_S
            while not link.is_symlink():
                assert simulator.poll() is None, "rig-sim did not start"
                assert time.monotonic() < end_s, "rig-sim made no pty"
                time.sleep(0.02)
            summary = capture(f"serial:{link}", folder)
            assert simulator.wait(LIMIT_S) == 0
        finally:
            simulator.kill()
    edges = read_edges(folder)
    return read_trace(folder), edges, sent_edges_s, summary, json.loads(truth.read_text())


def capture(name, folder):
    meter, journal = open_meter(name), TraceJournal(folder)
    try:
        meter.open()
        meter.configure()
        running = Capture(meter, journal)
        running.start()
        assert running.wait(LIMIT_S), "the simulator did not end"
        return running.stop()
    finally:
        journal.close()
        meter.close()


def charge_c(trace):
    """Samples held over their cells, plus what the gaps carry."""
    centre_s = trace.meter_ns * 1e-9
    bounds = (centre_s[1:] + centre_s[:-1]) / 2
    ends = [1.5 * centre_s[0] - 0.5 * centre_s[1]], [1.5 * centre_s[-1] - 0.5 * centre_s[-2]]
    cells_s = np.diff(np.concatenate([ends[0], bounds, ends[1]]))
    return float((trace.current_a * cells_s)[trace.good].sum()) + sum(gap.charge_c for gap in trace.gaps)


def test_a_perfect_line_loses_nothing_and_edges_are_within_2_us(tmp_path):
    trace, edges, sent_edges_s, summary, truth = record(tmp_path)
    assert summary.losses.lost_samples == 0
    assert summary.losses.link["lost_frames"] == 0
    assert summary.losses.faults == {}
    assert charge_c(trace) == pytest.approx(truth["total_c"], rel=1e-3)
    offset_s = edges.meter_ns * 1e-9 - sent_edges_s
    assert np.ptp(offset_s) < 2e-6


def test_dropped_bytes_and_a_wrong_clock_cost_no_charge_and_no_edge(tmp_path):
    options = ["--drop-bytes", "0.001", "--clock-error-ppm", "100", "--seed", "4"]
    trace, edges, sent_edges_s, summary, truth = record(tmp_path, *options)
    assert summary.losses.lost_samples > 50
    assert summary.losses.recovered_samples == summary.losses.lost_samples == trace.lost_samples
    assert charge_c(trace) == pytest.approx(truth["total_c"], rel=2e-3)
    # The very last edge has no later message that repeats it.
    assert list(edges.index) == list(range(len(edges.index)))
    assert len(sent_edges_s) - 1 <= len(edges.index) <= len(sent_edges_s)
