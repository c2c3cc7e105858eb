"""`measure.py databases`: what can be measured here: built in, found, or missing and how to get it."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rich.console import Console

from opjoule.cli.planning import ROOT
from opjoule.databases import Database, known_databases
from opjoule.devices.server_programs import find_programs, program_version
from opjoule.devices.shell import LocalShell
from opjoule.errors import OpJouleError

LOADER = ROOT / "build" / "loader" / "loader"


@dataclass(frozen=True)
class Availability:
    """Of one database on this computer, which a simulated board runs on."""

    there: bool
    words: str
    """Where and of what version it is, or how to get it."""


def run_databases(options: argparse.Namespace) -> int:
    """Lists every database with where it is; 0."""
    found = {each.name: availability(each) for each in known_databases()}
    if options.json:
        print(json.dumps([_plain(each, found[each.name]) for each in known_databases()], indent=1))
        return 0
    console = Console(highlight=False, markup=False)
    for each in known_databases():
        console.print(f"{each.name:<13} {each.title}: {found[each.name].words}", soft_wrap=True)
        console.print(f"              asynchronous: {each.asynchronous}", soft_wrap=True)
        if each.stand_in:
            console.print(f"              {each.stand_in}", soft_wrap=True)
    return 0


def availability(database: Database) -> Availability:
    """Built into this computer's loader, found on it, or missing."""
    if database.kind == "loader":
        built = built_in()
        if not built:
            return Availability(True, "built into the loader, which the first measurement builds")
        if database.name not in built:
            return Availability(
                False, "missing in this loader: remove build/loader and start host/measure.py again"
            )
        return Availability(True, f"built in, version {built[database.name]}")
    if database.kind == "module":
        return Availability(True, f"Python module {database.module}: {database.get}")
    if database.kind == "connection":
        return Availability(False, database.get)
    shell = LocalShell()
    try:
        programs = find_programs(shell, database)
    except OpJouleError as error:
        return Availability(False, f"missing: {error}")
    version = program_version(shell, database, programs)
    return Availability(
        True, f"found, {', '.join(programs.values())}{f', version {version}' if version else ''}"
    )


@cache
def built_in() -> Mapping[str, str]:
    """Engine -> version, of this computer's loader; empty where it is not built yet."""
    try:
        ran = subprocess.run([LOADER, "databases"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = [line.split() for line in ran.stdout.splitlines()]
    return {row[0]: row[1] for row in rows if len(row) > 1}


def _plain(database: Database, found: Availability) -> dict[str, object]:
    return {
        "name": database.name,
        "title": database.title,
        "kind": database.kind,
        "there": found.there,
        "words": found.words,
        "asynchronous": database.asynchronous,
        "settled": database.settled,
        "stand_in": database.stand_in,
        "background_threads": database.background_threads,
    }
