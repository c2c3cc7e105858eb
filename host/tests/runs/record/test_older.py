"""Earlier run.json and result.json, in which only words told kinds and causes, are read with the right ones."""

from pathlib import Path

import pytest
from opjoule.base.errors import RecordFault
from opjoule.base.notices import NoticeKind
from opjoule.base.units import Cause, from_json
from opjoule.runs.record.json_file import result_2, result_3, run_3

PATH = Path("run.json")


def test_faults_warnings_and_withheld_groups_become_notices() -> None:
    made = run_3(
        {
            "faults": ["interrupted by the user (Ctrl-C)", "clocks disagree"],
            "withheld": {"energy": "clocks disagree", "per_operation": "a damaged log"},
            "found": {"cores": 4, "warnings": ["the supply is soft"]},
        },
        PATH,
    )
    assert made["found"] == {"cores": 4} and "faults" not in made and "withheld" not in made
    assert [(notice["kind"], notice["line"], notice.get("withholds", ())) for notice in made["notices"]] == [
        (NoticeKind.INTERRUPTED, "interrupted by the user (Ctrl-C)", ()),
        (NoticeKind.FAULT, "clocks disagree", ("energy",)),
        (NoticeKind.FAULT, "a damaged log", ("per_operation",)),
        (NoticeKind.NOTE, "the supply is soft", ()),
    ]


@pytest.mark.parametrize(
    ("line", "kind", "more"),
    [
        (
            "the run is too short to be representative: 9 taken. At least 1 s and 500 samples are needed: --seconds 9",
            NoticeKind.TOO_SHORT,
            {"remedy": "--seconds 9"},
        ),
        ("operations waited for about 16 % of the run", NoticeKind.WAITED, {}),
        ("busy computer: other programs took 40 %", NoticeKind.BUSY, {"line": "other programs took 40 %"}),
        ("unsteady repeats: one is far off", NoticeKind.UNSTEADY, {"line": "one is far off"}),
        ("X stands in for MongoDB: these are not MongoDB's figures", NoticeKind.STAND_IN, {"about": "MongoDB"}),
        ("anything else", NoticeKind.NOTE, {"line": "anything else"}),
    ],
)
def test_a_line_gets_the_kind_that_its_program_meant(line: str, kind: NoticeKind, more: dict[str, str]) -> None:
    [notice] = result_2({"warnings": [line]}, PATH)["notices"]
    assert notice["kind"] == kind and notice.items() >= more.items()


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("repeat 2: interval too wide: read drew 3 ± 2 J", Cause.TOO_WIDE),
        ("collinear: read always goes together with update", Cause.COLLINEAR),
        ("not found: the engine reported no flush", Cause.NOT_REPORTED),
        ("not found: tail drew less than 2 J, if anything", Cause.NOT_FOUND),
        ("no idle baseline (--idle 0)", Cause.NO_IDLE),
        ("withheld: clocks disagree", Cause.WITHHELD),
        ("9 samples at the end of the meter's range: at least this", Cause.LOWER_BOUND),
        ("counter of the board", Cause.OTHER),
    ],
)
def test_a_missing_value_gets_the_cause_that_its_words_tell(reason: str, cause: Cause) -> None:
    number = {"value": None, "u": None, "unit": "J", "reason": reason}
    made = result_3({"by_operation": {"read": {"energy_per_operation_j": number}}, "simulated": True}, PATH)
    read = from_json(made["by_operation"]["read"]["energy_per_operation_j"])
    assert (read.cause, read.reason) == (cause, reason)


def test_a_cause_of_another_program_is_none_of_ours() -> None:
    number = {"value": None, "u": None, "unit": "J", "reason": "because", "cause": "of the weather"}
    assert from_json(number).cause is Cause.OTHER


def test_damaged_lines_are_refused_in_one_line() -> None:
    with pytest.raises(RecordFault, match=r"run\.json is corrupt"):
        run_3({"faults": 5}, PATH)
