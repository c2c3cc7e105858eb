"""Makes a checked plan from the command line; prints it with its duration as far as that is known."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from opjoule.base.errors import BadInput, NewerSchema
from opjoule.base.files import read_regular
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.scripts import ROOT
from opjoule.base.settings import MEDIUM
from opjoule.base.terminal import terminal
from opjoule.base.units import counted
from opjoule.bench.commissioning.certificate import commissioning_note
from opjoule.boards.databases import find_database
from opjoule.boards.profiles import find_profile
from opjoule.boards.rig import Rig, RigSupply
from opjoule.campaign.adaptive import KEPT_UP
from opjoule.campaign.axes import media_of
from opjoule.campaign.campaign import in_condition
from opjoule.cli.measure.options import JobOptions, PlanningOptions, ProgramOptions, RigOptions, YcsbOptions
from opjoule.cli.options import THREADS_MAX
from opjoule.meters.serial.options import SIMULATED_SENSOR
from opjoule.runs.evaluation.until import REPEATS_MIN
from opjoule.runs.measuring.plan import IDLE_S, REPEATS, RUN_S, SETTLE_LIMIT_S, SIMULATED_IDLE_S, Plan, TwinProfile
from opjoule.runs.measuring.progress import in_words
from opjoule.runs.measuring.supply_path import (
    SIMULATED_RIG,
    SupplyPath,
    local_meter_warning,
    stated_in,
    supply_path,
)
from opjoule.runs.record.json_file import DAMAGE
from opjoule.runs.record.phases import MIX, Role
from opjoule.runs.record.run_record import RUN_SCHEMA
from opjoule.runs.studies.command import CommandStudy, JobStudy
from opjoule.runs.studies.folder import find_study
from opjoule.runs.studies.interface import Study
from opjoule.runs.studies.properties import (
    DEFAULT_OPERATIONS,
    DEFAULT_RECORDS,
    EQUAL,
    GO_ON,
    LOAD,
    OPTIONS,
    PROPORTIONS,
    YcsbCore,
    at_random,
    changing_keys,
    command_line_properties,
    file_properties,
    find_workload,
    named_files,
    parse_properties,
    whole_number,
)
from opjoule.runs.studies.ycsb import HARNESS_S, RUN_WARM_UP, WARM_UP, YcsbStudy

SEED = 1
"""Seed of keys, values and order if none is given."""
JOB_FILES = (
    ROOT / "loader-cpp/probe/opjoule_marks.py",
    *(ROOT / "studies" / name for name in ("opjoule_study.py", "opjoule_server.py")),
)
"""Files that every study's job gets."""
WHEELS = ROOT / "build" / "wheels"


def make_plans(options: PlanningOptions) -> list[Plan]:
    """The plan of each medium that --storage names. Raises: BadInput: the first mistake."""
    media = media_of(options.storage)
    if len(media) < 2:
        return [make_plan(options)]
    if isinstance(options, YcsbOptions):
        options = replace(options, rate=options.rate or EQUAL)
    return [
        in_condition(make_plan(replace(options, storage=medium)), {MEDIUM: medium}, rank)
        for rank, medium in enumerate(media)
    ]


def make_plan(options: PlanningOptions) -> Plan:
    """The plan, with every name and value checked. Raises: BadInput: the first mistake."""
    profile = find_profile(options.device)
    simulated = options.simulate or profile.name == "virtual"
    if options.twin_profile and profile.name == "virtual":
        raise BadInput(
            f"--simulate {options.twin_profile}: the virtual board has no twin, its power is made up; leave out the "
            "profile"
        )
    repeats = REPEATS if options.repeats is None else options.repeats
    return Plan(
        study=_study(options),
        board=profile.with_medium(options.storage),
        idle_s=(SIMULATED_IDLE_S if simulated else IDLE_S) if options.idle is None else options.idle,
        repeats=repeats,
        repeats_limit=max(repeats, options.repeats_limit),
        settle_limit_s=SETTLE_LIMIT_S if options.settle_limit is None else options.settle_limit,
        simulated=simulated,
        twin_profile=TwinProfile.of(options.twin_profile) if options.twin_profile else None,
        asked=options.asked,
        **{name: getattr(options, name) for name in _unchanged(options)},
    )


