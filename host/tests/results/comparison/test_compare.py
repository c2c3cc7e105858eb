"""compare.py: ratios that are right as often as they say, what is not comparable refused, verdicts with a status."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from compared_records import KEY, made, several
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.base.coverage import T_95
from opjoule.base.errors import WORSE_EXIT, BadInput
from opjoule.base.units import Quantity
from opjoule.cli.commands import main
from opjoule.energy.comparison import holm, same_probability
from opjoule.energy.repeats import student_probability
from opjoule.results.comparison.cell import plotted
from opjoule.results.comparison.index import ConditionRun, gather, write_index

BAD_INPUT, NO_ANSWER = 2, 5


def said(capsys, argv: list, status: int = 0) -> str:
    """What compare.py prints, with this exit status; of a mistake, its one line."""
    capsys.readouterr()
    try:
        exit_code = main(["compare", *map(str, argv)])
    except SystemExit as ended:
        exit_code = ended.code
    printed = capsys.readouterr()
    assert exit_code == status, printed
    if status in (BAD_INPUT, NO_ANSWER):
        [line] = printed.err.splitlines()
        assert line.startswith("compare.py: ")
        return line
    return printed.out.replace("\N{NO-BREAK SPACE}", " ")


def test_students_probability_is_that_of_the_guides_table():
    for freedom, t in T_95.items():
        assert student_probability(t, freedom) == pytest.approx(0.0455, rel=0.012)
    assert student_probability(1.0, 1) == pytest.approx(0.5)  # the quartiles of Cauchy's distribution
    assert student_probability(2.0, math.inf) == pytest.approx(0.0455, rel=1e-3)


@settings(deadline=None)
@given(st.floats(0.0, 30.0), st.floats(0.0, 3.0), st.floats(1.0, 1e6))
def test_students_probability_falls_with_distance_and_stays_a_probability(t, increase, freedom):
    assert 0.0 <= student_probability(t + increase, freedom) <= student_probability(t, freedom) + 1e-12 <= 1.0 + 1e-12


def test_holms_rule_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0), max_size=12))
def test_holms_rule_never_makes_a_probability_smaller_nor_changes_an_order(alone):
    together = holm(alone)
    assert all(probability <= adjusted <= 1.0 for probability, adjusted in zip(alone, together, strict=True))
    ranked = [adjusted for _, adjusted in sorted(zip(alone, together, strict=True))]
    assert ranked == sorted(ranked)


def test_five_alike_are_found_different_no_more_often_than_stated():
    """Ten comparisons at a time: without Holm's rule a false one would be found in about 3 of 10."""
    draw, false, alone = np.random.default_rng(5), 0, 0
    for _ in range(400):
        sides = [
            Quantity.mean([Quantity.from_standard(float(value), 0.0, "J") for value in draw.normal(1.0, 0.1, 5)])
            for _ in range(5)
        ]
        pairs = [(a, b) for number, a in enumerate(sides) for b in sides[:number]]
        probabilities = [same_probability(a, b) for a, b in pairs]
        alone += min(probabilities) < 0.0455
        false += min(holm(probabilities)) < 0.0455
    assert false / 400 < 0.07
    assert alone / 400 > 0.15


def test_one_of_a_pair_measured_once_allows_no_conclusion(tmp_path, capsys):
    several(tmp_path, "a", [1.0, 1.01, 0.99])
    several(tmp_path, "b", [3.0], storage="emmc")
    text = said(capsys, [tmp_path, "--by", "storage"])
    assert "ONE RUN: 1 of 2 cells" in text
    told = json.loads(said(capsys, [tmp_path, "--by", "storage", "--json"]))
    assert [(of["p"], of["p_holm"]) for of in told["contrasts"]] == [(None, None)] and told["undecided"] == []
    assert "p <" not in text.split("Intervals")[0] and "p =" not in text


def test_single_runs_are_not_counted_among_what_was_judged(tmp_path, capsys):
    several(tmp_path, "a", [1.0])
    several(tmp_path, "b", [3.0], storage="emmc")
    assert "Holm" not in said(capsys, [tmp_path, "--by", "storage"])


