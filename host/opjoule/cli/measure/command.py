"""`measure.py` without a command's name: the main measurement."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from opjoule.campaign.conditions import run_conditions
from opjoule.campaign.measurement import directory_name, measure
from opjoule.cli.live import live_view
from opjoule.cli.measure.checks import check_here, check_plans
from opjoule.cli.measure.duration import total_words
from opjoule.cli.measure.leftovers import alone, sweep
from opjoule.cli.planning import (
    CALIBRATIONS,
    ROOT,
    SEED,
    RigWords,
    asked_of,
    clock_evidence,
    make_plans,
    plan_again,
    rig_warnings,
    show_plan,
    supply_of_rig,
)
from opjoule.devices.board import Board
from opjoule.devices.media.kept_databases import FOLDER as KEPT_FOLDER
from opjoule.devices.programs.disturbance import find_disturbance
from opjoule.devices.rig.board import open_board, preview
from opjoule.devices.rig.file import Rig
from opjoule.devices.state.state_settings import StateSettings
from opjoule.errors import FAULTY_EXIT
from opjoule.measuring.known_sensors import Calibrations
from opjoule.measuring.plan import Plan
from opjoule.measuring.progress import PhaseProgress
from opjoule.record.directory import check_out, free_directory, made_directory
from opjoule.record.run_record import RunRecord
from opjoule.report.terminal import print_summary
from opjoule.scripts import script_name
from opjoule.studies.ycsb.properties import parse_properties


def run_measure(options: argparse.Namespace) -> int:
    """The main job: plan, rig, measurement, summary; in each condition where an option names several."""
    options.rig_seed = rig_seed(options)
    plans = [plan_again(options.plan, asked_of(options))] if options.study == "again" else make_plans(options)
    plan, several = plans[0], len(plans) > 1
    rig = check_plans([(each, options) for each in plans])[0]
    base = ROOT / "runs" / directory_name(plan)
    directory = options.out or free_directory(base)
    check_out(directory)
    for each in plans:
        check_here(each)
    if options.dry_run and options.json:
        for each in plans:
            print(json.dumps({**each.to_json(), "sha256": each.sha256}, indent=1))
        return 0
    if options.dry_run:
        for each in plans:
            _show(each, rig, options, directory)
        print(f"{total_words(plans)}\nNothing was run (--dry-run).")
        return 0
    for line in dict.fromkeys(line for each in plans for line in rig_warnings(each, rig, options)):
        print(f"{script_name()}: warning: {line}", file=sys.stderr)

    def measure_one(one: Plan, place: Path) -> tuple[int, Path]:
        record, place = measure_again(one, rig, options, place)
        return exit_status(record), place

    with (
        alone_here(),
        live_view(options) as options.show,
        nullcontext(options.out) if options.out else made_directory(base) as directory,
    ):
        if several:
            return run_conditions(
                plans,
                directory,
                measure_one,
                seed=SEED if options.seed is None else options.seed,
                json=options.json,
            )
        record, place = measure_again(plan, rig, options, directory)
    tell(record, options, place)
    _tell_truth(plan, options, place)
    return exit_status(record)


@contextmanager
def alone_here() -> Iterator[None]:
    """Sweeps what killed measurements left; warns where another one runs on this computer."""
    for path in sweep(ROOT):
        print(f"{script_name()}: removed {path}, left by a measurement that was killed", file=sys.stderr)
    with alone() as only_one:
        if not only_one:
            print(
                f"{script_name()}: another measurement runs on this computer; both will be disturbed. "
                "Continuing.",
                file=sys.stderr,
            )
        yield


def _storage_meter(rig: Rig | None, options: argparse.Namespace) -> str | None:
    """The meter in the medium's own supply, as asked or as rig.toml has it; None: there is none."""
    return options.storage_meter or (rig.storage_meter if rig else None)


def _meters(rig: Rig, options: argparse.Namespace) -> str:
    """The meters by their names, in words."""
    board, storage = options.meter or rig.meter, _storage_meter(rig, options)
    return f"{board}; of the medium {storage}" if storage else board


def _show(plan: Plan, rig: Rig | None, options: argparse.Namespace, directory: Path) -> None:
    """The plan of --dry-run."""
    desk = RigWords(
        "simulated INA219 over serial" if rig is None else _meters(rig, options),
        clock_evidence(plan, rig, options.sync),
        supply_of_rig(plan, rig, options),
        rig_warnings(plan, rig, options),
        [] if rig is None else preview(rig, plan.profile, plan.medium, _state(rig, plan, options)),
    )
    show_plan(plan, desk, str(directory))


def measure_again(
    plan: Plan, rig: Rig | None, options: argparse.Namespace, directory: Path
) -> tuple[RunRecord, Path]:
    """Measures, and up to --again times more where the board's state broke a limit; the last record and its place."""
    for attempt in range(options.again + 1):
        place = directory if attempt == 0 else directory.with_name(f"{directory.name}-again-{attempt}")
        record = _measure_once(plan, rig, options, place)
        if not record.run.state.broken:
            break
    return record, place


