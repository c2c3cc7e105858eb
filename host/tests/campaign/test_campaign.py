"""Campaigns: planned, resumed from what the records on the disk say, retried by rule, visible in the index."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from campaign_files import file_of
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.base.errors import BadInput, DeviceFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.campaign.campaign import Campaign, block_order, in_words, run_conditions
from opjoule.cli.campaign.command import _plans
from opjoule.cli.campaign.file import CampaignFile
from opjoule.cli.commands import main
from opjoule.cli.measure.command import check_plans
from opjoule.results.comparison.conclusion import cells
from opjoule.results.comparison.index import read_index
from opjoule.runs.record.run_record import RunRecord

ROOT = Path(__file__).resolve().parents[3]
GONE = "unplugged-7"
"""Why a scripted cell cannot be measured."""
READY = sorted((ROOT / "campaigns").glob("*.toml"))
READY_AXES = {"sd-emmc-or-ssd": {"db", "storage"}, "three-engines": {"db", "workload", "storage"}}


class ScriptedCampaign:
    """A campaign whose measurements only write records; they fail or are cut off where a test says so."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.file, self.folder, self.measured = CampaignFile.read(file), folder, []
        self.fails: list[str] = []
        self.cut_off_at = 0

    def __call__(self, plan, place: Path) -> tuple[int, Path]:
        self.measured.append(f"{plan.asked['block']} {plan.condition_name}")
        record = RunRecord.create(place, plan.asked, simulated=True)
        record.update(plan=plan.to_json(), plan_sha256=plan.sha256)
        if len(self.measured) == self.cut_off_at:
            raise KeyboardInterrupt
        failed = self.measured[-1] in self.fails
        if failed:
            self.fails.remove(self.measured[-1])
            record.add_notices(Notice(NoticeKind.FAULT, "the card is slow", withholds=("energy",)))
        record.finish("failed" if failed else "complete")
        return (6 if failed else 0), place

    def run(self) -> int:
        plans = [plan for plan, _ in _plans(self.file)]
        return run_conditions(
            plans, self.folder, self, seed=self.file.seed, json=True, retries=self.file.retries, resume=True
        )


def test_every_cell_is_measured_once_and_nothing_the_second_time(tmp_path, capsys):
    campaign = ScriptedCampaign(file_of(tmp_path), tmp_path / "out")
    assert campaign.run() == 0
    assert sorted(campaign.measured) == ["1 sd", "1 ssd-usb3", "2 sd", "2 ssd-usb3"]
    again = ScriptedCampaign(tmp_path / "two.toml", tmp_path / "out")
    assert again.run() == 0
    assert again.measured == []


@pytest.mark.parametrize("cut_off_at", [1, 2, 4])
def test_what_was_cut_off_is_measured_again_and_stays_visible(tmp_path, capsys, cut_off_at):
    """However it ended: its record says partial, and is no failure that a retry is counted for."""
    campaign = ScriptedCampaign(file_of(tmp_path), tmp_path / "out")
    campaign.cut_off_at = cut_off_at
    with pytest.raises(KeyboardInterrupt):
        campaign.run()
    again = ScriptedCampaign(tmp_path / "two.toml", tmp_path / "out")
    assert again.run() == 0
    assert len(again.measured) == 4 - cut_off_at + 1
    statuses = Counter(run.status for run in read_index(tmp_path / "out")[0])
    assert statuses == {"complete": 4, "partial": 1}


