"""`measure.py` without a command's name: the measurement, and the checks before it changes anything.

A dry run makes the same checks and refuses the same. This computer's loader checks workload and engine properties; the
board's loader checks them again.

The name of a temporary folder contains the number of the process that made it. Folders of killed programs are removed
by that number; everything else, including links and other users' files, is left alone.
"""

import fcntl
import json
import os
import re
import resource
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from opjoule.base.errors import FAULTY_EXIT, BadInput
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.scripts import CALIBRATIONS, ROOT, RUNS, script_name
from opjoule.bench.simulation.rig import SIMULATED_FILES, RigSetup, SimulatedRig, twin_rig
from opjoule.bench.simulation.truth_line import known_figures
from opjoule.bench.simulation.virtual_rig import virtual_rig
from opjoule.boards.board import Board
from opjoule.boards.board_state import AS_SIMULATED, SIMULATED, StateSettings
from opjoule.boards.databases import database_called
from opjoule.boards.medium import FOLDER as KEPT_FOLDER
from opjoule.boards.rig import Rig, check_sync, read_rig
from opjoule.boards.rig_board import described_medium, open_board, preview
from opjoule.boards.runner import Disturbance, find_disturbance
from opjoule.campaign.campaign import run_conditions
from opjoule.campaign.measurement import directory_name, measure
from opjoule.cli.databases import LOADER, Availability, availability, built_in
from opjoule.cli.measure.options import AgainOptions, MeasuringOptions, PlanningOptions
from opjoule.cli.measure.planning import (
    SEED,
    make_plans,
    plan_again,
    rig_notices,
    show_plan,
    supply_of_rig,
    total_words,
)
from opjoule.cli.options import RIG_FILE
from opjoule.cli.view import live_view
from opjoule.meters.interface import Wishes
from opjoule.meters.registry import open_meters
from opjoule.pages.report.terminal import print_summary
from opjoule.results.answer import open_answer
from opjoule.runs.measuring.open_meter import Calibrations
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.measuring.progress import PhaseProgress
from opjoule.runs.measuring.supply_path import stated_in
from opjoule.runs.record.directory import check_out, free_directory, made_directory
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.command import CommandStudy
from opjoule.runs.studies.properties import check_space, ignored_words, parse_properties
from opjoule.runs.studies.ycsb import YcsbStudy

_LIMIT_S: Final = 60
FILES_MIN: Final = 256
"""Minimum limit of open files; a simulated measurement opens about 40, and the filter of its medium reserves 64."""
VIRTUAL: Final = "virtual"
_TEMPORARY: Final = re.compile(r"opjoule-(?:twin|board|ssh)-([0-9]+)-[a-z0-9_]+")
_FILES_NAME: Final = re.compile(r".+-([0-9]+)")
LOCK: Final = "opjoule-measuring.lock"
"""Name of the lock file in the folder of temporary files."""


def check_plans(plans: Sequence[tuple[Plan, MeasuringOptions]], *, rigs: bool = True) -> list[Rig | None]:
    """Checks each plan with its options; returns its rig, or None if it is simulated.

    Args:
        rigs: False: no rig is read, because the plans are measured on other computers or not at all.

    Raises: BadInput, RigFault: the first thing that a measurement would refuse.
    """
    asked: set[tuple[str, ...]] = set()
    """The loader's command lines that passed; cells of a campaign share many."""
    checked = []
    for plan, options in plans:
        try:
            _check(plan, options, asked)
            checked.append(rig_of(plan, options) if rigs else None)
        except BadInput as error:
            cell = ", ".join(f"{axis} {value}" for axis, value in plan.condition.items())
            raise BadInput(f"the cell {cell}: {error}" if cell else str(error)) from None
    return checked


def _check(plan: Plan, options: MeasuringOptions, asked: set[tuple[str, ...]]) -> None:
    check_simulated(plan, options)
    if options.disturb:
        find_disturbance(options.disturb)
    if isinstance(plan.study, YcsbStudy):
        _check_ycsb(plan.study, asked)
    if plan.simulated and plan.board.profile.name != VIRTUAL:
        from opjoule.bench.simulation.power_model import Models  # noqa: PLC0415  # only a simulated measurement loads the rig

        Models.with_profile(plan.twin_profile.checked if plan.twin_profile else None).load(plan.board)


