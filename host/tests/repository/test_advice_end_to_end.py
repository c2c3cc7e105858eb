"""Advice that a summary prints is carried out on the simulated rig, and what it complained of is gone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 600
"""Guards against waiting without end."""
SHORT = (
    "--records",
    "2000",
    "--idle",
    "1",
    "--repeats",
    "1",
    "--rate",
    "full",
    "--reset",
    "load",
)

pytestmark = [pytest.mark.rig, pytest.mark.end_to_end]


def summary(out: Path, *options: str) -> str:
    """What a simulated measurement prints, in one line."""
    words = [sys.executable, "-m", "opjoule.cli.start", "--db", "leveldb", "--device", "rpi4", "--simulate"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "host"), "COLUMNS": "100"}
    ended = subprocess.run(
        [*words, *options, "--out", str(out)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return " ".join(ended.stdout.split())


@pytest.mark.parametrize(
    ("options", "complaint", "advised"),
    [
        (
            (*SHORT, "--no-harness", "--operations", "2000"),
            "too short to be representative",
            r"--seconds \d+",
        ),
        (
            (*SHORT, "--no-harness", "--seconds", "2"),
            "one run does not show how much runs differ",
            r"--repeats \d+",
        ),
        (
            (*SHORT, "--no-harness", "--records", "20000", "--seconds", "10"),
            "(?i)operations waited for",
            r"--rate \d+",
        ),
    ],
    ids=["too-short", "one-run", "waiting"],
)
def test_what_is_advised_mends_what_is_complained_of(
    tmp_path: Path, options: tuple[str, ...], complaint: str, advised: str
) -> None:
    said = summary(tmp_path / "before", *options)
    assert re.search(complaint, said), said
    match = re.search(advised, said)
    assert match, said
    words = match[0].split()
    replaced = _without(options, {words[0], *({"--operations"} if words[0] == "--seconds" else ())})
    again = summary(tmp_path / "after", *replaced, *words)
    assert not re.search(complaint, again), again


def _without(options: tuple[str, ...], named: set[str]) -> list[str]:
    """The options but for some that take a value."""
    kept, skip = [], False
    for word in options:
        skip, was = word in named, skip
        if not (skip or was):
            kept.append(word)
    return kept