def test_a_cell_that_was_cut_off_and_measured_again_counts_once(tmp_path, capsys):
    campaign = ScriptedCampaign(file_of(tmp_path), tmp_path / "out")
    campaign.cut_off_at = 2
    with pytest.raises(KeyboardInterrupt):
        campaign.run()
    ScriptedCampaign(tmp_path / "two.toml", tmp_path / "out").run()
    runs = [
        replace(run, run=SimpleNamespace(compared=()) if run.status == "complete" else None)
        for run in read_index(tmp_path / "out")[0]
    ]
    assert len(runs) == 5
    assert cells(runs)[0][1] == ["2 of 2", "2 of 2"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("repeats = 100000000", "not 100000000"),
        ("repeats = 9000", "18000 measurements"),
        ('repeats = "5"', "not '5'"),
        ("retries = 9999999", "retries"),
        ("seed = -1", "seed"),
        ("seed = 99999999999999999999", "seed"),
        ('name = "../../elsewhere"', "name must be"),
        ('name = ""', "name must be"),
        ("name = 5", "name must be"),
    ],
)
def test_a_campaign_beyond_all_measure_is_refused_in_its_dry_run(tmp_path, capsys, wrong, says):
    text = file_of(tmp_path).read_text()
    key = wrong.split()[0]
    kept = "\n".join(line for line in text.splitlines() if not line.startswith(key))
    (tmp_path / "two.toml").write_text(f"{wrong}\n{kept}")
    with pytest.raises(SystemExit, match="2"):
        main(["campaign", str(tmp_path / "two.toml"), "--dry-run"])
    said = capsys.readouterr().err
    assert f"two.toml: {key}" in said or says.endswith("measurements")
    assert says in said


def test_a_dry_run_refuses_a_property_that_the_loader_does_not_know_and_tells_the_time(tmp_path, capsys):
    path = str(file_of(tmp_path, constants='db = "leveldb"\np = ["leveldb.colour=red"]'))
    with pytest.raises(BadInput, match=r"unknown property leveldb\.colour"):
        check_plans(_plans(CampaignFile.read(Path(path))))
    assert main(["campaign", path, "--dry-run"]) == 2
    path = str(file_of(tmp_path, constants='db = "leveldb"', axes='seconds = ["20"]').absolute())
    text = Path(path).read_text().replace("operations = 100\n", "")
    Path(path).write_text(text)
    capsys.readouterr()
    assert main(["campaign", path, "--dry-run"]) == 0
    assert "to measure 4, at least 2 min" in capsys.readouterr().out


def test_a_failed_cell_is_measured_again_while_its_retries_last(tmp_path, capsys):
    campaign = ScriptedCampaign(file_of(tmp_path, repeats=1, retries=1), tmp_path / "out")
    campaign.fails = ["1 sd"]
    assert campaign.run() == 0
    assert Counter(campaign.measured) == {"1 sd": 2, "1 ssd-usb3": 1}
    assert Counter(run.status for run in read_index(tmp_path / "out")[0]) == {"complete": 2, "failed": 1}


def test_a_cell_out_of_retries_is_given_up_and_ends_with_a_status(tmp_path, capsys):
    campaign = ScriptedCampaign(file_of(tmp_path, repeats=1, retries=1), tmp_path / "out")
    campaign.fails = ["1 sd"] * 2
    assert campaign.run() == 6
    again = ScriptedCampaign(tmp_path / "two.toml", tmp_path / "out")
    assert again.run() != 0
    assert again.measured == []


def test_runs_of_several_programs_are_warned_of_and_recorded(tmp_path, capsys):
    class Programs(ScriptedCampaign):
        def __call__(self, plan, place):
            status, place = super().__call__(plan, place)
            document = RunRecord.open(place)
            document.update(found={"opjoule": "0.1.0", "commit": f"commit-{len(self.measured)}"})
            return status, place

    campaign = Programs(file_of(tmp_path, repeats=1), tmp_path / "out")
    assert campaign.run() == 0
    warning = "warning: the program has changed in mid-campaign"
    assert warning in capsys.readouterr().err
    programs = json.loads((tmp_path / "out" / "conditions.json").read_text())["programs"]
    assert programs[-2:] == ["0.1.0 (commit-1)", "0.1.0 (commit-2)"]


def test_a_campaign_without_any_record_says_why_and_has_a_page(tmp_path, capsys):
    class Gone(ScriptedCampaign):
        def __call__(self, plan, place):
            raise DeviceFault(GONE)

    campaign = Gone(file_of(tmp_path, repeats=1), tmp_path / "out")
    assert campaign.run() == DeviceFault.exit_code
    assert GONE in (tmp_path / "out" / "report.html").read_text()


