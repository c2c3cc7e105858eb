"""What is fetched is pinned by hash or comes from a signed source; what is built has no writable code."""

import platform
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCKS = [
    *ROOT.glob("host/requirements/*.txt"),
    *ROOT.glob("studies/*/*.txt"),
    ROOT / "fuzz/requirements.txt",
]
PROGRAMS = ("build/loader/loader", "build/loader/probe", "build/loader/medium-sim", "build/rig-sim/rig-sim")


def pinned_lines(text):
    """The requirements of a lock, each with its continuation lines."""
    whole = text.replace("\\\n", " ")
    return [line for line in whole.splitlines() if line.strip() and not line.startswith((" ", "#", "-"))]


@pytest.mark.parametrize(
    "lock", [path for path in LOCKS if "==" in path.read_text()], ids=lambda path: path.name
)
def test_every_python_package_has_a_version_and_a_hash(lock):
    lines = pinned_lines(lock.read_text())
    assert lines
    for line in lines:
        assert re.match(r"[\w.\[\]-]+==\S+.*--hash=sha256:[0-9a-f]{64}", line), line


def test_pip_is_told_to_take_nothing_without_a_hash():
    assert '"--require-hashes"' in (ROOT / "host/bootstrap.py").read_text()


def test_every_jar_has_a_hash():
    described = [
        jar
        for path in ROOT.glob("host/opjoule/databases/*.toml")
        for jar in jars(tomllib.loads(path.read_text()))
    ]
    assert described
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar["sha256"]) for jar in described)
    for pom in [*ROOT.glob("host/**/pom.xml")]:
        lines = (pom.parent / "jars.sha256").read_text().splitlines()
        assert lines and all(re.fullmatch(r"[0-9a-f]{64}  \S+\.jar", line) for line in lines)


def jars(entry):
    """Every table of a description that names an artifact."""
    if isinstance(entry, dict):
        if "artifact" in entry:
            yield entry
        for value in entry.values():
            yield from jars(value)
    elif isinstance(entry, list):
        for value in entry:
            yield from jars(value)


def test_no_debian_package_comes_from_an_unsigned_source():
    for path in ROOT.glob("**/*"):
        if path.suffix not in {".py", ".sh", ".toml"} and path.name not in {"Dockerfile", "run", "test"}:
            continue
        if not path.is_file() or {"build", ".venv", ".pio"} & set(path.relative_to(ROOT).parts):
            continue
        if path == Path(__file__):
            continue
        text = path.read_text(errors="replace")
        assert not re.search(
            r"allow-unauthenticated|trusted=yes|AllowUnauthenticated|--no-check-certificate", text
        ), path


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_has_no_writable_code_and_its_tables_are_sealed(program):
    path = ROOT / program
    if platform.machine() != "x86_64" or not path.exists():
        pytest.skip("not built here")
    headers = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    stack = next(line for line in headers.splitlines() if "GNU_STACK" in line)
    assert "RWE" not in stack
    assert "GNU_RELRO" in headers
    assert not re.search(r"LOAD .*RWE", headers)
