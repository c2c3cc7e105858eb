"""A paper's conclusions held against records: agreed, not agreed, or why neither is said."""

from __future__ import annotations

import itertools
import json

import pytest
from opjoule.cli.commands import main
from opjoule.comparison.index import gather
from opjoule.comparison.study.verdicts import (
    AGREED,
    NOT_AGREED,
    NOT_MEASURED,
    OPEN,
    SINGLE,
    TOO_SHORT,
    Sample,
    name_of,
    verdicts,
)
from opjoule.energy.comparison import Side
from opjoule.errors import BadInput
from opjoule.studies.definition import MISSING, PaperConclusion, conclusions_of, counterparts_of
from opjoule.studies.folder import find_study, known_studies
from study_records import make


def conclusion(paper: float = 2.0, **more) -> PaperConclusion:
    return PaperConclusion(
        "a over b", "figure 1", "bandwidth", {"system": "a"}, {"system": "b"}, paper, **more
    )


def samples(system: str, *values: float, rows: str = "10", u: float = 0.01, **more) -> list[Sample]:
    cell = {"system": system, "rows": rows}
    records = [
        {"bandwidth": Side(value, u * value, ""), "energy_per_operation_j": Side(1 / value, 0.0, "")}
        for value in values
    ]
    return [
        Sample(cell, more.get("phase", ""), sides, True, more.get("too_short", False)) for sides in records
    ]


A, B = (10.0, 10.1, 9.9), (4.0, 4.1, 3.9)


@pytest.mark.parametrize(
    ("of", "one", "other", "word"),
    [
        (conclusion(2.0), A, B, AGREED),
        (conclusion(0.5), A, B, NOT_AGREED),
        (conclusion(2.0), A, (10.0, 11.0, 9.0), OPEN),
        (conclusion(2.0), A[:1], B, SINGLE),
        (conclusion(2.0), A, (), NOT_MEASURED),
        (conclusion(1.0, about=0.1), A, (10.0, 10.1, 9.9), AGREED),
        (conclusion(1.0, about=0.1), A, B, NOT_AGREED),
        (conclusion(1.0, about=0.1), A, (10.0, 13.0, 7.0), OPEN),
    ],
)
def test_the_word_follows_from_the_papers_ratio_and_the_interval_of_the_records(of, one, other, word):
    (verdict,) = verdicts([of], [*samples("a", *one), *samples("b", *other)])
    assert verdict.word == word


def test_a_ratio_that_agrees_may_hold_the_papers_factor_or_not_and_has_the_joules_beside_it():
    near, far = verdicts([conclusion(2.5), conclusion(50.0)], [*samples("a", *A), *samples("b", *B)])
    assert near.word == far.word == AGREED
    assert near.holds_the_papers and far.holds_the_papers is False
    assert near.ratio == pytest.approx(2.5, rel=0.01)
    assert near.joules and near.joules.side_a.value / near.joules.side_b.value == pytest.approx(0.4, rel=0.01)
    (direction,) = verdicts([conclusion(2.0, only_direction=True)], [*samples("a", *A), *samples("b", *B)])
    assert direction.holds_the_papers is None


def test_runs_that_are_too_short_say_nothing():
    (verdict,) = verdicts([conclusion()], [*samples("a", *A, too_short=True), *samples("b", *B)])
    assert verdict.word == TOO_SHORT


def test_axes_that_are_not_named_are_answered_each_and_a_count_may_be_the_largest_alone():
    there = [
        *samples("a", *A),
        *samples("b", *B),
        *samples("a", *B, rows="100"),
        *samples("b", *A, rows="100"),
    ]
    answers = verdicts([conclusion()], there)
    assert [(dict(verdict.place), verdict.word) for verdict in answers] == [
        ({"rows": "10"}, AGREED),
        ({"rows": "100"}, NOT_AGREED),
    ]
    (largest,) = verdicts([conclusion(largest="rows")], there)
    assert dict(largest.place) == {"rows": "100"}