def test_the_greater_is_named_with_its_ratio_and_interval(tmp_path, capsys):
    several(tmp_path, "a", [1.0, 1.01, 0.99, 1.0])
    several(tmp_path, "b", [2.0, 2.02, 1.98, 2.0], storage="emmc")
    comparison = json.loads(said(capsys, [tmp_path, "--by", "storage", "--json"]))
    [contrast] = comparison["contrasts"]
    assert (contrast["a"], contrast["b"], contrast["differs"]) == ("emmc", "sd", True)
    assert contrast["ratio"] == pytest.approx(2.0)
    # by hand: standard errors of 0.00408 and 0.00816, relative 0.00408 each; Welch and Satterthwaite give 6 degrees
    # of freedom for two alike, t = 2.52
    half = (contrast["ratio_limits"][1] - contrast["ratio_limits"][0]) / 2
    assert half == pytest.approx(2 * 2.52 * math.hypot(0.00408, 0.00408), rel=0.01)
    assert comparison["groups"][0]["runs"]


def test_what_two_runs_of_one_sensor_share_is_not_in_their_ratio(tmp_path):
    def of(name: str, value: float, storage: str):
        shared = {"headline_budget": {"meter@0x40: shunt": 0.01 * value}}
        place = made(tmp_path / name, value, u=0.02 * value, storage=storage, changes={"shared": shared})
        return gather([str(place)])[0][0]

    quantity = of("a", 1.0, "sd").quantities.headline
    a, b = (one.side(quantity) for one in (of("b", 2.0, "emmc"), of("c", 1.0, "sd")))
    assert a.shared == {"meter@0x40: shunt": 0.02}
    assert a.own_u == pytest.approx(0.0, abs=1e-9)
    assert b.standard_u == pytest.approx(0.01)


def test_a_count_of_one_run_is_exact_and_its_uncertainty_is_how_much_runs_differ(tmp_path):
    def run(name: str, value: float):
        count = {"p99": {"value": value, "u": None, "unit": "s", "reason": "a property of the distribution"}}
        return gather([str(made(tmp_path / name, 1.0, changes={"latency_s": count}))])[0][0]

    quantity = run("a", 1e-3).quantities.get("latency_s.p99")
    sides = [run(name, value).side(quantity) for name, value in (("b", 1e-3), ("c", 3e-3))]
    assert [side.standard_u for side in sides] == [0.0, 0.0]
    assert Quantity.mean(sides).spread_u == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"simulated": True}, "simulated"),
        ({"durability": "sync"}, "durability sync / async"),
        ({"commit": "def"}, "opjoule: commit def / abc"),
        ({"records": 2000}, "records"),
        ({"state": ["memory_mb=1024"]}, "memory_mb 1024 / none"),
        ({"device": "rpi3"}, "device rpi3 / rpi4"),
        ({"reset": {"reset": "copy"}}, "reset copy / load"),
        ({"blocks": {"target": "2000"}}, "rate: target 2000 / none"),
        ({"blocks": {"mixblock.length_s": "0.1"}}, "workload: mixblock.length_s 0.1 / none"),
    ],
)
def test_what_is_not_comparable_is_refused_and_said_when_it_is_allowed(tmp_path, capsys, changed, names):
    several(tmp_path, "a", [1.0, 1.01])
    several(tmp_path, "b", [2.0, 2.01], storage="emmc", **changed)
    line = said(capsys, [tmp_path, "--by", "storage"], BAD_INPUT)
    assert "not comparable" in line and names in line
    group = line.split("--although ")[1]
    text = said(capsys, [tmp_path, "--by", "storage", "--although", group])
    assert names in text
    assert ("SIMULATED" in text) is ("simulated" in changed)


def test_parts_of_the_warm_up_s_rate_are_one_rate_though_the_warm_ups_differ_by_chance(tmp_path, capsys):
    half = {"reset": {"rate": 0.5}}
    several(tmp_path, "a", [1.0, 1.01], blocks={"target": "7000"}, **half)
    several(tmp_path, "b", [2.0, 2.01], storage="emmc", blocks={"target": "7400"}, **half)
    assert "not comparable" not in said(capsys, [tmp_path, "--by", "storage"])


UPDATE = "by_operation.update.all_told_energy_per_operation_j"
READ = "by_operation.read.all_told_energy_per_operation_j"


