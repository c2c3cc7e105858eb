"""The stacked view of a run draws no part that the tables refuse to state."""

from __future__ import annotations

import copy
from dataclasses import replace
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from msgspec import structs
from opjoule.operations import schemas
from opjoule.report.activity_stack import NOT_TOLD, activity_stack
from opjoule.report.answer import Answer, open_answer
from opjoule.trace.parquet_file import write_parquet
from report_record import RESULT, make_record, put_result

PARTS = ("update", "flush", "compaction", "tail", "measured")


def names(answer: Answer) -> list[str]:
    """The legend's entries."""
    (figure,) = activity_stack(answer)
    source = ElementTree.tostring(figure, encoding="unicode")
    return [
        "".join(ElementTree.fromstring(each).itertext()).strip()
        for each in (f"<li>{part}" for part in source.split("<li>")[1:])
        for each in [each.split("</li>")[0] + "</li>"]
    ]


def refusing(answer: Answer, *groups: str) -> Answer:
    """The same with every part of some groups refused."""
    numbers = copy.deepcopy(dict(answer.result))
    why = {"value": None, "u": None, "unit": "J", "reason": "too few windows"}
    for group in groups:
        for name, each in numbers[group].items():
            if group == "by_activity":
                numbers[group][name] = why
            else:
                each["energy_per_operation_j"] = why
    return replace(answer, concluded=structs.replace(answer.concluded, numbers=numbers))


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """SYNTHETIC: four parts in two windows; update and flush are stated."""
    place = tmp_path_factory.mktemp("run") / "run"
    record = make_record(place)
    windows = [(name, at) for name in PARTS for at in range(2)]
    columns = {
        "repeat": pa.array([1] * len(windows), pa.int32()),
        "board_ns": [at * 10**9 for _, at in windows],
        "end_board_ns": [(at + 1) * 10**9 for _, at in windows],
        "part": [name for name, _ in windows],
        "energy_j": [4.0 if name == "measured" else 1.0 for name, _ in windows],
    }
    table = pa.table(columns).cast(schemas.ATTRIBUTION)
    write_parquet(place / "attribution.parquet", schemas.ATTRIBUTION, [table])
    numbers = copy.deepcopy(RESULT)
    numbers["by_operation"]["update"]["energy_per_operation_j"] = {"value": 1e-4, "u": 1e-6, "unit": "J"}
    numbers["by_activity"]["flush"] = {"value": 2.0, "u": 0.1, "unit": "J"}
    for name in ("compaction", "tail"):
        numbers["by_activity"][name] = {"value": None, "u": None, "unit": "J", "reason": "too few windows"}
    put_result(place, numbers)
    record.finish("complete")
    return open_answer(place)


def test_a_part_that_is_refused_is_drawn_with_all_that_is_not_told(answer: Answer) -> None:
    assert names(answer) == ["update", "flush", NOT_TOLD, "line: measured"]
    (figure,) = activity_stack(answer)
    assert f"<title>{NOT_TOLD}: 50.0" in ElementTree.tostring(figure, encoding="unicode")


def test_where_every_part_is_refused_nothing_is_coloured(answer: Answer) -> None:
    refused = refusing(answer, "by_activity", "by_operation")
    assert names(refused) == [NOT_TOLD, "line: measured"]
    (figure,) = activity_stack(refused)
    assert "kind-" not in ElementTree.tostring(figure, encoding="unicode")
