"""The command line of the main job, and the options that every measurement shares."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from opjoule.base.errors import BadInput
from opjoule.base.files import read_regular
from opjoule.base.scripts import Needs
from opjoule.boards.databases import find_database
from opjoule.boards.profiles import find_profile
from opjoule.campaign.axes import media_of
from opjoule.cli.commands import Command, board_architecture
from opjoule.cli.options import (
    LIVE_HELP,
    MEDIUM_HELP,
    RIG_FILE,
    RIG_HELP,
    SIMULATE,
    Again,
    Argument,
    Flag,
    Option,
    Options,
    Parser,
    Percent,
    Positive,
    RepeatCount,
    Seconds,
    Seed,
    ThreadCount,
)
from opjoule.runs.record.directory import check_out, has_index
from opjoule.runs.studies.definition import SYSTEM, Part
from opjoule.runs.studies.folder import find_study

WHAT: Final = "what is measured"
HOW: Final = "how it is measured"
SIMULATED_SEED_HELP: Final = "seed of the simulated rig (default: another rig for each measurement)"
_EPILOG: Final = """\
examples:
  host/measure.py --db leveldb --device rpi4 --simulate
      everything on this computer, with a simulated board and meter
  host/measure.py --db sqlite --device rpi4 --storage ssd-usb3 --workload b --repeats 5
      a real board, as described in rig.toml
  host/measure.py --db leveldb --device rpi4 --seconds 30 --until-u 3%
      runs of 30 s, repeated until the energy above idle is known to 3 %
  host/measure.py --db leveldb --device rpi4 --seconds 60
      the cost of a read and of an update, with a meter too slow to separate them otherwise
  host/measure.py --db leveldb --device rpi4 --simulate --dry-run
      the plan with phases, durations and settings; nothing is run

  host/measure.py --study s2 --device rpi4 --scale 0.1
      a published study (measure.py studies lists them), with joules beside each of its measures

other commands:
  host/measure.py studies   list the studies, their systems and which systems are missing
  host/measure.py databases list the databases: built in, found, or missing and how to get them
  host/measure.py command   measure any program on the board, as a whole and in the phases it marks
  host/measure.py again     repeat a measurement from its record's plan, or add blocks to a campaign
  host/measure.py init      ask questions and write rig.toml
  host/measure.py doctor    check programs, meter and boards, and say how to fix what is wrong
  host/measure.py commission   check a rig step by step before its first measurement
  host/measure.py restore   restore a board after an interrupted measurement
  host/measure.py sudoers   print a script that allows one program, and only this, to run as root on a board
  host/measure.py virtual-board start   start a virtual board with ssh, to try things out
  host/measure.py twin      fit the simulated board to a real record and show where they differ
  host/measure.py record    record a meter's trace without a board
  host/measure.py import    make a record from a trace that another program recorded
  host/measure.py report    print the summary of a record again and rewrite its report.html
  host/measure.py verify    compare a record's files with the checksums that its run wrote
  host/view.py              show past runs in a browser, two on one time axis
  host/compare.py           compare runs and say what can be concluded; measure commands and compare them
  host/campaign.py          measure every combination of some axes, unattended
  host/runs.py              list, check, export, draw and delete runs
  host/calibrate.py         calibrate a sensor
(each has its own --help)
"""
_PROGRAM_EPILOG: Final = """\
examples:
  host/measure.py command --device rpi4 -- python3 -c 'sum(range(10**8))'
      any program on the board, as a whole
  host/measure.py command --device rpi4 --file job.py --file opjoule_marks.py -- python3 {files}/job.py --data {storage}
      your own program, copied to the board; it marks its phases and operations (docs/how-to/measure-any-command.md)
  host/measure.py command --device rpi4 --simulate -- sh -c 'dd if=/dev/zero of={storage}/f bs=1M count=64'
      the same on a simulated board

