"""Java programs for a board: fetched on this computer from Maven's central repository, brought over, verified."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from opjoule.databases.registry import Database, Jar
from opjoule.devices.board import Board
from opjoule.devices.server.programs import program_path
from opjoule.errors import BadInput
from opjoule.files import file_sha256

_FETCH_LIMIT_S: Final = 600


def fetch(command: Sequence[str], what: str, fault: type[BadInput]) -> subprocess.CompletedProcess[str]:
    """Runs a program that fetches something. Raises: `fault`: it takes too long."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_FETCH_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise fault(f"{what}: not fetched within {_FETCH_LIMIT_S} s; is there a network?") from None


def fetch_jar(jar: Jar, cache: Path) -> Path:
    """The archive, fetched once into the folder of the fetched ones.

    Raises: BadInput: there is no Maven, no network, or another archive than the one that is named.
    """
    _, name, version = jar.artifact.split(":")
    path = cache / f"{name}-{version}.jar"
    if not path.exists():
        if not (maven := shutil.which("mvn")):
            raise BadInput(
                f"{jar.artifact} is fetched by Maven: install Debian's package maven on this computer"
            )
        places = [f"-Dartifact={jar.artifact}", f"-DoutputDirectory={cache}"]
        ran = fetch([maven, "-q", "-B", "dependency:copy", *places], jar.artifact, BadInput)
        if ran.returncode != 0 or not path.exists():
            errors = [line for line in ran.stdout.splitlines() if "ERROR" in line] or ["Maven said nothing"]
            raise BadInput(f"{jar.artifact} cannot be fetched: {errors[0]}")
    if file_sha256(path) != jar.sha256:
        raise BadInput(f"{path} is not {jar.artifact} as it was published: remove it")
    return path


def bring_jars(board: Board, database: Database, cache: Path) -> dict[str, str]:
    """Has a database's archives on the board; gives program -> path there, of those that it did not have.

    Raises: BadInput: one cannot be fetched. DeviceFault, LinkFault: it did not arrive.
    """
    return {
        program: board.runner.copy_in(fetch_jar(jar, cache))
        for program, jar in database.jars.items()
        if not program_path(board.shell, program, database.programs.get(program, ()))
    }
