"""Operations on records that are not there cost less than others: a run with many of them says so."""

from pathlib import Path

import pytest
from msgspec import structs
from opjoule.runs.evaluation.wording import wording_of
from opjoule.runs.record.run import KindSummary
from opjoule.runs.record.run_record import RunRecord

EXAMPLE = Path(__file__).resolve().parents[4] / "runs/example"


@pytest.mark.parametrize(("absent", "said"), [(0, False), (10, False), (300, True)])
def test_a_run_that_asks_for_absent_records_has_a_note(absent, said):
    run = RunRecord.open(EXAMPLE).run
    kinds = {"read": KindSummary(500, 0, absent), "update": KindSummary(500, 0)}
    loader = {**run.loader, "run-2": structs.replace(run.loader["run-1"], by_kind=kinds)}
    lines = [note.line for note in wording_of(run).notes(structs.replace(run, loader=loader))]
    assert (
        "30% of a run's operations asked for records that were not there: they cost less than others" in lines
    ) == said
