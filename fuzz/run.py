#!/usr/bin/env python3
"""Fuzzes the parsers of bytes from outside for a number of executions each, and prints what was reached.

    fuzz/run.py --list
    fuzz/run.py marks requests --executions 10000000
    fuzz/run.py oplog --seconds 60 --keep     # adds inputs that reached new code to fuzz/corpus

Run host/bootstrap.py --test before. The C++ parsers need clang's libFuzzer, the Python parsers atheris; both are
installed if they are missing. An input that breaks a parser is kept in build/fuzz/found. Once the parser is fixed,
move the input to fuzz/corpus, which `./test` replays.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "host"))

from system_packages import install_sections  # noqa: E402  # the path is set just above

BUILD = ROOT / "build" / "fuzz"
CORPUS = ROOT / "fuzz" / "corpus"
FOUND = BUILD / "found"
PYTHON = ROOT / ".venv" / "bin" / "python"
MEMORY_MIB = 1024
"""A parser that takes more has trusted a wrong length in its input."""
LONGEST_S = 10
"""An input that takes longer counts as a find."""
INPUT_BYTES = 1024
"""Length of the longest input. No message or line that matters is longer, and short inputs run faster."""
LONGER_INPUT_BYTES = {"power-parquet": 4096, "operations-parquet": 4096}
"""The same for parsers whose shortest valid file is longer: cut off, it would have no footer and nothing to read."""
PYTHON_PIECE = 50_000
"""Executions of a process of atheris: it keeps up to 13 KiB an execution, where its instrumentation compares arrays."""
KEPT_BYTES = 3000
"""Size of a parser's corpus in the repository."""

PROGRAMS = {
    "loader-fuzz": ("properties", "histogram", "trace", "operation-log", "marks", "requests"),
    "firmware-fuzz": ("frames", "commands"),
}
PYTHON_PARSERS = (
    "wire", "monsoon", "ppk2", "ppk2-calibration", "smartpower3", "powersensor3", "oplog", "board-events",
    "board-samples", "probe-answers",
    "rig-toml", "calibration-toml", "campaign-toml", "csv-import", "run-json", "result-json", "power-parquet",
    "operations-parquet", "trace-stream",
)  # fmt: skip


@dataclass(frozen=True)
class Reached:
    """Result of fuzzing one parser."""

    parser: str
    executions: int
    edges: int
    """Places of the instrumented code that the inputs reached."""
    memory_mib: int
    finds: int


def built() -> None:
    """Builds the fuzzers of the C++ parsers. Raises: CalledProcessError, SetupError."""
    BUILD.mkdir(parents=True, exist_ok=True)
    install_sections(["fuzz"], [], BUILD / "setup.log")
    environment = {**os.environ, "CC": "clang", "CXX": "clang++"}
    configure = ["cmake", "-S", str(ROOT / "fuzz"), "-B", str(BUILD), "-G", "Ninja"]
    subprocess.run(configure, env=environment, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(BUILD), "--target", *PROGRAMS], check=True)


def atheris_installed() -> None:
    """Installs atheris into .venv if it is missing. Raises: CalledProcessError."""
    if subprocess.run([PYTHON, "-c", "import atheris"], capture_output=True, check=False).returncode:
        lock = str(ROOT / "fuzz" / "requirements.txt")
        subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--require-hashes", "-r", lock], check=True)


def command(parser: str) -> tuple[list[str], dict[str, str]]:
    """(command, environment) of a parser's fuzzer."""
    for program, parsers in PROGRAMS.items():
        if parser in parsers:
            return [str(BUILD / program)], {"OPJOULE_PARSER": parser}
    environment = {"PYTHONPATH": f"{ROOT / 'host'}:{ROOT / 'fuzz'}", "OPJOULE_PARSER": parser}
    return [str(PYTHON), str(ROOT / "fuzz" / "python_fuzzer.py")], environment


def inputs_of(parser: str) -> list[bytes]:
    """The parser's corpus in the repository."""
    lines = (CORPUS / f"{parser}.hex").read_text().splitlines()
    return [bytes.fromhex(line) for line in lines if line and not line.startswith("#")]


def unpacked(parser: str) -> Path:
    """The folder of inputs that libFuzzer reads and extends; the repository's inputs are added to it."""
    folder = BUILD / "corpus" / parser
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs_of(parser)):
        (folder / f"kept-{number:03}").write_bytes(data)
    return folder


