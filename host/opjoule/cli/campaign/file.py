"""A campaign's file: axes, constants, exclusions, repeats.

Reference: docs/how-to/run-a-campaign.md.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Self

import msgspec
from msgspec import Meta

from opjoule.base.errors import BadInput, suggestion
from opjoule.base.settings import as_struct, setting
from opjoule.base.toml_file import axis_values, check_match, combinations, matches, read_toml, where_values
from opjoule.campaign.axes import AXES, BLOCKS_LIMIT, UntilNarrow, axis, fields_of
from opjoule.cli.measure.options import JobOptions, PlanningOptions, StudyWorkloadOptions, YcsbOptions
from opjoule.cli.options import Percent, RepeatCount, Seed, twin_profile
from opjoule.runs.studies.properties import EQUAL

NOT_OF_A_CELL: Final = (*("out", "json", "dry_run", "repeats", "seed", "until_u", "repeats_limit", "help", "version"),)
"""Options that the campaign sets itself, or that have no meaning in a campaign."""
_NEEDED: Final = {"db": "leveldb", "device": "rpi4"}
"""Options that every cell needs, with an example each."""
_LISTED: Final = "host/measure.py --help lists the options"
_PROPERTY: Final = 'and a property of YCSB is given by p, for example p = ["target=2600"]'
CELLS_MAX: Final = 10_000
"""Most measurements of one campaign, over all blocks; even the shortest take more than a month."""
RETRIES_MAX: Final = 1000


class _Tables(msgspec.Struct, frozen=True):
    """A campaign's file as it is written."""

    axes: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    exclude: tuple[dict[str, Any], ...] = ()
    where: tuple[dict[str, Any], ...] = ()
    name: (
        Annotated[
            str,
            Meta(
                pattern=r"^\w[\w. -]{0,99}$",
                description="a name of a folder: up to 100 letters, digits, '_', '-', '.' and blanks",
            ),
        ]
        | None
    ) = None
    repeats: RepeatCount = 5
    until: (
        Annotated[str, Meta(pattern="%$", description='a percentage above 0 and below 100 in quotes, like "5%"')] | None
    ) = None
    blocks_limit: RepeatCount | None = None
    seed: Seed = 1
    retries: Annotated[int, Meta(ge=0, le=RETRIES_MAX, description=f"a whole number from 0 to {RETRIES_MAX}")] = 1


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
    """Options that written_cell() wrote. Raises: KeyError, BadInput: written by another version."""
    restored: PlanningOptions = _KINDS[kind].of_settings(values, "the job:")
    return restored


def cell_options(settings: Mapping[str, Any], condition: Mapping[str, str], seed: int) -> YcsbOptions:
    """A cell's options, from settings as files name them. Raises: BadInput: one is impossible."""
    shown = ", ".join(f"{name} {value}" for name, value in condition.items())
    values = {**fields_of(settings), "seed": seed}
    try:
        if isinstance(profile := values.get("simulate"), str):
            values |= {"simulate": True, "twin_profile": twin_profile(profile)}
    except ValueError as error:
        raise BadInput(f"the cell {shown}: simulate: {error}") from None
    options = YcsbOptions.of_settings(values, f"the cell {shown}:")
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
        tables = as_struct(entry, _Tables, f"{path}:")
        try:
            return cls._of(tables, path)
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from None

    @classmethod
    def _of(cls, tables: _Tables, path: Path) -> Self:
        cells, until, blocks = _cells(tables), _until(tables), tables.repeats
        check_size(len(cells), max(blocks, until.blocks_limit) if until else blocks)
        return cls(tables.name or path.stem, blocks, tables.seed, tables.retries, cells, until=until)

    def without_equal_rate(self) -> Self:
        """The file for a fleet, whose rigs do not know each other's rates: cells run as fast as they can instead."""
        cells = tuple(
            replace(cell, options=replace(cell.options, rate="full"))
            if isinstance(cell.options, YcsbOptions) and cell.options.rate == EQUAL
            else cell
            for cell in self.cells
        )
        return replace(self, cells=cells)


def _until(tables: _Tables) -> UntilNarrow | None:
    """The keys `until` and `blocks_limit`; None without the first."""
    blocks, limit = tables.repeats, tables.blocks_limit
    if tables.until is None:
        if limit is not None:
            raise BadInput('blocks_limit limits the blocks that until adds: give until, for example until = "5%"')
        return None
    try:
        half_width = setting(tables.until, Percent, texts=True)
    except ValueError as error:
        raise BadInput(f"until{error}") from None
    if limit is not None and limit < blocks:
        raise BadInput(f"blocks_limit = {limit} is less than repeats = {blocks}: until adds blocks to these")
    return UntilNarrow(half_width, limit or max(BLOCKS_LIMIT, blocks))


def check_size(cells: int, blocks: int) -> None:
    """Raises: BadInput: more measurements than one campaign may have."""
    if cells * blocks > CELLS_MAX:
        raise BadInput(
            f"{cells} conditions in {blocks} blocks make {cells * blocks} measurements, and the limit is "
            f"{CELLS_MAX}: ask for fewer repeats, or split the campaign"
        )


def _check_options(where: str, names: Iterable[str]) -> None:
    """Raises: BadInput: a name is neither an option of measure.py, nor an axis, nor a property."""
    known = [*dict.fromkeys((*YcsbOptions.declared(), *AXES, "p"))]
    for name in names:
        if name.replace("-", "_") not in known and "." not in name:
            raise BadInput(f"{where} unknown option '{name}': {suggestion(name, known)}{_LISTED}, {_PROPERTY}")


def _cells(tables: _Tables) -> tuple[PlannedCell, ...]:
    for name in tables.axes:
        axis(name)
    axes = {name: axis_values(name, values) for name, values in tables.axes.items()}
    if not axes:
        raise BadInput('a campaign needs [axes], for example storage = ["sd", "emmc"]')
    check_size(math.prod(map(len, axes.values())), 1)
    constants = tables.constants
    for name in constants:
        if name in NOT_OF_A_CELL:
            raise BadInput(
                f"[constants] {name}: the campaign sets this option; leave it out, or give it above the tables"
            )
        if name in axes:
            raise BadInput(f"{name} is a constant and an axis: leave one out")
    excluded, special = tables.exclude, tables.where
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
        cells.append(PlannedCell(condition, cell_options(settings, condition, tables.seed), len(cells)))
    if not cells:
        raise BadInput("[[exclude]] removes every cell")
    return tuple(cells)
