"""Python modules and Java programs for a job: fetched on this computer, copied to the board, verified there.

A board needs neither network nor pip, because a wheel is a zip file (packaging.python.org, Binary distribution format)
that Python itself unpacks.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from opjoule.base.errors import BadInput, DeviceFault, NoWheels
from opjoule.base.files import file_sha256
from opjoule.boards.board import Board
from opjoule.boards.databases import Database, Jar
from opjoule.boards.server import program_path
from opjoule.boards.shell import Shell

_FETCH_LIMIT_S: Final = 600
FOLDER: Final = "python"
"""Folder of the unpacked modules, next to the copied files on the board."""
_OLDEST_GLIBC: Final = 5
"""manylinux_2_5 is the oldest platform tag (PEP 600)."""
_ASK: Final = """
import json, platform, sys
print(json.dumps({"python": "%d.%d" % sys.version_info[:2], "machine": platform.machine(),
 "bits": sys.maxsize.bit_length() + 1, "libc": platform.libc_ver()}))
"""
_UNPACK: Final = 'echo "$2  $1" | sha256sum -c --quiet - && mkdir -p -- "$3" && python3 -m zipfile -e "$1" "$3"'
_MACHINES: Final = {("aarch64", 32): "armv7l", ("x86_64", 32): "i686", ("armv8l", 32): "armv7l"}
"""(machine, bits of Python) -> machine of the wheels: a 32-bit Python on a 64-bit kernel needs 32-bit wheels."""


def fetch(command: Sequence[str], what: str, fault: type[BadInput]) -> subprocess.CompletedProcess[str]:
    """Runs a program that fetches something. Raises: `fault`: it takes too long."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_FETCH_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise fault(f"{what}: not fetched within {_FETCH_LIMIT_S} s; is there a network?") from None


def fetch_jar(jar: Jar, cache: Path) -> Path:
    """The archive, fetched once into the cache folder.

    Raises: BadInput: there is no Maven or no network, or the archive is not the named one.
    """
    _, name, version = jar.artifact.split(":")
    path = cache / f"{name}-{version}.jar"
    if not path.exists():
        if not (maven := shutil.which("mvn")):
            raise BadInput(f"{jar.artifact} is fetched by Maven: install Debian's package maven on this computer")
        places = [f"-Dartifact={jar.artifact}", f"-DoutputDirectory={cache}"]
        ran = fetch([maven, "-q", "-B", "dependency:copy", *places], jar.artifact, BadInput)
        if ran.returncode != 0 or not path.exists():
            errors = [line for line in ran.stdout.splitlines() if "ERROR" in line] or ["Maven gave no reason"]
            raise BadInput(f"{jar.artifact} cannot be fetched: {errors[0]}")
    if file_sha256(path) != jar.sha256:
        raise BadInput(f"{path} differs from the published {jar.artifact}: remove it")
    return path


def bring_jars(board: Board, database: Database, cache: Path) -> dict[str, str]:
    """Copies a database's archives to the board. Returns: program -> path on the board, for those it did not have.

    Raises: BadInput: an archive cannot be fetched. DeviceFault, LinkFault: it did not arrive.
    """
    return {
        program: board.runner.copy_in(fetch_jar(jar, cache))
        for program, jar in database.jars.items()
        if not program_path(board.shell, program, database.programs.get(program, ()))
    }


@dataclass(frozen=True)
class Interpreter:
    """Facts about the board's python3 that decide which wheels fit."""

    version: str
    """For example "3.11"."""
    machine: str
    glibc: int
    """Minor version of glibc, for example 36 for glibc 2.36."""

    @classmethod
    def of(cls, shell: Shell) -> Self:
        """Asks the board. Raises: BadInput: it has no python3, or its C library is not glibc."""
        ran = shell.run(["python3", "-c", _ASK])
        if ran.status != 0:
            raise BadInput(f"the board has no python3, which the study's job needs: {ran.last_line()}")
        facts = json.loads(ran.text())
        libc, version = facts["libc"]
        glibc = re.fullmatch(r"2\.(\d+)", version)
        if libc != "glibc" or not glibc:
            raise BadInput(f"the board's C library is '{libc} {version}', but wheels need glibc 2.x")
        machine = _MACHINES.get((facts["machine"], facts["bits"]), facts["machine"])
        return cls(facts["python"], machine, int(glibc[1]))

    @property
    def options(self) -> list[str]:
        """Options of `pip download` that select wheels for it."""
        tag = f"cp{self.version.replace('.', '')}"
        platforms = [f"manylinux_2_{minor}_{self.machine}" for minor in range(self.glibc, _OLDEST_GLIBC - 1, -1)]
        platforms += [f"{name}_{self.machine}" for name in ("manylinux2014", "manylinux2010", "linux")]
        return [
            *("--only-binary", ":all:", "--implementation", "cp", "--python-version", self.version),
            *(part for abi in (tag, "abi3", "none") for part in ("--abi", abi)),
            *(part for platform in platforms for part in ("--platform", platform)),
        ]


def fetch_wheels(requirements: Path, python: Interpreter, cache: Path) -> list[Path]:
    """The wheels of a file of pinned requirements for one Python, fetched once.

    Args:
        requirements: file in pip's format, with hashes.
        cache: folder of the fetched wheels.
    Raises:
        NoWheels: there is no wheel for this Python, or none with these hashes; names it.
        BadInput: a wheel in the cache was changed.
    """
    text = requirements.read_text(encoding="utf-8")
    pinned = set(re.findall(r"--hash=sha256:([0-9a-f]{64})", text))
    key = hashlib.sha256(f"{text} {python}".encode()).hexdigest()[:16]
    folder = cache / f"{requirements.stem}-{key}"
    done = folder / "fetched"
    if not done.exists():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--require-hashes"]
        command = [*pip, *python.options, "--dest", str(folder), "-r", str(requirements)]
        ended = fetch(command, requirements.name, NoWheels)
        if ended.returncode != 0:
            errors = [line for line in ended.stderr.splitlines() if line.startswith("ERROR")]
            errors = errors or [ended.stderr.strip()]
            where = f"Python {python.version} on {python.machine} with glibc 2.{python.glibc}"
            raise NoWheels(f"{requirements.name} has no wheels for {where}: {errors[-1].removeprefix('ERROR: ')}")
        done.touch()
    wheels = sorted(folder.glob("*.whl"))
    for wheel in wheels:
        if file_sha256(wheel) not in pinned:
            raise BadInput(f"{wheel} was changed since it was fetched: remove {folder}")
    return wheels


def bring_wheels(board: Board, requirements: Path, cache: Path) -> str:
    """Copies the modules to the board. Returns: the folder in which its Python finds them.

    Raises: NoWheels, BadInput: no wheels fit this board. DeviceFault, LinkFault: they did not arrive undamaged.
    """
    target = f"{board.runner.files_folder}/{FOLDER}"
    for wheel in fetch_wheels(requirements, Interpreter.of(board.shell), cache):
        copied = board.runner.copy_in(wheel)
        unpacked = board.shell.run(["sh", "-c", _UNPACK, "sh", copied, file_sha256(wheel), target], limit_s=600)
        if unpacked.status != 0:
            raise DeviceFault(f"{wheel.name} did not reach the board undamaged: {unpacked.last_line()}")
    return target
