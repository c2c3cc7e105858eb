"""A campaign's file: axes, constants, exclusions, repeats. Read with the standard library alone, before set-up, too.

Reference: docs/how-to/run-a-campaign.md.
"""

from __future__ import annotations

import argparse
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opjoule.campaign.axes import axis, words_of
from opjoule.cli.argument_types import Parser, directory
from opjoule.cli.measure_arguments import measure_parser
from opjoule.errors import BadInput
from opjoule.suggestion import unknown

KEYS: Final = ("name", "repeats", "seed", "retries", "constants", "axes", "exclude", "where")
NOT_OF_A_CELL: Final = (
    "out",
    "json",
    "dry_run",
    "repeats",
    "seed",
    "until_u",
    "repeats_limit",
    "help",
    "version",
)
"""Options that a campaign says itself, or that have no meaning in it."""
CELLS_MAX: Final = 100_000


EXAMPLES: Final = """\
examples:
  host/campaign.py campaigns/three-engines.toml --dry-run
      how many cells, what is done, how long the rest takes
  host/campaign.py campaigns/three-engines.toml
      measure what is missing; after any end the same command goes on
  host/compare.py runs/three-engines --by storage
      what can be concluded
"""


def campaign_parser() -> Parser:
    """The parser of `measure.py campaign`."""
    parser = Parser(
        program="campaign.py",
        description="Measures every combination of a file's axes in randomised blocks, each as a record of its own. "
        "What the records on the disk say is done is not measured again.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "file", type=directory, metavar="FILE.toml", help="the campaign (docs/how-to/run-a-campaign.md)"
    )
    parser.add_argument(
        "--out", type=directory, metavar="DIR", help="its folder (default: runs/NAME, where it goes on)"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan and what is missing, and stop")
    parser.add_argument(
        "--json", action="store_true", help="print the plan, or in the end the index, as JSON"
    )
    return parser


@dataclass(frozen=True)
class PlannedCell:
    """One condition of the campaign, with the options of its measurement."""

    condition: Mapping[str, str]
    options: argparse.Namespace


@dataclass(frozen=True)
class CampaignFile:
    """What a file asks for, checked."""

    name: str
    repeats: int
    """Blocks, each of which holds every cell once."""
    seed: int
    """Of the order in a block, of keys and values, and of a simulated rig."""
    retries: int
    """How many times more a cell that has failed is measured."""
    cells: tuple[PlannedCell, ...]

    @classmethod
    def read(cls, path: Path) -> CampaignFile:
        """Raises: BadInput: it cannot be read, or the first thing in it that is wrong."""
        try:
            entry = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}: give a campaign's file, as in campaigns/") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path} is no TOML: {error}") from None
        try:
            return cls._of(entry, path)
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from None

    @classmethod
    def _of(cls, entry: Mapping[str, Any], path: Path) -> CampaignFile:
        for key in entry:
            if key not in KEYS:
                raise BadInput(unknown("key", key, KEYS))
        seed = _whole(entry, "seed", 1, 0)
        return cls(
            str(entry.get("name", path.stem)),
            _whole(entry, "repeats", 5, 1),
            seed,
            _whole(entry, "retries", 1, 0),
            _cells(entry, seed),
        )


def _whole(entry: Mapping[str, Any], key: str, default: int, least: int) -> int:
    value = entry.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadInput(f"{key} = {value!r} is not a whole number of at least {least}")
    return value


def _table(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = entry.get(key, {})
    if not isinstance(found, dict):
        raise BadInput(f"{key} is not a table: write [{key}]")
    return found


def _tables(entry: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    found = entry.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BadInput(f"{key} is not a list of tables: write [[{key}]]")
    return found


def _cells(entry: Mapping[str, Any], seed: int) -> tuple[PlannedCell, ...]:
    axes = {name: _values(name, values) for name, values in _table(entry, "axes").items()}
    if not axes:
        raise BadInput('a campaign needs [axes], for example storage = ["sd", "emmc"]')
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > CELLS_MAX:
        raise BadInput(f"{count} cells are more than {CELLS_MAX}: split the campaign")
    constants = _table(entry, "constants")
    for name in constants:
        if name in NOT_OF_A_CELL:
            raise BadInput(
                f"[constants] {name}: it is the campaign's own; leave it out, or give it above the tables"
            )
        if name in axes:
            raise BadInput(f"{name} is a constant and an axis: leave one out")
    excluded, special = _tables(entry, "exclude"), _tables(entry, "where")
    for each in (*excluded, *(one.get("when", {}) for one in special)):
        _check_match(each, axes)
    cells = []
    for combination in itertools.product(*axes.values()):
        condition = dict(zip(axes, combination, strict=True))
        if any(_matches(each, condition) for each in excluded):
            continue
        own: dict[str, Any] = {}
        for each in special:
            if _matches(each["when"], condition):
                own |= {key: value for key, value in each.items() if key != "when"}
        cells.append(PlannedCell(condition, _options({**constants, **condition, **own}, condition, seed)))
    if not cells:
        raise BadInput("[[exclude]] leaves no cell")
    return tuple(cells)


def _values(name: str, values: Any) -> list[str]:
    axis(name)
    if not isinstance(values, list) or not values:
        raise BadInput(f"[axes] {name}: give a list of values")
    texts = [str(each) for each in values]
    if len(set(texts)) < len(texts) or not all(each.strip() for each in texts):
        raise BadInput(f"[axes] {name}: name each value once")
    return texts


def _check_match(match: Any, axes: Mapping[str, Sequence[str]]) -> None:
    if not isinstance(match, dict) or not match:
        raise BadInput(
            'name the axes it is about: [[exclude]] storage = "emmc", or [[where]] when = { db = "sqlite" }'
        )
    for name, wanted in match.items():
        if name not in axes:
            raise BadInput(unknown("axis", name, axes))
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if str(value) not in axes[name]:
                raise BadInput(f"{name} = {value!r} is none of its values: {', '.join(axes[name])}")


def _matches(match: Mapping[str, Any], condition: Mapping[str, str]) -> bool:
    return all(
        condition[name] in [str(each) for each in (wanted if isinstance(wanted, list) else [wanted])]
        for name, wanted in match.items()
    )


class _Mistake(Exception):
    """What the parser of a cell's options says."""


def _options(values: Mapping[str, Any], condition: Mapping[str, str], seed: int) -> argparse.Namespace:
    """The cell's options as measure.py's own parser reads them. Raises: BadInput: one that it does not take."""
    parser = measure_parser()

    def error(message: str) -> None:
        raise _Mistake(message)

    parser.error = error  # type: ignore[assignment,method-assign]
    try:
        return parser.parse_args([*words_of(values), "--seed", str(seed)])
    except _Mistake as mistake:
        shown = ", ".join(f"{name} {value}" for name, value in condition.items())
        raise BadInput(f"the cell {shown}: {mistake}") from None