def fuzz(parser: str, executions: int, seconds: int) -> Reached:
    """Fuzzes one parser up to its number of executions, its time or its first find."""
    piece = PYTHON_PIECE if parser in PYTHON_PARSERS else executions
    reached, until_s = Reached(parser, 0, 0, 0, 0), time.monotonic() + seconds
    while (left := executions - reached.executions) > 0 and not reached.finds:
        left_s = max(1, round(until_s - time.monotonic())) if seconds else 0
        new = _fuzz_piece(parser, min(piece, left), left_s)
        reached = Reached(
            parser,
            reached.executions + new.executions,
            max(reached.edges, new.edges),
            max(reached.memory_mib, new.memory_mib),
            new.finds,
        )
        if not new.executions or (seconds and time.monotonic() >= until_s):
            break
    return reached


def _fuzz_piece(parser: str, executions: int, seconds: int) -> Reached:
    """Runs one process of a parser's fuzzer to its end or its first find."""
    found = FOUND / parser
    found.mkdir(parents=True, exist_ok=True)
    before = len(list(found.iterdir()))
    program, environment = command(parser)
    limits = [f"-runs={executions}", f"-max_total_time={seconds}", f"-rss_limit_mb={MEMORY_MIB}"]
    limits += [f"-malloc_limit_mb={MEMORY_MIB // 2}", f"-timeout={LONGEST_S}", "-print_final_stats=1"]
    limits += [f"-max_len={LONGER_INPUT_BYTES.get(parser, INPUT_BYTES)}"]
    log = BUILD / f"{parser}.log"
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with log.open("w") as file, tempfile.TemporaryDirectory(prefix="opjoule-fuzz-", dir=shared) as memory:
        # The fuzzers end without Python's clean-up, so their files go into a folder that is removed here.
        environment = {**os.environ, **environment, "OPJOULE_MEMORY": memory}
        full = [*program, *limits, f"-artifact_prefix={found}/", str(unpacked(parser))]
        subprocess.run(full, env=environment, stdout=file, stderr=file, check=False)
    text = log.read_text(errors="replace")
    finds = len(list(found.iterdir())) - before
    if not (ended := re.search(r"stat::number_of_executed_units", text)):
        print(f"{text[-2000:]}\n{parser}: the fuzzer ended before its statistics; see {log}", file=sys.stderr)
    return Reached(
        parser,
        _last(r"stat::number_of_executed_units:\s*(\d+)" if ended else r"\n#(\d+)", text),
        _last(r"cov: (\d+)", text),
        _last(r"stat::peak_rss_mb:\s*(\d+)", text),
        finds if ended else max(finds, 1),
    )


def _last(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def keep(parser: str) -> None:
    """Adds inputs that reach new code to the parser's corpus in the repository, shortest first, up to KEPT_BYTES."""
    program, environment = command(parser)
    merged = BUILD / "merged" / parser
    merged.mkdir(parents=True, exist_ok=True)
    for old in merged.iterdir():
        old.unlink()
    folders = [str(merged), str(BUILD / "corpus" / parser)]
    subprocess.run(
        [*program, "-merge=1", *folders], env={**os.environ, **environment}, capture_output=True, check=False
    )
    path = CORPUS / f"{parser}.hex"
    lines = path.read_text().splitlines()
    size = sum(len(line) // 2 for line in lines if not line.startswith("#"))
    known = set(lines)
    for data in sorted((file.read_bytes() for file in merged.iterdir()), key=len):
        if data and data.hex() not in known and size + len(data) <= KEPT_BYTES:
            lines.append(data.hex())
            size += len(data)
    path.write_text("\n".join(lines) + "\n")


def main() -> int:
    """Fuzzes the chosen parsers. Returns: exit status, 1 if a parser broke."""
    everything = [name for parsers in PROGRAMS.values() for name in parsers] + list(PYTHON_PARSERS)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parser", nargs="*", choices=[*everything, []], help="parsers to fuzz (default: all)")
    parser.add_argument(
        "--executions",
        type=int,
        help="executions of each parser (default: 10 million in C++, 1 million in Python)",
    )
    parser.add_argument("--seconds", type=int, default=0, help="end each parser after this time")
    parser.add_argument("--keep", action="store_true", help="add inputs that reach new code to fuzz/corpus")
    parser.add_argument("--list", action="store_true", help="list the parsers")
    asked = parser.parse_args()
    if asked.list:
        print(*everything, sep="\n")
        return 0
    chosen = asked.parser or everything
    if not set(chosen) <= set(PYTHON_PARSERS):
        built()
    if set(chosen) & set(PYTHON_PARSERS):
        atheris_installed()
    print("| parser | executions | places reached | memory, MiB | finds |\n|---|---|---|---|---|")
    finds = 0
    for name in chosen:
        executions = asked.executions or (1_000_000 if name in PYTHON_PARSERS else 10_000_000)
        reached = fuzz(name, executions, asked.seconds)
        finds += reached.finds
        print(
            f"| {name} | {reached.executions:,} | {reached.edges} | {reached.memory_mib} | {reached.finds} |",
            flush=True,
        )
        if asked.keep:
            keep(name)
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