def tell(record: RunRecord, options: argparse.Namespace, directory: Path) -> None:
    """The summary of a run; with --json its result on stdout, and what went wrong on stderr."""
    if options.json and (directory / "result.json").exists():
        sys.stdout.write((directory / "result.json").read_text())
        for fault in dict.fromkeys((*record.faults, *record.withheld.values())):
            print(f"{script_name()}: fault: {fault}", file=sys.stderr)
    elif options.json:
        why = "; ".join(record.faults) or "no fault was noted"
        print(f"{script_name()}: {record.status}, no result: {why} (record: {directory})", file=sys.stderr)
    else:
        print_summary(directory)


def exit_status(record: RunRecord) -> int:
    """0 for a run without a fault, 6 for one that came to its end with faults, 1 for one that did not."""
    if record.status == "partial":
        return 1
    return FAULTY_EXIT if record.faults or record.withheld else 0


def rig_seed(options: argparse.Namespace) -> int:
    """What a simulated rig is drawn from: anew each time, unless --seed is given; conditions share their meter."""
    chosen: int | None = getattr(options, "rig_seed", options.seed)
    return secrets.randbelow(1 << 31) if chosen is None else chosen


def _tell_truth(plan: Plan, options: argparse.Namespace, directory: Path) -> None:
    """What the simulator knows, beside what was measured."""
    if not plan.simulated:
        return
    from opjoule.simulation.truth_line import truth_lines  # noqa: PLC0415  # only a simulated measurement loads the rig

    for line in truth_lines(directory):
        print(line, file=sys.stderr if options.json else sys.stdout)


def _measure_once(plan: Plan, rig: Rig | None, options: argparse.Namespace, directory: Path) -> RunRecord:
    if show := getattr(options, "show", None):  # of --live
        show(directory)
    with (
        PhaseProgress(quiet=options.json) as progress,
        _open_rig(plan, rig, options, directory) as (board, meter, found),
    ):
        supply = supply_of_rig(plan, rig, options)
        warnings = [*rig_warnings(plan, rig, options), *found.get("simulation", {}).get("notes", [])]
        temperature_c = rig.room.temperature_c if rig else None
        calibrations = Calibrations(CALIBRATIONS, temperature_c)
        return measure(
            plan,
            board,
            meter,
            directory,
            progress,
            found,
            supply,
            warnings,
            calibrations,
            _storage_meter(rig, options),
        )


def _state(rig: Rig, plan: Plan, options: argparse.Namespace) -> StateSettings:
    """The state to measure in: rig.toml's, with --state on top."""
    return rig.device(plan.profile.name).state.changed(parse_properties(options.state), "--state")


@contextmanager
def _open_rig(
    plan: Plan, rig: Rig | None, options: argparse.Namespace, directory: Path
) -> Iterator[tuple[Board, str, dict[str, Any]]]:
    """The board, the meter's address and what run.json says of them; closed at the end."""
    disturbance = find_disturbance(options.disturb) if options.disturb else None
    if plan.profile.name == "virtual":
        from opjoule.simulation.virtual_rig import VirtualRig  # noqa: PLC0415

        virtual = VirtualRig(
            plan.profile,
            plan.medium,
            root=ROOT,
            truth=directory / "simulator-truth.json",
            seed=options.rig_seed,
            wanted=parse_properties(options.state),
            sync=options.sync,
            say=lambda line: print(line, file=sys.stderr, flush=True),
            disturbance=disturbance,
        )
        with closing(virtual):
            yield virtual.board, virtual.meter, {"simulation": virtual.facts()}
        return
    if rig is None:
        # Only a simulated measurement loads the simulated rig.
        from opjoule.simulation.rig import TwinRig  # noqa: PLC0415

        twin = TwinRig(
            plan.profile,
            plan.medium,
            root=ROOT,
            storage=ROOT / "build" / "simulated-storage" / f"{directory.name}-{os.getpid()}",
            truth=directory / "simulator-truth.json",
            seed=options.rig_seed,
            kept=ROOT / "build" / "simulated-kept" / plan.profile.name / plan.medium / KEPT_FOLDER,
            database=plan.study.engine,
            sync=options.sync != "none",
            disturbance=disturbance,
            twin_profile=plan.twin_profile.checked if plan.twin_profile else None,
        )
        with closing(twin):
            yield twin.board, twin.meter, {"simulation": twin.facts()}
        return
    board = open_board(
        rig,
        plan.profile,
        plan.medium,
        builds=ROOT / "build",
        sync=options.sync,
        state=_state(rig, plan, options),
        database=plan.study.engine,
        disturbance=disturbance,
    )
    with closing(board):
        yield board, options.meter or rig.meter, {"rig": str(rig.path)}