def test_a_run_without_a_record_does_not_take_the_name_of_one(tmp_path, capsys):
    class Broken(ScriptedCampaign):
        def __call__(self, plan, place):
            self.measured.append("")
            if len(self.measured) == 1:
                raise DeviceFault(GONE)
            return super().__call__(plan, place)

    campaign = Broken(file_of(tmp_path, repeats=1, retries=1), tmp_path / "out")
    assert campaign.run() == 0
    runs = read_index(tmp_path / "out")[0]
    assert Counter(run.status for run in runs) == {"complete": 2, "not measured": 1}


def test_a_cell_that_leaves_no_record_is_tried_again_the_next_time(tmp_path, capsys):
    class Broken(ScriptedCampaign):
        def __call__(self, plan, place):
            if plan.board.medium == "sd":
                self.measured.append("sd")
                raise DeviceFault(GONE)
            return super().__call__(plan, place)

    campaign = Broken(file_of(tmp_path, repeats=1, retries=2), tmp_path / "out")
    assert campaign.run() == DeviceFault.exit_code
    assert campaign.measured.count("sd") == 3
    assert GONE in {run.why for run in read_index(tmp_path / "out")[0]}
    again = ScriptedCampaign(tmp_path / "two.toml", tmp_path / "out")
    assert again.run() == 0
    assert again.measured == ["1 sd"]


def test_what_would_fail_the_same_way_again_is_tried_once(tmp_path, capsys):
    class Wrong(ScriptedCampaign):
        def __call__(self, plan, place):
            if plan.board.medium == "sd":
                self.measured.append("sd")
                raise BadInput(GONE)
            return super().__call__(plan, place)

    campaign = Wrong(file_of(tmp_path, repeats=1, retries=2), tmp_path / "out")
    assert campaign.run() == BadInput.exit_code
    assert campaign.measured.count("sd") == 1
    assert capsys.readouterr().err.count(GONE) == 1
    again = ScriptedCampaign(tmp_path / "two.toml", tmp_path / "out")
    assert again.run() == 0 and again.measured == ["1 sd"]


def test_an_index_that_command_lines_share_keeps_the_cells_of_the_others(tmp_path, capsys):
    class Shared(ScriptedCampaign):
        def run(self):
            plans = [plan for plan, _ in _plans(self.file)]
            return run_conditions(plans, self.folder, self, seed=1, json=True, resume=True, shared=True)

    out = tmp_path / "out"
    for constants in ('db = "leveldb"', 'db = "leveldb"', 'db = "leveldb"\nthreads = 2'):
        for medium in ("sd", "emmc"):
            file = file_of(tmp_path, repeats=1, constants=constants)
            file.write_text(file.read_text().replace('["sd", "ssd-usb3"]', f'["{medium}"]'))
            assert Shared(file, out).run() == 0
        assert sorted(run.name for run in read_index(out)[0]) == ["emmc", "sd"]
    assert len(list(out.glob("*/run.json"))) == 4, "another plan of a condition takes its place in the index"


def test_an_axis_or_a_block_added_later_measures_what_is_missing_alone(tmp_path, capsys):
    assert ScriptedCampaign(file_of(tmp_path, repeats=1), tmp_path / "out").run() == 0
    file_of(tmp_path, repeats=2, constants="", axes='db = ["leveldb", "sqlite"]')
    more = ScriptedCampaign(tmp_path / "two.toml", tmp_path / "out")
    assert more.run() == 0
    assert len(more.measured) == 6
    assert {"1 sd sqlite", "2 sd sqlite", "2 sd leveldb"} < set(more.measured)
    assert "1 sd leveldb" not in more.measured


