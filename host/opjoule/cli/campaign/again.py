"""`measure.py again`: repeats one measurement, or adds blocks to a folder of several conditions."""

import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from opjoule.base.errors import BadInput, Interrupted
from opjoule.base.units import counted
from opjoule.campaign.campaign import Campaign, run_conditions
from opjoule.campaign.more_blocks import Standing
from opjoule.cli.campaign.command import measuring
from opjoule.cli.measure.command import alone_here, check_here, check_plans, run_measure
from opjoule.cli.measure.options import AgainOptions, MeasuringOptions, RigOptions
from opjoule.cli.measure.planning import SEED, plan_again
from opjoule.results.comparison.cell import RIG_NAME
from opjoule.results.comparison.index import ConditionRun, names_of, read_index, with_result
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.record.directory import has_index
from opjoule.runs.record.run_record import RunRecord

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
