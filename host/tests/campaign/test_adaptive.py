"""What a campaign decides by its own runs: one rate for all its conditions, more blocks, and how many are needed."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from campaign_files import file_of
from opjoule.base.errors import BadInput, DeviceFault, RigFault
from opjoule.base.units import Quantity
from opjoule.campaign.adaptive import (
    EQUAL_RATE,
    TYPICAL_SPREAD,
    Spread,
    at_equal_rate,
    contrast_count,
    power_words,
)
from opjoule.campaign.axes import UntilNarrow
from opjoule.campaign.campaign import in_condition, run_conditions
from opjoule.cli.campaign.command import _plans
from opjoule.cli.campaign.file import CampaignFile, cell_options
from opjoule.cli.commands import main
from opjoule.cli.measure.planning import make_plan
from opjoule.energy.comparison import POWER, ratio_limits, same_probability
from opjoule.results.comparison.contrasts import LIMIT
from opjoule.results.comparison.index import read_index
from opjoule.runs.evaluation.until import REPEATS_MIN
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.record.run_record import RunRecord

OWN_PER_S = {"leveldb": 14_000, "sqlite": 900}


def plan_of(db: str, **settings: object) -> Plan:
    options = cell_options({"db": db, "device": "rpi4", "simulate": True, **settings}, {"db": db}, seed=1)
    return in_condition(make_plan(options), {"db": db})


class Bench:
    """Measures plans in no time: a run of 10 s with the operations that its database reaches."""

    def __init__(self):
        self.plans = []

    def __call__(self, plan, place):
        self.plans.append(plan)
        summary = {"operations": 10 * OWN_PER_S[plan.study.engine], "duration_s": 10.0}
        record = RunRecord.create(place, {}, simulated=True)
        record.update(loader={"run-1": summary})
        record.finish("complete")
        return 0, place


@pytest.fixture
def bench():
    return Bench()


def target_of(plan: Plan) -> str:
    return f"{plan.study.campaign_per_s:.0f}"


def test_all_conditions_have_half_of_the_slowest_one_s_rate(tmp_path, bench, capsys):
    plans = [plan_of("leveldb"), plan_of("sqlite")]
    measure = at_equal_rate(tmp_path, plans, bench)
    assert [(plan.study.rate, plan.study.run_s) for plan in bench.plans] == [(None, 10)] * 2
    for plan in plans:
        measure(plan, tmp_path / f"run-{plan.study.engine}")
    assert [target_of(plan) for plan in bench.plans[2:]] == ["450", "450"]
    assert [plan.sha256 for plan in bench.plans[2:]] == [plan.sha256 for plan in plans]
    found = json.loads((tmp_path / EQUAL_RATE).read_text())["workload workloada"]
    assert (found["slowest"], found["own_operations_per_s"]["leveldb"]) == ("sqlite", 14_000)
    assert re.search(r"workloada: .* 450 ", capsys.readouterr().err)


def test_a_campaign_that_continues_keeps_its_rate(tmp_path, bench):
    plans = [plan_of("leveldb"), plan_of("sqlite")]
    at_equal_rate(tmp_path, plans, bench)
    count = len(bench.plans)
    at_equal_rate(tmp_path, plans, bench)(plans[0], tmp_path / "again")
    assert len(bench.plans) == count + 1 and target_of(bench.plans[-1]) == "450"
    (tmp_path / EQUAL_RATE).write_text("[]")
    with pytest.raises(BadInput, match="measure into another --out"):
        at_equal_rate(tmp_path, plans, bench)


def test_a_rate_that_the_user_sets_is_measured_as_it_is(tmp_path, bench):
    plans = [plan_of("leveldb", rate="full"), plan_of("sqlite", p="target=9")]
    assert at_equal_rate(tmp_path, plans, bench) is bench and not bench.plans
    assert [plan.study.rate for plan in plans] == [None, None]


def test_a_condition_whose_rate_cannot_be_found_is_named(tmp_path, capsys):
    def killed(plan, place):
        RunRecord.create(place, {}, simulated=True)
        return 1, place

    with pytest.raises(RigFault, match="workloada"):
        at_equal_rate(tmp_path, [plan_of("leveldb")], killed)
    assert "leveldb" in capsys.readouterr().err


def test_a_search_that_was_killed_measures_what_it_lacks_again(tmp_path, bench):
    RunRecord.create(tmp_path / "rates/leveldb", {}, simulated=True)
    plan = plan_of("leveldb")
    at_equal_rate(tmp_path, [plan], bench)(plan, tmp_path / "run")
    assert target_of(bench.plans[-1]) == "7000" and (tmp_path / "rates/leveldb-2").is_dir()


def test_a_measurement_of_its_own_has_no_campaign_s_rate(tmp_path):
    study = plan_of("leveldb").study
    assert study.rate == "equal" and replace(study, campaign_per_s=5.0).to_json() == study.to_json()


def test_each_workload_of_a_campaign_has_a_rate_of_its_own(tmp_path, bench):
    reads, writes = plan_of("leveldb", workload="c"), plan_of("sqlite")
    measure = at_equal_rate(tmp_path, [reads, writes], bench)
    for plan in (reads, writes):
        measure(plan, tmp_path / f"run-{plan.study.engine}")
    assert [target_of(plan) for plan in bench.plans[2:]] == ["7000", "450"]


def test_a_condition_that_fails_does_not_keep_the_others_from_their_rate(tmp_path, bench, capsys):
    def measure_one(plan, place):
        if plan.study.engine == "sqlite":
            raise DeviceFault("the card is gone")
        return bench(plan, place)

    plans = [plan_of("leveldb"), plan_of("sqlite")]
    at_equal_rate(tmp_path, plans, measure_one)(plans[0], tmp_path / "run")
    assert target_of(bench.plans[-1]) == "7000"
    assert re.search("sqlite.* the card is gone", capsys.readouterr().err)


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
    assert "with 3 blocks " in before and " 47 % " in before and "assumed" in before
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
    monkeypatch.setattr("opjoule.cli.campaign.command.measuring", lambda cells, rigs: campaign)
    monkeypatch.setattr("opjoule.cli.campaign.command.check_here", lambda plan: None)
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


def side(values) -> Quantity:
    return Quantity.mean([Quantity.from_standard(float(value), 0.0, "J") for value in values])


@pytest.mark.parametrize(("blocks", "contrasts"), [(3, 1), (3, 6), (4, 6), (5, 1), (5, 9), (12, 3)])
def test_a_difference_that_the_preview_names_is_found_as_often_as_it_says(blocks, contrasts):
    """Campaigns are drawn whose cells differ by it; each is judged as a comparison judges it."""
    spread = Spread(0.1)
    factor = 1 + spread.difference_found(blocks, contrasts)
    chance = np.random.default_rng(7)
    draws = 1 + spread.relative * chance.standard_normal((400, 2, blocks))
    found = [(same_probability(side(factor * a), side(b)) or 0.0) < LIMIT / contrasts for a, b in draws]
    assert np.mean(found) == pytest.approx(POWER, abs=0.06)


def test_two_blocks_of_runs_that_differ_much_find_nothing():
    assert Spread(0.1).difference_found(2) == math.inf
    assert "2 blocks no differences are found" in power_words(Spread(0.1), 2, 1)


def test_an_interval_is_as_wide_as_expected_from_the_spread():
    spread, chance = Spread(0.05), np.random.default_rng(3)
    widths = []
    for a, b in 1 + spread.relative * chance.standard_normal((300, 2, 8)):
        low, high = ratio_limits(side(a), side(b))
        widths.append((high - low) / 2)
    assert np.mean(widths) == pytest.approx(spread.half_width(8), rel=0.06)


def test_what_no_block_reduces_limits_interval_and_difference():
    spread = Spread(0.01, fixed=0.05)
    assert spread.half_width(1000) > 2 * 0.05
    assert spread.blocks_for(0.1, 100) is None and spread.blocks_to_find(0.1, 1, 100) is None


def test_the_fewest_blocks_reach_what_one_block_less_does_not():
    spread = Spread(0.1)
    blocks = spread.blocks_for(0.05, 100)
    assert blocks and spread.half_width(blocks) <= 0.05 < spread.half_width(blocks - 1)
    found = spread.blocks_to_find(0.1, 3, 100)
    assert found and spread.difference_found(found, 3) <= 0.1 < spread.difference_found(found - 1, 3)


def test_contrasts_are_the_pairs_of_each_axis_in_each_stratum():
    cells = [{"db": db, "storage": storage} for db in ("a", "b") for storage in ("sd", "emmc", "ssd")]
    assert contrast_count(cells) == 2 * 3 + 3 * 1
    assert contrast_count(cells[:1]) == 0
    assert contrast_count([{"command": name} for name in "abcd"]) == 6


def test_the_preview_names_difference_blocks_and_where_the_spread_is_from():
    said = power_words(Spread.of([]), 5, 1)
    assert "5 blocks" in said and " 24 %" in said
    assert f"{100 * TYPICAL_SPREAD:.1f} %" in said.replace("\N{NO-BREAK SPACE}", " ") and "assumed" in said
    assert "that of 12 runs so far; 9 contrasts" in power_words(Spread(0.02, runs=12), 5, 9)
    assert "no difference" in power_words(Spread(0.1), 1, 1)