In COMMAND, {files} is the board's folder of the copied files, and {storage} is a new folder on the chosen medium.
"""


class SimulateOptions(Options):
    """Options of a simulated rig."""

    GROUP: ClassVar[str] = "the rig"

    simulate: Annotated[bool, SIMULATE] = False
    twin_profile: Path | None = None


class RigOptions(Options):
    """Options that replace meter, sync line and board state of rig.toml."""

    GROUP: ClassVar[str] = "the rig"

    meter: Annotated[
        str | None,
        Option(
            "KIND:PLACE",
            "serial:/dev/ttyACM0, monsoon:voltage=5.1, ...; measure.py record --help lists all kinds (default: "
            "rig.toml's)",
        ),
    ] = None
    storage_meter: Annotated[
        str | None,
        Option(
            "KIND:PLACE",
            "a second meter in the medium's own supply (docs/how-to/use-a-usb-tester.md; default: rig.toml's)",
        ),
    ] = None
    sync: Annotated[
        str | None,
        Option("CARRIER", "gpio:GPIO17, gpio:/dev/gpiochip0:17, gpio:sysfs:249, or none (default: rig.toml's)"),
    ] = None
    rig: Annotated[Path, Option("FILE", RIG_HELP)] = RIG_FILE
    again: Annotated[
        Again, Option("N", "measure again, at most N times, if the board's state broke a limit (default: 0)")
    ] = 0
    disturb: Annotated[str | None, Option("NAME", "run this background load on the board: cpu, video or writer")] = None
    state: Annotated[
        tuple[str, ...],
        Option("KEY=VALUE", "state of the board, in addition to rig.toml's: memory_mb=1024, journal=off, ..."),
    ] = ()


class CycleOptions(Options):
    """Idle and limits of one whole cycle."""

    GROUP: ClassVar[str] = HOW

    idle: Annotated[
        Seconds | None,
        Option(
            "S",
            "idle time before and after each run; its first third, at most 10 s, is not used (default: 30, "
            "simulated: 3)",
        ),
    ] = None
    settle_limit: Annotated[
        Seconds | None,
        Option(
            "S",
            "the wait after a run ends when the medium's writes have made no progress for this time. The same "
            "limit then "
            "holds for the power to settle. Linux may keep unsynced pages for 35 s; the limit then begins up to "
            "35 s later "
            "(default: 60)",
        ),
    ] = None
    signature: Annotated[
        bool | None,
        Flag(
            "play a pattern of busy and idle before and after, to align the clocks by the trace (default: only "
            "without a "
            "sync line)"
        ),
    ] = None


class HowOptions(CycleOptions):
    """Repeats of the whole cycle."""

    GROUP: ClassVar[str] = HOW

    repeats: Annotated[
        RepeatCount | None,
        Option(
            "N",
            "number of runs, each with settle and idle; every interval includes their spread (default: 5; for "
            "a study: its own number)",
        ),
    ] = None
    until_u: Annotated[
        Percent | None,
        Option(
            "P%",
            "repeat until the uncertainty of the energy above idle (for a database: per operation) is at most "
            "this, for "
            "example 3%%; at least 8 repeats, fewer only if more cannot help",
        ),
    ] = None
    repeats_limit: Annotated[RepeatCount, Option("N", "most repeats with --until-u (default: 30)")] = 30


class OutputOptions(Options):
    """Where the record is written, and what is printed."""

    GROUP: ClassVar[str] = HOW

    dry_run: Annotated[bool, Flag("print the plan (with --json as JSON), then stop")] = False
    out: Annotated[Path | None, Option("DIR", "the record's directory (default: a new one under runs/)")] = None
    json: Annotated[bool, Flag("print result.json on stdout instead of the summary")] = False
    live: Annotated[bool, Flag(LIVE_HELP)] = False


class MeasuringOptions(OutputOptions, RigOptions):
    """Options of a measurement that are not part of its plan."""

    STUDY: ClassVar[str] = ""
    """Kind of study, as named in a record."""

    seed: Annotated[Seed | None, Option("N", SIMULATED_SEED_HELP)] = None
    rig_seed: int = 0
    """Seed of the simulated rig: --seed or random; a campaign has its own."""

    @property
    def asked(self) -> dict[str, Any]:
        """The options as the user gave them, as JSON values, for run.json."""
        return {"study": self.STUDY, **json.loads(json.dumps(self.values, default=str))}


class DeviceOptions(Options):
    """The board, and one of its media."""

    GROUP: ClassVar[str] = WHAT

    device: Annotated[str, Option("NAME", "board: rpi3, rpi4, odroid-c2, ...")]
    storage: Annotated[str | None, Option("MEDIUM", MEDIUM_HELP)] = None


class PlanningOptions(MeasuringOptions, HowOptions, SimulateOptions, DeviceOptions):
    """Options from which a measurement of any kind is planned."""

    @property
    def architecture(self) -> str:
        """Architecture of the board that needs a loader built here; empty if none does."""
        return board_architecture(self.device, self.rig, simulated=self.simulate)


class WorkloadOptions(Options):
    """A workload of the loader."""

    GROUP: ClassVar[str] = "the workload (YCSB)"

    workload: Annotated[str, Option("NAME", "a to f, a name in ycsb-workloads/, or a file (default: a)")] = "a"
    distribution: Annotated[str | None, Option("NAME", "zipfian, latest, uniform, ... (default: the workload's)")] = (
        None
    )
    records: Annotated[
        Positive | None, Option("N", "number of records to load first (default: the workload's recordcount, or 20000)")
    ] = None
    operations: Annotated[
        Positive | None, Option("N", "number of operations, instead of a time (default: the workload's operationcount)")
    ] = None
    seconds: Annotated[
        Positive | None,
        Option(
            "S",
            "run as many operations as fit into S seconds (default, if the workload has no operationcount: its "
            "maxexecutiontime, or 16)",
        ),
    ] = None
    value_size: Annotated[
        Positive | None, Option("BYTES", "one field of this size (default: the workload's fields)")
    ] = None
    design: Annotated[
        bool,
        Flag(
            "run in mix blocks: the mix of operations changes at random every 10 samples of the meter (at least "
            "0.02 s); over the whole run it equals the workload's mix. This separates what operations draw while "
            "they are "
            "carried out, even with a slow meter; use --seconds 60 or more"
        ),
    ] = False
    threads: Annotated[
        ThreadCount | None, Option("N", "client threads (default: the workload's threadcount, or 1)")
    ] = None
    generator: Annotated[
        str,
        Option(
            "NAME",
            "program that generates the operations: loader, on the board; or ycsb, the original Java program, "
            "which runs "
            "on this computer and streams them to the board (default: loader)",
            choices=("loader", "ycsb"),
        ),
    ] = "loader"
    reset: Annotated[
        str | None,
        Option(
            "HOW",
            "how each repeat gets its database: go-on with that of the repeat before, which was loaded once and "
            "warmed up; "
            "load a new one; or copy one that was loaded once and stays on the medium (default: go-on, or load if the "
            "workload inserts records)",
            choices=("go-on", "load", "copy"),
        ),
    ] = None
    warm_up: Annotated[
        Positive | None,
        Option(
            "S",
            "seconds of the workload that are in no figure: once before all repeats that go on with one database "
            "(default: "
            "10); with --reset load or copy before each run, without the workload's inserts (default: none)",
        ),
    ] = None
    rate: Annotated[
        str | None,
        Option(
            "RATE",
            "operations per second of the runs: full, as fast as the engine goes; P%%, a part of the rate that a "
            "warm-up reaches; or a number (default: the workload's target, or 50%%, at which most engines and media "
            "keep up). Below full they come at random moments; -p arrivals=even sets equal distances",
        ),
    ] = None
    no_harness: Annotated[bool, Flag("do not measure the loader's own cost")] = False
    no_mixes: Annotated[
        bool,
        Flag(
            "of a workload with several kinds that write: leave out the runs in other mixes after the repeats, one for "
            "each of these kinds, which show what each costs all told"
        ),
    ] = False
    properties: Annotated[
        tuple[str, ...], Option("KEY=VALUE", "any YCSB or engine property; it replaces the workload's", names="-p")
    ] = ()


class DatabaseOption(Options):
    """The database."""

    GROUP: ClassVar[str] = WHAT

    db: Annotated[str, Option("NAME", "database: leveldb, sqlite, ... (measure.py databases)")]


class YcsbOptions(PlanningOptions, WorkloadOptions, DatabaseOption):
    """Options of a workload on a database: the main job, or a cell of a campaign."""

    STUDY: ClassVar[str] = "ycsb"
    GROUP: ClassVar[str] = WorkloadOptions.GROUP

    seed: Annotated[
        Seed | None,
        Option(
            "N",
            "seed of keys, values and order (default: the workload's seed, or 1), and of the simulated rig (default: "
            "another rig for each measurement)",
        ),
    ] = None

    @property
    def architecture(self) -> str:
        """Architecture of the board that needs a loader built here; empty if none does."""
        return board_architecture(self.device, self.rig, simulated=self.simulate, database=self.db)


def needs_of_measurement(options: PlanningOptions) -> Needs:
    """Set-up that a measurement on this computer's rig needs."""
    if options.dry_run:  # the loader checks the workload
        ycsb = isinstance(options, YcsbOptions) and options.generator == "ycsb"
        return Needs(loader=isinstance(options, YcsbOptions), engines=engines_of(options), ycsb=ycsb)
    return needs_of_measurements([options])


