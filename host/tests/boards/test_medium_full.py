"""A disk that is full or a folder that goes away in mid-run: told once, with path and remedy, and cleaned up."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loopback_rig import LoopbackRig
from measure_process import LIMIT_S, await_phase, environment, own_lines, report, start
from opjoule.base.errors import naming
from opjoule.base.files import replacing
from opjoule.base.notices import Notice, NoticeKind
from opjoule.energy.trace.journal import read_trace
from opjoule.runs.record.directory import RESERVE
from opjoule.runs.record.run_record import RunRecord
from rig_session import rig_sim, write_profile

NO_SPACE = os.strerror(errno.ENOSPC)

SIMULATED_FILES = Path(__file__).resolve().parents[3] / "build/simulated-files"


@pytest.fixture
def small(tmp_path):
    """A disk of its own that a test may fill."""
    if os.geteuid() != 0:
        pytest.skip("mounts a small disk, which root may")
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", place],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"mounts a small disk, which is not allowed here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(place: Path) -> Path:
    """Takes the last byte of a disk."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            while True:
                try:
                    file.write(bytes(size))
                except OSError as error:
                    assert error.errno == errno.ENOSPC
                    break
    return filler


def test_a_fault_is_written_with_the_room_that_was_kept_for_it(small):
    record = RunRecord.create(small / "record", {}, simulated=True)
    fill(small)
    with pytest.raises(OSError, match="No space left"):
        record.update(found={"much": "x" * 5000})
    record.add_notices(Notice(NoticeKind.FAULT, "full"))
    assert [fault.line for fault in RunRecord.open(small / "record").faults] == ["full"]
    assert not [path.name for path in (small / "record").iterdir() if path.suffix == ".tmp"]


def test_a_record_that_ends_well_keeps_no_room(tmp_path):
    record = RunRecord.create(tmp_path / "record", {}, simulated=True)
    assert (tmp_path / "record" / RESERVE).stat().st_size > 100_000
    record.finish("complete")
    assert [path.name for path in (tmp_path / "record").iterdir()] == ["run.json"]


def test_an_error_of_an_open_file_gets_its_path(tmp_path):
    with pytest.raises(OSError) as fault, naming(tmp_path / "trace"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert fault.value.filename == str(tmp_path / "trace")


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path):
    target = tmp_path / "page"
    target.write_text("old")
    with pytest.raises(OSError, match=r"page'$"), replacing(target) as temporary:
        temporary.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device", str(temporary))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("page", "old")]


def left_by(pid: int) -> list[Path]:
    """What a simulated measurement has left on this computer."""
    temporary = Path(os.environ.get("TMPDIR", "/tmp"))
    return [*SIMULATED_FILES.glob(f"*-{pid}"), *temporary.glob(f"opjoule-twin-{pid}-*")]


def ended(running: subprocess.Popen[str]) -> str:
    """The one line that an ended measurement says; nothing of it is left."""
    _, said = running.communicate(timeout=LIMIT_S)
    assert "Traceback" not in said
    [line] = [line for line in own_lines(said) if line.startswith("measure.py: ")]
    assert left_by(running.pid) == []
    assert subprocess.run(["pgrep", "-g", str(running.pid)], check=False).returncode == 1
    assert running.returncode == 1, said
    return line


@pytest.mark.rig
@pytest.mark.end_to_end
@pytest.mark.parametrize("after", ["load", "idle-before", "settle"])
def test_a_disk_that_is_full_in_mid_run_is_reported_and_what_was_recorded_stays(small, after):
    out = small / "record"
    running = start(out, "--no-harness", "--rate", "full", "--reset", "load")
    await_phase(out, after)
    filler = fill(small)
    line = ended(running)
    assert line.startswith(f"measure.py: {out}/") and f"{NO_SPACE}: " in line
    assert f"'host/measure.py report {out}'" in line
    record = RunRecord.open(out)
    assert record.status == "partial"
    assert any(NO_SPACE in fault.text for fault in record.faults)
    assert len(read_trace(out)) > 0
    filler.unlink()
    shown = report(out)
    assert shown.returncode == 0, shown.stderr
    assert "PARTIAL" in shown.stdout and NO_SPACE in " ".join(shown.stdout.split())
    assert RunRecord.open(out).verify() == []


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_folder_that_is_removed_in_mid_run_is_reported(tmp_path):
    out = tmp_path / "record"
    running = start(out, "--no-harness", "--rate", "full", "--reset", "load")
    await_phase(out, "load")
    shutil.rmtree(out)
    line = ended(running)
    assert line.startswith(f"measure.py: {out}") and "removed" in line
    assert not out.exists()


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_recording_on_a_full_disk_is_reported_and_stays(small):
    out = small / "record"
    write_profile(small / "profile.csv", [(0.0, 0.6)], 5.0, 600.0)
    with rig_sim(small, "--profile", str(small / "profile.csv"), pace="1"):
        command = [
            sys.executable,
            "-m",
            "opjoule.cli.start",
            "record",
            "--meter",
            f"serial:{small / 'meter'}",
        ]
        recording = subprocess.Popen([*command, "--out", out], env=environment(), stderr=subprocess.PIPE, text=True)
        stream = out / "raw/power.arrows"
        end_s = time.monotonic() + LIMIT_S
        while not (stream.exists() and stream.stat().st_size > 10_000):
            assert time.monotonic() < end_s
            time.sleep(0.05)
        filler = fill(small)
        _, said = recording.communicate(timeout=LIMIT_S)
    assert recording.returncode == 1
    assert f"measure.py: {out}/" in said and f"{NO_SPACE}: " in said
    assert "Traceback" not in said
    record = RunRecord.open(out)
    assert record.status == "partial" and NO_SPACE in record.faults[0].text
    filler.unlink()
    assert report(out).returncode == 0


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_read_only_disk_is_refused_before_anything_is_run(small):
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    running = start(small / "record")
    _, said = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 2
    assert os.strerror(errno.EROFS) in said and "--out" in said


@pytest.fixture
def rig(small):
    made = LoopbackRig(small.parent)
    made.storage = small / "storage"
    described = (small.parent / "rig.toml").read_text()
    old = described.partition("[device.rpi4.storage]\n")[2].splitlines()[0]
    (small.parent / "rig.toml").write_text(described.replace(old, f'sd = "{made.storage}"'))
    yield made
    made.close()


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_medium_of_the_board_that_is_full_in_mid_run_ends_it_and_is_cleared(rig, small):
    host = rig.measure("--operations", "500000000", "-p", "maxexecutiontime=300", "-p", "readproportion=0",
                       "-p", "updateproportion=1", "-p", "leveldb.write_buffer_bytes=1048576")  # fmt: skip
    try:
        rig.await_operations()
        filler = fill(small)
        _, said = host.communicate(timeout=LIMIT_S)
    finally:
        host.send_signal(signal.SIGTERM)
        host.wait(LIMIT_S)
    assert host.returncode == 3, said
    assert "run-1 " in said and NO_SPACE in said
    assert "Traceback" not in said
    record = rig.record()
    assert record["status"] == "partial"
    assert any(NO_SPACE in notice["line"] for notice in record["notices"])
    assert len(read_trace(rig.out)) > 0
    assert (rig.out / "operations.parquet").exists()
    filler.unlink()
    assert list(rig.storage.iterdir()) == []
    assert json.loads((rig.out / "run.json").read_text())["found"]["device"]["storage_free_bytes"] <= 1 << 26
