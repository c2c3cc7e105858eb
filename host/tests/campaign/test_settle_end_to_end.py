"""What comes after the last operation, through the simulated rig: waited for, counted above idle, told when cut short.

The simulator's truth is read here to see that the figures hold it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from opjoule.base.notices import NoticeKind
from opjoule.bench.simulation.parts import COURSE, PartCourse
from opjoule.bench.simulation.rig import RigSetup, twin_rig
from opjoule.bench.simulation.supply import IMPERFECTIONS
from opjoule.bench.simulation.truth_line import true_figures
from opjoule.campaign.measurement import measure
from opjoule.cli import commands
from opjoule.cli.measure.planning import make_plan, supply_of_rig
from opjoule.runs.measuring.progress import PhaseProgress
from opjoule.runs.record.run_record import RunRecord

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.rig, pytest.mark.end_to_end]


def measured(out: Path, medium: str, *options: str):
    """run.json, result.json and the simulator's folder of one measurement on a medium that no board has."""
    small = [
        "--records",
        "2000",
        "--operations",
        "20000",
        "--repeats",
        "1",
        "--idle",
        "3",
        "--no-harness",
        "--rate",
        "full",
        "--reset",
        "load",
    ]
    command = commands.parse(["--db", "leveldb", "--device", "rpi4", "--simulate", *small, *options])
    plan = make_plan(command.options)
    plan = replace(plan, board=replace(plan.board, medium=medium))  # not one of the profile
    truth = out / "simulator-truth.json"
    options = RigSetup(root=ROOT, files=out.parent / "storage", truth=truth, seed=11)
    with twin_rig(plan.board, options) as rig, PhaseProgress(quiet=True) as progress:
        supply = supply_of_rig(plan, None, command.options)
        measure(plan, rig.board, rig.meter, out, progress, {"simulation": rig.facts}, supply)
    return json.loads((out / "run.json").read_text()), json.loads((out / "result.json").read_text())


def test_a_tail_of_12_s_is_part_of_the_energy_above_idle(tmp_path):
    """The tail draws 0.48 W at least. Without it the marginal energy would lack 6 to 10 J, which is most of it."""
    out = tmp_path / "record"
    run, result = measured(out, "sd-folding")
    assert run["notices"] == []
    assert result["settle_s"]["value"] > 12
    true = true_figures(PartCourse.read(out / COURSE), RunRecord.open(out).run.phases, 20_000)
    drawn = json.loads((out / IMPERFECTIONS).read_text())
    # The rig's gains are within their stated part; what is left is the method's.
    gain = drawn["shunt_ohm"] / 0.1 * (1 + drawn["gain_error"]) * (1 + drawn["bus_gain_error"])
    for key in ("marginal_energy_j", "write_back_energy_j"):
        assert true[key] > 5.7
        assert result[key]["value"] / gain == pytest.approx(true[key], rel=0.01)
        assert abs(result[key]["value"] - true[key]) <= result[key]["u"]


def test_a_settle_limit_that_cuts_a_tail_short_is_reported_and_withholds_what_it_makes_wrong(tmp_path):
    """Two seconds of limit gave 4.3 instead of 70 to 81 uJ, without a word."""
    run, result = measured(tmp_path / "record", "sd-folding", "--settle-limit", "7")
    assert any(notice["kind"] == NoticeKind.UNSETTLED for notice in run["notices"])
    assert run["status"] == "failed"
    for key in (
        "marginal_energy_per_operation_j",
        "energy_per_operation_j",
        "write_back_energy_j",
        "idle_power_w",
    ):
        assert result[key]["value"] is None
        assert "withheld" in result[key]["reason"]
    assert result["run_energy_j"]["value"] > 0
    assert result["power_w"]["value"] > 0
    assert "marginal_energy_j" not in result["by_repeat"]