def _checked(parser: Parser, options: PlanningOptions) -> PlanningOptions:
    """The options; a misspelt name, or an --out that is taken, is refused here, before minutes of set-up."""
    try:
        if isinstance(options, YcsbOptions):
            find_database(options.db)
        profile = find_profile(options.device)
        for medium in media_of(options.storage):
            profile.with_medium(medium)
        if options.out:
            check_out(options.out)
    except BadInput as error:
        parser.refuse(error)
    return options


MEASURE: Final = Command(
    "",
    YcsbOptions,
    "opjoule.cli.measure.command:run_measure",
    "Measures the energy of one database operation, in joules, on a single-board computer.",
    _EPILOG,
    checked=_checked,
    needs=needs_of_measurement,
)


class ProgramOptions(PlanningOptions):
    """Options of a measurement of any program on the board."""

    STUDY: ClassVar[str] = "command"
    GROUP: ClassVar[str] = WHAT

    file: Annotated[
        tuple[Path, ...], Option("FILE", "file to copy to the board before the measurement; {files}/NAME in COMMAND")
    ] = ()
    before: Annotated[
        str | None, Option("SHELL", "shell command to run before each repeat's idle; its energy is not counted")
    ] = None
    seed: Annotated[Seed | None, Option("N", SIMULATED_SEED_HELP)] = None
    command: Annotated[tuple[str, ...], Argument("COMMAND", "the program and its arguments, after --")] = ()


