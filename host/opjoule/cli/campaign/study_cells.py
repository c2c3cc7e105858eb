"""`measure.py --study NAME`: the command line as a campaign over the study's cells."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from opjoule.base.errors import BadInput
from opjoule.base.scripts import RUNS
from opjoule.base.settings import MEDIUM
from opjoule.boards.board_state import SIMULATED
from opjoule.campaign.axes import AXES, media_of, several
from opjoule.campaign.past_times import TimeNeeded, past_times, shipped_times, time_needed
from opjoule.cli.campaign.file import CampaignFile, PlannedCell, cell_options, check_size
from opjoule.cli.campaign.options import PlannedCampaign, StudyOptions, needs_of_campaign
from opjoule.cli.commands import Command
from opjoule.cli.failures import one_line
from opjoule.cli.measure.options import (
    HowOptions,
    JobOptions,
    PlanningOptions,
    RigOptions,
    SimulateOptions,
    StudyCell,
    StudyWorkloadOptions,
    YcsbOptions,
)
from opjoule.runs.studies.definition import DEVICE, FIGURE, SYSTEM, StudyFolder, numbers
from opjoule.runs.studies.folder import find_study, given_names, is_reached, left_out, places

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
"""Options of the command line that apply to every cell; an option that is not given keeps the study's value."""
_BOARD_OF_PLAN: Final = "rpi4"
"""Board of a plan without --device, if the study's paper has no board."""
DISTURB: Final = "disturb"
"""An axis that is also an option of every measurement; its value `none` means no background load."""


def workload_cells(study: StudyFolder, options: StudyOptions, only: Mapping[str, Sequence[str]]) -> list[PlannedCell]:
    """The requested cells, each with the options of its measurement.

    A simulated rig has a state of its own. There, cells that differ only in the board's state are merged.

    Raises: BadInput: an axis or option is invalid.
    """
    by_options: dict[YcsbOptions, PlannedCell] = {}
    for cell in study.cells(only):
        counts = study.scaled(cell, options.scale, only)
        asked = {**_of_axes(study, cell, options), **study.options(cell)}
        asked |= {name: values[0] for name, values in counts.items()}
        if options.simulate:
            asked = _on_simulated_board(asked)
        read = cell_options(asked, cell, options.seed)
        given = {name: value for name in _GIVEN if (value := getattr(options, name)) is not None}
        measured = StudyWorkloadOptions(
            **{**read.values, **given, "repeats": 1, STATE: (*read.state, *options.state)},
            folder=study.name,
            cell=cell,
            figures=study.figures_of(cell),
            scale=options.scale,
        )
        made = PlannedCell(cell, measured, study.rank(cell))
        by_options.setdefault(read, made)
    return list(by_options.values())


