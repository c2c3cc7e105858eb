"""`measure.py studies`: what --study repeats, on which systems, and what of them is missing."""

from __future__ import annotations

import argparse
import json

from rich.console import Console

from opjoule.cli.databases.command import study_availability
from opjoule.databases import Database, database_called
from opjoule.studies.definition import StudyFolder
from opjoule.studies.folder import known_studies


def run_studies(options: argparse.Namespace) -> int:
    """Lists every study; 0."""
    studies = known_studies()
    if options.json:
        print(json.dumps([_plain(each) for each in studies], indent=1))
        return 0
    console = Console(highlight=False, markup=False)
    for each in studies:
        cells = each.cells({})
        parts = len(each.parts(cells[0], 1.0, {}))
        many = f"{len(cells)} cell{'s' if len(cells) != 1 else ''}{f' of {parts} parts' if parts > 1 else ''}"
        console.print(f"{each.name:<10} {each.title} ({many})", soft_wrap=True)
        for axis, values in each.axes.items():
            console.print(f"           {axis}: {', '.join(values)}", soft_wrap=True)
        for name, figure in each.figures.items():
            console.print(f"           figure {name}: {figure.title}", soft_wrap=True)
        for name, connection in each.connections.items():
            given = "needs" if connection.needed else "takes"
            console.print(f"           {name} {given}, by --connections: {connection.what}", soft_wrap=True)
        for name, words in missing(each).items():
            console.print(f"           {name}: {words}", soft_wrap=True)
        for name, words in stand_ins(each).items():
            console.print(f"           {name}: {words}", soft_wrap=True)
    console.print("measure one with: host/measure.py --study NAME --device NAME [--scale X] [--simulate]")
    return 0


def missing(study: StudyFolder) -> dict[str, str]:
    """Those of a study's databases that this computer lacks, with how to get them."""
    states = {each.name: study_availability(study, each) for each in _databases(study)}
    return {name: state.words for name, state in states.items() if not state.there}


def stand_ins(study: StudyFolder) -> dict[str, str]:
    """What OpJoule's own tests had in place of those of a study's databases that they could not have."""
    return {each.name: each.stand_in for each in _databases(study) if each.stand_in}


def _databases(study: StudyFolder) -> list[Database]:
    """Systems, and what other axes name."""
    values = dict.fromkeys(value for axis in study.axes.values() for value in axis)
    return [found for value in values if (found := database_called(value))]


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
