"""From the command line to a checked plan."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from opjoule.databases import find_database
from opjoule.devices.profiles import find_profile
from opjoule.devices.rig_file import Rig, RigSupply
from opjoule.errors import BadInput
from opjoule.measurement.plan import (
    FASTEST_PER_S,
    IDLE_S,
    SIMULATED_IDLE_S,
    Plan,
    find_workload,
    workload_properties,
)
from opjoule.measurement.supply_path import SupplyPath, local_meter_warning, stated_in, supply_path
from opjoule.measurement.ycsb_core import YcsbCore, check_settings, file_properties

SEED = 1
"""Of keys, values and order, where none is asked for."""
ROOT = Path(__file__).resolve().parents[3]


def make_plan(options: argparse.Namespace, medium: str | None = None) -> Plan:
    """Checks every name and value.

    Args:
        medium: one of those that --storage names, where it names several.
    Raises: BadInput: the first thing that is wrong.
    """
    profile = find_profile(options.device)
    workload = find_workload(options.workload, ROOT / "ycsb-workloads")
    simulated = options.simulate or profile.name == "virtual"
    plan = Plan(
        database=find_database(options.db),
        profile=profile,
        medium=profile.medium(medium or options.storage),
        workload=workload,
        properties=workload_properties(
            options.properties,
            workload,
            distribution=options.distribution,
            records=options.records,
            operations=options.seconds * FASTEST_PER_S if options.seconds else options.operations,
            value_size=options.value_size,
        ),
        threads=options.threads,
        seed=SEED if options.seed is None else options.seed,
        idle_s=(SIMULATED_IDLE_S if simulated else IDLE_S) if options.idle is None else options.idle,
        repeats=options.repeats,
        run_s=options.seconds,
        until_u=options.until_u,
        repeats_limit=max(options.repeats, options.repeats_limit),
        settle_limit_s=options.settle_limit,
        harness=not options.no_harness,
        simulated=simulated,
        signature=options.signature,
        generator=_generator(options.generator),
        asked={key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()},
    )
    for key in ("recordcount", "operationcount"):
        if not plan.properties[key].isdigit():
            raise BadInput(f"property {key}={plan.properties[key]!r} is not a whole number of at least 0")
    if plan.run_s and (plan.generator or options.operations):
        other = "--generator" if plan.generator else "--operations"
        raise BadInput(f"--seconds {plan.run_s} and {other} both say when a run ends: give one of them")
    if plan.until_u and not plan.idle_s:
        raise BadInput("--until-u needs idle power, which --idle 0 leaves out")
    if plan.generator:
        check_settings({**file_properties(workload), **plan.properties}, plan.threads)
    return plan


def _generator(name: str) -> YcsbCore | None:
    return YcsbCore(ROOT / "build" / "ycsb") if name == "ycsb" else None


def clock_evidence(plan: Plan, rig: Rig | None, sync: str | None) -> str:
    """How board and meter will be brought onto one clock, in words; `sync` is the command line's carrier."""
    usual = (rig.device(plan.profile.name).sync or plan.profile.sync) if rig else "(simulated)"
    carrier = sync or usual
    line = [] if carrier == "none" else [f"sync line {carrier}"]
    played = plan.signature if plan.signature is not None else not line
    signature = ["load signature before and after"] if played else []
    return " and ".join([*line, *signature, "round trips"])


@dataclass(frozen=True)
class Desk:
    """The rig in words, for the plan."""

    meter: str
    clocks: str
    supply: SupplyPath
    warnings: list[str]
    preparation: list[str]
    """What would be changed on the board."""


SIMULATED_METER = "serial:simulated"
"""Stands for the simulated rig's own address, which is known once it runs."""


def desk_supply(plan: Plan, rig: Rig | None, options: argparse.Namespace) -> SupplyPath:
    """Supply, shunt and wiring before the board. Raises: BadInput: the meter's name means nothing."""
    if rig is None:
        return supply_path(plan.profile, SIMULATED_METER, "", RigSupply())
    return supply_path(plan.profile, options.meter or rig.meter, stated_in(vars(options)), rig.supply)


def desk_warnings(plan: Plan, rig: Rig | None, options: argparse.Namespace) -> list[str]:
    """What is wrong with the rig before anything is measured, a line each; a simulated one's supply is drawn later."""
    if rig is None:
        return []
    found = [
        desk_supply(plan, rig, options).warning,
        local_meter_warning(rig.device(plan.profile.name).connection, options.meter or rig.meter),
    ]
    return [line for line in found if line]


def show_plan(plan: Plan, desk: Desk, directory: str) -> None:
    """Prints what a run would do, on stdout."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    mark = " (SIMULATED)" if plan.simulated else ""
    console.print(f"{plan.database.title} on {plan.profile.title}{mark}, {plan.medium}", style="bold")
    console.print(f"  workload   {plan.workload}")
    console.print(f"  settings   {' '.join(f'{key}={value}' for key, value in plan.properties.items())}")
    if plan.generator:
        console.print(f"  operations made by YCSB {plan.generator.version} on this computer, as a stream")
    console.print(f"  meter      {desk.meter}")
    console.print(f"  shunt      {desk.supply.shunt_words}")
    console.print(
        f"  supply     {'drawn anew for each measurement' if plan.simulated else desk.supply.supply_words}"
    )
    console.print(f"  clocks     {desk.clocks}")
    console.print(f"  record     {directory}")
    more = f", more until the interval is ±{100 * plan.until_u:g} %" if plan.until_u else ""
    table = Table("phase", "what happens", title=f"{plan.repeats} repeat(s){more} of", title_justify="left")
    for name, about in plan.phases():
        table.add_row(name, about)
    console.print(table)
    for line in desk.preparation:
        console.print(f"  board      {line}")
    for line in desk.warnings:
        console.print(f"  WARNING    {line}")
    console.print("Nothing was run (--dry-run).")