def _on_simulated_board(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A cell's options with the part of the board's state that a simulated board takes."""
    others = {name for name, axis in AXES.items() if axis.field == STATE and axis.key not in SIMULATED}
    state = [word for word in asked.get(STATE, ()) if word.partition("=")[0] in SIMULATED]
    return {**{name: value for name, value in asked.items() if name not in others}, STATE: state}


def _of_axes(study: StudyFolder, cell: Mapping[str, str], options: StudyOptions) -> dict[str, Any]:
    """Options that a cell's axes set. An axis that only names the workload, or is defined by [[where]], sets none."""
    workload = study.workload
    for axis, value in cell.items():
        workload = workload.replace(f"{{{axis}}}", value)
    named = {"db" if axis == SYSTEM else axis: value for axis, value in cell.items()}
    described = {axis for cells in study.where for axis in cells["when"] if axis not in AXES and "." not in axis}
    asked_axes = {axis: value for axis, value in named.items() if axis not in {*places(study.workload), *described}}
    return {"device": options.device, "workload": workload, **asked_axes}


def study_campaign(options: StudyOptions) -> CampaignFile:
    """The cells that a command line asks for, with their options. Raises: BadInput: the first mistake."""
    definition = find_study(options.study)
    is_assumed = not options.device
    if is_assumed:
        options = replace(options, device=_planned_board(definition, options))
    only = _only(options.only)
    _check(definition, options)
    if options.within:
        options = replace(options, within=None, scale=_scale_within(options, options.within))
    if definition.workload:
        media = media_of(options.storage)
        placed = definition.on(several("--device", options.device), media)
        cells = workload_cells(placed, options, only)
    else:
        placed, cells = definition, _job_cells(definition, options, only)
    check_size(len(cells), options.repeats or definition.repeats)
    planned = [cell.options for cell in cells if isinstance(cell.options, StudyCell)]
    lacking = left_out(placed, only, given_names(options.connections, placed))
    return CampaignFile(
        name=_folder(definition, options),
        repeats=options.repeats or definition.repeats,
        seed=options.seed,
        retries=1,
        cells=tuple(cells),
        about=(
            *([f"  device     {options.device}, assumed: --device names the board"] if is_assumed else []),
            *_about(placed, planned, options.scale, only),
            *(f"  left out   {database}: give it by --connections FILE" for database in lacking),
        ),
        shared=True,
    )


def _planned_board(definition: StudyFolder, options: StudyOptions) -> str:
    """The board of a plan without --device: the paper's. Raises: BadInput: more than a plan is asked for."""
    if not options.dry_run:
        raise BadInput(f"--device is missing: name the board that study {options.study} is to be measured on")
    boards = definition.said_of.get(DEVICE, _BOARD_OF_PLAN)
    return boards if isinstance(boards, str) else str(boards[0])


def _scale_within(options: StudyOptions, limit_s: float) -> float:
    """Scale at which the whole study takes at most --within. Raises: BadInput: the time is unknown or no scale fits."""
    whole = study_campaign(replace(options, within=None, scale=1.0))
    needed = needed_time([cell.options.asked for cell in whole.cells] * whole.repeats, options.out)
    if needed is None:
        raise BadInput(
            f"--within: how long study {options.study} takes on {options.device} is not known yet: "
            "measure it at a small scale first, for example --scale 0.001"
        )
    scale = needed.scale_within(limit_s)
    if scale <= 0:
        raise BadInput(
            f"--within: idle and settling of {needed.cells} measurements alone take "
            f"{needed.fixed_s / 60:.0f} min: choose fewer cells (--only) or blocks (--repeats)"
        )
    return scale


def needed_time(cells: Sequence[Mapping[str, Any]], out: Path | None) -> TimeNeeded | None:
    """Time that a study's cells take, estimated from its records and the shipped times; None if there are none.

    Args:
        cells: options of each cell, as often as it is to be measured.
        out: the study's folder if it is not under runs/.
    """
    if not cells:
        return None
    places = [RUNS, *([out.parent, out] if out else [])]
    by_rig = {(str(cell["device"]), str(cell[MEDIUM])): cell for cell in cells}
    constant = find_study(str(cells[0]["folder"])).constant
    past = [time for rig in by_rig.values() for place in places for time in past_times(place, rig, constant)]
    return time_needed(cells, past, [time for rig in by_rig.values() for time in shipped_times(rig)])


def _check(definition: StudyFolder, options: StudyOptions) -> None:
    """Raises: BadInput: options that contradict the study or each other."""
    if options.until_u:
        raise BadInput("--until-u is not for a study: choose the number of its blocks with --repeats")
    for option in (MEDIUM, DEVICE):
        several = "," in (getattr(options, option) or "")
        if several and (not definition.workload or option not in definition.axes):
            raise BadInput(f"--{option} {getattr(options, option)}: study {definition.name} takes only one at a time")
    if options.dataset and not any("{dataset}" in part for part in definition.command):
        raise BadInput(f"--dataset {options.dataset}: study {definition.name} takes only the data that it generates")
    if options.dataset and not options.dataset.is_file():
        raise BadInput(f"--dataset {options.dataset}: no such file")
    if options.disturb and DISTURB in definition.axes:
        raise BadInput(
            f"--disturb {options.disturb}: this is an axis of the study; use --only {DISTURB}={options.disturb}"
        )


def _job_cells(definition: StudyFolder, options: StudyOptions, only: Mapping[str, Sequence[str]]) -> list[PlannedCell]:
    cells, given = [], given_names(options.connections, definition)
    shared = {
        field.name: getattr(options, field.name) for field in fields(PlanningOptions) if hasattr(options, field.name)
    }
    for cell in definition.cells(only):
        if not is_reached(definition, cell, given):
            continue
        measured = {**shared, "repeats": 1}
        if DISTURB in cell:
            measured[DISTURB] = None if cell[DISTURB] == "none" else cell[DISTURB]
        job = JobOptions(
            **measured,
            folder=definition.name,
            cell=cell,
            parts=definition.parts(cell, options.scale, only),
            scale=options.scale,
            dataset=options.dataset,
            connections=options.connections,
        )
        inside = (*definition.within, *definition.counts)
        condition = {**cell, **{name: ",".join(only[name]) for name in inside if name in only}}
        cells.append(PlannedCell(condition or {"study": definition.name}, job, definition.rank(cell)))
    if not cells:
        lacking = "; ".join(left_out(definition, only, given))
        raise BadInput(f"no system of the study is available: give --connections FILE with {lacking}")
    return cells


def _folder(definition: StudyFolder, options: StudyOptions) -> str:
    """Name of the records' folder under runs/. The same command continues in it; a study of boards adds boards."""
    name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in definition.folder.name)
    device = None if DEVICE in definition.axes else options.device
    media = "-".join(media_of(options.storage))
    parts = [name, device, media, f"scale-{options.scale:g}" if options.scale < 1 else None]
    return "-".join([*filter(None, parts), *(["simulated"] if options.simulate else [])])


