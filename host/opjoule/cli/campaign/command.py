"""`host/campaign.py` measures every cell of a file, here or on the rigs of a scheduler; `again` adds to it."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from opjoule.base.errors import FAULTY_EXIT, BadInput, Interrupted, RigFault
from opjoule.base.scripts import RUNS, program, script_name
from opjoule.base.units import counted
from opjoule.boards.rig import Rig
from opjoule.campaign.adaptive import EQUAL_RATE, Spread, Standing, contrast_count, power_words
from opjoule.campaign.campaign import Campaign, Cell, MeasureOne, identity, in_condition, run_conditions
from opjoule.campaign.past_times import TimeNeeded
from opjoule.cli.campaign.file import CampaignFile
from opjoule.cli.campaign.fleet import campaign_of, run_on_fleet
from opjoule.cli.campaign.options import PlannedCampaign
from opjoule.cli.campaign.study_cells import needed_time
from opjoule.cli.databases import Availability, missing
from opjoule.cli.measure.command import (
    alone_here,
    check_here,
    check_plans,
    exit_status,
    measure_again,
    missing_server,
    rig_of,
    run_measure,
)
from opjoule.cli.measure.options import AgainOptions, MeasuringOptions, PlanningOptions, RigOptions
from opjoule.cli.measure.planning import SEED, known_s, make_plan, plan_again, rig_notices
from opjoule.results.comparison.cell import RIG_NAME
from opjoule.results.comparison.conclusion import answers_of
from opjoule.results.comparison.index import ConditionRun, names_of, read_index, with_result
from opjoule.results.comparison.study_best import conclude_studies
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.measuring.progress import in_words
from opjoule.runs.record.directory import check_folder, has_index
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.command import JobStudy

Lacks = Mapping[str, set[str]]
"""What a dry run finds missing, in words -> the conditions that are left out for it. A missing rig leaves out none, and
neither does what the measurement's set-up installs."""


def run_campaign(planned: PlannedCampaign) -> int:
    """Plans every cell, prints what is missing and measures it.

    Raises: BadInput: the first mistake, before anything is measured. Interrupted: Ctrl-C; the same command continues.
    """
    options = planned.options
    file = planned.file.without_equal_rate() if options.scheduler else planned.file
    folder = options.out or RUNS / file.name
    cells = _plans(file)
    check_folder(folder)
    campaign = campaign_of(file, cells, folder)
    here = not (options.scheduler or options.dry_run)
    rigs = check_plans(cells, rigs=here)
    for plan, _ in cells if here else ():
        check_here(plan)
    lacks = _lacking(cells) if options.dry_run and not options.scheduler else {}
    unknown = file.shared and campaign.remaining_s is None
    needed = needed_time(_asked(campaign, folder, lacks), options.out) if unknown else None
    if options.dry_run and options.json:
        print(json.dumps(_as_value(file, campaign, folder, needed, lacks), indent=1))
    else:
        out = sys.stdout if options.dry_run else sys.stderr
        print(*_about(file, campaign, folder, needed, lacks), sep="\n", file=out)
    if options.dry_run:
        return 0
    try:
        if options.scheduler:
            status = run_on_fleet(file, options, cells, folder)
        else:
            status = _run_here(file, cells, rigs, folder, json=options.json)
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(
            f"interrupted; what was measured is kept in {folder}: the same command continues from there"
        ) from None
    if cells[0][0].study.name == JobStudy.name:
        faults = conclude_studies(folder, json=options.json)
        return FAULTY_EXIT if faults and not status else status
    if file.shared:
        print(f"plots      {program('runs')} figures {folder} --out figures", file=sys.stderr)
    return status


def _run_here(
    file: CampaignFile,
    cells: Sequence[tuple[Plan, PlanningOptions]],
    rigs: Sequence[Rig | None],
    folder: Path,
    *,
    json: bool,
) -> int:
    with alone_here():
        return run_conditions(
            [plan for plan, _ in cells],
            folder,
            measuring(cells, rigs),
            seed=file.seed,
            json=json,
            retries=file.retries,
            resume=True,
            shared=file.shared,
            until=file.until,
        )


