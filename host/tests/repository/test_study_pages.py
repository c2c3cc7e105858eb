"""The studies' pages are written from their data."""

from __future__ import annotations

import study_pages
from opjoule.studies.folder import known_studies


def test_the_pages_say_what_the_studies_data_say():
    for path, page in study_pages.pages().items():
        assert path.read_text(encoding="utf-8") == page, "run .venv/bin/python host/study_pages.py"


def test_every_figure_and_conclusion_of_a_paper_is_on_its_page():
    for study in known_studies():
        if study.counterparts:
            page = study_pages.page_of(study).read_text(encoding="utf-8")
            assert all(
                f"| {counterpart.paper} | {counterpart.shows} |" in page for counterpart in study.counterparts
            )
            assert all(conclusion.question in page for conclusion in study.conclusions)