def _unchanged(options: PlanningOptions) -> set[str]:
    """Options that a plan takes as they are, in a field of the same name; the three named become other values first."""
    same = {of.name for of in fields(Plan)} & {of.name for of in fields(options)}
    return same - {"repeats", "repeats_limit", "twin_profile"}


def plan_again(record: Path, asked: Mapping[str, Any]) -> Plan:
    """The plan in a record or file, to be measured again.

    Raises: BadInput: there is no plan, or it cannot be carried out here. NewerSchema: the record is newer.
    """
    path = record / "run.json" if record.is_dir() else record.resolve()
    try:
        contents = json.loads(read_regular(path))
        if record.is_dir() and (version := contents["schema"]["version"]) > RUN_SCHEMA.version:
            raise NewerSchema(path, RUN_SCHEMA.name, version, RUN_SCHEMA.version)
        entry = contents.get("plan", contents)
        study = _STUDIES[entry["study"]["name"]](entry["study"])
        planned = {"study": study.name, "db": study.engine or None, "device": entry["device"]}
        return Plan.from_json(entry, study, {**asked, **planned, "simulate": entry["simulated"]})
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; give a record, or a plan that --dry-run --json wrote") from None
    except DAMAGE:
        older = " (a record older than plans has none)" if record.is_dir() else ""
        raise BadInput(
            f"{path} contains no plan{older}: give a record, or a plan that --dry-run --json wrote"
        ) from None


def _study(options: PlanningOptions) -> Study:
    match options:
        case YcsbOptions():
            return _ycsb(options)
        case ProgramOptions():
            return CommandStudy(options.command, options.file, before=options.before or "")
        case JobOptions():
            return JobStudy.of(
                find_study(options.folder),
                options.cell,
                options.parts,
                along=JOB_FILES,
                scale=options.scale,
                seed=SEED if options.seed is None else options.seed,
                dataset=options.dataset,
                connections=options.connections,
                cache=WHEELS,
            )
    raise AssertionError(f"{type(options).__name__} is of no study")


_STUDIES: Mapping[str, Callable[[Mapping[str, Any]], Study]] = {
    YcsbStudy.name: lambda entry: YcsbStudy.from_json(entry, ROOT / "build" / "workloads", ROOT / "build" / "ycsb"),
    CommandStudy.name: CommandStudy.from_json,
    JobStudy.name: lambda entry: JobStudy.written(entry, JOB_FILES, WHEELS),
}
"""Kind of study -> function that makes the study from a plan's JSON."""


def _ycsb(options: YcsbOptions) -> YcsbStudy:
    workload = find_workload(options.workload, ROOT / "ycsb-workloads")
    in_file, settings = file_properties(workload), parse_properties(options.properties)
    rate, target = _rate(options, in_file, settings)
    named = _named(options) | target
    properties = command_line_properties(settings, named)
    origins = dict.fromkeys(settings, "-p") | {key: OPTIONS[key] for key in named}
    stated = {**PROPORTIONS, **in_file, **properties}
    run_s, operations = _end_of_run(options, settings, stated)
    whole = {
        "recordcount": whole_number(stated, "recordcount", DEFAULT_RECORDS),
        "operationcount": operations,
    }
    files = named_files(stated, workload)
    own = ("threadcount", "seed", *(("maxexecutiontime",) if run_s else ()))
    return YcsbStudy(
        database=find_database(options.db),
        workload=workload,
        properties={key: value for key, value in properties.items() if key not in own}
        | {key: str(value) for key, value in whole.items()}
        | files,
        threads=_threads(stated),
        seed=whole_number(stated, "seed", SEED),
        harness=not options.no_harness,
        run_s=run_s,
        design=options.design,
        reset=options.reset or (LOAD if changing_keys(stated) or options.generator != "loader" else GO_ON),
        rate=rate,
        warm_up_s=options.warm_up,
        other_mixes=not options.no_mixes,
        generator=YcsbCore(ROOT / "build" / "ycsb") if options.generator == "ycsb" else None,
        origins=origins,
    )