def of_kinds(folder: Path, update: dict, sd_read: dict) -> Path:
    """Runs on two media: an update costs 2 and 1 times `update` all told, a read on the SD card `sd_read`."""
    for storage, factor in (("sd", 2.0), ("emmc", 1.0)):
        told = {"value": factor * update["value"], "u": update["u"] and factor * update["u"], "unit": "J"}
        read = sd_read if storage == "sd" else {"value": 1e-5, "u": 1e-6, "unit": "J"}
        kinds = {"read": read, "update": {**update, **told}}
        entries = {kind: {"all_told_energy_per_operation_j": number} for kind, number in kinds.items()}
        values = [factor, 1.01 * factor, 1.02 * factor]
        several(folder, storage, values, storage=storage, changes={"by_operation": entries})
    return folder


def test_kinds_of_operation_are_compared_by_what_they_cost_all_told(tmp_path, capsys):
    of_kinds(tmp_path, {"value": 1e-4, "u": 1e-6}, {"value": 2e-5, "u": 1e-6, "unit": "J"})
    text = said(capsys, [tmp_path, "--by", "storage", "--metric", UPDATE])
    assert "The eMMC" in text and "100.0 ± 1.0 µJ" in text and "the SD card used 2.00" in text
    line = said(capsys, [tmp_path, "--by", "storage", "--metric", "by_operation.update.colour"], BAD_INPUT)
    assert "by_operation.update.colour" in line


def test_what_kinds_cost_all_told_is_beside_both_costs_and_changes_no_p(tmp_path, capsys):
    of_kinds(tmp_path, {"value": 1e-4, "u": 1e-6}, {"value": 2e-5, "u": 2e-7, "unit": "J"})
    text = said(capsys, [tmp_path, "--by", "storage", "--csv", tmp_path / "c.csv"])
    _, means, ratios = text.split("\nall told, ")
    assert re.search(r"sd +20\.00 ± 0\.20 µJ +200\.0 ± 2\.0 µJ +3\b", means)
    # by hand: three runs without spread share 0.5 % of standard uncertainty a side
    low, high = 2 * (1 - 0.01 * math.sqrt(2)), 2 * (1 + 0.01 * math.sqrt(2))
    assert re.search(r"emmc / sd +0\.5", ratios) and max(map(len, ratios.splitlines()[:3])) <= 80
    told = json.loads(said(capsys, [tmp_path, "--by", "storage", "--json"]))
    [alone] = json.loads(said(capsys, [tmp_path, "--by", "storage", "--metric", KEY, "--json"]))["contrasts"]
    judged, read, update = told["contrasts"]
    assert [judged[name] for name in ("p", "p_holm", "ratio")] == [alone[name] for name in ("p", "p_holm", "ratio")]
    assert (read["metric"], update["metric"]) == (READ, UPDATE)
    assert 1 / update["ratio"] == pytest.approx(2.0)
    assert [1 / end for end in update["ratio_limits"][::-1]] == pytest.approx([low, high], rel=1e-3)
    assert update["p"] is update["p_holm"] is None and "beside" in update["not_judged"]
    assert "SD card over the eMMC" in update["sentence"] and "2.0" in update["sentence"]
    groups = {(of["name"], of["metric"]): of["value"] for of in told["groups"]}
    assert groups[("sd", UPDATE)] == pytest.approx(2e-4) and groups[("emmc", READ)] == pytest.approx(1e-5)
    rows = {row["metric"]: row for row in csv.DictReader((tmp_path / "c.csv").open())}
    assert float(rows[UPDATE]["ratio"]) == pytest.approx(0.5) and rows[UPDATE]["p_holm"] == ""


def test_what_a_kind_costs_all_told_has_no_ratio_without_intervals_and_a_note_says_why(tmp_path, capsys):
    lacking = {"value": None, "u": None, "unit": "J", "reason": "too few windows"}
    of_kinds(tmp_path, {"value": 1e-4, "u": None, "reason": "a rule, not a measurement"}, lacking)
    text = said(capsys, [tmp_path, "--by", "storage"])
    assert "all told, ratios" not in text
    assert re.search(r"sd +not identifiable +200\.0 µJ", text)
    notes = json.loads(said(capsys, [tmp_path, "--by", "storage", "--json"]))["notes"]
    read, update = (next(note for note in notes if kind in note) for kind in ("per read", "per update"))
    assert "sd (3 of 3 runs)" in read and "emmc" not in read and read.endswith(lacking["reason"])
    assert "emmc (3 of 3 runs) and sd (3 of 3 runs)" in update and update.endswith("a rule, not a measurement")
    assert read in text and update in text


