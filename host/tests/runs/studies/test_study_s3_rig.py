"""Study S3 on the simulated rig: joules and one answer."""

from __future__ import annotations

import pytest
from opjoule.cli.commands import main
from opjoule.pages.plots import figures
from opjoule.results.comparison.study_rows import read_studies
from study_s3 import SYSTEMS


@pytest.mark.rig
@pytest.mark.end_to_end
def test_every_system_gives_joules_and_the_same_answers_on_the_simulated_rig(
    tmp_path, capsys, monkeypatch, study, studies_postgresql
):
    argv = ["--study", "s3", "--device", "rpi4", "--simulate", "--idle", "0.3", "--scale", "0.05"]
    argv += ["--settle-limit", "1", "--storage", "ssd-usb3", "--only", f"system={','.join(SYSTEMS)}"]
    assert main([*argv, "--repeats", "1", "--only", "rows=1000", "--out", str(tmp_path)]) in (0, 6)
    assert f"answers    the same in all of {', '.join(sorted(SYSTEMS))}" in capsys.readouterr().out
    (table,) = read_studies([path.parent for path in tmp_path.glob("*/run.json")])
    assert not table.faults
    for name in study("phases").PHASES:
        assert {row.system for row in table.rows if row.phase == name} == set(SYSTEMS)
    refused = {(row.system, row.phase) for row in table.rows if row.not_supported}
    assert refused == {("berkeleydb", "LOAD_ROWS")}
    joules = {(row.system, row.phase): float(row.means.get("energy_per_operation_j", 0)) for row in table.rows}
    assert joules["duckdb", "LOAD_ROWS"] > 0 and joules["duckdb", "READ"] > 0
    log = next(path for path in tmp_path.glob("*duckdb*/raw/run-1.log")).read_text()
    assert "50 rows: SYNTHETIC" in log
    monkeypatch.setattr(figures, "FIGURES", {})
    assert main(["runs", "figures", str(tmp_path), "--out", str(tmp_path / "drawn")]) == 0
    assert (tmp_path / "drawn" / "s3-rows-50-phases.pdf").exists()
    methods = (tmp_path / "drawn" / "methods.txt").read_text()
    assert "Workloads: S3, databases on sensor data (50 rows)." in methods
    assert all(system in methods.split("Databases: ")[1].splitlines()[0] for system in SYSTEMS)