def rig_of(plan: Plan, options: MeasuringOptions) -> Rig | None:
    """The rig of rig.toml with board, medium and meter of the plan; None if it is simulated.

    Raises: BadInput, RigFault: there is no such rig.
    """
    if plan.simulated:
        return None
    rig = read_rig(options.rig)
    described_medium(rig, plan.board)
    medium_meter = options.storage_meter or rig.medium_meter
    open_meters(options.meter or rig.meter, medium_meter, Wishes(stated_in=stated_in(options.meter)))
    check_sync(options.sync or rig.device(plan.board.profile.name).sync or plan.board.profile.sync)
    return rig


def check_here(plan: Plan) -> None:
    """Checks what this computer must do, or must have as a simulated board. Raises: BadInput, RigFault: it cannot."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files < FILES_MIN:
        raise BadInput(
            f"at most {files} files may be open at once (ulimit -n), a measurement needs {FILES_MIN}: run "
            "'ulimit -n 1024' first"
        )
    plan.study.check_here()
    if not plan.simulated or plan.board.profile.name == VIRTUAL:
        return
    if isinstance(plan.study, CommandStudy):
        plan.study.check_simulated()
    if isinstance(plan.study, YcsbStudy):
        check_space(plan.study.effective, shutil.disk_usage(ROOT).free, f"this computer's disk, at {ROOT}")
    if (server := missing_server(plan)) is not None:
        raise BadInput(
            f"--simulate: {plan.study.engine} is missing: {server.words}; a simulated board uses the database on this "
            "computer's PATH; to leave it out of a study, give --only system=..."
        )


def missing_server(plan: Plan) -> Availability | None:
    """Availability of the plan's server database, if this computer, the simulated board, lacks it; else None."""
    database = database_called(plan.study.engine)
    if not (plan.simulated and plan.board.profile.name != VIRTUAL and database and database.is_server):
        return None
    state = availability(database)
    return None if state.there else state


def check_simulated(plan: Plan, options: MeasuringOptions) -> None:
    """Raises BadInput for an option that a simulated rig would ignore, and for a wrong state."""
    if not plan.simulated:
        return
    AS_SIMULATED.changed(parse_properties(options.state), "--state")
    refused = {"--meter": options.meter, "--storage-meter": options.storage_meter}
    if plan.board.profile.name != VIRTUAL:
        carrier = None if options.sync == "none" else options.sync
        others = [word for word in options.state if word.partition("=")[0] not in SIMULATED]
        refused |= {"--sync": carrier, "--state": " ".join(others)}
    if options.rig != RIG_FILE:
        refused["--rig"] = str(options.rig)
    for name, value in refused.items():
        if value:
            raise BadInput(
                f"{name} {value} and --simulate: a simulated rig has its own; leave out {name} or --simulate"
            )


def _check_ycsb(study: YcsbStudy, asked: set[tuple[str, ...]]) -> None:
    """Has this computer's loader check the workload, if it is built."""
    command = study.check_command(str(LOADER), str, "/nowhere")
    if command not in asked and study.database.name in built_in():
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
        if ended.returncode != 0:
            said = [line for line in ended.stderr.splitlines() if line.strip()] or ["it said nothing"]
            raise BadInput(f"{said[-1].removeprefix('loader: ')} (workload {study.workload.name})")
        ignored = json.loads(ended.stdout or "{}").get("ignored", [])
        if words := ignored_words(ignored, streamed=study.generator is not None):
            print(f"{script_name()}: note: {words}", file=sys.stderr)
        asked.add(command)


def run_measure(options: PlanningOptions | AgainOptions) -> int:
    """Measures what the options ask for, in each condition, or a record's plan again; prints the summary."""
    # The simulated rig is drawn once, so that all conditions have the same meter.
    options = replace(options, rig_seed=secrets.randbelow(1 << 31) if options.seed is None else options.seed)
    if isinstance(options, AgainOptions):
        return _run_plans([plan_again(options.plan, options.asked)], options)
    return _run_plans(make_plans(options), options)