def test_lower_bounds_are_not_compared(tmp_path, capsys):
    for medium, value in (("sd", 1e-3), ("emmc", 2e-3)):
        least = {
            "value": value,
            "u": None,
            "unit": "J/B",
            "reason": "at least this: 3 samples",
            "cause": "at least this",
        }
        several(tmp_path, medium, [1.0, 1.01, 0.99], storage=medium, changes={"energy_per_byte_j": least})
    line = said(capsys, [tmp_path, "--by", "storage", "--metric", "energy_per_byte_j"], NO_ANSWER)
    assert "nothing to compare" in line and "at least this" in line


def test_records_that_do_not_state_costs_all_told_have_no_rows_of_them(tmp_path, capsys):
    kinds = {"by_operation": {"read": {"count": 5}, "update": {"count": 5}}}
    for storage in ("sd", "emmc"):
        several(tmp_path, storage, [1.0, 1.01], storage=storage, changes=kinds)
    assert "all told" not in said(capsys, [tmp_path, "--by", "storage"]).lower()


def test_repeats_with_seeds_of_their_own_are_comparable(tmp_path, capsys):
    several(tmp_path, "a", [1.0, 1.01])
    several(tmp_path, "b", [2.0, 2.01], storage="emmc", seed=7)
    assert "the eMMC used 1.995 times" in said(capsys, [tmp_path, "--by", "storage"])


def test_runs_of_one_value_must_agree_too(tmp_path, capsys):
    several(tmp_path, "a", [1.0], records=500)
    several(tmp_path, "b", [1.0])
    several(tmp_path, "c", [2.0, 2.1], storage="emmc")
    assert "records" in said(capsys, [tmp_path, "--by", "storage"], BAD_INPUT)


def campaign(folder: Path) -> Path:
    """An index of two databases on two media, three runs each; LevelDB costs twice as much on sd, SQLite the same."""
    draw, runs = np.random.default_rng(1), []
    for db, storage, value in (
        *(("leveldb", "sd", 2.0), ("leveldb", "emmc", 1.0)),
        *(("sqlite", "sd", 3.0), ("sqlite", "emmc", 3.0)),
    ):
        for block in (1, 2, 3):
            name = f"{block}-{db}-{storage}"
            threads = 1 if db == "sqlite" else 4
            made(folder / name, value + draw.normal(0, 0.02), db=db, storage=storage, records=100 * threads)
            runs.append(ConditionRun(block, {"db": db, "storage": storage}, name))
    write_index(folder, runs, simulated=False)
    return folder


def test_a_comparison_is_worded_as_in_the_golden_screen(tmp_path, capsys, golden):
    golden("comparison", said(capsys, [campaign(tmp_path), "--by", "storage"]))


def test_other_axes_of_a_campaign_are_kept_apart(tmp_path, capsys):
    text = said(capsys, [campaign(tmp_path), "--by", "storage"])
    assert re.search(r"leveldb +emmc / sd +0\.\d+ \(0\.\d+ to 0\.\d+\) +0\.0\d+ *\n", text)
    assert text.count("On LevelDB, ") == 1, "a sentence does not repeat a row of the table"
    assert "Holm" in text and "told apart" not in text and KEY not in text


def test_what_would_count_alone_and_does_not_among_all_is_undecided(tmp_path, capsys):
    for name, values in (("sd", [1.0, 1.01, 1.02]), ("emmc", [1.0, 1.04, 1.08]), ("ssd", [1.05, 1.06, 1.07])):
        several(tmp_path, name, values, storage=name)
    assert "ssd used 1.050 times as much" in said(capsys, [tmp_path, "--by", "storage"])
    several(tmp_path, "nvme", [1.03, 1.04, 1.05], storage="nvme")
    several(tmp_path, "disk", [1.04, 1.05, 1.06], storage="disk")
    text = said(capsys, [tmp_path, "--by", "storage"])
    forecast = re.search(r"(\d+) more runs?\b", text)
    undecided = json.loads(said(capsys, [tmp_path, "--by", "storage", "--json"]))["undecided"]
    assert {of["against"] for of in undecided} == {"sd"} and "nvme" in {of["name"] for of in undecided}
    assert max(1, *(of["more"] for of in undecided)) == int(forecast[1])


