"""A campaign's file: axes, constants, exclusions, repeats.

Reference: docs/how-to/run-a-campaign.md.
"""

import argparse
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from opjoule.base.errors import BadInput, suggestion
from opjoule.base.toml_file import (
    axis_values,
    check_keys,
    check_match,
    combinations,
    matches,
    read_toml,
    table,
    tables,
    where_values,
)
from opjoule.campaign.axes import AXES, axis, words_of
from opjoule.campaign.until import BLOCKS_LIMIT, UntilNarrow
from opjoule.cli.argument_types import REPEATS_MAX, SEED_MAX, percent
from opjoule.cli.measure.options import (
    MEASURE,
    JobOptions,
    PlanningOptions,
    StudyWorkloadOptions,
    YcsbOptions,
)
from opjoule.runs.studies.ycsb.properties import EQUAL

KEYS: Final = (
    *("name", "repeats", "until", "blocks_limit", "seed", "retries", "constants", "axes", "exclude", "where"),
)
NOT_OF_A_CELL: Final = (*("out", "json", "dry_run", "repeats", "seed", "until_u", "repeats_limit", "help", "version"),)
"""Options that the campaign sets itself, or that have no meaning in a campaign."""
_NEEDED: Final = {"db": "leveldb", "device": "rpi4"}
"""Options that every cell needs, with an example each."""
_LISTED: Final = "host/measure.py --help lists the options"
_PROPERTY: Final = 'and a property of YCSB is given by p, for example p = ["target=2600"]'
_OPTION: Final = re.compile(r"argument --?([\w-]+)(?=:)")
"""An option in a message of the parser."""
CELLS_MAX: Final = 10_000
"""Most measurements of one campaign, over all blocks; even the shortest take more than a month."""
RETRIES_MAX: Final = 1000


@dataclass(frozen=True)
class PlannedCell:
    """One condition of a campaign, with the options of its measurement."""

    condition: Mapping[str, str]
    options: PlanningOptions
    rank: int = 0
    """Position of the condition among all conditions."""


_KINDS: Final = {kind.__name__: kind for kind in (YcsbOptions, StudyWorkloadOptions, JobOptions)}


def written_cell(options: PlanningOptions) -> tuple[str, dict[str, Any]]:
    """A cell's options to send to another computer: their kind and JSON values."""
    values = options.asked
    del values["study"]
    return type(options).__name__, values


def restored_cell(kind: str, values: Mapping[str, Any]) -> PlanningOptions:
    """Options that written_cell() wrote. Raises: KeyError, TypeError, ValueError: written by another version."""
    return _KINDS[kind].restored(values)


def cell_options(words: Sequence[str], condition: Mapping[str, str]) -> YcsbOptions:
    """A cell's options, parsed by measure.py's own parser. Raises: BadInput: the parser refuses one."""
    parser = MEASURE.parser()

    def error(message: str) -> NoReturn:
        shown = ", ".join(f"{name} {value}" for name, value in condition.items())
        raise BadInput(f"the cell {shown}: {message}")

    parser.error = error  # type: ignore[method-assign]
    options = YcsbOptions.parsed(parser, words)
    return replace(options, rate=options.rate or EQUAL)  # parts of the cells' own rates are not comparable


@dataclass(frozen=True)
class CampaignFile:
    """The checked contents of a campaign's file."""

    name: str
    repeats: int
    """Number of blocks; each contains every cell once."""
    seed: int
    """Seed of the order within a block, of keys and values, and of a simulated rig."""
    retries: int
    """How often a failed cell is measured again."""
    cells: tuple[PlannedCell, ...]
    about: tuple[str, ...] = ()
    """Further lines of the printed plan."""
    until: UntilNarrow | None = None
    """Adds blocks after those of `repeats`."""
    shared: bool = False
    """Whether other command lines may measure further cells into its folder."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a campaign's file. Raises: BadInput: the file cannot be read, or its first mistake."""
        try:
            entry = read_toml(path)
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}: give a campaign's file, like those in campaigns/") from None
        try:
            return cls._of(entry, path)
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from None

    @classmethod
    def _of(cls, entry: Mapping[str, Any], path: Path) -> Self:
        check_keys(entry, KEYS)
        seed, blocks = _whole(entry, "seed", 1, 0, SEED_MAX), _whole(entry, "repeats", 5, 1, REPEATS_MAX)
        cells = _cells(entry, seed)
        until = _until(entry, blocks)
        check_size(len(cells), max(blocks, until.blocks_limit) if until else blocks)
        retries = _whole(entry, "retries", 1, 0, RETRIES_MAX)
        return cls(_name(entry, path), blocks, seed, retries, cells, until=until)

    def without_equal_rate(self) -> Self:
        """The file for a fleet, whose rigs do not know each other's rates: cells run as fast as they can instead."""
        cells = tuple(
            replace(cell, options=replace(cell.options, rate="full"))
            if isinstance(cell.options, YcsbOptions) and cell.options.rate == EQUAL
            else cell
            for cell in self.cells
        )
        return replace(self, cells=cells)