def _run_plans(plans: Sequence[Plan], options: MeasuringOptions) -> int:
    rig = check_plans([(plan, options) for plan in plans])[0]
    base = RUNS / directory_name(plans[0])
    directory = options.out or free_directory(base)
    check_out(directory)
    for plan in plans:
        check_here(plan)
    if options.dry_run:
        _print_plans(plans, rig, options, directory)
        return 0
    for notice in dict.fromkeys(notice for plan in plans for notice in rig_notices(plan, rig, options)):
        print(f"{script_name()}: warning: {notice.text}", file=sys.stderr)
    with (
        alone_here(),
        live_view(options.live) as show,
        nullcontext(options.out) if options.out else made_directory(base) as directory,
    ):

        def measure_one(one: Plan, place: Path) -> tuple[int, Path]:
            record, place = measure_again(one, rig, options, place, show)
            return exit_status(record), place

        if len(plans) > 1:
            seed = SEED if options.seed is None else options.seed
            return run_conditions(plans, directory, measure_one, seed=seed, json=options.json)
        record, place = measure_again(plans[0], rig, options, directory, show)
    print_outcome(record, place, as_json=options.json)
    _print_truth(plans[0], options, place)
    return exit_status(record)


@contextmanager
def alone_here() -> Iterator[None]:
    """Removes what killed measurements left; warns if another measurement is running on this computer."""
    for path in sweep(ROOT):
        print(f"{script_name()}: removed {path}, which a killed measurement had left", file=sys.stderr)
    with alone() as only_one:
        if not only_one:
            print(
                f"{script_name()}: another measurement is running here; both will be disturbed. Continuing.",
                file=sys.stderr,
            )
        yield


def _medium_meter(rig: Rig | None, options: MeasuringOptions) -> str | None:
    """The meter in the medium's own supply, from the options or rig.toml; None if there is none."""
    return options.storage_meter or (rig.medium_meter if rig else None)


def _print_plans(plans: Sequence[Plan], rig: Rig | None, options: MeasuringOptions, directory: Path) -> None:
    """Prints the plans for --dry-run."""
    if options.json:
        for plan in plans:
            print(json.dumps({**plan.to_json(), "sha256": plan.sha256}, indent=1))
        return
    second = _medium_meter(rig, options)
    meter = (options.meter or rig.meter) if rig else "simulated INA219 over serial"
    for plan in plans:
        words = f"{meter}; of the medium {second}" if rig and second else meter
        changes = preview(rig, plan.board, _state(rig, plan, options)) if rig else []
        show_plan(plan, rig, options, str(directory), meter=words, changes=changes)
    print(f"{total_words(plans)}\nNothing was run (--dry-run).")


def measure_again(
    plan: Plan,
    rig: Rig | None,
    options: MeasuringOptions,
    directory: Path,
    show: Callable[[Path], None] = lambda directory: None,
) -> tuple[RunRecord, Path]:
    """Measures, and again up to --again times if the board's state broke a limit; the last record and its place.

    Args:
        show: called with the place of each record that is begun.
    """
    for attempt in range(options.again + 1):
        place = directory if attempt == 0 else directory.with_name(f"{directory.name}-again-{attempt}")
        show(place)
        record = _measure_once(plan, rig, options, place)
        if not record.run.state.broken:
            break
    return record, place


def print_outcome(record: RunRecord, directory: Path, *, as_json: bool) -> None:
    """Prints the summary of a run; with `as_json`, the result on stdout and the faults on stderr, too."""
    if as_json and (answer := open_answer(record)).result:
        print(json.dumps(answer.to_json(), indent=2))
        for fault in record.faults:
            print(f"{script_name()}: fault: {fault.text}", file=sys.stderr)
    elif as_json:
        why = "; ".join(fault.text for fault in record.faults) or "no fault was recorded"
        print(f"{script_name()}: {record.status}, no result: {why} (record: {directory})", file=sys.stderr)
    else:
        print_summary(directory)


def exit_status(record: RunRecord) -> int:
    """0 for a run without faults, 6 for a finished run with faults, 1 for an unfinished run."""
    if record.status == "partial":
        return 1
    return FAULTY_EXIT if record.faults else 0