PROGRAM: Final = Command(
    "command",
    ProgramOptions,
    "opjoule.cli.measure.command:run_measure",
    "Measures the energy of any program, in joules, on a single-board computer: as a whole, in each phase that it "
    "marks, and per operation that it marks.",
    _PROGRAM_EPILOG,
    "measure.py command --device NAME [options] -- COMMAND [ARGUMENT ...]",
    checked=_checked,
    needs=needs_of_measurement,
)


class AgainOptions(MeasuringOptions):
    """The plan of an earlier measurement or dry run, or a campaign's folder."""

    plan: Annotated[
        Path, Argument("RECORD", "a run record, a file that contains a plan, or a folder of several conditions")
    ]
    blocks: Annotated[
        RepeatCount | None,
        Option(
            "N",
            "with a folder of several conditions: number of further blocks (default: as many as are expected to decide "
            "the contrasts without a difference, but at most as many as there are)",
        ),
    ] = None


def _needs_of_plan(options: AgainOptions) -> Needs:
    """Set-up for the plan's device and generator. The plan is read in full, and its mistakes are reported, later."""
    needs = [_needs_of(path, options) for path in _plan_files(options.plan)]
    engines = frozenset[str]().union(*(one.engines for one in needs))
    return replace(
        needs[0],
        engines=engines,
        ycsb=any(one.ycsb for one in needs),
        board=next((one.board for one in needs if one.board), ""),
    )