def test_a_p_value_is_holms_in_every_output_unless_there_is_one_comparison(tmp_path, capsys):
    several(tmp_path, "a", [1.0, 1.01, 0.99])
    several(tmp_path, "b", [2.0, 2.02, 1.98], storage="emmc")
    one = said(capsys, [tmp_path, "--by", "storage"])
    assert "Holm" not in one and "p < 0.0455" in one
    several(tmp_path, "c", [3.0, 3.02, 2.98], storage="nvme")
    files = tmp_path / "x.csv", tmp_path / "x.html"
    text = said(capsys, [tmp_path, "--by", "storage", "--csv", files[0], "--html", files[1]])
    assert "p (Holm) < 0.0455" in text
    assert re.findall(r"p (?:=|<) ", text) == [] and text.count("p (Holm) < 0.0001") == 2
    rows = list(csv.DictReader(files[0].read_text().splitlines()))
    assert all(float(row["p_holm"]) >= float(row["p"]) for row in rows)
    assert ">p (Holm)</th>" in files[1].read_text()
    [contrast, *_] = json.loads(said(capsys, [tmp_path, "--by", "storage", "--json"]))["contrasts"]
    assert contrast["p_holm"] > contrast["p"]


def test_a_change_is_judged_by_both_costs(tmp_path, capsys):
    """Less energy above idle, at twice the time: worse on a board that is on only for this work."""

    def of(name: str, value: float, time: float):
        numbers = {"energy_per_operation_j": value + 3.0 * time, "throughput_per_s": 1.0 / time}
        changes = {
            key: {"value": of, "u": 0.0, "unit": "J/operation" if "_j" in key else "1/s"} for key, of in numbers.items()
        }
        return str(made(tmp_path / name, value, changes=changes))

    spread = (1.0, 1.01, 0.99)
    old = [of(f"old{number}", 1.0 * factor, 1.0 * factor) for number, factor in enumerate(spread)]
    new = [of(f"new{number}", 0.5 * factor, 2.0 * factor) for number, factor in enumerate(spread)]
    text = said(capsys, ["--before", *old, "--after", *new], WORSE_EXIT)
    above_idle, in_all, *_ = [line for line in text.splitlines() if "the change the" in line]
    assert "was 0.5" in above_idle and "was 1.6" in in_all
    assert re.search(r"before +1\.0\d* ± .* 4\.0\d* ± .* 1\.0\d* ± .*/s", text), "the time is beside them"
    argv = ["--before", *old, "--after", *new, "--metric", KEY]
    assert "verdict: better" in said(capsys, argv)


def test_what_a_campaign_declares_beside_its_axis_is_reported_and_not_refused(tmp_path, capsys):
    text = said(capsys, [campaign(tmp_path), "--by", "db", "--against", "sqlite"])
    assert "recordcount 400 / 100" in text


def test_several_axes_must_be_chosen_from(tmp_path, capsys):
    assert "db, storage" in said(capsys, [campaign(tmp_path)], BAD_INPUT)


def test_a_change_for_the_worse_has_a_status_of_its_own(tmp_path, capsys):
    old = several(tmp_path, "old", [1.0, 1.01, 0.99])
    new = several(tmp_path, "new", [1.1, 1.11, 1.09], commit="def")
    text = said(capsys, ["--before", *old, "--after", *new], WORSE_EXIT)
    assert "verdict: worse" in text and "commit abc / def" in text
    assert "verdict: better" in said(capsys, ["--before", *new, "--after", *old])
    tolerant = said(capsys, ["--before", *old, "--after", *new, "--tolerance", "20%"])
    assert "verdict: " in tolerant and "worse" not in tolerant.split("verdict: ")[1] and "20 %" in tolerant


@pytest.mark.parametrize(("before", "after"), [(1.0, 1.0), (1.0, 1.04), (1.04, 1.0), (-0.1005, -0.1), (-0.1, -0.1005)])
def test_what_lies_within_the_tolerance_is_no_change(tmp_path, capsys, before, after):
    """Equal figures, and those below zero, whose limit lies on the other side."""
    old, new = (
        several(tmp_path, name, [value + 1e-4 * more for more in (0, 1, -1)], commit=name)
        for name, value in (("old", before), ("new", after))
    )
    text = said(capsys, ["--before", *old, "--after", *new, "--tolerance", "5%", "--metric", KEY])
    assert "No difference of more than 5 %" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert not {"better", "worse"} & set(text.split("verdict: ")[1].split())


