"""Builds loader, probe and medium-sim with the engines that are asked for, and leaves out those that do not build."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from logged_commands import Lasting, SetupError, logged
from opjoule.boards.binaries import FAILED_ENGINES, failed_engines
from opjoule.boards.databases import known_databases
from plain_folder import ROOT, plain
from system_packages import names
from toolchain import COMPILERS, begin_anew_if_changed, made_with, package_versions, replace_text

BUILD = ROOT / "build"
SOURCE = ROOT / "loader-cpp"
LOADER = BUILD / "loader"
PROGRAMS = ("loader", "probe", "medium-sim")
TESTS = "tests"
"""What a build has besides engines: the targets of the tests, which need doctest."""


def engines() -> list[str]:
    """Every engine that the loader of this computer can have."""
    return [database.name for database in known_databases() if database.kind == "loader"]


def cmake_build(
    source: Path,
    build: Path,
    log: Path,
    targets: Iterable[str],
    options: Iterable[str],
    packages: Iterable[str],
) -> None:
    """Configures a CMake project with Ninja and builds some of its targets.

    A folder that was made in another place, or with other compilers or packages, is emptied first.
    """
    configure(source, build, log, options, packages)
    logged(["cmake", "--build", str(plain(build)), "--target", *targets], log)


def configure(source: Path, build: Path, log: Path, options: Iterable[str], packages: Iterable[str]) -> None:
    """Configures a CMake project with Ninja, whether or not it was configured before: packages may have come since."""
    begin_anew_if_changed(build, made_with(COMPILERS, packages))
    place = ["cmake", "-S", str(plain(source)), "-B", str(plain(build)), "-G", "Ninja"]
    logged([*place, "-DCMAKE_BUILD_TYPE=Release", *options], log)


def build_loader(log: Path, wanted: Iterable[str]) -> dict[str, str]:
    """Builds the programs with those engines of `wanted` that build here; `tests` stands for the tests' targets.

    Returns: engine -> why it is left out.
    Raises: SetupError: what all engines share does not build.
    """
    wanted = set(wanted)
    left = sorted(wanted - {TESTS})
    failed: dict[str, str] = {}
    while True:
        options = [
            f"-DOPJOULE_ENGINES={';'.join(left)}",
            f"-DOPJOULE_TESTS={'ON' if TESTS in wanted else 'OFF'}",
        ]
        options += [f"-DOPJOULE_VERSIONS_{engine}={_versions(engine)}" for engine in left]
        configure(SOURCE, LOADER, log, options, names("loader"))
        failed |= _without_library()
        left = [engine for engine in left if engine not in failed]
        try:
            _build(log, *PROGRAMS)
        except Lasting:
            raise
        except SetupError:
            broken = {engine: why for engine in left if (why := _why_it_fails(engine, log))}
            if not broken:
                raise
            failed |= broken
            left = [engine for engine in left if engine not in failed]
        else:
            return failed


def _versions(engine: str) -> str:
    """Versions of an engine's packages: when they change, Ninja compiles the engine again."""
    return " ".join(f"{name}={version}" for name, version in package_versions(names(engine)).items())


def _without_library() -> dict[str, str]:
    """Engine -> the library that CMake did not find for it."""
    try:
        rows = [line.split() for line in (LOADER / "missing-libraries.txt").read_text().splitlines()]
    except OSError:
        return {}
    return {engine: f"lib{library}.a is missing" for engine, library in rows}


def _build(log: Path, *targets: str) -> None:
    logged(["cmake", "--build", str(plain(LOADER)), "--target", *targets], log)


def _why_it_fails(engine: str, log: Path) -> str:
    """The compiler's first error in an engine; empty if it builds."""
    begin = log.stat().st_size
    try:
        _build(log, f"engine_{engine}")
    except Lasting:
        raise
    except SetupError:
        said = log.read_bytes()[begin:].decode(errors="replace")
        error = re.search(r"^.*error: .*$", said, re.MULTILINE)
        return f"it does not compile: {error[0] if error else 'see'} ({log})"
    return ""


def note_failures(wanted: Iterable[str], failed: Mapping[str, str]) -> None:
    """Stores why some of the wanted engines are left out; the others are forgotten there."""
    before = failed_engines(BUILD)
    kept = {engine: why for engine, why in before.items() if engine not in set(wanted)}
    file = BUILD / FAILED_ENGINES
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_text(file, json.dumps({**kept, **failed}, indent=1))
