"""A record that is being written is opened after a cut at any write: by a kill, and by a loss of power."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

HOST = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HOST / "validation")]

import power_loss  # noqa: E402  # path set above

WRITER = """
import sys
from pathlib import Path
import numpy as np
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.record.seals import SealWatch
from opjoule.energy.trace.journal import TraceJournal, to_parquet
from opjoule.energy.trace.power_trace import Gap

out = Path(sys.argv[1])
record = RunRecord.create(out, {}, simulated=True)
journal, seals = TraceJournal(out), SealWatch(out)
seals.seal()
for number in range(6):
    at = np.arange(50, dtype=np.int64) * 1_000_000 + number * 60_000_000
    journal.append_samples(at, 0.5 + at * 1e-9, np.full(50, 5.0))
    journal.flush()
    seals.seal()
    record.update(found={"step": number})
journal.close()
seals.stop()
to_parquet(out)
record.finish("complete")
"""


@pytest.mark.slow
def test_nothing_is_lost_or_invented_by_a_cut_at_any_write(tmp_path, capsys):
    library = tmp_path / "write_log.so"
    source = HOST / "validation/faults/write_log.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread"], check=True)
    out, log = tmp_path / "run", tmp_path / "log"
    logged = {"LD_PRELOAD": str(library), "OPJOULE_WRITE_LOG": str(log), "OPJOULE_WRITE_FOLDER": str(out)}
    environment = {**os.environ, "PYTHONPATH": str(HOST), **logged}
    subprocess.run([sys.executable, "-c", WRITER, str(out)], env=environment, check=True)
    assert power_loss.cut_record(out, log, 40, random.Random(1), report=False) == 0
    output = capsys.readouterr().out
    assert "complete" in output and "partial" in output and "| record: power, zeros |" in output


def test_a_log_that_lacks_changes_is_refused(tmp_path):
    out, log = tmp_path / "run", tmp_path / "log"
    log.write_text(f"make {out}/run.json\t\t0\t0\n")
    out.mkdir()
    with pytest.raises(SystemExit, match="lacks changes"):
        power_loss.cut_record(out, log, 1, random.Random(1), report=False)


def test_the_journal_of_a_boards_settings_is_cut_anywhere(capsys):
    assert power_loss.cut_journal(6, random.Random(1)) == 0
    assert "6 restored" in capsys.readouterr().out