def _named(options: YcsbOptions) -> dict[str, str]:
    """The properties that named options set."""
    size = options.value_size
    values = {
        "recordcount": options.records,
        "operationcount": options.operations,
        "maxexecutiontime": options.seconds,
        "requestdistribution": options.distribution,
        "threadcount": options.threads,
        "seed": options.seed,
        **({"fieldcount": 1, "fieldlength": size, "fieldlengthdistribution": "constant"} if size else {}),
    }
    return {key: str(value) for key, value in values.items() if value is not None}


def _threads(stated: Mapping[str, str]) -> int:
    threads = whole_number(stated, "threadcount", 1)
    if not 1 <= threads <= THREADS_MAX:
        raise BadInput(f"threadcount={threads}: a run has 1 to {THREADS_MAX} threads")
    return threads


def _end_of_run(options: YcsbOptions, settings: Mapping[str, str], stated: Mapping[str, str]) -> tuple[int | None, int]:
    """What ends a run: its length [s] or None, and its number of operations; 0 if only the length ends it.

    Raises: BadInput: nothing ends it, or two options that exclude each other.
    """
    if options.seconds:
        others = {"--generator": options.generator == "ycsb", "--operations": options.operations}
        others["-p operationcount"] = "operationcount" in settings
        for other in (name for name, given in others.items() if given):
            raise BadInput(f"--seconds {options.seconds} and {other} both set when a run ends: give one of them")
        return int(options.seconds), 0
    operations, run_s = (whole_number(stated, key, 0) for key in ("operationcount", "maxexecutiontime"))
    if operations or options.generator == "ycsb":
        return None, operations or DEFAULT_OPERATIONS
    if not run_s and "operationcount" in stated:
        raise BadInput("operationcount=0: nothing ends the run; give --operations or --seconds")
    return run_s or RUN_S, 0


def _rate(
    options: YcsbOptions, in_file: Mapping[str, str], settings: Mapping[str, str]
) -> tuple[float | str | None, dict[str, str]]:
    """The runs' rate as a part of the warm-up's, or None, and the property that sets a number of operations a second.

    Raises: BadInput: a malformed rate, or one that a setting of -p contradicts.
    """
    unranged = "target" in {**in_file, **settings} or options.generator != "loader"
    if options.rate is None:
        return (None if unranged else KEPT_UP), {}
    if options.rate == EQUAL:
        return (None if unranged else EQUAL), {}
    if "target" in settings:
        raise BadInput(f"--rate {options.rate}: the property target sets a rate already; leave one of them out")
    if options.rate == "full":
        return None, {"target": "0"} if "target" in in_file else {}
    number, percent, rest = options.rate.partition("%")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if rest or not 0.0 < value < math.inf or (percent and value > 100.0):
        raise BadInput(f"--rate {options.rate}: give full, a part such as 50%, or operations per second such as 2000")
    if not percent:
        arrivals = at_random({**in_file, **settings}) if options.generator == "loader" else {}
        return None, {**arrivals, "target": number}
    if options.generator != "loader":
        raise BadInput(f"--rate {options.rate}: --generator ycsb makes no warm-up; give operations per second")
    return value / 100.0, {}


def clock_evidence(plan: Plan, rig: Rig | None, sync: str | None) -> str:
    """How the clocks of board and meter will be aligned, in words; `sync` is the command line's carrier."""
    usual = (rig.device(plan.board.profile.name).sync or plan.board.profile.sync) if rig else "(simulated)"
    carrier = sync or usual
    line = [] if carrier == "none" else [f"sync line {carrier}"]
    played = plan.signature if plan.signature is not None else not line
    signature = ["load signature before and after"] if played else []
    return " and ".join([*line, *signature, "round trips"])


SIMULATED_METER = f"serial:simulated,{SIMULATED_SENSOR}"
"""Placeholder for the simulated rig's meter address, which is known only once the rig runs."""


