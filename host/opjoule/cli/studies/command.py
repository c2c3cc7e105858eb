"""`measure.py studies`: what --study repeats, on which systems, and what of them is missing."""

from __future__ import annotations

import json

from rich.console import Console

from opjoule.cli.databases.command import study_availability
from opjoule.cli.short_commands import ListingOptions
from opjoule.databases import Database, database_called
from opjoule.studies.definition import StudyFolder
from opjoule.studies.folder import known_studies


def run_studies(options: ListingOptions) -> int:
    """Lists every study; 0."""
    studies = known_studies()
    if options.json:
        print(json.dumps([_plain(study) for study in studies], indent=1))
        return 0
    console = Console(highlight=False, markup=False)
    for study in studies:
        cells = study.cells({})
        parts = len(study.parts(cells[0], 1.0, {}))
        many = f"{len(cells)} cell{'s' if len(cells) != 1 else ''}{f' of {parts} parts' if parts > 1 else ''}"
        console.print(f"{study.name:<10} {study.title} ({many})", soft_wrap=True)
        for axis, values in study.axes.items():
            console.print(f"           {axis}: {', '.join(values)}", soft_wrap=True)
        for name, figure in study.figures.items():
            console.print(f"           figure {name}: {figure.title}", soft_wrap=True)
        for name, connection in study.connections.items():
            given = "needs" if connection.needed else "takes"
            console.print(f"           {name} {given}, by --connections: {connection.what}", soft_wrap=True)
        for name, words in missing(study).items():
            console.print(f"           {name}: {words}", soft_wrap=True)
        for name, words in stand_ins(study).items():
            console.print(f"           {name}: {words}", soft_wrap=True)
    console.print("measure one with: host/measure.py --study NAME --device NAME [--scale X] [--simulate]")
    return 0


def missing(study: StudyFolder) -> dict[str, str]:
    """Those of a study's databases that this computer lacks, with how to get them."""
    states = {database.name: study_availability(study, database) for database in _databases(study)}
    return {name: state.words for name, state in states.items() if not state.there}


def stand_ins(study: StudyFolder) -> dict[str, str]:
    """What OpJoule's own tests had in place of those of a study's databases that they could not have."""
    return {database.name: database.stand_in for database in _databases(study) if database.stand_in}


def _databases(study: StudyFolder) -> list[Database]:
    """Systems, and what other axes name."""
    values = dict.fromkeys(value for axis in study.axes.values() for value in axis)
    return [database for value in values if (database := database_called(value))]


def _plain(study: StudyFolder) -> dict[str, object]:
    return {
        "name": study.name,
        "title": study.title,
        "axes": {axis: list(values) for axis, values in study.axes.items()},
        "within": list(study.within),
        "counts": {count: list(values) for count, values in study.counts.items()},
        "phases": dict(study.phases),
        "figures": {name: figure.title for name, figure in study.figures.items()},
        "missing": missing(study),
        "connections": {
            name: {"what": each.what, "needed": each.needed} for name, each in study.connections.items()
        },
        "stand_ins": stand_ins(study),
    }
