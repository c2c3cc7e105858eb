"""What a measurement refuses before it touches anything. A dry run makes the same checks, so that it refuses the same.

The loader that is built here checks workload and engine properties; a board's own checks them once more.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from typing import Final

from opjoule.cli.databases.command import LOADER, availability, built_in
from opjoule.cli.measure.options import MeasuringOptions
from opjoule.databases.registry import database_called
from opjoule.devices.programs.disturbance import find_disturbance
from opjoule.devices.rig.board import described_medium
from opjoule.devices.rig.file import Rig, check_sync, read_rig
from opjoule.errors import BadInput
from opjoule.measuring.plan import Plan
from opjoule.measuring.supply_path import stated_in
from opjoule.meters.kinds import Wishes
from opjoule.meters.registry import open_meters
from opjoule.scripts import ROOT
from opjoule.studies.command.study import CommandStudy
from opjoule.studies.ycsb.properties import check_space
from opjoule.studies.ycsb.study import YcsbStudy

_LIMIT_S: Final = 60
VIRTUAL: Final = "virtual"


def check_plans(plans: Sequence[tuple[Plan, MeasuringOptions]], *, rigs: bool = True) -> list[Rig | None]:
    """The rig of each plan, None of a simulated one; each is checked with its options.

    Args:
        rigs: False: they are measured on other computers, which have their own.

    Raises: BadInput, RigFault: the first thing that its measurement would refuse.
    """
    asked: set[tuple[str, ...]] = set()
    """Loader's command lines that passed: cells of a campaign share many."""
    return [_checked(plan, options, asked, rigs=rigs) for plan, options in plans]


def _checked(plan: Plan, options: MeasuringOptions, asked: set[tuple[str, ...]], *, rigs: bool) -> Rig | None:
    check_simulated(plan, options)
    if options.disturb:
        find_disturbance(options.disturb)
    if isinstance(plan.study, YcsbStudy):
        _check_ycsb(plan.study, plan, asked)
    if plan.simulated and plan.board.profile.name != VIRTUAL:
        from opjoule.simulation.models import Models  # noqa: PLC0415  # only a simulated measurement loads the rig

        Models.with_profile(plan.twin_profile.checked if plan.twin_profile else None).load(plan.board)
    if plan.simulated or not rigs:
        return None
    rig = read_rig(options.rig)
    described_medium(rig, plan.board)
    storage_meter = options.storage_meter or rig.storage_meter
    open_meters(options.meter or rig.meter, storage_meter, Wishes(stated_in=stated_in(options.meter)))
    check_sync(options.sync or rig.device(plan.board.profile.name).sync or plan.board.profile.sync)
    return rig


def check_here(plan: Plan) -> None:
    """Checks what this computer has to do, or to have as a simulated board. Raises: BadInput, RigFault: it cannot."""
    plan.study.check_here()
    if plan.simulated and plan.board.profile.name != VIRTUAL and isinstance(plan.study, CommandStudy):
        plan.study.check_simulated()
    database = database_called(plan.study.engine)
    if plan.simulated and plan.board.profile.name != VIRTUAL and database and database.is_server:
        state = availability(database)
        if not state.there:
            raise BadInput(
                f"--simulate: {database.name} {state.words}; a simulated board takes the one on this computer's PATH, "
                "a study leaves it out with --only system=..."
            )


def check_simulated(plan: Plan, options: MeasuringOptions) -> None:
    """Raises BadInput for an option that a simulated rig would pass over."""
    if not plan.simulated:
        return
    refused = {"--meter": options.meter, "--storage-meter": options.storage_meter}
    if plan.board.profile.name != VIRTUAL:
        carrier = None if options.sync == "none" else options.sync
        refused |= {"--sync": carrier, "--state": " ".join(options.state)}
    for name, value in refused.items():
        if value:
            raise BadInput(
                f"{name} {value} and --simulate: a simulated rig has its own; leave out {name} or --simulate"
            )


def _check_ycsb(study: YcsbStudy, plan: Plan, asked: set[tuple[str, ...]]) -> None:
    """Has this computer's loader check the workload, and sees that its values have room on a simulated medium."""
    command = study.check_command(str(LOADER), str(study.workload), "/nowhere")
    if command not in asked and study.database.name in built_in():
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
        if ended.returncode != 0:
            said = [line for line in ended.stderr.splitlines() if line.strip()] or ["it said nothing"]
            raise BadInput(f"{said[-1].removeprefix('loader: ')} (workload {study.workload.name})")
        asked.add(command)
    if plan.simulated and plan.board.profile.name != VIRTUAL:
        check_space(study.effective, shutil.disk_usage(ROOT).free, f"this computer's disk, at {ROOT}")