def measuring(cells: Sequence[tuple[Plan, MeasuringOptions]], rigs: Sequence[Rig | None]) -> MeasureOne:
    """Function that measures a cell of a campaign on this computer's rig; prints the rig's warnings."""
    by_condition = {}
    for (plan, options), rig in zip(cells, rigs, strict=True):
        by_condition[plan.condition_name] = rig, options
        for notice in rig_notices(plan, rig, options):
            print(f"{script_name()}: warning: {notice.text}", file=sys.stderr)

    def measure_one(plan: Plan, place: Path) -> tuple[int, Path]:
        record, place = measure_again(plan, *by_condition[plan.condition_name], place)
        return exit_status(record), place

    return measure_one


def _plans(file: CampaignFile) -> list[tuple[Plan, PlanningOptions]]:
    """The plan of each cell, with its options. Raises: BadInput: a cell is invalid or occurs twice."""
    by_identity: dict[object, tuple[Plan, PlanningOptions]] = {}
    for cell in file.cells:
        options = replace(cell.options, rig_seed=file.seed)
        shown = ", ".join(f"{axis} {value}" for axis, value in cell.condition.items())
        try:
            plan = replace(in_condition(make_plan(options), cell.condition, cell.rank), repeats=file.repeats)
        except BadInput as error:
            raise BadInput(f"the cell {shown}: {error}") from None
        same = identity(replace(plan, repeats=1).sha256, plan.asked)
        if same in by_identity:
            other = " ".join(by_identity[same][0].condition.values())
            raise BadInput(f"the cell {shown} is the same measurement as {other}: leave one out")
        by_identity[same] = plan, options
    return list(by_identity.values())


def _about(file: CampaignFile, campaign: Campaign, folder: Path, needed: TimeNeeded | None, lacks: Lacks) -> list[str]:
    """The plan in words. `needed`: a study's time, estimated from its records at any scale."""
    mark = " (SIMULATED)" if campaign.simulated else ""
    cells, to_measure = len(campaign.cells), _to_measure(campaign, lacks)
    done = sum(cell.is_complete for cell in campaign.cells)
    given_up = [cell for cell in campaign.cells if not cell.is_complete and not cell.is_missing]
    failed = [f"  given up   {cell.runs[-1].name}, block {cell.block}: {cell.runs[-1].why}" for cell in given_up]
    return [
        f"{file.name}{mark}: {counted(cells, 'cell')}, {counted(len(file.cells), 'condition')} in "
        f"{counted(campaign.blocks, 'randomised block')}, order from seed {file.seed}",
        *file.about,
        *_precision(file, campaign),
        *_lacking_lines(campaign, lacks),
        f"  done       {done}",
        *failed,
        f"  to measure {len(to_measure)}{f', {_length(campaign, to_measure, needed)}' if to_measure else ''}",
        f"  records    {folder}",
    ]


def _precision(file: CampaignFile, campaign: Campaign) -> list[str]:
    """What the campaign's blocks find, and until when it adds blocks."""
    contrasts = contrast_count(cell.condition for cell in file.cells)
    if not contrasts or isinstance(campaign.plans[0].study, JobStudy):
        return []
    spread = Spread.of(answers_of(with_result(campaign.runs)).compared)
    lines = [f"  power      {power_words(spread, campaign.blocks, contrasts)}"]
    if file.until:
        lines.append(
            f"  until      every contrast's ratio is within ±{100 * file.until.half_width:g} %, with at most "
            f"{counted(file.until.blocks_limit, 'block')}"
        )
    return lines