def _plan_files(place: Path) -> list[Path]:
    """Files with the plans of a record, of a folder of several conditions, or of a dry run."""
    if not place.is_dir():
        return [place.resolve()]
    return (sorted(place.glob("*/run.json")) if has_index(place) else []) or [place / "run.json"]


def _needs_of(path: Path, options: AgainOptions) -> Needs:
    """Set-up for the plan in a file."""
    try:
        contents = json.loads(read_regular(path))
        plan = contents.get("plan", contents)
        device, simulated = str(plan["device"]), bool(plan["simulated"])
        study = plan["study"]
        ycsb, database = study.get("generator") == "ycsb", study.get("database")
        engines = frozenset(name for name in (database, study.get("cell", {}).get(SYSTEM)) if isinstance(name, str))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Needs(loader=True)
    if options.dry_run:
        return Needs(loader=True, engines=engines, ycsb=ycsb)
    virtual = device == "virtual"
    board = board_architecture(device, options.rig, simulated=simulated, database=database)
    return Needs(
        loader=True,
        engines=engines,
        simulate=simulated or virtual,
        ycsb=ycsb,
        virtual=virtual,
        board=board,
    )


AGAIN: Final = Command(
    "again",
    AgainOptions,
    "opjoule.cli.campaign.command:run_again",
    "Repeats a measurement from its record's plan, here or on another rig, with the same study, board, medium, repeats "
    "and idle. Records with the same plan_sha256 had the same plan. With the folder of a campaign, adds blocks to it.",
    "examples:\n  host/measure.py again runs/20261122-101500-leveldb-rpi4-sd\n"
    "  host/measure.py --db leveldb --device rpi4 --dry-run --json > plan.json; host/measure.py again plan.json\n"
    "  host/measure.py again runs/three-engines --dry-run\n"
    "      how many more blocks are expected to decide a campaign in which no difference was found",
    needs=_needs_of_plan,
)


class StudyCell(Options):
    """A cell of a study."""

    folder: str
    """The study's name, or its folder."""
    cell: Mapping[str, str]
    """Axis -> value."""
    scale: float
    figures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The study's figures that show the cell -> the axes of each figure."""


class StudyWorkloadOptions(YcsbOptions, StudyCell):
    """A cell of a study that is a workload of the loader."""


class JobOptions(PlanningOptions, StudyCell):
    """A cell of a study that is a job on the board."""

    STUDY: ClassVar[str] = "suite"

    parts: tuple[Part, ...]
    dataset: Path | None = field(default=None, metadata={"type": Path})
    connections: Path | None = field(default=None, metadata={"type": Path})


def engines_of(options: PlanningOptions) -> frozenset[str]:
    """The databases that a measurement's loader contains or connects to."""
    if isinstance(options, YcsbOptions):
        return frozenset([options.db])
    if isinstance(options, JobOptions) and any("{loader}" in word for word in find_study(options.folder).command):
        return frozenset([options.cell[SYSTEM]] if SYSTEM in options.cell else [])
    return frozenset()


def needs_of_measurements(cells: Sequence[PlanningOptions]) -> Needs:
    """Set-up for measurements, or cells of a campaign, on this computer's rig."""
    virtual = any(cell.device == "virtual" for cell in cells)
    packages: dict[str, None] = {}
    for cell in cells:  # Debian packages that a cell needs on this computer, its simulated board
        if isinstance(cell, JobOptions) and cell.simulate:
            of_values = find_study(cell.folder).packages
            packages |= dict.fromkeys(name for value in cell.cell.values() for name in of_values.get(value, ()))
    return Needs(
        loader=True,
        engines=frozenset().union(*map(engines_of, cells)),
        simulate=virtual or any(cell.simulate for cell in cells),
        ycsb=any(isinstance(cell, YcsbOptions) and cell.generator == "ycsb" for cell in cells),
        virtual=virtual,
        packages=tuple(packages),
        board=next((cell.architecture for cell in cells if cell.architecture), ""),
    )


COMMANDS: Final = (PROGRAM, AGAIN)
