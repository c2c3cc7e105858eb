"""Records made to do harm: each is a copy of the example with one thing in it that no measurement writes."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from opjoule.runs.record.run_record import with_digest
from opjoule.runs.record.seals import checksums

EXAMPLE = Path(__file__).with_name("earlier_record")
SECRET = "a line of a file outside of the record"
LONG = 300_000
"""Letters of a long name."""

Harm = Callable[[Path], None]


def sound(directory: Path) -> Path:
    """A copy of a small record of an earlier version."""
    shutil.copytree(EXAMPLE, directory)
    return directory


def sealed(directory: Path) -> None:
    """Gives run.json the checksums of the changed files, so that nothing looks changed."""
    document = json.loads((directory / "run.json").read_text())
    rewrite(directory, {**document, "checksums": checksums(directory, {})})


def rewrite(directory: Path, document: dict[str, Any]) -> None:
    """Replaces run.json and its own checksum."""
    (directory / "run.json").write_text(json.dumps(with_digest(document)))


def outside(directory: Path) -> Path:
    """A file beside the records, which nobody may show or change."""
    path = directory.parent.parent / "outside.txt"
    path.write_text(SECRET)
    return path


def replaced(name: str, put: Callable[[Path, Path], None], directory: Path) -> None:
    path = directory / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    put(path, outside(directory))


def _socket(path: Path, _: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a socket has at most 108 bytes
    try:
        with closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def _deep(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "link": lambda path, target: path.symlink_to(target),
    "link without a target": lambda path, target: path.symlink_to(target.with_name("absent")),
    "link to itself": lambda path, _: path.symlink_to(path.name),
    "link to a folder": lambda path, target: path.symlink_to(target.parent),
    "link to a device": lambda path, _: path.symlink_to("/dev/zero"),
    "FIFO": lambda path, _: os.mkfifo(path),
    "socket": _socket,
    "folder": lambda path, _: path.mkdir(),
}
PLACES = (
    *(
        "run.json",
        "result.json",
        "notes.json",
        "notes.json.tmp",
        "report.html",
        "report.html.tmp",
        "view.cache",
    ),
    *("power.parquet", "operations.parquet", "raw", "raw/run-1.log", "simulator-truth.json"),
)


def in_json(name: str, path: str, value: Any, directory: Path) -> None:
    """Puts a value at a dotted path of a JSON file, and seals the record."""
    file = directory / name
    document = json.loads(file.read_text())
    at = document
    *above, last = path.split(".")
    for key in above:
        at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
    at[int(last) if isinstance(at, list) else last] = value
    if name == "run.json":
        rewrite(directory, document)
        return
    file.write_text(json.dumps(document))
    sealed(directory)


def as_text(name: str, text: str, directory: Path) -> None:
    (directory / name).write_text(text)


def checksum_of(name: str, directory: Path) -> None:
    """run.json has the checksum of a file outside of the record."""
    document = json.loads((directory / "run.json").read_text())
    target = outside(directory)
    named = str(target) if name == "absolute" else name
    rewrite(directory, {**document, "checksums": {**document["checksums"], named: "0" * 64}})


def cut_off(name: str, directory: Path) -> None:
    """A killed run whose seals name a file outside of the record, which would be cut off there."""
    document = json.loads((directory / "run.json").read_text())
    document.pop("checksums")
    rewrite(directory, {**document, "status": "partial"})
    target = outside(directory)
    nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    with (directory / "raw/seals.csv").open("a") as seals:
        seals.write(f"{target if name == 'absolute' else name},0,{nothing}\n")


def in_table(name: str, column: str, value: Callable[[Any], Any], directory: Path) -> None:
    """Changes a column of a table, and seals the record."""
    path = directory / f"{name}.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index(column)
    field = table.schema.field(column)
    changed = value(table.column(column).to_numpy().copy())
    if changed is None:
        table = table.slice(0, 0)
    else:
        table = table.set_column(at, field, pa.array(changed, field.type, from_pandas=False))
    pq.write_table(table, path)
    sealed(directory)


def _with(at: int | slice, value: Any) -> Callable[[Any], Any]:
    def changed(values: Any) -> Any:
        values[at] = value
        return values

    return changed


NUMBERS: dict[str, Any] = {
    "a text": "text",
    "true": True,
    "a list": [1, 2],
    "an object": {"value": 1},
    "null": None,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "400 digits": 10**400,
    "2 to the 62": 2**62,
    "2 to the 70": 2**70,
    "minus 1": -1,
    "1e300": 1e300,
}
NUMERIC = (
    *("phases.3.start_board_ns", "phases.3.repeat", "clock_maps.sync-edges.rate", "notices", "sensor.u_gain"),
    *("clock_maps.sync-edges.source_ref_ns", "clock_maps.sync-edges.knots", "loader.run-1.operations"),
)
TEXTS = {
    "a long name": "x" * LONG,
    "a long path": "/a" * (LONG // 2),
    "a long address": "a@" * (LONG // 2),
    "two dollars": "$\\frac$",
    "a formula": "=cmd|'/C calc'!A0",
    "a tab and a formula": "\t=1+1",
    "an escape": "\x1b]0;owned\x07",
    "half of a pair": "\ud800",
    "lines": "a\nb\r\nc",
}
TEXTUAL = ("asked.db", "asked.device", "found.storage", "loader.run-1.database", "loader.run-1.settings.x")


def _all() -> dict[str, Harm]:
    made: dict[str, Harm] = {
        f"{kind}: {place}": partial(replaced, place, put) for kind, put in KINDS.items() for place in PLACES
    }
    made |= {
        f"{what}: {path}": partial(in_json, "run.json", path, value)
        for path in NUMERIC
        for what, value in NUMBERS.items()
    }
    made |= {
        f"{what}: {path}": partial(in_json, "run.json", path, text) for path in TEXTUAL for what, text in TEXTS.items()
    }
    made |= {
        f"{what}: {path} of result.json": partial(in_json, "result.json", path, value)
        for path in (
            "energy_j",
            "energy_j.value",
            "energy_j.u",
            "by_operation",
            "operations.value",
            "repeats",
        )
        for what, value in NUMBERS.items()
    }
    made |= {
        f"{what}: unit and warning": partial(in_json, "result.json", path, value)
        for path, what, value in (
            *(("energy_j.unit", what, text) for what, text in TEXTS.items()),
            ("notices", "100,000 lines", [{"kind": "too short", "line": "too short"}] * 100_000),
        )
    }
    for depth in (60, 900, 100_000):
        opening, closing_ = "[" * depth, "]" * depth
        made |= {
            f"{depth} deep: {name}": partial(as_text, name, f'{{"schema": {opening}{closing_}}}')
            for name in ("run.json", "result.json", "notes.json")
        }
    for path in ("asked.more", "plan.study.more", "loader.run-1.workload.more", "found.more"):
        made[f"900 deep: {path}"] = partial(in_json, "run.json", path, _deep(900))
    made |= {
        "a huge run.json": partial(as_text, "run.json", '{"a": "' + "x" * (20 << 20) + '"}'),
        "not JSON": partial(as_text, "run.json", "\0\0\0"),
        "a list: run.json": partial(as_text, "run.json", "[]"),
        "a number: run.json": partial(as_text, "run.json", "5"),
        "no checksums": partial(in_json, "run.json", "checksums", None),
        "numbers for checksums": partial(in_json, "run.json", "checksums", {"result.json": 5}),
        **{f"a checksum of {name}": partial(checksum_of, name) for name in ("../../outside.txt", "absolute")},
        **{f"a seal of {name}": partial(cut_off, name) for name in ("../../../outside.txt", "absolute")},
        "times at 2 to the 62": partial(in_table, "power", "meter_ns", _with(-1, 2**62)),
        "times from minus 2 to the 62": partial(in_table, "power", "meter_ns", _with(0, -(2**62))),
        "times over the whole range": partial(
            in_table, "power", "meter_ns", lambda ns: _with(0, -(2**63))(_with(-1, 2**63 - 1)(ns))
        ),
        "equal times": partial(in_table, "power", "meter_ns", _with(slice(None), 5)),
        "falling times": partial(in_table, "power", "meter_ns", lambda ns: ns[::-1]),
        "no samples": partial(in_table, "power", "meter_ns", lambda _: None),
        "no number among the currents": partial(in_table, "power", "current_a", _with(slice(None), np.nan)),
        "infinite currents": partial(in_table, "power", "current_a", _with(slice(None), np.inf)),
        "an operation at 2 to the 62": partial(in_table, "operations", "board_ns", _with(-1, 2**62)),
        "operations that last 2 to the 62": partial(in_table, "operations", "duration_ns", _with(slice(None), 2**62)),
        "no operations": partial(in_table, "operations", "board_ns", lambda _: None),
        "an event at 2 to the 62": partial(in_table, "events", "board_ns", _with(-1, 2**62)),
        "a counter at minus 2 to the 63": partial(in_table, "system", "board_ns", _with(0, -(2**63))),
        "an Arrow file of zeros": partial(as_text, "view.cache", "\0" * 4096),
    }
    return made


HARMS: dict[str, Harm] = _all()
"""Name -> function that does it to a sound record."""
SAMPLE = (
    *(
        "link: result.json",
        "link: report.html",
        "link: raw/run-1.log",
        "link: notes.json.tmp",
        "link to a device: raw",
    ),
    *("FIFO: run.json", "FIFO: raw/run-1.log", "socket: view.cache", "a seal of absolute", "no checksums"),
    *("900 deep: asked.more", "not a number: phases.3.start_board_ns", "400 digits: energy_j of result.json"),
    *(
        "a long name: asked.db",
        "two dollars: asked.db",
        "a formula: asked.db",
        "half of a pair: asked.device",
    ),
    *("times at 2 to the 62", "infinite currents", "an operation at 2 to the 62"),
)
"""At least one of each kind."""