def test_another_setting_is_another_cell(tmp_path, capsys):
    assert ScriptedCampaign(file_of(tmp_path, repeats=1), tmp_path / "out").run() == 0
    file_of(tmp_path, repeats=1, constants='db = "leveldb"\np = ["durability=sync"]')
    other = ScriptedCampaign(tmp_path / "two.toml", tmp_path / "out")
    assert other.run() == 0
    assert len(other.measured) == 2


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 1000))
def test_every_block_holds_every_condition_once(count, blocks, seed):
    order = block_order(count, blocks, seed)
    assert Counter(order) == dict.fromkeys([(b, n) for b in range(1, blocks + 1) for n in range(count)], 1)
    assert [block for block, _ in order] == sorted(block for block, _ in order)


@pytest.mark.parametrize(("length_s", "text"), [(40, "40 s"), (185, "3 min"), (7800, "2 h 10 min")])
def test_times_in_words(length_s, text):
    assert in_words(length_s) == text


def test_the_time_that_remains_is_that_of_the_same_condition(tmp_path):
    plans = [plan for plan, _ in _plans(CampaignFile.read(file_of(tmp_path)))]
    campaign = Campaign.of(plans, tmp_path / "out", seed=1)
    assert campaign.remaining_s is None
    campaign.took_s = {"sd": [10.0], "ssd-usb3": [2.0, 4.0]}
    assert campaign.remaining_s == pytest.approx(2 * 10 + 2 * 3)


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_ready_campaigns_can_be_planned(path, capsys):
    assert main(["campaign", str(path), "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    axes = {axis for cell in plan["cells"] for axis in cell["condition"]}
    assert axes == READY_AXES[path.stem]
    assert len(plan["cells"]) >= 2 * 2 * 5


WRONG = [
    "",
    "axes = 3",
    "[axes]\nstorage = []",
    '[axes]\nstorage = ["sd", "sd"]',
    '[axes]\nstroage = ["sd"]',
    '[axes]\nstorage = ["floppy"]',
    'repeats = 0\n[axes]\nstorage = ["sd"]',
    'repeat = 1\n[axes]\nstorage = ["sd"]',
    '[constants]\nrepeats = 3\n[axes]\nstorage = ["sd"]',
    '[constants]\nstorage = "sd"\n[axes]\nstorage = ["sd"]',
    '[constants]\nrecrods = 3\n[axes]\nstorage = ["sd"]',
    '[constants]\nrecords = 1979-05-27\n[axes]\nstorage = ["sd"]',
    '[axes]\nstorage = ["sd"]\n[[exclude]]\nstorage = "sd"',
    '[axes]\nstorage = ["sd"]\n[[exclude]]\ndb = "sqlite"',
    '[axes]\nstorage = ["sd"]\n[[where]]\nthreads = 4',
    '[axes]\nstorage = ["sd"]\nthreads = ["1", "01"]',
    "[axes\n",
]


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_in_the_file_is_one_line(tmp_path, capsys, text):
    path = tmp_path / "wrong.toml"
    constants = '[constants]\ndb = "leveldb"\ndevice = "rpi4"\nsimulate = true\n'
    path.write_text(text.replace("[constants]\n", constants) if "[constants]" in text else f"{text}\n{constants}")
    with pytest.raises(BadInput) as wrong:
        _plans(CampaignFile.read(path))
    assert "\n" not in str(wrong.value)
    assert len(str(wrong.value)) > 30


MISTAKES = [
    ('db = "leveldb"\noperatoins = 9', "[constants] ", "'operatoins': did you mean 'operations'?"),
    ('db = "leveldb"\noperations = "many"', "the cell storage sd: operations ", "'many'"),
    ('db = "leveldb"\ntarget = 2600', "[constants] ", "'target'"),
    ('db = "leveldb"\nvalue-size = 0', "the cell storage sd: value_size ", "not 0"),
    ("", "db is missing", "[constants]"),
    (
        'db = "leveldb"\n[[where]]\nwhen = { storage = "sd" }\nthread = 4',
        "[[where]] ",
        "'thread': did you mean 'threads'?",
    ),
]
"""Tables of a file -> where it says the mistake is, and what it is."""


def mistake(folder: Path, tables: str) -> str:
    path = folder / "wrong.toml"
    path.write_text(f'axes.storage = ["sd"]\n[constants]\ndevice = "rpi4"\nsimulate = true\n{tables}\n')
    with pytest.raises(BadInput) as wrong:
        CampaignFile.read(path)
    return str(wrong.value)


@pytest.mark.parametrize(("tables", "place", "says"), MISTAKES)
def test_a_mistake_in_the_file_has_the_names_of_the_file(tmp_path, tables, place, says):
    said = mistake(tmp_path, tables)
    assert said.startswith(f"{tmp_path}/wrong.toml: {place}") and says in said and "--operat" not in said


def test_a_campaign_file_is_refused_in_the_words_of_the_golden_screen(tmp_path, golden):
    said = [f"{tables}\n--> {mistake(tmp_path, tables)}" for tables, *_ in MISTAKES]
    golden("refused-campaign-file", "\n\n".join(said), {tmp_path: "DIR"})


def test_a_misspelt_property_is_reported_with_its_cell_before_the_plan(tmp_path, capsys):
    path = tmp_path / "wrong.toml"
    constants = 'device = "rpi4"\nsimulate = true\np = ["leveldb.compresion=none"]'
    path.write_text(f'axes.db = ["leveldb"]\naxes.storage = ["sd"]\n[constants]\n{constants}\n')
    assert main(["campaign", str(path), "--out", str(tmp_path / "out"), "--dry-run"]) == BadInput.exit_code
    said = capsys.readouterr()
    assert "cell db leveldb, storage sd: " in said.err and "leveldb.compresion=none" in said.err
    assert not said.out


def started(argv: list[str], log: Path) -> subprocess.Popen:
    with log.open("a") as out:
        return subprocess.Popen(argv, stdout=out, stderr=out, cwd=ROOT, start_new_session=True)


def until(condition, process: subprocess.Popen) -> None:
    """Waits for what the program writes; its end without it is a failure."""
    while not condition():
        assert process.poll() is None, "it ended first"
        time.sleep(0.02)


@pytest.mark.end_to_end
def test_killed_twice_a_campaign_ends_complete(tmp_path):
    """kill -9 of the whole process group, in the first cell and in the second."""
    argv = [str(ROOT / "host/campaign.py"), str(file_of(tmp_path, repeats=1)), "--out", str(tmp_path / "out")]
    out, log = tmp_path / "out", tmp_path / "log"

    def records() -> int:
        return sum("plan_sha256" in path.read_text() for path in out.glob("*/run.json"))

    for wanted in (1, 3):
        process = started(argv, log)
        until(lambda wanted=wanted: records() == wanted, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process = started(argv, log)
    assert process.wait() == 0, log.read_text()
    runs, simulated = read_index(out)
    assert simulated
    assert Counter(run.status for run in runs) == {"complete": 2, "partial": 2}
    assert {run.name for run in runs if run.status == "complete"} == {"sd", "ssd-usb3"}
    done = [out / run.folder for run in runs if run.status == "complete"]
    assert all((folder / "result.json").exists() for folder in done)
    [meter] = {RunRecord.open(folder).run.sensor.sensor_id for folder in done}
    assert meter.startswith("simulated-"), "cells share their meter, whose errors cancel in a comparison"


def test_the_page_of_a_campaign_is_written_after_each_run_and_goes_on_until_the_last(tmp_path):
    campaign = ScriptedCampaign(file_of(tmp_path, repeats=1), tmp_path / "out")
    pages = []

    def measured(plan, place):
        page = tmp_path / "out/report.html"
        pages.append(page.read_text() if page.exists() else "")
        return campaign(plan, place)

    plans = [plan for plan, _ in _plans(campaign.file)]
    run_conditions(plans, tmp_path / "out", measured, seed=1, json=True, resume=True)
    assert pages[0] == "" and len(pages) > 1 and all('id="written"' in page for page in pages[1:])
    assert 'id="written"' not in (tmp_path / "out/report.html").read_text()
