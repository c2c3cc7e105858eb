"""The cells of a study that is a workload of the loader, each with its options. Standard library alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from opjoule.campaign.axes import AXES, words_of
from opjoule.cli.campaign.cells import PlannedCell, cell_options
from opjoule.cli.campaign.fleet_options import StudyOptions
from opjoule.cli.measure.options import HowOptions, RigOptions, SimulateOptions
from opjoule.cli.measure.other_options import StudyWorkloadOptions
from opjoule.studies.definition import SYSTEM, StudyFolder
from opjoule.studies.folder import places

STATE: Final = "state"
_GIVEN: Final = (
    *(
        field.name
        for kind in (SimulateOptions, RigOptions, HowOptions)
        for field in fields(kind)
        if field.name not in (STATE, "repeats", "until_u", "repeats_limit")
    ),
    *("live", "json"),
)
"""Options of the command line that every cell has; where it does not say, the study's own stay."""


def workload_cells(
    study: StudyFolder, options: StudyOptions, only: Mapping[str, Sequence[str]]
) -> list[PlannedCell]:
    """Each cell that is asked for, with the options of its measurement.

    On a simulated rig, which has a state of its own, cells that differ in the board's state alone are one.

    Raises: BadInput: an axis or option that means nothing.
    """
    by_words: dict[tuple[str, ...], PlannedCell] = {}
    for cell in study.cells(only):
        counts = study.scaled(cell, options.scale, only)
        asked = {**_of_axes(study, cell, options), **study.options(cell)}
        asked |= {name: values[0] for name, values in counts.items()}
        if options.simulate:
            of_board = {STATE, *(name for name, axis in AXES.items() if axis.option == STATE)}
            asked = {name: value for name, value in asked.items() if name not in of_board}
        words = (*words_of(asked), "--seed", str(options.seed))
        read = cell_options(words, cell)
        given = {name: value for name in _GIVEN if (value := getattr(options, name)) is not None}
        measured = StudyWorkloadOptions(
            **{**read.values, **given, "repeats": 1, STATE: (*read.state, *options.state)},
            folder=study.name,
            cell=cell,
            figures=study.figures_of(cell),
            scale=options.scale,
        )
        made = PlannedCell(cell, measured, study.rank(cell))
        by_words.setdefault(words, made)
    return list(by_words.values())


def _of_axes(study: StudyFolder, cell: Mapping[str, str], options: StudyOptions) -> dict[str, Any]:
    """What a cell's axes ask for; those that name the workload, or have their meaning in [[where]], ask for nothing."""
    workload = study.workload
    for axis, value in cell.items():
        workload = workload.replace(f"{{{axis}}}", value)
    named = {"db" if axis == SYSTEM else axis: value for axis, value in cell.items()}
    described = {
        axis for cells in study.where for axis in cells["when"] if axis not in AXES and "." not in axis
    }
    asked_axes = {
        axis: value for axis, value in named.items() if axis not in {*places(study.workload), *described}
    }
    return {"device": options.device, "workload": workload, **asked_axes}
