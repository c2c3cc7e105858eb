#!/usr/bin/env python3
"""Runs every command of README.md, CONTRIBUTING.md and docs/ that needs no hardware: a part of `./test`.

    host/documented_commands.py [--list] [WORD ...]      only commands that contain all the words

A command is a line of a fenced or indented block. It runs unchanged in a scratch folder with the contents of the
repository. documented_commands.toml lists the commands that run at a smaller scale and those that cannot run here, with
the reason. A rule there that matches no command is an error, as is a failing command. Uses only the standard library.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
TABLE: Final = Path(__file__).with_suffix(".toml")
LIMIT_S: Final = 300
JOBS: Final = 2
ENDED: Final = (130, 128 + signal.SIGTERM, -signal.SIGTERM)
"""Exit statuses of a program that was asked to end."""
_RUNNING: Final[set[int]] = set()
_BEGINS: Final = re.compile(
    r"(?:\w+=\S+ )*(?:(?:host|loader-cpp|firmware|fuzz|\.venv)/[\w./-]+|\./test|loader|probe|medium-sim|rig-sim|git|"
    r"ssh|sudo|pip|python3|cmake|java|avrdude|printf|apt-get) "
)
_PROSE: Final = re.compile(r"\w+ alone ")
"""Text in a run's summary, such as "loader alone ...", which is not a command."""


@dataclass(frozen=True)
class Documented:
    """One command line of one page."""

    page: str
    line: str
    """The command without its comment."""


@dataclass(frozen=True)
class Rule:
    """Treatment of the commands in which `match` is found; the first matching rule applies."""

    match: str
    skip: str = ""
    """Reason why it cannot run here; empty if it can."""
    replace: tuple[tuple[str, str], ...] = ()
    """(pattern, text) to be replaced one after the other, for a smaller scale."""
    add: str = ""
    until: str = ""
    """Text in its output after which it gets SIGTERM; for a command that runs until then."""
    speed: bool = False
    """Exit status 1 means that it is slower than its limit, or that the trials are too few to decide; this is reported
    but is not a failure."""
    thorough: bool = False
    """True for a long benchmark or validation, which runs only with --all."""
    first: bool = False
    """True if other commands need its output: it runs before them, and alone."""

    def scaled(self, line: str) -> str:
        """The command as it is run."""
        for pattern, text in self.replace:
            line = re.sub(pattern, text, line)
        return f"{line} {self.add}".strip()


def documented(root: Path = ROOT) -> list[Documented]:
    """Every command of the pages, each line once, in order."""
    commands: dict[str, Documented] = {}
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    for page in pages:
        for line in block_lines(page.read_text(encoding="utf-8")):
            if (_BEGINS.match(line + " ")) and not _PROSE.match(line):
                command = re.split(r"\s{2,}#|\s+# ", line)[0].strip()
                commands.setdefault(command, Documented(str(page.relative_to(root)), command))
    return list(commands.values())


def block_lines(text: str) -> Iterator[str]:
    """The lines of a page's fenced and indented blocks, without blocks in other languages."""
    fence: str | None = None
    for line in text.splitlines():
        if line.startswith("```"):
            fence = line[3:].strip() if fence is None else None
        elif fence in ("", "sh", "console") or (fence is None and line.startswith("    ")):
            yield line.strip().removeprefix("$ ")


def read_rules(path: Path = TABLE) -> tuple[list[Rule], list[Documented], list[str]]:
    """(rules, benchmarks that are in no page's block, commands that prepare the scratch folder)."""
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    rules = [Rule(**{**entry, "replace": tuple(map(tuple, entry.get("replace", ())))}) for entry in table["rule"]]
    benchmarks = [Documented(path.name, line) for line in table["benchmarks"]["commands"]]
    return rules, benchmarks, table["prepare"]["commands"]


