"""What is fetched is pinned by hash or comes from a signed source; what is built has no writable code."""

import hashlib
import platform
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
VENDOR = ROOT / "host/opjoule/pages/drawing/vendor"
LOCKS = [
    *ROOT.glob("host/requirements/*.txt"),
    *ROOT.glob("studies/*/*.txt"),
    ROOT / "fuzz/requirements.txt",
]
BOARD_PROGRAMS = tuple(
    pytest.param(f"build/board/{board}/{name}", marks=pytest.mark.thorough if board == "amd64" else ())
    for board in ("aarch64", "amd64")
    for name in ("loader", "probe")
)
PROGRAMS = ("build/loader/loader", "build/loader/probe", "build/loader/medium-sim", "build/rig-sim/rig-sim")


def pinned_lines(text):
    """The requirements of a lock, each with its continuation lines."""
    whole = text.replace("\\\n", " ")
    return [line for line in whole.splitlines() if line.strip() and not line.startswith((" ", "#", "-"))]


@pytest.mark.parametrize("lock", [path for path in LOCKS if "==" in path.read_text()], ids=lambda path: path.name)
def test_every_python_package_has_a_version_and_a_hash(lock):
    lines = pinned_lines(lock.read_text())
    assert lines
    for line in lines:
        assert re.match(r"[\w.\[\]-]+==\S+.*--hash=sha256:[0-9a-f]{64}", line), line


def test_pip_is_told_to_take_nothing_without_a_hash():
    assert '"--require-hashes"' in (ROOT / "host/environment.py").read_text()


def test_this_release_of_debian_has_every_package():
    names = [
        line.split()[0]
        for line in (ROOT / "host/packages.txt").read_text().splitlines()
        if line.strip() and not line.startswith(("#", "["))
    ]
    if not shutil.which("apt-cache") or not [*Path("/var/lib/apt/lists").glob("*_Packages*")]:
        pytest.skip("no apt, or it has not fetched its lists")
    listed = subprocess.run(["apt-cache", "policy", *names], capture_output=True, text=True, check=True).stdout
    known = re.findall(r"^(\S+):\n(?:  .*\n)*?  Candidate: \d", listed, re.MULTILINE)
    assert not set(names) - set(known)


def test_every_jar_has_a_hash():
    described = [
        jar
        for path in ROOT.glob("host/opjoule/boards/databases/*.toml")
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
        assert not re.search(r"allow-unauthenticated|trusted=yes|AllowUnauthenticated|--no-check-certificate", text), (
            path
        )


def built(program):
    """A program of this computer's own build."""
    path = ROOT / program
    if platform.machine() != "x86_64" or not path.exists():
        pytest.skip("not built here")
    return path


def readelf(option, path):
    """What readelf says of a program."""
    return subprocess.run(["readelf", option, path], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_has_no_writable_code_and_its_tables_are_sealed(program):
    headers = readelf("-lW", built(program))
    stack = next(line for line in headers.splitlines() if "GNU_STACK" in line)
    assert "RWE" not in stack
    assert "GNU_RELRO" in headers
    assert not re.search(r"LOAD .*RWE", headers)
    assert "BIND_NOW" in readelf("-dW", built(program))


@pytest.mark.parametrize("program", [*PROGRAMS, *BOARD_PROGRAMS])
def test_a_program_lies_at_an_address_of_its_own(program):
    path = ROOT / program
    if not path.exists():
        pytest.skip("not built here")
    assert "DYN (Position-Independent Executable file)" in readelf("-hW", path)
    assert ("INTERP" in readelf("-lW", path)) == ("rig-sim" in program)


@pytest.mark.parametrize("program", ["build/loader/probe", "build/loader/medium-sim", "build/rig-sim/rig-sim"])
def test_its_own_functions_guard_their_stack_and_check_their_copies(program):
    """In the machine code: our own functions call __stack_chk_fail and a *_chk function of the C library."""
    code = subprocess.run(
        ["objdump", "-d", "-C", "--no-show-raw-insn", built(program)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    called = set()
    ours = re.compile(r"<(opjoule|main|.*(opjoule|rig)::)")
    for function in code.split("\n\n"):
        head, _, body = function.partition("\n")
        if ours.search(head):
            called |= set(re.findall(r"call.*<(__\w+_chk\w*)", body))
    assert "__stack_chk_fail" in called
    assert called & {name for name in called if name.endswith("_chk")}


def test_no_copy_of_others_is_there_but_those_that_have_a_note():
    """Minified or packed code is never our own."""
    kinds = ("*.min.*", "*.jar", "*.so", "*.whl", "*.tgz", "*.wasm")
    made = {"build", ".venv", ".pio", ".git", "runs"}
    copies = {path for kind in kinds for path in ROOT.rglob(kind) if made.isdisjoint(path.relative_to(ROOT).parts)}
    noted = re.findall(r"^\| `(\S+)` \|", (VENDOR / "README.md").read_text(), re.MULTILINE)
    assert copies == {VENDOR / name for name in noted}


@pytest.mark.thorough
def test_the_copy_of_uplot_is_that_of_npms_package(tmp_path):
    if not shutil.which("npm"):
        pytest.skip("npm is not installed: the copy was only compared with its hashes")
    note = (VENDOR / "README.md").read_text()
    package = re.search(r"npm pack (\S+?)`", note)[1]
    fetch = ["npm", "pack", package, "--cache", tmp_path / "cache", "--pack-destination", tmp_path]
    subprocess.run(fetch, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300)
    [tarball] = tmp_path.glob("*.tgz")
    assert hashlib.sha256(tarball.read_bytes()).hexdigest() == re.search(r"tarball sha256\s+`(\w+)`", note)[1]
    with tarfile.open(tarball) as packed:
        for name in ("uPlot.iife.min.js", "uPlot.min.css"):
            assert packed.extractfile(f"package/dist/{name}").read() == (VENDOR / name).read_bytes()
        assert packed.extractfile("package/LICENSE").read() == (VENDOR / "uPlot.LICENSE").read_bytes()
