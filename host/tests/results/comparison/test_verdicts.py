"""A paper's conclusions held against records: agreed, not agreed, or why neither is said."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from compared_records import phase_run
from hypothesis import given
from hypothesis import strategies as st
from opjoule.base.errors import BadInput
from opjoule.base.settings import as_struct
from opjoule.base.units import Quantity
from opjoule.cli.commands import main
from opjoule.cli.runs.conclusions import count_lines, observation_lines
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.index import gather
from opjoule.results.comparison.verdicts import (
    AGREED,
    CACHED,
    ELSEWHERE,
    NOT_AGREED,
    NOT_MEASURED,
    OPEN,
    SINGLE,
    TOO_SHORT,
    WIDE,
    PaperVerdict,
    name_of,
    on_observation,
    ratio_of,
    verdicts,
)
from opjoule.runs.record.result import stand_in_caveat
from opjoule.runs.studies.definition import MISSING, Counterpart, PaperConclusion, StudyFolder, conclusion_of
from opjoule.runs.studies.folder import find_study, known_studies
from study_records import make


def conclusion(paper: float = 2.0, **more) -> PaperConclusion:
    return PaperConclusion("a over b", "figure 1", "bandwidth", {"system": "a"}, {"system": "b"}, paper, **more)


def judged(*conclusions: PaperConclusion, there: list[ComparedRun], **study) -> list[PaperVerdict]:
    """Verdicts on the conclusions of a study of boards, with 10 or 100 rows."""
    known = {"counts": {"rows": (10, 100)}, "said_of": {"device": "rpi4"}, **study}
    return verdicts(StudyFolder("s9", Path(), "A study", conclusions=conclusions, **known), there)


def samples(system: str, *values: float, rows: str = "10", u: float = 0.01, **more) -> list[ComparedRun]:
    cell = {"system": system, "rows": rows}
    records = [
        {
            "bandwidth": Quantity.from_standard(value, u * value, ""),
            "energy_per_operation_j": Quantity.from_standard(1 / value, 0.0, ""),
        }
        for value in values
    ]
    settings = more.pop("settings", {})
    state = [f"{name}={value}" for name, value in settings.items()]
    asked = {"device": "rpi4", "storage": "sd", "scale": "1", **settings, "state": state}
    phase, blocks, simulated = more.pop("phase", ""), more.pop("blocks", False), more.pop("simulated", False)
    return [
        phase_run(cell, phase, at if blocks else 0, measures, simulated=simulated, asked=asked, **more)
        for at, measures in enumerate(records, 1)
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
    (verdict,) = judged(of, there=[*samples("a", *one), *samples("b", *other)])
    assert verdict.word == verdict.words.partition(";")[0] == word


def test_the_direction_may_agree_and_the_factor_not_and_the_joules_stand_beside_them():
    near, far = judged(conclusion(2.5), conclusion(50.0), there=[*samples("a", *A), *samples("b", *B)])
    assert near.word == far.word == AGREED
    assert (near.factor_word, far.factor_word) == (AGREED, NOT_AGREED)
    assert far.words == f"{AGREED}; factor {NOT_AGREED}"
    assert near.ratio == pytest.approx(2.5, rel=0.01)
    assert near.joules and ratio_of(near.joules) == pytest.approx(0.4, rel=0.01)
    (direction,) = judged(conclusion(2.0, only_direction=True), there=[*samples("a", *A), *samples("b", *B)])
    assert direction.factor_word == ""
    assert count_lines([near, far, direction]) == [
        "direction  3 agreed",
        "factor     1 agreed, 1 not agreed",
    ]


def test_a_device_that_no_board_is_has_a_stand_in_in_the_verdict():
    phone = conclusion(2.5, stands_in="a phone")
    (verdict,) = judged(phone, there=[*samples("a", *A), *samples("b", *B)])
    assert (verdict.word, verdict.factor_word) == (AGREED, AGREED) and phone.stands_in in verdict.words
    android = [of for of in find_study("s5").conclusions if of.question.startswith("Android")]
    assert len(android) == 7 and all(of.stands_in == "an Android phone" for of in android)


def test_the_media_of_a_table_are_compared_and_a_simulated_one_is_circular():
    """Table II of S1: the medium is no axis of the study, but one of its records."""
    study = find_study("s1-dd")
    speeds = {"sd": (14.1e6, 41.3e6), "emmc": (128e6, 140e6), "ssd-usb2": (33.3e6, 35.7e6), "ssd-usb3": (153e6, 224e6)}
    there = [
        phase_run(
            {"storage": medium, "blocks": "262144"},
            phase,
            0,
            {"bandwidth_bytes_per_s": Quantity.from_standard(speed * factor, 0.01 * speed, "")},
            asked={"device": "rpi4"},
        )
        for medium, both in speeds.items()
        for phase, speed in zip(("WRITE", "READ"), both, strict=True)
        for factor in (0.99, 1.0, 1.01)
    ]
    answers = verdicts(study, there)
    assert len(answers) == 7
    for answer in answers:
        assert answer.words.startswith("agreed; factor agreed (SIMULATED; circular: "), answer.words


def test_an_observation_agrees_with_all_of_its_parts_and_denies_with_one():
    agrees, denies, open_part = (conclusion(paper, observation="1") for paper in (2.0, 0.5, 2.0))
    there = [*samples("a", *A, simulated=True), *samples("b", *B)]
    for parts, says in (
        ((agrees,), ("agreed", "agreed: 1 of 1 parts agreed, 0 did not (SIMULATED)")),
        ((agrees, denies), ("not agreed", "not agreed: 1 of 2 parts agreed, 1 did not (SIMULATED)")),
        (
            (agrees, replace(open_part, to={"system": "c"})),
            ("open", "open: 1 of 2 parts agreed, 0 did not (SIMULATED)"),
        ),
        ((replace(agrees, observation=""),), ("open", "open: 0 of 0 parts agreed, 0 did not")),
    ):
        assert on_observation("1", judged(*parts, there=there)) == says


def test_each_observation_of_s1_rests_on_conclusions_and_has_a_verdict():
    study = find_study("s1")
    assert [*study.observations] == ["1", "2", "3"]
    for number in study.observations:
        assert len([of for of in study.conclusions if of.observation == number]) >= 5
    lines = observation_lines(study, verdicts(study, []))
    assert [line.partition(" (")[0] for line in lines] == ["observation 1", "observation 2", "observation 3"]


def test_disk_bytes_of_a_simulation_say_whether_the_page_cache_was_dropped():
    of = replace(conclusion(2.5), measure="disk_bytes")
    for state, says in (({}, True), ({"page_cache": "keep"}, True), ({"page_cache": "drop"}, False)):
        there = [
            replace(sample, means={"disk_bytes": sample.means["bandwidth"]})
            for sample in (
                *samples("a", *A, simulated=True, settings=state),
                *samples("b", *B, simulated=True, settings=state),
            )
        ]
        (verdict,) = judged(of, there=there)
        assert (CACHED in verdict.words) == says


def test_an_interval_that_contains_almost_any_factor_does_not_agree_with_the_papers():
    (verdict,) = judged(conclusion(2.5), there=[*samples("a", 30.0, 3.0), *samples("b", 1.0, 20.0)])
    low, high = verdict.limits
    assert low < 2.5 < high and verdict.factor_word == WIDE


def test_blocks_that_drift_together_are_paired():
    """Both take three times as long in the last block; their ratio is 2 in each."""
    drift = (1.0, 1.5, 3.0)
    there = [samples(name, *(f * d for d in drift), blocks=blocks) for blocks in (True, False)
             for name, f in (("a", 2.0), ("b", 1.0))]  # fmt: skip
    (paired,) = judged(conclusion(2.0), there=[*there[0], *there[1]])
    (apart,) = judged(conclusion(2.0), there=[*there[2], *there[3]])
    assert (paired.word, apart.word) == (AGREED, OPEN)
    assert paired.ratio == pytest.approx(apart.ratio) == pytest.approx(2.0)


@given(st.floats(0.2, 5.0), st.integers(1, 40))
def test_the_interval_has_the_verdicts_adjustment(factor, others):
    """Of answers with one p-value it contains 1 exactly where no difference is found, however many there are."""
    of = conclusion(2.0, only_direction=True)
    there = [*samples("a", *(factor * value for value in A), u=0.0), *samples("b", *A, u=0.0)]
    answers = judged(*[of] * others, there=there)
    low, high = answers[0].limits
    assert (answers[0].word == OPEN) == (low <= 1.0 <= high)
    assert low * high == pytest.approx(factor**2)  # symmetric in the logarithm


def test_directions_are_judged_together_by_holms_rule_as_contrasts_are():
    """The lesser difference is found although its interval, which holds together with the other, contains 1."""
    near = conclusion(2.0, only_direction=True)
    far = PaperConclusion(
        "a over c", "figure 1", "bandwidth", {"system": "a"}, {"system": "c"}, 9.0, only_direction=True
    )
    a, b = samples("a", 1.0, 1.2, 1.1, u=0.0), samples("b", 0.82, 0.88, 0.96, u=0.0)
    there = [*a, *b, *samples("c", 0.1, 0.11, 0.12)]
    lesser, greater = judged(near, far, there=there)
    assert lesser.probability == pytest.approx(0.0377, abs=1e-3) and lesser.adjusted == lesser.probability
    assert lesser.limits[0] < 1.0 < lesser.ratio
    assert (lesser.word, greater.word) == (AGREED, AGREED)
    assert greater.adjusted == pytest.approx(2 * greater.probability)


def test_a_conclusion_of_no_difference_counts_among_those_that_are_judged_together():
    of, same = conclusion(2.0, only_direction=True), conclusion(1.0, about=0.5)
    there = [*samples("a", *A), *samples("b", *B)]
    alone, (among, _) = judged(of, there=there)[0], judged(of, same, there=there)
    assert among.adjusted == pytest.approx(2 * alone.adjusted)


def test_runs_that_are_too_short_say_nothing():
    (verdict,) = judged(conclusion(), there=[*samples("a", *A, too_short=True), *samples("b", *B)])
    assert verdict.word == TOO_SHORT


@pytest.mark.parametrize(
    ("settings", "rows", "more", "says"),
    [
        ({"device": "rpi3"}, "10", {}, "board"),
        ({"scale": "0.1"}, "1", {}, "size"),
        ({}, "10", {"largest": "rows"}, "size"),
        ({}, "10", {"said_of": {"storage": ["ssd", "hdd"]}}, "medium"),
        ({"durability": "async"}, "10", {"said_of": {"durability": "sync"}}, "durability"),
        ({"device": "rpi3"}, "10", {"said_of": {"device": ["rpi3", "rpi4"]}}, AGREED),
        ({}, "100", {"largest": "rows"}, AGREED),
    ],
)
def test_a_conclusion_is_judged_only_where_the_paper_says_it(settings, rows, more, says):
    there = [*samples("a", *A, rows=rows, settings=settings), *samples("b", *B, rows=rows, settings=settings)]
    (verdict,) = judged(conclusion(2.5, **more), there=there)
    assert verdict.word.rpartition(" ")[2] == says and (verdict.factor_word == AGREED) == (says == AGREED)


def test_a_count_that_a_cell_does_not_state_is_the_papers_only_at_its_scale():
    there = [*samples("a", *A, settings={"scale": "0.5"}), *samples("b", *B, settings={"scale": "0.5"})]
    (verdict,) = judged(conclusion(), there=there, counts={"operations": (1000,)})
    assert verdict.word.endswith(" size")


def test_what_the_records_are_not_is_part_of_the_verdict():
    there = [*samples("a", *A, caveats=(stand_in_caveat("MongoDB"),)), *samples("b", *B, simulated=True)]
    (verdict,) = judged(conclusion(), there=there)
    assert verdict.simulated and verdict.words.startswith(f"{AGREED}; factor {NOT_AGREED} (SIMULATED; ")
    assert stand_in_caveat("MongoDB") in verdict.words
    (verdict,) = judged(conclusion(), there=there, said_of={})
    assert verdict.words.endswith(f"; {ELSEWHERE})")
    media = PaperConclusion("q", "w", "bandwidth", {"system": "a"}, {"system": "b", "storage": "sd"}, 2.0)
    cells = [replace(sample, asked={**sample.asked, "cell": {**sample.cell, "storage": "sd"}}) for sample in there]
    (verdict,) = judged(media, there=cells, circular={"storage": "speeds of table II"})
    assert "speeds of table II" in verdict.words


def test_axes_that_are_not_named_are_answered_each():
    there = [
        *samples("a", *A),
        *samples("b", *B),
        *samples("a", *B, rows="100"),
        *samples("b", *A, rows="100"),
    ]
    answers = judged(conclusion(), there=there)
    assert [(dict(verdict.place), verdict.word) for verdict in answers] == [
        ({"rows": "10"}, AGREED),
        ({"rows": "100"}, NOT_AGREED),
    ]


def test_two_phases_of_one_system_are_compared_as_two_systems_are():
    of = PaperConclusion("cold", "4", "bandwidth", {"system": "a"}, {}, 0.4, phase="Q1_COLD", to_phase="Q1")
    (verdict,) = judged(of, there=[*samples("a", *B, phase="Q1_COLD"), *samples("a", *A, phase="Q1")])
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
        ({}, "paper"),
        ({"paper": 2}, "to or to_phase"),
        (
            {"question": "q", "where": "w", "measure": "m", "paper": "big", "to": {"system": "b"}},
            "paper .*'big'",
        ),
        (
            {"question": "q", "where": "w", "measure": "m", "paper": 2, "to": {"system": "c"}},
            "system .*'c'",
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
        conclusion_of(whole, "study.toml:", {"system": ["a", "b"]}, {})


def test_a_figure_that_is_not_exact_says_what_differs():
    with pytest.raises(BadInput, match="state the difference"):
        as_struct({"paper": "Figure 1", "shows": "x", "state": "near"}, Counterpart, "study.toml:")


def test_records_of_a_workload_are_held_against_its_paper(tmp_path, capsys):
    """SQLite's bandwidth is three times LevelDB's when reading, with a spread of a hundredth."""
    for (system, factor), block in itertools.product((("leveldb", 1.0), ("sqlite", 3.0)), range(3)):
        cell = {"system": system, "device": "odroid-c2", "storage": "sd", "journal": "off"}
        cell |= {"distribution": "zipfian", "mix": "read", "size": "1kb"}
        options = {"cell": cell, "device": "odroid-c2", "scale": 1.0, "block": block + 1}
        make(tmp_path, system, "sd", "zipfian", "read", factor * (1 + block / 100), **options)
    assert main(["runs", "conclusions", str(tmp_path), "--json"]) == 0
    said = {row["question"]: row for row in json.loads(capsys.readouterr().out)}
    study = find_study("s1")
    assert len(said) == len({stated.question for stated in study.conclusions}) + len(study.observations)
    reading = "Reading: SQLite's bandwidth over "
    answer = said[f"{reading}LevelDB's"]
    assert answer["direction"] == AGREED and answer["ratio"] == pytest.approx(3.0)
    assert answer["factor"] == NOT_AGREED and answer["simulated"] == "SIMULATED"
    assert answer["verdict"] == f"{AGREED}; factor {NOT_AGREED} (SIMULATED)"
    assert said[f"{reading}MongoDB's"]["verdict"] == NOT_MEASURED
    assert main(["runs", "conclusions", str(tmp_path)]) == 0
    assert "direction  " in (table := capsys.readouterr().out) and "SIMULATED" in table
    assert main(["runs", "conclusions", str(tmp_path), "--study", "s3"]) == 2
    assert "s3" in capsys.readouterr().err


def test_records_of_a_job_are_not_taken_for_those_of_a_workload(tmp_path):
    """Their conclusions are judged phase by phase; a workload's have no phases."""
    make(tmp_path, "sqlite", "sd", "zipfian", "read", 1.0, study="suite")
    make(tmp_path, "sqlite", "sd", "zipfian", "read", 1.0, study="ycsb")
    runs, _ = gather([str(tmp_path)])
    assert {run.asked["study"]: name_of(run) for run in runs} == {"suite": "", "ycsb": "s1"}
