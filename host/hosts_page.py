#!/usr/bin/env python3
"""How each computer of `./test fresh` did, and the table of docs/reference/hosts.md made of it.

Uses only the standard library; `host/fresh_roots.py --table` writes the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from plain_folder import ROOT

PAGE: Final = ROOT / "docs/reference/hosts.md"
RESULTS: Final = PAGE.with_suffix(".json")
START, END = "<!-- hosts: written by host/fresh_roots.py --table -->", "<!-- /hosts -->"
NOT_RUN: Final = "not run"
NO_FIGURE: Final = "-"
_SET_UP: Final = re.compile(r"^Set-up done in (\d+) s", re.MULTILINE)
_PARTS: Final = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)
_PYTEST: Final = re.compile(
    r"^(?: *\w+ \| )?=*\s*((?:\d+ (?:passed|failed|skipped|deselected|errors?|xfailed|xpassed|warnings?)(?:, )?)+)"
    r" in [\d.]+s\b",
    re.MULTILINE,
)
_DOCTEST: Final = re.compile(
    r"^\[doctest\] test cases: +\d+ \| +(\d+) passed \| +(\d+) failed \| +(\d+) skipped", re.MULTILINE
)


@dataclass(frozen=True)
class Counts:
    """How many tests, or parts of `./test`, ended how."""

    passed: int
    failed: int
    skipped: int = 0


@dataclass(frozen=True)
class HostResult:
    """How one computer did. A figure is None where its command did not run or did not state it."""

    host: str
    commit: str
    date: str
    """Day on which it began."""
    seconds: int
    """From the unpacked root to the end."""
    failed: str = ""
    """Name of the step that failed, or empty."""
    first_status: int | None = None
    """Exit status of README's first command; where the processor is emulated, of its set-up."""
    set_up_s: int | None = None
    """Set-up of the first command, system packages included."""
    parts: Counts | None = None
    """Of ./test."""
    tests: Counts | None = None
    """Of pytest's in ./test; where the processor is emulated, of the loader's."""


def set_up_seconds(output: str) -> int | None:
    """Seconds that the first set-up in an output took; None if it states none."""
    found = _SET_UP.search(output)
    return int(found[1]) if found else None


def part_counts(output: str) -> Counts | None:
    """Parts of `./test` that passed and failed, of its last line; None if it did not get there."""
    found = _PARTS.findall(output)
    return Counts(*map(int, found[-1])) if found else None


def test_counts(output: str) -> Counts | None:
    """Tests by outcome, of the first closing line of pytest or doctest; None if there is none.

    A later line belongs to what ./test ran once more. An error in a fixture counts as failed.
    """
    if found := _PYTEST.search(output):
        counts = {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) (\w+)", found[1])}
        failed = counts.get("failed", 0) + counts.get("error", 0)
        return Counts(counts.get("passed", 0), failed, counts.get("skipped", 0))
    if doctest := _DOCTEST.search(output):
        return Counts(*map(int, doctest.groups()))
    return None


def read_results(path: Path = RESULTS) -> dict[str, HostResult]:
    """The results of earlier runs, by the row's name; empty if there are none."""
    if not path.is_file():
        return {}
    results = {}
    for name, fields in json.loads(path.read_text()).items():
        counts = {key: Counts(**fields[key]) for key in ("parts", "tests") if fields[key]}
        results[name] = HostResult(**{**fields, **counts})
    return results


def write_results(results: Mapping[str, HostResult], path: Path = RESULTS) -> None:
    """Writes the results, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps({name: asdict(result) for name, result in results.items()}, indent=1) + "\n")
    part.rename(path)


def hosts_table(rows: Iterable[tuple[str, str]], results: Mapping[str, HostResult]) -> str:
    """The table of the page, in Markdown.

    Args: rows: name and description of each computer; one without a result is "not run".
    """
    head = (
        "| row | computer | outcome | set-up [s] | first command exits | parts of `./test` passed / failed | "
        "tests passed / failed / skipped | in all [s] | run on | commit |"
    )
    lines = [head, "|" + "---|" * head.count(" | ") + "---|"]
    for name, about in rows:
        cells = _cells(results[name]) if name in results else (NOT_RUN, *[""] * 7)
        lines.append(f"| {' | '.join((f'`{name}`', about, *cells))} |")
    return "\n".join(lines) + "\n"


def _cells(result: HostResult) -> tuple[str, ...]:
    parts, tests = result.parts, result.tests
    return (
        f"failed: {result.failed}" if result.failed else "passed",
        _or_none(result.set_up_s),
        _or_none(result.first_status),
        f"{parts.passed} / {parts.failed}" if parts else NO_FIGURE,
        f"{tests.passed:,} / {tests.failed:,} / {tests.skipped:,}" if tests else NO_FIGURE,
        f"{result.seconds:,}",
        result.date,
        f"`{result.commit}`",
    )


def _or_none(value: int | None) -> str:
    return NO_FIGURE if value is None else str(value)


def renewed(page: str, table: str) -> str:
    """The page with this table. Raises: ValueError: the page has no place for it."""
    if START not in page or END not in page:
        raise ValueError(f"{PAGE.name} has no '{START}' ... '{END}'")
    block = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    return block.sub(lambda _: f"{START}\n{table}{END}", page)
