"""A capture keeps everything that came, whatever ends it."""

import numpy as np
import pytest
from opjoule.base.errors import MeterFault
from opjoule.energy.trace.journal import TraceJournal, read_edges, read_trace
from opjoule.energy.trace.power_trace import Gap
from opjoule.meters import capture, messages
from opjoule.meters.capture import Capture
from opjoule.meters.chips import SensorSettings
from opjoule.meters.interface import Wishes
from opjoule.meters.registry import open_meter
from software_meter import SoftwareMeter

PAIRS = SensorSettings(mode=messages.Mode.PAIRS)  # what the software meter speaks


def record(device, directory, until):
    """Captures until `until(capture)`; gives the summary."""
    meter = open_meter(f"serial:{device.path}", Wishes(PAIRS))
    meter.open()
    meter.configure()
    journal = TraceJournal(directory)
    running = Capture(meter, journal)
    running.start()
    until(running)
    summary = running.stop()
    journal.close()
    meter.close()
    return summary


def wait_for_samples(count):
    def until(running):
        while running.latest is None or running.latest.samples < count:
            assert not running.wait(0.01), running.ended

    return until


def test_a_capture_writes_samples_and_edges_and_counts(tmp_path):
    with SoftwareMeter(frames=40) as device:
        device.after_samples = [capture_edge()]
        summary = record(device, tmp_path, wait_for_samples(640))
    trace = read_trace(tmp_path)
    assert len(trace) == summary.samples == 640
    assert trace.current_a == pytest.approx(np.array(device.source.codes) * 1e-4)
    assert summary.ended is None
    assert summary.edges == len(read_edges(tmp_path).meter_ns) == 1
    assert summary.exchanges >= 1
    assert summary.to_json()["losses"].lost_samples == 0


def capture_edge():
    return messages.Edge(0, 6000, 1, 0, (0, 0, 0), (0, 0, 0))


def test_a_pulled_cable_ends_the_capture_and_keeps_the_trace(tmp_path):
    with SoftwareMeter(frames=10) as device:
        device.hang_up_after_samples = True

        def until(running):
            assert running.wait(120)

        # The line may break before the acknowledgement of start was read, or after it.
        try:
            summary = record(device, tmp_path, until)
        except MeterFault as fault:
            assert "port closed" in str(fault)
            return
    assert "port closed" in summary.ended
    trace = read_trace(tmp_path)
    assert len(trace) == summary.samples
    # ... or before any sample was: then there is no trace for a gap to end.
    assert [gap.reason for gap in trace.gaps] == ([summary.ended] if summary.samples else [])


def test_a_meter_that_falls_silent_is_a_fault(tmp_path, monkeypatch):
    def until(running):
        wait_for_samples(32)(running)
        monkeypatch.setattr(capture, "SILENCE_LIMIT_S", 0.3)
        assert running.wait(120)

    with SoftwareMeter(frames=2) as device:
        summary = record(device, tmp_path, until)
    assert "no sample for 0.3 s" in summary.ended
    trace = read_trace(tmp_path)
    assert len(trace) == 32
    assert trace.gaps[-1].duration_ns >= 300_000_000 and trace.gaps[-1].charge_c is None


def test_what_keeps_the_capture_from_writing_is_raised_by_stop(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TraceJournal, "append_samples", full)
    with SoftwareMeter() as device, pytest.raises(OSError, match="No space left"):
        record(device, tmp_path, lambda running: running.wait(120))


def test_a_lost_frame_is_rows_of_nan_and_a_gap_with_its_charge(tmp_path):
    with SoftwareMeter(frames=2) as device:
        device.source.frame()  # made before the first that is sent
        summary = record(device, tmp_path, wait_for_samples(32))
    trace = read_trace(tmp_path)
    assert np.isnan(trace.current_a[:16]).all()
    assert not np.isnan(trace.current_a[16:]).any()
    (gap,) = trace.gaps
    assert isinstance(gap, Gap)
    assert gap.charge_c == pytest.approx(sum(device.source.codes[:16]) * 1e-4 * 1.064e-3)
    assert summary.losses.recovered_samples == 16
