"""Cells of a campaign: a condition each, with the options of its measurement. Standard library alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

from opjoule.cli.command import Needs
from opjoule.cli.measure.options import (
    MEASURE,
    JobOptions,
    PlanningOptions,
    StudyWorkloadOptions,
    YcsbOptions,
)
from opjoule.errors import BadInput
from opjoule.studies.folder import find_study


@dataclass(frozen=True)
class PlannedCell:
    """One condition of a campaign, with the options of its measurement."""

    condition: Mapping[str, str]
    options: PlanningOptions
    rank: int = 0
    """Place of the condition among all."""


_KINDS: Final = {kind.__name__: kind for kind in (YcsbOptions, StudyWorkloadOptions, JobOptions)}


def written_cell(options: PlanningOptions) -> tuple[str, dict[str, Any]]:
    """The options of a cell for another computer: their kind, and JSON values."""
    values = options.asked
    del values["study"]
    return type(options).__name__, values


def restored_cell(kind: str, values: Mapping[str, Any]) -> PlanningOptions:
    """The options that written_cell() wrote. Raises: KeyError, TypeError, ValueError: another version wrote them."""
    return _KINDS[kind].restored(values)


class _Mistake(Exception):
    """What the parser of a cell's options says."""


def cell_options(words: Sequence[str], condition: Mapping[str, str]) -> YcsbOptions:
    """A cell's options as measure.py's own parser reads them. Raises: BadInput: one that it does not take."""
    parser = MEASURE.parser()

    def error(message: str) -> NoReturn:
        raise _Mistake(message)

    parser.error = error  # type: ignore[method-assign]
    try:
        options = YcsbOptions.parsed(parser, words)
    except _Mistake as mistake:
        shown = ", ".join(f"{name} {value}" for name, value in condition.items())
        raise BadInput(f"the cell {shown}: {mistake}") from None
    return replace(options, blocks=bool(options.blocks))  # a campaign has as many runs as it needs


def needs_of_cells(cells: Sequence[PlanningOptions]) -> Needs:
    """Set-up for every cell that is measured here."""
    virtual = any(cell.device == "virtual" for cell in cells)
    packages: dict[str, None] = {}
    for cell in cells:  # Debian's, that a cell needs of this computer as its simulated board
        if isinstance(cell, JobOptions) and cell.simulate:
            of_values = find_study(cell.folder).packages
            packages |= dict.fromkeys(
                name for value in cell.cell.values() for name in of_values.get(value, ())
            )
    return Needs(
        loader=True,
        simulate=virtual or any(cell.simulate for cell in cells),
        ycsb=any(isinstance(cell, YcsbOptions) and cell.generator == "ycsb" for cell in cells),
        virtual=virtual,
        packages=tuple(packages),
        board=next((cell.architecture for cell in cells if cell.architecture), ""),
    )