def _name(entry: Mapping[str, Any], path: Path) -> str:
    name = entry.get("name", path.stem)
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w. -]{0,99}", name):
        raise BadInput(
            f"name = {str(name)[:40]!r} is not a valid folder name: give up to 100 letters, digits, "
            "'_', '-', '.' and blanks"
        )
    return name


def _until(entry: Mapping[str, Any], blocks: int) -> UntilNarrow | None:
    """The keys `until` and `blocks_limit`; None without the first."""
    wanted = entry.get("until")
    if wanted is None:
        if "blocks_limit" in entry:
            raise BadInput('blocks_limit limits the blocks that until adds: give until, for example until = "5%"')
        return None
    try:
        half_width = percent(str(wanted))
    except argparse.ArgumentTypeError:
        half_width = 0.0
    if not (half_width and isinstance(wanted, str) and wanted.endswith("%")):
        raise BadInput(f'until = {str(wanted)[:40]!r} is not a percentage above 0 and below 100, like "5%"')
    limit = _whole(entry, "blocks_limit", max(BLOCKS_LIMIT, blocks), 1, REPEATS_MAX)
    if limit < blocks:
        raise BadInput(f"blocks_limit = {limit} is less than repeats = {blocks}: until adds blocks to these")
    return UntilNarrow(half_width, limit)


def _whole(entry: Mapping[str, Any], key: str, default: int, least: int, most: int) -> int:
    value = entry.get(key, default)
    if isinstance(value, str) and value.isdecimal():
        raise BadInput(f'{key} = "{value:.40}" is text: write it without quotation marks')
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadInput(f"{key} = {str(value)[:40]} is not a whole number from {least} to {most}")
    return value


def check_size(cells: int, blocks: int) -> None:
    """Raises: BadInput: more measurements than one campaign may have."""
    if cells * blocks > CELLS_MAX:
        raise BadInput(
            f"{cells} conditions in {blocks} blocks make {cells * blocks} measurements, and the limit is "
            f"{CELLS_MAX}: ask for fewer repeats, or split the campaign"
        )


def _check_options(where: str, names: Iterable[str]) -> None:
    """Raises: BadInput: a name is neither an option of measure.py, nor an axis, nor a property."""
    known = [*dict.fromkeys((*MEASURE.parser().option_names, *AXES, "properties"))]
    for name in names:
        if name.replace("-", "_") not in known and "." not in name:
            raise BadInput(f"{where} unknown option '{name}': {suggestion(name, known)}{_LISTED}, {_PROPERTY}")


def _read_cell(words: Sequence[str], condition: Mapping[str, str]) -> YcsbOptions:
    """The options of a cell; errors have their names as in the file, without dashes."""
    try:
        return cell_options(words, condition)
    except BadInput as error:
        raise BadInput(_OPTION.sub(lambda match: match[1].replace("-", "_"), str(error))) from None


def _cells(entry: Mapping[str, Any], seed: int) -> tuple[PlannedCell, ...]:
    for name in table(entry, "axes"):
        axis(name)
    axes = {name: axis_values(name, values) for name, values in table(entry, "axes").items()}
    if not axes:
        raise BadInput('a campaign needs [axes], for example storage = ["sd", "emmc"]')
    check_size(math.prod(map(len, axes.values())), 1)
    constants = table(entry, "constants")
    for name in constants:
        if name in NOT_OF_A_CELL:
            raise BadInput(
                f"[constants] {name}: the campaign sets this option; leave it out, or give it above the tables"
            )
        if name in axes:
            raise BadInput(f"{name} is a constant and an axis: leave one out")
    excluded, special = tables(entry, "exclude"), tables(entry, "where")
    _check_options("[constants]", constants)
    for one in special:
        _check_options("[[where]]", [name for name in one if name != "when"])
    for match in (*excluded, *(one.get("when", {}) for one in special)):
        check_match(match, axes)
    cells: list[PlannedCell] = []
    for condition in combinations(axes):
        if any(matches(exclusion, condition) for exclusion in excluded):
            continue
        cell_settings = where_values(special, condition)
        settings = {**constants, **condition, **cell_settings}
        for name, example in _NEEDED.items():
            if name not in settings:
                raise BadInput(f'{name} is missing: give it under [constants], for example {name} = "{example}"')
        words = (*words_of(settings), "--seed", str(seed))
        cells.append(PlannedCell(condition, _read_cell(words, condition), len(cells)))
    if not cells:
        raise BadInput("[[exclude]] removes every cell")
    return tuple(cells)