def test_two_versions_of_an_engine_are_told_apart_in_every_comparison(tmp_path, capsys):
    """As of one measurement on Debian 12 and one on Debian 13."""
    old = several(tmp_path, "12", [1.0, 1.01, 0.99], db="rocksdb", version="7.8.3")
    new = several(tmp_path, "13", [1.0, 1.01, 0.99], db="rocksdb", version="9.10.0", storage="ssd")
    differs = "database rocksdb 7.8.3 / rocksdb 9.10.0"
    assert differs in said(capsys, [*old, *new, "--by", "storage"], BAD_INPUT)
    text = said(capsys, [*old, *new, "--by", "storage", "--although", "database"])
    assert differs in text
    newer = several(tmp_path, "13-sd", [1.0, 1.01, 0.99], db="rocksdb", version="9.10.0")
    assert f"the change: {differs}" in said(capsys, ["--before", *old, "--after", *newer])
    other = several(tmp_path, "other", [2.0, 2.01, 1.99], db="leveldb")
    assert differs not in said(capsys, [*old, *other, "--by", "db"]), "a version goes with its database"
    assert differs in said(capsys, [*old, *newer, *other, "--by", "db"], BAD_INPUT), "two versions of one"


def test_more_throughput_is_better(tmp_path, capsys):
    def of(name: str, values):
        return [
            str(
                made(
                    tmp_path / f"{name}{number}",
                    1.0,
                    changes={"throughput_per_s": {"value": value, "u": 0.0, "unit": "1/s"}},
                )
            )
            for number, value in enumerate(values)
        ]

    old, new = of("old", [100.0, 101.0, 99.0]), of("new", [200.0, 202.0, 198.0])
    argv = ["--metric", "throughput_per_s"]
    assert "better" in said(capsys, ["--before", *old, "--after", *new, *argv])
    assert "worse" in said(capsys, ["--before", *new, "--after", *old, *argv], WORSE_EXIT)


def test_other_settings_before_than_after_are_no_change_to_judge(tmp_path, capsys):
    old = several(tmp_path, "old", [1.0, 1.01, 0.99])
    new = several(tmp_path, "new", [1.1, 1.11, 1.09], storage="emmc")
    assert "storage sd / emmc" in said(capsys, ["--before", *old, "--after", *new], BAD_INPUT)


def test_no_verdict_on_single_runs(tmp_path, capsys):
    old, new = several(tmp_path, "old", [1.0]), several(tmp_path, "new", [1.1])
    assert "no verdict" in said(capsys, ["--before", *old, "--after", *new], NO_ANSWER)


def test_a_lower_bound_is_no_figure_to_compare(tmp_path, capsys):
    """Samples at the end of the meter's range: the uncertainty is not stated, and the true value may be larger."""
    several(tmp_path, "a", [1.0, 1.1])
    several(tmp_path, "b", [2.0, 2.1], storage="emmc")
    bound = {"value": 1.0, "u": None, "unit": "J/operation", "reason": "a lower bound"}
    made(tmp_path / "c", 1.0, changes={KEY: bound})
    text = said(capsys, [tmp_path, "--by", "storage"])
    assert "is left out" in text and "a lower bound" in text


