"""`host/runs.py list`. What reads one record in depth is not loaded for it: a list is asked for often."""

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from datetime import UTC
from itertools import zip_longest
from typing import Any, Final

from opjoule.base.settings import MEDIUM
from opjoule.cli.failures import one_line
from opjoule.cli.runs.options import ListOptions
from opjoule.results.run_list import ListedRun, RunIndex
from opjoule.runs.record.json_file import plain

SIMULATED: Final = "SIMULATED"
LEAST_ROOM: Final = 20
"""Narrowest terminal that a list is fitted to, in columns."""


def run_list(options: ListOptions) -> int:
    """Prints one line per record."""
    indexed = [run for place in options.places for _, run in RunIndex(place).runs()]
    listed = [run for run in indexed if _asked_for(run, options)]
    listed.sort(key=_KEYS[options.sort])
    if options.json:
        print(json.dumps([_plain(run) for run in listed], indent=2))
        return 0
    noted = [" ".join([*(f"[{tag}]" for tag in run.notes.tags), run.notes.text]).strip() for run in listed]
    print_columns([_HEAD, *map(_cells, listed)] if listed else [], below=["", *noted])
    if not listed:
        print(_no_match(indexed, options), file=sys.stderr)
    return 0


def _no_match(indexed: Sequence[ListedRun], options: ListOptions) -> str:
    """The line in place of an empty list; names the values that the records have where one was asked for."""
    there = {name: {run.labels[name] for run in indexed} for name in ("db", "device", MEDIUM) if getattr(options, name)}
    if options.tag:
        there["tag"] = {tag for run in indexed for tag in run.notes.tags}
    known = [f"--{name} {', '.join(sorted(filter(None, values))) or 'none'}" for name, values in there.items()]
    return f"no record matches; the records have {' and '.join(known)}" if known else "no record matches"


def _asked_for(run: ListedRun, options: ListOptions) -> bool:
    named = all(getattr(options, name) in (None, value) for name, value in run.labels.items())
    ended = not options.status or run.status in options.status
    tagged = set(options.tag) <= set(run.notes.tags)
    return named and ended and tagged and not (options.real and run.simulated)


_KEYS: Final[dict[str, Callable[[ListedRun], Any]]] = {
    "date": lambda run: (run.started_utc, str(run.path)),
    "name": lambda run: str(run.path),
    "headline": lambda run: math.inf if run.headline.value is None else run.headline.value,
}
_HEAD: Final = ("record", "began (UTC)", "what", "device", MEDIUM, "status", "", "headline (95 %)")


def _cells(run: ListedRun) -> tuple[str, ...]:
    began = run.started
    return (
        str(run.path),
        began.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if began else "",
        run.subject,
        run.device,
        run.medium,
        run.status,
        ", ".join([SIMULATED] * run.simulated + list(dict.fromkeys(notice.mark for notice in run.notices))),
        run.why or run.headline_text,
    )


def _plain(run: ListedRun) -> dict[str, Any]:
    names = ("status", "simulated", "started_utc", "subject")
    headline = {"value": run.headline.value, "u": run.headline.u, "unit": run.headline.unit}
    if run.headline.value is None:
        headline["reason"] = run.headline.reason
    remarks: dict[str, Any] = {"notices": plain(run.notices)}
    remarks |= {"note": run.notes.text, "tags": list(run.notes.tags)}
    return {
        "record": str(run.path),
        **{name: getattr(run, name) for name in names},
        **run.labels,
        "why": run.why,
        "headline": headline,
        **remarks,
    }


def print_columns(rows: list[tuple[str, ...]], below: Sequence[str]) -> None:
    """Prints rows of texts as columns, two blanks apart, with control characters as escapes.

    On a terminal that is too narrow for a row, its last columns are on further lines. Elsewhere a row is one line.

    Args:
        below: an indented line under each row; an empty one is not printed.
    """
    texts = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in texts) for at in range(len(texts[0]))] if texts else []
    room = max(shutil.get_terminal_size().columns, LEAST_ROOM) if sys.stdout.isatty() else sys.maxsize
    wrap = textwrap.TextWrapper(room, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    for row, line in zip_longest(texts, below[: len(texts)], fillvalue=""):
        lines = [""]
        for text, width in zip(row, widths, strict=True):
            if lines[-1] and len(lines[-1]) + len(text) > room:
                lines.append("    ")
            lines[-1] += f"{text:<{width}}  "
        lines += [f"    {one_line(line)}"] if line else []
        for each in filter(None, map(str.rstrip, lines)):
            print(*wrap.wrap(each), sep="\n")