def test_two_phases_of_one_system_are_compared_as_two_systems_are():
    of = PaperConclusion("cold", "4", "bandwidth", {"system": "a"}, {}, 0.4, phase="Q1_COLD", to_phase="Q1")
    (verdict,) = verdicts([of], [*samples("a", *B, phase="Q1_COLD"), *samples("a", *A, phase="Q1")])
    assert verdict.word == AGREED


def test_every_study_of_a_paper_has_its_figures_and_conclusions_and_at_most_five_are_missing():
    studies = [study for study in known_studies() if study.counterparts]
    assert [study.name for study in studies] == ["s1", "s2", "s3", "s4", "s5"]
    assert all(study.conclusions for study in studies)
    missing = [part for study in studies for part in study.counterparts if part.state == MISSING]
    assert len(missing) <= 5 and all(part.differs for part in missing)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({}, "paper is missing"),
        ({"paper": 2}, "in to or to_phase"),
        (
            {"question": "q", "where": "w", "measure": "m", "paper": "big", "to": {"system": "b"}},
            "must be a ratio",
        ),
        (
            {"question": "q", "where": "w", "measure": "m", "paper": 2, "to": {"system": "c"}},
            "must be one of",
        ),
        (
            {"question": "q", "where": "w", "measure": "m", "paper": 2, "to": {"system": "b"}, "phase": "X"},
            "no phase X",
        ),
    ],
)
def test_a_conclusion_that_means_nothing_is_one_line(entry, says):
    whole = {"question": "q", "where": "w", "measure": "m", **entry}
    with pytest.raises(BadInput, match=says):
        conclusions_of({"conclusions": [whole]}, {"system": ["a", "b"]}, {})


def test_a_figure_that_is_not_exact_says_what_differs():
    with pytest.raises(BadInput, match="state the difference"):
        counterparts_of({"counterparts": [{"paper": "Figure 1", "shows": "x", "state": "near"}]})


def test_records_of_a_workload_are_held_against_its_paper(tmp_path, capsys):
    """SQLite's bandwidth is three times LevelDB's when reading, with a spread of a hundredth."""
    for (system, factor), block in itertools.product((("leveldb", 1.0), ("sqlite", 3.0)), range(3)):
        cell = {"system": system, "device": "rpi4", "storage": "sd", "journal": "off"}
        cell |= {"distribution": "zipfian", "mix": "read", "size": "1kb"}
        make(tmp_path, system, "sd", "zipfian", "read", factor * (1 + block / 100), cell=cell)
    assert main(["runs", "conclusions", str(tmp_path), "--json"]) == 0
    said = {row["question"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(said) == len({stated.question for stated in find_study("s1").conclusions})
    answer = said["Reading: SQLite's bandwidth over LevelDB's"]
    assert answer["verdict"] == AGREED and answer["ratio"] == pytest.approx(3.0)
    assert answer["papers_factor_inside"] == "no" and answer["simulated"] == "SIMULATED"
    assert said["Reading: SQLite's bandwidth over MongoDB's"]["verdict"] == NOT_MEASURED
    assert main(["runs", "conclusions", str(tmp_path)]) == 0
    assert "answers    " in (table := capsys.readouterr().out) and "SIMULATED" in table
    assert main(["runs", "conclusions", str(tmp_path), "--study", "s3"]) == 2
    assert "no record of study s3" in capsys.readouterr().err


def test_records_of_a_job_are_not_taken_for_those_of_a_workload(tmp_path):
    """Their conclusions are judged phase by phase; a workload's have no phases."""
    make(tmp_path, "sqlite", "sd", "zipfian", "read", 1.0, study="suite")
    make(tmp_path, "sqlite", "sd", "zipfian", "read", 1.0, study="ycsb")
    runs, _ = gather([str(tmp_path)])
    assert {run.asked["study"]: name_of(run) for run in runs} == {"suite": "", "ycsb": "s1"}
