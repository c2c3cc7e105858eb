#!/usr/bin/env python3
"""Updates the parts of docs/reference on the studies' papers (figures, tables, conclusions) from each study.toml."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "host"))

from opjoule.runs.studies.definition import (  # noqa: E402  # path set above
    MISSING,
    STATES,
    Counterpart,
    PaperConclusion,
    StudyFolder,
)
from opjoule.runs.studies.folder import known_studies  # noqa: E402

PAGES = ROOT / "docs" / "reference"
ALL = PAGES / "studies.md"
PICTURES = ROOT / "docs" / "images" / "studies"
"""NAME/NN-....svg: drawn from a record by runs.py figures --study NAME, for the counterpart with this number."""
START, END = "<!-- paper: written by host/study_pages.py -->", "<!-- /paper -->"


def studies() -> list[StudyFolder]:
    """The studies that repeat a paper."""
    return [study for study in known_studies() if study.counterparts]


def page_of(study: StudyFolder) -> Path:
    """The page of a study."""
    return PAGES / f"study-{study.name}.md"


def markdown(study: StudyFolder) -> str:
    """Text between the markers of a study's page."""
    parts = [study, *(part for part in known_studies() if part.name.startswith(f"{study.name}-"))]
    conclusions = [conclusion for part in parts for conclusion in part.conclusions]
    return "\n\n".join(["\n".join(_figures(study)), *_pictures(study), "\n".join(_conclusions(conclusions))])


def _figures(study: StudyFolder) -> Iterator[str]:
    yield "| in the paper | shows | here | axes and groups | units | difference, or why it is missing |"
    yield "|---|---|---|---|---|---|"
    for counterpart in study.counterparts:
        laid = "; ".join(filter(None, (counterpart.axes, counterpart.groups)))
        cells = (
            counterpart.paper,
            counterpart.shows,
            counterpart.state,
            laid,
            counterpart.units,
            counterpart.differs,
        )
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield f"`host/runs.py figures RECORDS --study {study.name} --out figures` draws them in this order. Measured by:"
    yield ""
    commands: dict[str, list[str]] = {}
    for counterpart in study.counterparts:
        if counterpart.command:
            commands.setdefault(counterpart.command, []).append(counterpart.paper)
    yield from (f"- {', '.join(papers)}: `{command}`" for command, papers in commands.items())


def _pictures(study: StudyFolder) -> Iterator[str]:
    """Markdown of each drawn counterpart, with its description."""
    for at, counterpart in enumerate(study.counterparts, 1):
        for picture in sorted((PICTURES / study.name).glob(f"{at:02}-*.svg")):
            words = f"{counterpart.paper}, {counterpart.shows}: SIMULATED"
            yield f"![{words}](../images/studies/{study.name}/{picture.name})"


def _conclusions(conclusions: Sequence[PaperConclusion]) -> Iterator[str]:
    yield "Conclusions of the paper, as ratios of two cells. `host/runs.py conclusions RECORDS` compares them with the"
    yield "records' ratios and their intervals, and reports whether they agree."
    yield ""
    yield "| question | where in the paper | the paper's ratio |"
    yield "|---|---|---|"
    yield from (
        f"| {conclusion.question} | {conclusion.where} | {ratio_words(conclusion)} |" for conclusion in conclusions
    )


def ratio_words(of: PaperConclusion) -> str:
    """The paper's ratio in words."""
    if of.only_direction:
        return "above 1" if of.paper > 1 else "below 1"
    about = f", within {100 * of.about:g} %" if of.about else ""
    return f"{of.paper:.3g}{about}"


def summary() -> str:
    """The table of all studies' figures and tables."""
    lines = [f"| study | {' | '.join(STATES)} |", f"|---{'|---' * len(STATES)}|"]
    total: Counter[str] = Counter()
    for study in studies():
        counts = Counter(counterpart.state for counterpart in study.counterparts)
        total += counts
        lines.append(_counted(f"[{study.name.upper()}](study-{study.name}.md)", counts))
    missing = [
        (study, counterpart)
        for study in studies()
        for counterpart in study.counterparts
        if counterpart.state == MISSING
    ]
    return "\n".join([*lines, _counted("all", total), "", "Missing:", "", *map(_missing, missing)])


def _counted(name: str, counts: Counter[str]) -> str:
    return f"| {name} | {' | '.join(str(counts[state]) for state in STATES)} |"


def _missing(entry: tuple[StudyFolder, Counterpart]) -> str:
    study, part = entry
    return f"- {study.name.upper()}, {part.paper} ({part.shows}): {part.differs}."


def renewed(page: str, text: str) -> str:
    """The page with its part updated. Raises: ValueError: the page lacks a marker."""
    before, after = page.index(START) + len(START), page.index(END)
    return f"{page[:before]}\n{text}\n\n{page[after:]}"


def pages() -> dict[Path, str]:
    """Page -> its updated text."""
    made = {page_of(study): markdown(study) for study in studies()} | {ALL: summary()}
    return {path: renewed(path.read_text(encoding="utf-8"), text) for path, text in made.items()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