def _print_truth(plan: Plan, options: MeasuringOptions, directory: Path) -> None:
    """Prints the simulator's true values beside the measured ones."""
    if not plan.simulated:
        return
    for figure in known_figures(directory):
        print(figure, file=sys.stderr if options.json else sys.stdout)


def _measure_once(plan: Plan, rig: Rig | None, options: MeasuringOptions, directory: Path) -> RunRecord:
    with (
        PhaseProgress(quiet=options.json) as progress,
        _open_rig(plan, rig, options, directory) as (board, meter, facts),
    ):
        return measure(
            *(plan, board, meter, directory, progress, facts, supply_of_rig(plan, rig, options)),
            notices=[
                *rig_notices(plan, rig, options),
                *(Notice(NoticeKind.NOTE, note) for note in facts.get("simulation", {}).get("notes", [])),
            ],
            calibrations=Calibrations(CALIBRATIONS, rig.room.temperature_c if rig else None),
            medium_meter=_medium_meter(rig, options),
        )


def _state(rig: Rig, plan: Plan, options: MeasuringOptions) -> StateSettings:
    """State of the board during the measurement: from rig.toml, changed by --state."""
    return rig.device(plan.board.profile.name).state.changed(parse_properties(options.state), "--state")


@contextmanager
def _open_rig(
    plan: Plan, rig: Rig | None, options: MeasuringOptions, directory: Path
) -> Iterator[tuple[Board, str, dict[str, Any]]]:
    """Board, meter address and their facts for run.json; closed at the end of the block."""
    disturbance = find_disturbance(options.disturb) if options.disturb else None
    if rig is None:
        with _simulated_rig(plan, options, directory, disturbance) as simulated:
            yield simulated.board, simulated.meter, {"simulation": simulated.facts}
        return
    board = open_board(
        rig,
        plan.board,
        builds=ROOT / "build",
        sync=options.sync,
        state=_state(rig, plan, options),
        database=plan.study.engine,
        disturbance=disturbance,
    )
    with closing(board):
        yield board, options.meter or rig.meter, {"rig": str(rig.path)}


def _simulated_rig(
    plan: Plan, options: MeasuringOptions, directory: Path, disturbance: Disturbance | None
) -> AbstractContextManager[SimulatedRig]:
    """The rig of the virtual board, or of a board that consists of processes on this computer."""
    setup = RigSetup(
        root=ROOT,
        truth=directory / "simulator-truth.json",
        seed=options.rig_seed,
        files=ROOT / SIMULATED_FILES / f"{directory.name}-{os.getpid()}",
        kept=ROOT / "build" / "simulated-kept" / plan.board.name / KEPT_FOLDER,
        database=plan.study.engine,
        sync=options.sync,
        disturbance=disturbance,
    )
    wanted = parse_properties(options.state)
    if plan.board.profile.name == VIRTUAL:
        return virtual_rig(plan.board, setup, wanted=wanted, say=lambda line: print(line, file=sys.stderr, flush=True))
    profile = plan.twin_profile.checked if plan.twin_profile else None
    return twin_rig(plan.board, setup, twin_profile=profile, wanted=AS_SIMULATED.changed(wanted, "--state"))


def sweep(root: Path) -> list[Path]:
    """Removes temporary folders of processes that are gone, including those below the clone; returns their paths."""
    memory, temporary = Path("/dev/shm"), Path(tempfile.gettempdir())
    places = ((memory, _TEMPORARY), (temporary, _TEMPORARY), (root / SIMULATED_FILES, _FILES_NAME))
    swept = []
    for folder, pattern in places:
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            match = pattern.fullmatch(path.name)
            if match and _is_ours(path) and not Path(f"/proc/{match[1]}").exists():
                shutil.rmtree(path, ignore_errors=True)
                swept.append(path)
    return swept


@contextmanager
def alone() -> Iterator[bool]:
    """Yields True if no other measurement runs on this computer; two at once disturb each other."""
    path = Path(tempfile.gettempdir()) / LOCK
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError:
        yield True  # another user's lock file, or no place for one: nothing is known
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _is_ours(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.is_dir() and path.lstat().st_uid == os.geteuid()
    except OSError:
        return False