def _lacking(cells: Sequence[tuple[Plan, PlanningOptions]]) -> Lacks:
    """What the cells need and rig.toml, or this computer as the simulated board, does not have."""
    lacks: dict[str, set[str]] = {}
    by_study: dict[str, Mapping[str, Availability]] = {}
    for plan, options in cells:
        try:
            rig_of(plan, options)
        except (BadInput, RigFault) as error:
            lacks.setdefault(str(error), set())
        study = plan.study
        states = {study.engine: server} if (server := missing_server(plan)) else {}
        if plan.simulated and isinstance(study, JobStudy):
            name = study.definition.name
            by_study[name] = by_study[name] if name in by_study else missing(study.definition)
            wanted = {*study.cell.values()} - {*study.given}
            states = {value: state for value, state in by_study[name].items() if value in wanted}
        for value, state in states.items():
            without = lacks.setdefault(f"{value}: {state.words}", set())
            without |= set() if state.by_set_up else {plan.condition_name}
        try:
            if not states:
                check_here(plan)
        except (BadInput, RigFault) as error:
            lacks.setdefault(str(error), set()).add(plan.condition_name)
    return lacks


def _asked(campaign: Campaign, folder: Path, lacks: Lacks) -> list[dict[str, object]]:
    """Options of the cells to measure, and once more of each condition whose own rate is to be found before."""
    to_measure = _to_measure(campaign, lacks)
    by_name = {cell.plan.condition_name: cell.plan for cell in to_measure if cell.plan.study.equal_rate_group}
    ranging = [] if (folder / EQUAL_RATE).exists() else [plan.asked for plan in by_name.values()]
    return [*(cell.plan.asked for cell in to_measure), *ranging]


def _to_measure(campaign: Campaign, lacks: Lacks) -> list[Cell]:
    """The cells that the campaign would measure now."""
    without = set().union(*lacks.values())
    return [cell for cell in campaign.missing if cell.plan.condition_name not in without]


def _lacking_lines(campaign: Campaign, lacks: Lacks) -> Iterator[str]:
    for words, conditions in lacks.items():
        cells = sum(cell.plan.condition_name in conditions for cell in campaign.missing)
        count = f" ({counted(cells, 'cell')} not measured without it)" if cells else ""
        yield f"  missing    {words}{count}"


def _length(campaign: Campaign, cells: Sequence[Cell], needed: TimeNeeded | None) -> str:
    """How long the cells take, in words."""
    if campaign.remaining_s is not None:
        remaining_s = campaign.remaining_s * len(cells) / len(campaign.missing)
        return f"about {in_words(remaining_s)}, judging by the cells measured so far"
    if needed:
        rest = needed.cells - needed.by_own_records - needed.by_shipped
        sources = {
            "the study's records": needed.by_own_records,
            "SIMULATED times that come with OpJoule": needed.by_shipped,
            "the mean of the others": rest,
        }
        judged = ", ".join(f"{counted(count, 'measurement')} by {source}" for source, count in sources.items() if count)
        return (
            f"about {in_words(needed.total_s)} ({in_words(needed.least_s)} to {in_words(needed.most_s)}), "
            f"judging {judged}"
        )
    least_s = sum(sum(known_s(cell.plan).values()) for cell in cells)
    return f"at least {in_words(least_s)} for idle and runs of given length; the rest is known after the first cell"


def _as_value(
    file: CampaignFile, campaign: Campaign, folder: Path, needed: TimeNeeded | None, lacks: Lacks
) -> dict[str, object]:
    return {
        "name": file.name,
        "folder": str(folder),
        "simulated": campaign.simulated,
        "seed": file.seed,
        "blocks": campaign.blocks,
        **({"until": file.until.half_width, "blocks_limit": file.until.blocks_limit} if file.until else {}),
        "retries": file.retries,
        "remaining_s": needed.total_s if needed else campaign.remaining_s,
        "remaining_least_s": needed.least_s if needed else None,
        "remaining_most_s": needed.most_s if needed else None,
        "lacking": {words: sorted(conditions) for words, conditions in lacks.items()},
        "cells": [
            {
                "block": cell.block,
                "condition": dict(cell.plan.condition),
                "plan_sha256": cell.plan.sha256,
                "complete": cell.is_complete,
                "missing": cell.is_missing,
                "runs": [run.folder for run in cell.runs],
            }
            for cell in campaign.cells
        ],
    }


RETRIES = 1
"""How many times a failed cell is measured again, as in a campaign."""


