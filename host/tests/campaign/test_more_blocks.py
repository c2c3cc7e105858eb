"""`until` of a campaign, and `measure.py again` with its folder: more blocks, as many as are needed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from campaign_files import file_of
from opjoule.base.errors import BadInput
from opjoule.campaign.axes import UntilNarrow
from opjoule.campaign.campaign import run_conditions
from opjoule.cli.campaign.command import _plans
from opjoule.cli.campaign.file import CampaignFile
from opjoule.cli.commands import main
from opjoule.results.comparison.index import read_index
from opjoule.runs.evaluation.until import REPEATS_MIN
from opjoule.runs.record.run_record import RunRecord

KEY = "marginal_energy_per_operation_j"


class DrawnCampaign:
    """A campaign whose measurements write results drawn with a spread; the SSD's are 1.3 times the SD card's."""

    def __init__(self, file: Path, folder: Path, spread: float) -> None:
        self.file, self.folder, self.spread = CampaignFile.read(file), folder, spread
        self.measured: list[str] = []
        self.cut_off_at = 0

    def __call__(self, plan, place: Path) -> tuple[int, Path]:
        block, medium = plan.asked["block"], plan.board.medium
        self.measured.append(f"{block} {medium}")
        record = RunRecord.create(place, plan.asked, simulated=True)
        record.update(plan=plan.to_json(), plan_sha256=plan.sha256)
        if len(self.measured) == self.cut_off_at:
            raise KeyboardInterrupt
        chance = np.random.default_rng([block, medium == "sd"])
        value = (1.0 if medium == "sd" else 1.3) * (1 + self.spread * chance.standard_normal())
        number = {"value": value, "u": 0.001 * value, "unit": "J/operation"}
        schema = {"name": "result", "version": 3}
        (place / "result.json").write_text(json.dumps({"schema": schema, "simulated": True, KEY: number}))
        record.finish("complete")
        return 0, place

    def run(self) -> int:
        plans = [plan for plan, _ in _plans(self.file)]
        options = {"seed": self.file.seed, "json": True, "resume": True, "until": self.file.until}
        return run_conditions(plans, self.folder, self, **options)

    @property
    def blocks(self) -> int:
        return max(int(cell.split()[0]) for cell in self.measured)


def until_file(folder: Path, until: str, *, repeats: int = 3, limit: int = 40) -> Path:
    file = file_of(folder, repeats=repeats)
    file.write_text(f'until = "{until}"\nblocks_limit = {limit}\n{file.read_text()}')
    return file


def test_blocks_are_added_until_every_interval_is_narrow_enough(tmp_path, capsys):
    campaign = DrawnCampaign(until_file(tmp_path, "6%"), tmp_path / "out", spread=0.08)
    assert campaign.run() == 0
    said = capsys.readouterr().err
    assert REPEATS_MIN < campaign.blocks < 40
    assert "until ±6 %: after 3 blocks 0 of 1 contrast" in said
    assert "the SD card / the SSD" in said and "blocks are needed" in said
    assert f"after {campaign.blocks} blocks 1 of 1 contrast reached" in said.splitlines()[-1]
    assert sorted(campaign.measured) == sorted(
        f"{block} {medium}" for block in range(1, campaign.blocks + 1) for medium in ("sd", "ssd-usb3")
    )


def test_a_narrow_interval_of_few_blocks_ends_no_campaign(tmp_path, capsys):
    campaign = DrawnCampaign(until_file(tmp_path, "20%"), tmp_path / "out", spread=0.01)
    campaign.run()
    assert campaign.blocks == REPEATS_MIN
    assert f"{REPEATS_MIN} blocks 1 of 1 contrast" in capsys.readouterr().err


def test_the_limit_of_blocks_ends_a_campaign_that_stays_uncertain(tmp_path, capsys):
    campaign = DrawnCampaign(until_file(tmp_path, "1%", limit=5), tmp_path / "out", spread=0.3)
    campaign.run()
    assert campaign.blocks == 5
    assert "NOT REACHED" in capsys.readouterr().err.splitlines()[-1]


def test_an_interrupted_campaign_goes_on_with_the_blocks_that_it_had_added(tmp_path, capsys):
    whole = DrawnCampaign(until_file(tmp_path, "6%"), tmp_path / "whole", spread=0.08)
    whole.run()
    first = DrawnCampaign(tmp_path / "two.toml", tmp_path / "out", spread=0.08)
    first.cut_off_at = 15
    with pytest.raises(KeyboardInterrupt):
        first.run()
    second = DrawnCampaign(tmp_path / "two.toml", tmp_path / "out", spread=0.08)
    second.run()
    assert first.measured[:-1] + second.measured == whole.measured
    third = DrawnCampaign(tmp_path / "two.toml", tmp_path / "out", spread=0.08)
    third.run()
    assert third.measured == []


def test_blocks_beyond_the_plan_stay_in_the_index_without_until(tmp_path, capsys):
    DrawnCampaign(file_of(tmp_path, repeats=4), tmp_path / "out", spread=0.1).run()
    fewer = DrawnCampaign(file_of(tmp_path, repeats=2), tmp_path / "out", spread=0.1)
    fewer.run()
    assert fewer.measured == []
    assert {run.block for run in read_index(tmp_path / "out")[0]} == {1, 2, 3, 4}


def test_a_block_of_which_nothing_was_measured_is_the_last(tmp_path, capsys):
    class Gone(DrawnCampaign):
        def __call__(self, plan, place):
            if plan.asked["block"] > 3:
                self.measured.append(f"{plan.asked['block']} {plan.board.medium}")
                raise BadInput("the board is gone")
            return super().__call__(plan, place)

    campaign = Gone(until_file(tmp_path, "1%"), tmp_path / "out", spread=0.1)
    assert campaign.run() != 0
    assert campaign.blocks == 4


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("until = 5", "until must be"),
        ('until = "5"', "until must be"),
        ('until = "0%"', "until must be"),
        ("blocks_limit = 9", "until"),
        ('until = "5%"\nblocks_limit = 1', "blocks_limit = 1"),
        ('until = "5%"\nblocks_limit = 10000', "20000 measurements"),
    ],
)
def test_a_mistake_in_until_is_one_line(tmp_path, keys, says):
    file = file_of(tmp_path)
    file.write_text(f"{keys}\n{file.read_text()}")
    with pytest.raises(BadInput) as wrong:
        CampaignFile.read(file)
    assert says in str(wrong.value) and "\n" not in str(wrong.value)


def test_the_plan_says_what_the_blocks_find_and_until_when_they_are_added(tmp_path, capsys):
    file, out = until_file(tmp_path, "6%"), tmp_path / "out"
    assert CampaignFile.read(file).until == UntilNarrow(0.06, 40)
    dry_run = ["campaign", str(file), "--out", str(out), "--dry-run"]
    assert main(dry_run) == 0
    before = capsys.readouterr().out
    assert "with 3 blocks " in before and " 42 % " in before and "assumed" in before
    assert "±6 %" in before and " 40 blocks" in before
    campaign = DrawnCampaign(file, out, spread=0.02)
    campaign.run()
    capsys.readouterr()
    assert main(dry_run) == 0
    after = capsys.readouterr().out
    assert f"with {REPEATS_MIN} blocks" in after and f"that of {2 * REPEATS_MIN} runs so far" in after


def test_again_says_how_many_blocks_decide_a_campaign_and_needs_none_for_a_decided_one(tmp_path, capsys):
    folder = tmp_path / "out"
    DrawnCampaign(file_of(tmp_path, repeats=3), folder, spread=0.2).run()
    capsys.readouterr()
    assert main(["again", str(folder), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"{folder}: 1 of 1 contrast undecided after 3 blocks; " in said
    assert main(["again", str(folder), "--blocks", "2", "--dry-run"]) == 0
    assert "; 2 blocks more, 4 cells to measure" in capsys.readouterr().out
    decided = tmp_path / "decided"
    DrawnCampaign(file_of(tmp_path, repeats=3), decided, spread=0.01).run()
    capsys.readouterr()
    assert main(["again", str(decided), "--dry-run"]) == 0
    assert "cells to measure" not in capsys.readouterr().out
    assert main(["again", str(decided), "--blocks", "1", "--dry-run"]) == 0
    assert "1 block more, 2 cells to measure" in capsys.readouterr().out


def test_again_measures_the_further_blocks_into_the_same_cells(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "out"
    campaign = DrawnCampaign(file_of(tmp_path, repeats=3), folder, spread=0.2)
    campaign.run()
    campaign.measured.clear()
    monkeypatch.setattr("opjoule.cli.campaign.again.measuring", lambda cells, rigs: campaign)
    monkeypatch.setattr("opjoule.cli.campaign.again.check_here", lambda plan: None)
    assert main(["again", str(folder), "--blocks", "2", "--json"]) == 0
    assert sorted(campaign.measured) == ["4 sd", "4 ssd-usb3", "5 sd", "5 ssd-usb3"]
    runs, _ = read_index(folder)
    assert [run.block for run in runs] == sorted([1, 2, 3, 4, 5] * 2)
    assert {run.name for run in runs} == {"sd", "ssd-usb3"}
    campaign.measured.clear()
    campaign.run()
    assert campaign.measured == [], "the campaign's own command knows the blocks"


@pytest.mark.parametrize(
    "wrong", [["--meter", "serial:x"], ["--state", "journal=off"], ["--seed", "3"], ["--out", "x"]]
)
def test_again_with_a_folder_keeps_the_rig_of_its_records(tmp_path, capsys, wrong):
    DrawnCampaign(file_of(tmp_path, repeats=2), tmp_path / "out", spread=0.2).run()
    assert main(["again", str(tmp_path / "out"), *wrong]) == BadInput.exit_code
    assert f"{wrong[0]} " in capsys.readouterr().err


def test_blocks_are_for_a_folder_alone(tmp_path, capsys):
    DrawnCampaign(file_of(tmp_path, repeats=1), tmp_path / "out", spread=0.2).run()
    record = next(path.parent for path in (tmp_path / "out").glob("*/run.json"))
    capsys.readouterr()
    assert main(["again", str(record), "--blocks", "2", "--dry-run"]) == BadInput.exit_code
    assert "--blocks " in capsys.readouterr().err
