"""One cell has one mean and one interval, in the comparison, on the page, in tables and in figures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import stdev

import pytest
from compared_records import run_of
from opjoule.base.units import Quantity
from opjoule.energy.comparison import same_probability
from opjoule.results.comparison.cell import ComparedCell, plotted
from opjoule.results.comparison.contrasts import Question, compare
from opjoule.results.comparison.index import gather, means_of, read_index
from opjoule.runs.evaluation.quantities.definition import Definition, Quantities, Topic, over_repeats
from opjoule.runs.evaluation.wording import YCSB_QUANTITIES as YCSB
from opjoule.runs.record.json_file import plain
from opjoule.runs.record.result import RepeatValues
from plotted_runs import ABOVE_IDLE, make_campaign

J = Definition("a_j", "J", Topic.ENERGY)


def stated_mean(results: list[dict[str, object]], of: Definition) -> dict[str, object]:
    """The mean of one cell, from the result.json of each of its runs."""
    return ComparedCell({}, [run_of(one, Quantities([of])) for one in results]).stated(of)


def result(value: float | None, u: float | None, **more: object) -> dict[str, object]:
    return {"a_j": {"value": value, "u": u, "unit": "J", **more}}


def test_every_output_has_the_interval_of_the_comparison(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "runs", drift_per_run=0.05)
    runs, _ = gather([str(folder)])
    compared = compare(runs, Question(("storage",)))
    cells = {(cell.values["db"], cell.values["storage"]): cell.number(ABOVE_IDLE) for cell in plotted(runs).cells}
    index, _ = read_index(folder)
    for group in compared.groups:
        stated = group.mean(compared.quantities[0])
        drawn = cells[group.runs[0].words("db"), group.runs[0].words("storage")]
        listed = means_of(index, f"{group.stratum['db']} {group.name}")[ABOVE_IDLE]
        assert stated.u == drawn.u == listed["u"] == group.side(compared.quantities[0]).u
        assert stated.value == drawn.value == listed["value"]


def test_one_run_of_several_repeats_has_the_interval_that_its_record_states() -> None:
    repeats = [Quantity.from_standard(value, 0.02, "J") for value in (1.0, 1.1, 1.3)]
    stated = over_repeats(repeats)
    assert stated.u is not None
    by_repeat = {"a_j": plain(RepeatValues(3, "J", tuple(float(repeat) for repeat in repeats), None))}
    mean = stated_mean([{**result(stated.value, stated.u), "by_repeat": by_repeat}], J)
    assert mean["u"] == pytest.approx(stated.u)


def test_the_spread_is_widened_by_students_t_and_the_rest_is_not() -> None:
    mean = stated_mean([result(1.9, 0.2), result(2.1, 0.2)], J)
    assert (mean["value"], mean["runs"]) == (2.0, 2)
    assert mean["u"] == pytest.approx(math.hypot(0.2, 13.97 * 0.1), rel=1e-3)
    assert Quantity.mean(
        [Quantity.from_standard(1.9, 0.1, "J"), Quantity.from_standard(2.1, 0.1, "J")]
    ).u == pytest.approx(mean["u"])


def test_a_lower_bound_is_no_part_of_a_mean_as_long_as_another_run_has_an_interval() -> None:
    bound = result(9.0, None, reason="a lower bound")
    assert stated_mean([result(1.0, 0.1), bound], J) == {"value": 1.0, "u": 0.1, "unit": "J", "runs": 1}
    alone = stated_mean([bound], J)
    assert (alone["value"], alone["u"], alone["reason"]) == (9.0, None, "a lower bound")


def test_a_count_has_the_spread_of_its_runs_and_of_one_run_none() -> None:
    counted = Definition("disk_read_bytes", "B", Topic.USAGE)

    def of(value: float) -> dict[str, object]:
        return {"disk_read_bytes": {"value": value, "u": None, "unit": "B", "reason": "counter of the board"}}

    assert stated_mean([of(10.0)], counted)["reason"] == "counter of the board"
    assert stated_mean([of(10.0), of(12.0)], counted)["u"] == pytest.approx(13.97)


def test_a_number_that_no_run_has_is_missing_with_its_reason() -> None:
    assert stated_mean([json.loads('{"a_j": {"value": null, "u": null, "unit": "J", "reason": "gap"}}')], J) == {
        "value": None,
        "u": None,
        "unit": "J",
        "reason": "gap",
    }


def test_a_sum_of_counts_has_the_spread_of_a_sum() -> None:
    """Lost samples of five repeats; Welch's test of the same counts gives 0.47."""
    sides = []
    for counts in ([0.0, 1.0, 2.0, 0.0, 1.0], [1.0, 2.0, 0.0, 1.0, 2.0]):
        repeats = {"lost_samples": plain(RepeatValues(5, "1", tuple(counts), stdev(counts)))}
        number = {"value": sum(counts), "u": 0.0, "unit": "1"}
        sides.append(run_of({"lost_samples": number, "by_repeat": repeats}, YCSB).means["lost_samples"])
    assert same_probability(*sides) == pytest.approx(0.47, abs=0.01)
