"""What runs on the simulated board is slowed as its medium would slow it, through the whole path. SIMULATED."""

import numpy as np
import pytest
from opjoule.bench.simulation.parts import PARTS, PartCourse
from validation.simulated_medium import load_rows, measure, sync_row

pytestmark = [pytest.mark.rig, pytest.mark.end_to_end]


def test_a_load_beyond_the_page_cache_is_bound_by_the_card_s_rate(tmp_path):
    """Both ways of counting: bytes that reached the medium, and bytes that the database wrote."""
    rows = list(load_rows(tmp_path / "record", "sqlite", "rpi3", "sd"))
    assert [row.about.split(",")[0] for row in rows] == ["sqlite on sd: bandwidth", "sqlite on sd: load"]
    for row in rows:
        assert row.measured == pytest.approx(row.model, rel=row.within), row


def test_a_synced_update_takes_the_flush_latency_and_its_bytes(tmp_path):
    row = sync_row(tmp_path / "record", "leveldb", "rpi3", "sd")
    assert row.measured == pytest.approx(row.model, rel=row.within), row


def test_settle_waits_for_the_dirty_pages_that_a_run_leaves(tmp_path):
    """They shrink at the medium's rate, and what they draw is write-back's."""
    out = tmp_path / "record"
    record = measure(
        out, "sqlite", "rpi3", "sd", "--records", "500", "--operations", "400", "--value-size", "100000",
        "-p", "readproportion=0", "-p", "updateproportion=1", "-p", "settle=none",
    )  # fmt: skip
    assert not record.faults
    settle = next(phase for phase in record.run.phases if phase.name == "settle")
    samples, rate = record.within(settle), record.medium.write_bytes_per_s
    assert samples["dirty_bytes"][0] > 20e6
    assert samples["dirty_bytes"][-1] < 1e6
    busy_s = float(np.ptp(samples["device_written_bytes"])) / rate
    assert samples["dirty_bytes"][0] / rate < 1.1 * busy_s < 1.1 * settle.duration_s
    drawn_j = PartCourse.read(out / PARTS).between(settle.start_board_ns, settle.end_board_ns)["write_back"]
    assert drawn_j == pytest.approx(record.medium.active_w * busy_s, rel=0.1)


@pytest.mark.parametrize("page_cache", ["drop", "keep"])
def test_reads_that_the_page_cache_would_miss_take_the_medium_s_time_and_energy(tmp_path, page_cache):
    """After the page cache was dropped; what it holds takes neither."""
    out = tmp_path / "record"
    record = measure(
        out, "sqlite", "rpi3", "sd", "--workload", "c", "--records", "20000", "--operations", "2000", "--value-size",
        "1000", "--state", f"page_cache={page_cache}",
    )  # fmt: skip
    assert not record.faults
    whole = PartCourse.read(out / PARTS)
    drawn_j = whole.between(int(whole.board_ns[0]), int(whole.board_ns[-1]))["reading"]
    read_bytes = float(np.ptp(record.system["device_read_bytes"]))
    if page_cache == "keep":
        assert read_bytes == drawn_j == 0
        return
    assert 2e6 < read_bytes < 30e6  # distinct pages of the requests; the whole database at most
    busy_s = read_bytes / record.medium.read_bytes_per_s
    assert next(phase for phase in record.run.phases if phase.name == "run").duration_s > 0.8 * busy_s
    assert drawn_j == pytest.approx(record.medium.active_w * busy_s, rel=0.02)