def rule_of(command: Documented, rules: Sequence[Rule]) -> Rule:
    """The first matching rule; if there is none, the command runs unchanged."""
    return next((rule for rule in rules if re.search(rule.match, command.line)), Rule(""))


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder with the contents of the repository, where commands may leave files; `runs/` has only the example."""
    with tempfile.TemporaryDirectory(prefix="opjoule-documented-") as name:
        place = Path(name)
        for path in ROOT.iterdir():
            if path.name not in ("runs", ".git", "rig.toml"):
                (place / path.name).symlink_to(path)
        shutil.copytree(ROOT / "runs" / "example", place / "runs" / "example")
        yield place


def run(command: str, rule: Rule, place: Path) -> tuple[int | None, str]:
    """(exit status, output) of a command; the status is None after a timeout."""
    programs = [ROOT / "build/loader", ROOT / "build/rig-sim"]
    users = [folder for folder in os.environ["PATH"].split(os.pathsep) if folder != str(ROOT / ".venv/bin")]
    path = os.pathsep.join([*map(str, programs), *users])
    with tempfile.TemporaryDirectory(prefix="opjoule-said-") as folder:
        environment = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", "TMPDIR": folder}
        environment.pop("PYTHONPATH", None)
        said = Path(folder) / "said"
        with (
            said.open("wb") as sink,
            subprocess.Popen(
                ["bash", "-euc", command],
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            _RUNNING.add(process.pid)
            try:
                status = _awaited(process, rule, said)
            finally:
                _RUNNING.discard(process.pid)
        return status, said.read_text(errors="replace")


def _awaited(process: subprocess.Popen[bytes], rule: Rule, said: Path) -> int | None:
    """Exit status of a process, None after a timeout. With `until` in its rule, it is asked to end after that text."""
    end_s = time.monotonic() + LIMIT_S
    answered = False
    while time.monotonic() < end_s:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(0.2)
        if rule.until and not answered and rule.until in said.read_text(errors="replace"):
            os.killpg(process.pid, signal.SIGTERM)  # SIGINT is ignored where a shell began this in the background
            answered = True
    os.killpg(process.pid, signal.SIGKILL)
    return None


def report(command: Documented, rule: Rule, place: Path) -> bool:
    """Runs one command and reports the result, with its output if it failed. Returns: True if it ended well."""
    command_line, began_s = rule.scaled(command.line), time.monotonic()
    status, said = run(command_line, rule, place)
    well = (
        status == 0
        or (bool(rule.until) and status in ENDED)
        or (rule.speed and status == 1 and "Traceback (most recent" not in said)
    )
    mark = "FAIL" if not well else "slow" if status == 1 else "ok  "
    took_s = time.monotonic() - began_s
    scale = "" if command_line == command.line else f"   [as: {command_line}]"
    print(f"{mark} {took_s:5.1f} s  {command.page}: {command.line}{scale}", flush=True)
    if status:
        print("\n".join(f"    {line}" for line in said.splitlines()[-15:]), flush=True)
    return well


def run_all(chosen: Sequence[tuple[Documented, Rule]], prepare: Sequence[str]) -> int:
    """Runs all commands. Returns: number of failures."""
    with scratch() as place, ThreadPoolExecutor(JOBS) as pool:
        for command in prepare:
            status, said = run(command, Rule(""), place)
            if status:
                sys.exit(f"the scratch folder cannot be prepared:\n{said}")
        results = [report(*job, place) for job in chosen if job[1].first]
        results += pool.map(lambda job: report(*job, place), [job for job in chosen if not job[1].first])
    return results.count(False)


def main() -> int:
    """Exit status: 0 if every command that can run here ended well and every rule matches a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="list the commands that would be run and skipped")
    parser.add_argument("--all", action="store_true", help="also benchmarks and validations, which take minutes more")
    parser.add_argument("word", nargs="*", help="only commands that contain all of these words")
    options = parser.parse_args()
    rules, benchmarks, prepare = read_rules()
    commands = [(command, rule_of(command, rules)) for command in (*documented(), *benchmarks)]
    unused = [entry.match for entry in rules if entry not in [rule for _, rule in commands]]
    for match in unused:
        print(f"{TABLE.name}: no command matches the rule '{match}': remove it", file=sys.stderr)
    chosen = [
        (command, rule)
        for command, rule in commands
        if all(word in command.line for word in options.word) or (options.word and rule.first)
    ]
    for command, rule in chosen:
        if rule.skip or options.list:
            said = f"skip: {rule.skip}" if rule.skip else f"as: {rule.scaled(command.line)}"
            print(f"     {command.page}: {command.line}   [{said}]")
    if options.list:
        return bool(unused)
    possible = [(command, rule) for command, rule in chosen if not rule.skip]
    running = [(command, rule) for command, rule in possible if options.all or options.word or not rule.thorough]
    failed = run_all(running, prepare)
    print(
        f"{len(running)} commands ran, {failed} failed; {len(chosen) - len(possible)} cannot run here; "
        f"{len(possible) - len(running)} run with --all"
    )
    return 1 if failed or unused else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        for group in tuple(_RUNNING):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        os._exit(130)  # without waiting for the threads