def test_csv_holds_every_comparison(tmp_path, capsys):
    said(capsys, [campaign(tmp_path / "runs"), "--by", "storage", "--csv", tmp_path / "out.csv"])
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines(keepends=True)))
    assert [row["db"] for row in rows] == ["leveldb", "sqlite"]
    assert (rows[0]["a"], rows[0]["b"]) == (rows[1]["a"], rows[1]["b"]) == ("emmc", "sd"), "one order everywhere"
    assert float(rows[0]["ratio"]) == pytest.approx(0.5, rel=0.05)
    assert [row["differs"] for row in rows] == ["true", "false"]


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["no/such"],
        ["", "--by", "storage"],
        ["/etc/hostname", "--by", "storage"],
        ["[red]*", "--by", "db"],
        ["--before", "x"],
        ["HERE", "--by", "strage"],
        ["HERE", "--by", "storage", "--although", "evrything"],
        ["HERE", "--by", "storage", "--metric", "joules"],
        ["HERE", "--by", "storage", "--against", "floppy"],
        ["HERE", "--by", "db"],
        ["HERE", "--by", "storage", "--tolerance", "5%"],
    ],
)
def test_a_mistake_is_one_line(tmp_path, capsys, argv, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the pattern would fit the folders of a checkout
    several(tmp_path, "a", [1.0, 1.1])
    several(tmp_path, "b", [2.0, 2.1], storage="emmc")
    assert len(said(capsys, [tmp_path if word == "HERE" else word for word in argv], BAD_INPUT)) > 30


def test_a_pattern_stands_for_its_records_each_once(tmp_path):
    several(tmp_path, "a", [1.0, 1.1])
    runs, _ = gather([f"{tmp_path}/a-*", str(tmp_path), str(tmp_path / "a-0")])
    assert len(runs) == 2
    with pytest.raises(BadInput, match="no such"):
        gather([f"{tmp_path}/z-*"])


def test_a_folder_holds_its_records_at_any_depth_and_a_changed_result_is_left_out(tmp_path):
    several(tmp_path / "deep" / "deeper", "a", [1.0, 1.1])
    (tmp_path / "deep/deeper/a-1/result.json").write_text("{}")
    runs, [line] = gather([str(tmp_path)])
    assert [run.place.name for run in runs] == ["a-0"] and "a-1" in line and "changed" in line


def test_every_axis_of_a_campaign_keeps_figures_bars_apart_in_the_order_asked_for(tmp_path):
    """Also one that no group of settings is named after."""
    entries = []
    for number, (journal, value) in enumerate((("on", 2.0), ("off", 1.0), ("on", 2.1), ("off", 1.1))):
        made(tmp_path / f"{number}", value)
        entries.append(ConditionRun(1, {"journal": journal}, f"{number}", rank=number % 2))
    write_index(tmp_path, entries, simulated=False)
    figure = plotted(*gather([str(tmp_path)]))
    assert figure.series == ["on", "off"] and [len(cell.runs) for cell in figure.cells] == [2, 2]
    assert figure.cells[0].number(KEY).value == pytest.approx(2.05)


def on_rigs(folder: Path, differ: float, blocks_of=lambda medium, number: number) -> None:
    """A campaign of two media in eight blocks, each on a rig of its own; rigs differ by far more than media do."""
    chance = np.random.default_rng(3)
    runs = []
    for number in range(1, 9):
        rig = chance.uniform(1.0, 2.0)
        for medium, factor in (("sd", 1.0), ("emmc", 1.0 + differ)):
            block = blocks_of(medium, number)
            value = rig * factor * chance.normal(1.0, 0.002)
            place = made(folder / f"{block:02}-{medium}", value, storage=medium, block=block, rig_name=f"rig-{block}")
            runs.append(ConditionRun(block, {"storage": medium}, place.name))
    write_index(folder, runs, simulated=False)


def test_what_differs_between_rigs_is_in_no_comparison(tmp_path, capsys):
    """Media 3 % apart on rigs that are up to a factor of two apart: found, with an interval of the blocks."""
    on_rigs(tmp_path, 0.03)
    [contrast] = json.loads(said(capsys, [tmp_path, "--by", "storage", "--json"]))["contrasts"]
    assert contrast["ratio"] == pytest.approx(1.03, abs=0.005)
    assert 1.02 < contrast["ratio_limits"][0] < contrast["ratio_limits"][1] < 1.04
    assert contrast["differs"]


def test_the_same_on_several_rigs_is_not_told_apart(tmp_path, capsys):
    on_rigs(tmp_path, 0.0)
    [contrast] = json.loads(said(capsys, [tmp_path, "--by", "storage", "--json"]))["contrasts"]
    assert not contrast["differs"]


def test_what_was_never_on_one_rig_is_refused_unless_allowed(tmp_path, capsys):
    on_rigs(tmp_path, 0.03, lambda medium, number: number + 8 * (medium == "emmc"))
    said(capsys, [tmp_path, "--by", "storage"], NO_ANSWER)
    assert "storage" in said(capsys, [tmp_path, "--by", "storage", "--although", "rig", "--json"])
    assert "rig-1" in said(capsys, [tmp_path, "--by", "rig", "--although", "storage", "--csv", tmp_path / "x"])