def supply_of_rig(plan: Plan, rig: Rig | None, options: RigOptions) -> SupplyPath:
    """Supply, shunt and wiring in front of the board. Raises: BadInput: the meter's name is invalid."""
    if rig is None:
        return supply_path(plan.board.profile, SIMULATED_METER, SIMULATED_RIG, RigSupply(sense_ohm=0.0))
    return supply_path(plan.board.profile, options.meter or rig.meter, stated_in(options.meter), rig.supply)


def rig_notices(plan: Plan, rig: Rig | None, options: RigOptions) -> list[Notice]:
    """Notices of the rig before a measurement; none for a simulated rig, which is drawn later."""
    if rig is None:
        return []
    device, meter = plan.board.profile.name, options.meter or rig.meter
    warnings = [
        supply_of_rig(plan, rig, options).warning,
        local_meter_warning(rig.device(device).connection, meter),
        commissioning_note(rig.path, device, meter if meter != rig.meter else None),
    ]
    return [Notice(NoticeKind.NOTE, line) for line in warnings if line]


def show_plan(
    plan: Plan, rig: Rig | None, options: RigOptions, directory: str, *, meter: str, changes: Sequence[str]
) -> None:
    """Prints on stdout what a run would do.

    Args:
        meter: the meter in words.
        changes: changes that would be made on the board.
    """
    supply = supply_of_rig(plan, rig, options)
    console = terminal(soft_wrap=True)
    mark = " (SIMULATED)" if plan.simulated else ""
    console.print(f"{plan.study.title} on {plan.board.profile.title}{mark}, {plan.board.medium}", style="bold")
    for name, about in (
        *plan.study.settings(),
        ("meter", meter),
        ("shunt", supply.shunt_words),
        ("supply", "drawn anew for each measurement" if plan.simulated else supply.supply_words),
        *([("twin", plan.twin_profile.path)] if plan.twin_profile else []),
        ("clocks", clock_evidence(plan, rig, options.sync)),
        ("record", directory),
    ):
        console.print(f"  {name:<10} {about}")
    more = f", and more until the interval is within ±{100 * plan.until_u:g} %" if plan.until_u else ""
    if plan.until_u and plan.repeats < (least := min(REPEATS_MIN, plan.repeats_limit)):
        more += f" and there are {least}"
    title = f"{counted(plan.repeats, 'repeat')}{more}. Phases of each, and what follows once:"
    table = Table("phase", "what happens", title=title, title_justify="left")
    for name, about in plan.phases():
        table.add_row(name, about)
    console.print(table)
    for line in changes:
        console.print(f"  board      {line}")
    for notice in rig_notices(plan, rig, options):
        console.print(f"  WARNING    {notice.text}")


OPEN: Final = "loading, waiting for the medium and work without a given length are not included"


def known_s(plan: Plan) -> dict[str, float]:
    """Part -> the known time of one measurement [s], over all repeats and what follows them."""
    study, steps = plan.study, plan.all_steps()
    lengths_s = {}
    if isinstance(study, YcsbStudy):
        lengths_s = {RUN_WARM_UP: study.warm_up_s or 0}
        lengths_s |= {WARM_UP: study.once_s, "run": study.run_s, MIX: study.run_s} if study.run_s else {}
    runs_s = sum(lengths_s.get(step.name, 0) for step in steps)
    return {
        "idle": sum(step.role is Role.BASELINE for step in steps) * plan.idle_s,
        "runs": float(runs_s),
        "harness": HARNESS_S if any(step.role is Role.CONTROL for step in steps) else 0.0,
    }


def total_words(plans: Sequence[Plan]) -> str:
    """Time that all plans take, in one line."""
    parts: Mapping[str, float] = {
        name: sum(known_s(plan)[name] for plan in plans) for name in ("idle", "runs", "harness")
    }
    shown = ", ".join(f"{name} {in_words(length_s)}" for name, length_s in parts.items() if length_s)
    return f"Takes at least {in_words(sum(parts.values()))} in all{f' ({shown})' if shown else ''}; {OPEN}."
