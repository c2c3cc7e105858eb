"""Several conditions: randomised blocks with one seed, and a comparison whose uncertainty is honest."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from compared_records import run_of
from opjoule.base.errors import BadInput, DeviceFault, Interrupted, NewerSchema, RecordFault
from opjoule.campaign import campaign as conditions
from opjoule.campaign.axes import several
from opjoule.campaign.campaign import block_order, run_conditions
from opjoule.cli import commands
from opjoule.cli.measure.planning import make_plans
from opjoule.cli.report import run_report
from opjoule.results.comparison.conclusion import cells, notes
from opjoule.results.comparison.contrasts import SINGLE_RUNS, Contrast, Question, compare
from opjoule.results.comparison.index import ConditionRun, gather, means_of, read_index
from opjoule.runs.evaluation.wording import YCSB_QUANTITIES as QUANTITIES
from opjoule.runs.record.run_record import RunRecord

COMPARED = QUANTITIES.shown("compared")
UNITS = {"energy_per_operation_j": "J/operation", "power_w": "W", "throughput_per_s": "1/s"}


def result(value: float, u: float | None, **changed) -> dict:
    numbers = {quantity.key: {"value": value, "u": u, "unit": UNITS.get(quantity.key, "B")} for quantity in COMPARED}
    return {"schema": {"name": "result", "version": 3}, "simulated": True, **numbers, **changed}


def compared(results):
    runs = [ConditionRun(1, {"storage": "sd"}, "", run=run_of(numbers, QUANTITIES)) for numbers in results]
    return means_of(runs, "sd")


def test_each_block_holds_every_condition_once():
    order = block_order(3, 20, seed=3)
    for block in range(1, 21):
        assert sorted(which for number, which in order if number == block) == [0, 1, 2]


def test_the_order_depends_on_the_seed_alone_and_differs_between_blocks():
    assert block_order(3, 9, 1) == block_order(3, 9, 1)
    assert block_order(3, 9, 1) != block_order(3, 9, 2)
    assert {which for _, which in block_order(3, 20, 1)[::3]} == {0, 1, 2}


def test_uncertainty_of_a_mean_joins_the_sensors_and_the_repeats():
    same = compared([result(2.0, 0.1), result(2.0, 0.1)])["power_w"]
    assert (same["value"], same["u"], same["runs"]) == (2.0, pytest.approx(0.1), 2)
    spread = compared([result(1.9, 0.1), result(2.1, 0.1)])["power_w"]
    assert spread["u"] == pytest.approx((0.1**2 + (13.97 * 0.1) ** 2) ** 0.5, rel=1e-3)


def test_a_run_without_a_number_costs_the_others_nothing():
    without = result(1.0, 0.1, power_w={"value": None, "u": None, "unit": "W", "reason": "gap too long"})
    assert compared([result(3.0, 0.1), without])["power_w"] == {
        "value": 3.0,
        "u": pytest.approx(0.1),
        "unit": "W",
        "runs": 1,
    }
    assert compared([without])["power_w"]["reason"] == "gap too long"
    assert compared([result(1.0, None)])["power_w"]["u"] is None


@pytest.mark.parametrize("storage", ["sd,sd", "sd,", ",sd"])
def test_a_medium_named_twice_or_not_at_all_is_refused(storage):
    with pytest.raises(BadInput, match=re.escape(storage)):
        several("--storage", storage)


def test_the_values_are_those_between_the_commas():
    assert several("--storage", "sd, emmc") == ["sd", "emmc"]
    assert several("--storage", "sd") == ["sd"]
    assert several("--storage", None) == []


ONE = ["--db", "leveldb", "--device", "odroid-c2", "--simulate", "--rate", "full"]


def plans(repeats: int = 2):
    argv = [*ONE, "--storage", "sd,emmc", "--repeats", str(repeats)]
    return make_plans(commands.parse(argv).options)


def measured(plan, place: Path, *, status: str = "complete", value: float = 1e-3) -> tuple[int, Path]:
    record = RunRecord.create(place, plan.asked, simulated=True)
    (place / "result.json").write_text(json.dumps(result(value, value / 20)))
    record.finish(status)
    (place / "report.html").write_text("")
    return (0 if status == "complete" else 6), place


def test_all_media_are_measured_with_one_seed_in_one_folder(tmp_path, capsys):
    seen = []

    def measure_one(plan, place: Path) -> tuple[int, Path]:
        seen.append((plan.board.medium, plan.study.seed, plan.repeats, plan.asked["storage"]))
        return measured(plan, place)

    assert run_conditions(plans(), tmp_path / "out", measure_one, seed=1, json=True) == 0
    assert sorted(seen) == [("emmc", 1, 1, "emmc")] * 2 + [("sd", 1, 1, "sd")] * 2
    summary = json.loads(capsys.readouterr().out)
    assert summary["simulated"] is True
    assert summary["conditions"]["sd"]["power_w"]["runs"] == 2
    page = (tmp_path / "out" / "report.html").read_text()
    assert "SIMULATED" in page
    assert all(f'href="{run["folder"]}/report.html"' in page for run in summary["runs"])


def test_one_mediums_failure_costs_the_others_nothing(tmp_path, capsys):
    def measure_one(plan, place: Path) -> tuple[int, Path]:
        if plan.board.medium == "sd":
            raise DeviceFault("the card is gone")
        return measured(plan, place)

    assert run_conditions(plans(), tmp_path / "out", measure_one, seed=1, json=False) == DeviceFault.exit_code
    said = capsys.readouterr().out
    assert "0 of 2" in said
    assert "2 of 2" in said
    assert len(re.findall(r"sd\): .*the card is gone", said)) == 2
    assert "1.000 ± 0.050 mJ/operation" in said.replace("\N{NO-BREAK SPACE}", " ")


def test_a_run_that_had_to_be_measured_again_counts_by_its_last_record(tmp_path):
    """--again: the board's state broke a limit in the first."""

    def twice(plan, place: Path) -> tuple[int, Path]:
        measured(plan, place, value=1.0)
        return measured(plan, place.with_name(f"{place.name}-again-1"), value=2.0)

    assert run_conditions(plans(1), tmp_path / "out", twice, seed=1, json=False) == 0
    runs, _ = read_index(tmp_path / "out")
    assert all(run.folder.endswith("-again-1") for run in runs)
    assert {run.run.means["power_w"].value for run in runs} == {2.0}