def run_again(options: AgainOptions) -> int:
    """Measures a record's plan again, or more blocks of a folder's conditions.

    Raises: BadInput: there is no plan, or an option that contradicts it. Interrupted: Ctrl-C.
    """
    if has_index(options.plan):
        return _add_blocks(options)
    if options.blocks:
        raise BadInput(f"--blocks adds blocks to a campaign's folder, and {options.plan} is none")
    return run_measure(options)


def _add_blocks(options: AgainOptions) -> int:
    folder = options.plan
    _check(options)
    runs, _ = read_index(folder)
    blocks = max((run.block for run in runs), default=0)
    standing = Standing.of(with_result(runs))
    more = options.blocks or _deciding(standing, folder, blocks)
    if not more:
        print(
            f"{folder}: a difference was found in every contrast, so no more blocks are needed; --blocks N adds N more"
        )
        return 0
    cells = _cells_of(folder, runs, blocks + more, options)
    plans, seed = [plan for plan, _ in cells], int(cells[0][0].asked.get("seed") or SEED)
    rigs = check_plans(cells)
    for plan in plans:
        check_here(plan)
    campaign = Campaign.of(plans, folder, seed=seed, retries=RETRIES, resume=True)
    undecided = f"{len(standing.undecided)} of {counted(len(standing.half_widths), 'contrast')} undecided"
    print(
        f"{folder}: {undecided} after {counted(blocks, 'block')}; {counted(more, 'block')} more, "
        f"{counted(len(campaign.missing), 'cell')} to measure",
        file=sys.stdout if options.dry_run else sys.stderr,
    )
    if options.dry_run:
        return 0
    try:
        with alone_here():
            measure_one = measuring(cells, rigs)
            return run_conditions(
                *(plans, folder, measure_one),
                seed=seed,
                json=options.json,
                retries=RETRIES,
                resume=True,
                shared=True,
            )
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(
            f"interrupted; what was measured is kept in {folder}, and 'host/measure.py again {folder} --blocks N' "
            "measures what its blocks lack and N more"
        ) from None


def _deciding(standing: Standing, folder: Path, blocks: int) -> int:
    """Number of blocks that are expected to decide. Raises: BadInput: nothing can be compared."""
    if standing.refused:
        raise BadInput(f"{folder}: nothing can be compared ({standing.refused}); --blocks N adds N blocks anyway")
    return standing.deciding_blocks(blocks)


def _check(options: AgainOptions) -> None:
    """Raises: BadInput: an option that the folder's records state."""
    recorded = {"out", "live", "seed", *(known.name for known in fields(RigOptions))}
    for known in fields(options):
        if known.name in recorded and getattr(options, known.name) != known.default:
            raise BadInput(
                f"--{known.name.replace('_', '-')} is not for a folder of several conditions: more blocks are measured "
                "as its records were; leave it out"
            )


def _cells_of(
    folder: Path, runs: Sequence[ConditionRun], blocks: int, options: AgainOptions
) -> list[tuple[Plan, MeasuringOptions]]:
    """Plan and options of each condition, from one of its records. Raises: BadInput: a condition has none."""
    cells = []
    for name in names_of(runs):
        placed = [run for run in runs if run.name == name and (folder / run.folder / "run.json").exists()]
        if not placed:
            raise BadInput(f"{folder}: {name} has no record, so how it is measured is not known")
        run = placed[-1]
        asked = RunRecord.open(folder / run.folder).document["asked"]
        if RIG_NAME in asked:
            raise BadInput(
                f"{folder} was measured on several rigs: raise `repeats` in the campaign's file and use its scheduler"
            )
        plan = replace(plan_again(folder / run.folder, {}), repeats=blocks, asked=asked)
        cells.append((replace(plan, condition=run.condition, rank=run.rank), _recorded_options(asked, options)))
    return cells


def _recorded_options(asked: dict[str, Any], options: AgainOptions) -> MeasuringOptions:
    """Options of a recorded measurement that are not in its plan; what is printed is as the command line says."""
    names = {option.name for option in fields(MeasuringOptions)}
    values = {name: value for name, value in asked.items() if name in names}
    recorded = MeasuringOptions.of_settings(values, "the record's options:")
    return replace(recorded, json=options.json, out=None, dry_run=False, live=False)
