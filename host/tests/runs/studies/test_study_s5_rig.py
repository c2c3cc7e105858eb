"""Study S5 on the simulated rig: joules and one answer.

Actian Zen is a library of the same functions (btrieve_stand_in.cc), its ODBC driver SQLite's, SQL Server PostgreSQL:
nothing here says anything about their speed or energy.
"""

from __future__ import annotations

import re

import pytest
from opjoule.cli.commands import main
from opjoule.pages.plots import figures
from opjoule.results.comparison.study_rows import read_studies
from study_s5 import PASSWORD, TESTS, connections

CELLS = (("sqlite-odbc,zen", "postgresql"), ("sqlite,zen-odbc", "none"))
"""Systems, and what they are synchronised with."""


@pytest.mark.rig
@pytest.mark.end_to_end
def test_every_system_gives_joules_and_the_same_answers_on_the_simulated_rig(
    tmp_path, capsys, monkeypatch, library, studies_postgresql
):
    measured = sorted(system for systems, _ in CELLS for system in systems.split(","))
    records = tmp_path / "records"
    zen_odbc = f"Driver=SQLite3;Database={tmp_path}/zen.sqlite;PWD={PASSWORD}"
    argv = ["--study", "s5", "--device", "rpi3", "--simulate", "--idle", "0.3", "--scale", "0.002"]
    argv += connections(tmp_path, zen=str(library), zen_odbc=zen_odbc)
    argv += ["--only", "transactions=batch", "--repeats", "1", "--out", str(records)]
    for systems, sync in CELLS:
        status = main([*argv, "--only", f"system={systems}", "--only", f"sync={sync}"])
        said = capsys.readouterr()
        assert status in (0, 6), said.err + said.out
    assert f"answers    the same in all of {', '.join(measured)}" in said.out
    (table,) = read_studies([path.parent for path in records.glob("*/run.json")])
    assert not table.faults and {row.phase for row in table.rows if row.system == "zen"} >= set(TESTS)
    rows = {(row.system, row.phase): row.means for row in table.rows}
    for system in measured:
        assert float(rows[system, "T2"]["per_row_us"]) > 0
    for system in ("sqlite-odbc", "zen"):
        assert float(rows[system, "T2"]["energy_per_operation_j"]) > 0
    logs = "".join(path.read_text() for path in records.glob("*/raw/run-1.log"))
    assert logs.count("50 SYNTHETIC contacts") == len(measured)
    assert len(re.findall(r"carried to PostgreSQL \d+", logs)) == 2
    files = [path for path in records.rglob("*") if path.is_file()]
    assert files and not any(PASSWORD.encode() in path.read_bytes() for path in files)
    monkeypatch.setattr(figures, "FIGURES", {})
    assert main(["runs", "figures", str(records), "--out", str(tmp_path / "drawn")]) == 0
    assert list((tmp_path / "drawn").glob("s5-*-sync-postgresql-phases.pdf"))