def test_an_interrupt_keeps_what_was_measured(tmp_path):
    def measure_one(plan, place: Path) -> tuple[int, Path]:
        if place.name.startswith("02"):
            raise KeyboardInterrupt
        return measured(plan, place)

    with pytest.raises(KeyboardInterrupt):
        run_conditions(plans(), tmp_path / "out", measure_one, seed=1, json=False)
    runs, _ = read_index(tmp_path / "out")
    assert [run.status for run in runs] == ["complete", *["not measured"] * 3]
    assert (tmp_path / "out" / "report.html").exists()


def test_a_run_with_faults_is_in_the_table_and_named(tmp_path):
    run_conditions(
        plans(1),
        tmp_path / "out",
        lambda plan, place: measured(plan, place, status="failed"),
        seed=1,
        json=False,
    )
    runs, _ = read_index(tmp_path / "out")
    assert cells(runs)[0][1] == ["1 of 1", "1 of 1"]
    assert sum(line.endswith("failed") for line in notes(runs)) == 2


def test_report_prints_the_table_again_from_the_records(tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    run_conditions(plans(), out, measured, seed=1, json=False)
    first = capsys.readouterr().out
    (out / "report.html").unlink()
    monkeypatch.setattr("opjoule.pages.report.html.write_report", lambda *_: None)
    assert run_report(commands.parse(["report", str(out)]).options) == 0
    assert capsys.readouterr().out == first
    assert (out / "report.html").exists()


def test_every_combination_of_two_axes_is_measured_and_has_its_column(tmp_path, capsys):
    made = []
    for rank, (db, storage) in enumerate(product(("leveldb", "sqlite"), ("sd", "emmc"))):
        argv = ["--db", db, "--device", "odroid-c2", "--simulate", "--storage", storage, "--repeats", "2"]
        [plan] = make_plans(commands.parse(argv).options)
        made.append(conditions.in_condition(plan, {"db": db, "storage": storage}, rank))
    assert [plan.asked["db"] for plan in made] == ["leveldb", "leveldb", "sqlite", "sqlite"]
    assert run_conditions(made, tmp_path / "out", measured, seed=1, json=True) == 0
    summary = json.loads(capsys.readouterr().out)
    assert list(summary["conditions"]) == ["leveldb sd", "leveldb emmc", "sqlite sd", "sqlite emmc"]
    assert {run["folder"][3:] for run in summary["runs"]} >= {"leveldb-sd", "sqlite-emmc"}
    assert summary["runs"][0]["condition"].keys() == {"db", "storage"}


def test_a_plan_is_the_same_whatever_condition_it_is(tmp_path):
    """So that one run of several can be measured once more on its own."""
    (sd, emmc) = make_plans(commands.parse([*ONE, "--storage", "sd,emmc"]).options)
    (alone,) = make_plans(commands.parse([*ONE, "--storage", "sd"]).options)
    assert sd.sha256 == alone.sha256 != emmc.sha256


def test_each_study_has_its_own_quantities_compared(tmp_path):
    """A command that marks nothing has no energy per operation to compare."""
    argv = ["command", *ONE[2:5], "--storage", "sd,emmc", "--repeats", "1", "--", "true"]
    run_conditions(make_plans(commands.parse(argv).options), tmp_path, measured, seed=1, json=False)
    titles = [title for title, _ in cells(read_index(tmp_path)[0])]
    assert titles[1:] == ["energy above idle", "energy in all", "time", "power", "disk read", "disk written"]


@pytest.mark.parametrize("text", ["", "{}", '{"schema": {"version": 9}, "simulated": true}', '{"schema": 1}', "[]"])
def test_a_damaged_index_is_the_records_fault(tmp_path, text):
    (tmp_path / "conditions.json").write_text(text)
    with pytest.raises((RecordFault, NewerSchema), match=r"conditions\.json"):
        read_index(tmp_path)


def media(tmp_path, sd, emmc, shared_u=0.05):
    """A folder of two media with these powers; each run is uncertain by what all of them share, and a little more."""
    values = {"sd": list(sd), "emmc": list(emmc)}
    made = make_plans(commands.parse([*ONE, "--storage", "sd,emmc", "--repeats", str(len(sd))]).options)

    def measure_one(plan, place: Path) -> tuple[int, Path]:
        value = values[plan.board.medium].pop(0)
        record = RunRecord.create(place, plan.asked, simulated=True)
        contents = result(value, 2 * (shared_u**2 + 0.001**2) ** 0.5 * value)
        contents["shared"] = {"power_w": {"one sensor: gain": shared_u * value}}
        (place / "result.json").write_text(json.dumps(contents))
        record.finish("complete")
        return 0, place

    run_conditions(made, tmp_path / "out", measure_one, seed=1, json=False)


def media_contrasts(folder: Path) -> dict[str, Contrast]:
    """The eMMC against the SD card, by the quantity's key."""
    runs, _ = gather([str(folder)])
    question = Question(("storage",), ("power_w", "throughput_per_s"), against="sd")
    return {contrast.quantity.key: contrast for contrast in compare(runs, question).contrasts}


SAME = (1.0, 1.01, 0.99, 1.005, 0.995)


def test_media_are_compared_without_the_gain_that_they_share(tmp_path, capsys):
    media(tmp_path, sd=SAME, emmc=[1.03 * power_w for power_w in SAME])
    contrasts = media_contrasts(tmp_path / "out")
    ratio = contrasts["power_w"].ratio
    assert ratio.value == pytest.approx(1.03)
    assert 0.008 < ratio.u < 0.015, "Welch's t for 8 degrees of freedom, and no gain"
    assert contrasts["power_w"].differs
    assert not contrasts["throughput_per_s"].differs, "nothing says that it shares its uncertainty"
    said = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")
    assert "\nNo difference " in said
    assert "the two differ" in (tmp_path / "out" / "report.html").read_text()


def test_media_that_are_the_same_are_not_told_apart(tmp_path, capsys):
    media(tmp_path, sd=SAME, emmc=[1.003 * power_w for power_w in SAME])
    assert not media_contrasts(tmp_path / "out")["power_w"].differs
    assert "used the least" not in capsys.readouterr().out


def test_one_run_of_each_medium_says_nothing_about_the_media(tmp_path, capsys):
    media(tmp_path, sd=[2.0], emmc=[1.0])
    assert media_contrasts(tmp_path / "out")["power_w"].cannot == SINGLE_RUNS
    said = capsys.readouterr().out
    assert "used the least" not in said and "ONE RUN: 2 of 2 cells" in said


def test_a_medium_without_a_number_is_compared_with_nothing(tmp_path):
    media(tmp_path, sd=[0.0] * 5, emmc=SAME)
    assert media_contrasts(tmp_path / "out")["power_w"].ratio is None


def test_a_condition_by_a_study_s_count_changes_no_option_of_that_name(tmp_path):
    (plan,) = make_plans(commands.parse(ONE).options)
    counted = replace(plan, asked={**plan.asked, "parts": [{"records": [100, 1000]}]})
    emmc_plan = conditions.in_condition(counted, {"storage": "emmc", "records": "100,1000"})
    assert emmc_plan.asked["records"] == plan.asked["records"] and emmc_plan.asked["storage"] == "emmc"
    assert emmc_plan.condition["records"] == "100,1000"


def test_an_error_while_a_run_is_being_interrupted_does_not_let_the_campaign_go_on(tmp_path):
    tried = []

    def on_a_full_disk(_plan, place: Path) -> tuple[int, Path]:
        tried.append(place)
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise OSError(28, "No space left on device", str(place)) from None

    with pytest.raises(Interrupted, match="No space left"):
        run_conditions(plans(), tmp_path / "out", on_a_full_disk, seed=1, json=True)
    assert len(tried) == 1
