"""The studies' pages are written from their data."""

from __future__ import annotations

import pytest
import study_pages
from opjoule.runs.studies.definition import EXACT, MISSING, STAND_IN
from opjoule.runs.studies.folder import find_study, known_studies


def test_the_pages_say_what_the_studies_data_say():
    for path, page in study_pages.pages().items():
        assert path.read_text(encoding="utf-8") == page, "run .venv/bin/python host/study_pages.py"


def test_every_figure_and_conclusion_of_a_paper_is_on_its_page():
    for study in known_studies():
        if study.counterparts:
            page = study_pages.page_of(study).read_text(encoding="utf-8")
            assert all(f"| {counterpart.paper} | {counterpart.shows} |" in page for counterpart in study.counterparts)
            assert all(conclusion.question in page for conclusion in study.conclusions)


def test_what_needs_zen_or_a_phone_is_a_stand_in_and_contradictions_of_the_paper_are_named():
    parts = {part.paper: part for part in find_study("s5").counterparts}
    assert all(
        parts[name].state == STAND_IN
        for name in parts
        if name.startswith(("Raspberry Pi", "Android", "Synchronisation"))
    )
    contradicted = ("Raspberry Pi, test 1", "Android, test 4a", "Android, test 5a", "Android, test 5b")
    assert all("contradicts itself" in parts[name].differs for name in contradicted)
    assert sum("contradicts itself" in part.differs for part in parts.values()) == 6


STATES = {EXACT, "differs", STAND_IN, MISSING}


@pytest.mark.parametrize("study", study_pages.studies(), ids=lambda study: study.name)
def test_each_row_of_a_studys_protocol_is_exact_or_says_what_differs(study):
    """No row is silent: all but an exact one have a reason after the word."""
    page = study_pages.page_of(study).read_text(encoding="utf-8")
    table = page.split("## The protocol, row by row")[1].split("| what | paper |")[1]
    rows = [line.strip("| ").split(" | ") for line in table.split("\n\n")[0].splitlines()[2:]]
    assert len(rows) > 10
    for row in rows:
        state, _, why = row[-1].partition(": ")
        assert state in STATES and (state == "exact" or why), row