def _only(settings: Sequence[str]) -> dict[str, list[str]]:
    chosen: dict[str, list[str]] = {}
    for setting in settings:
        name, equals, values = setting.partition("=")
        if not equals or not all(part.strip() for part in values.split(",")):
            raise BadInput(f"--only {setting!r} is not AXIS=VALUE: for example --only {SYSTEM}=sqlite,leveldb")
        chosen.setdefault(name.strip(), []).extend(part.strip() for part in values.split(","))
    return chosen


def _about(
    definition: StudyFolder, cells: Sequence[StudyCell], scale: float, only: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    parts = [{**cell.cell, **part} for cell in cells for part in definition.parts(cell.cell, scale, only)]
    axes = {name: dict.fromkeys(str(part[name]) for part in parts) for name in definition.axes}
    lines = [f"  study      {definition.title} (scale {scale:g})"]
    lines += [f"  {one_line(name):<10} {', '.join(values)}" for name, values in axes.items()]
    for name in definition.counts:
        shown = " or ".join(dict.fromkeys(numbers(count) for part in parts if not isinstance(count := part[name], str)))
        lines.append(f"  {one_line(name):<10} {shown}")
    lines += [f"  phase      {name}: {words}" for name, words in definition.phases.items()]
    return (*lines, *_about_figures(definition, cells, only.get(FIGURE, list(definition.figures))))


def _about_figures(definition: StudyFolder, cells: Sequence[StudyCell], asked: Sequence[str]) -> Iterator[str]:
    for name in asked:
        figure = definition.figures[name]
        shown = [cell.cell for cell in cells if name in cell.figures]
        differ = [axis for axis in figure.by if len({cell[axis] for cell in shown}) > 1]
        many = f"{len(shown)} of the cells, by {' and '.join(differ)}"
        few = (
            f"nothing to compare: one {' and one '.join(figure.by)}"
            if shown
            else "none on these boards and media (--storage)"
        )
        yield f"  {FIGURE} {name:<3} {figure.title}: {many if differ else few}"


_EPILOG: Final = """\
examples:
  host/measure.py --study s2 --device rpi4 --simulate --scale 0.01 --only size=0-1KiB
      a hundredth of study S2's counts, for records below 1 KiB, on a simulated board
  host/measure.py --study s2 --device rpi4 --only system=sqlite,leveldb --dry-run
      what would be measured, and what is done
  host/measure.py --study s2 --device rpi4
      the whole study; after an interruption the same command continues
  host/runs.py figures runs/s2-rpi4 --out figures
      the study's tables and plots, from its records
  host/measure.py --study s1 --device rpi4 --only figure=7 --scale 0.025
      what figure 7 of study S1 shows, with a fortieth of the counts

docs/how-to/repeat-a-study.md
"""
STUDY: Final = Command(
    "",
    StudyOptions,
    "opjoule.cli.campaign.command:run_campaign",
    "Repeats a study. Measures each system on each data set, with one record each: the energy of every phase and the "
    "study's own measures. At the end it names the best system of each cell.",
    _EPILOG,
    "measure.py --study NAME --device NAME [options]",
    checked=lambda parser, options: PlannedCampaign.checked(parser, options, lambda: study_campaign(options)),
    needs=needs_of_campaign,
)
