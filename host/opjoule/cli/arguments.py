"""The command line of host/measure.py, parsed with the standard library alone.

It is read twice: before set-up (so that --help and a mistyped option need no set-up) and in .venv.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from typing import NoReturn

from opjoule.cli.argument_types import IMPORT_SENSORS, METER_HELP, Parser, count, directory, seconds, voltage
from opjoule.cli.board_build import board_architecture
from opjoule.cli.calibrate.arguments import calibrate_options
from opjoule.cli.campaign.arguments import campaign_options, for_campaign
from opjoule.cli.campaign.fleet_arguments import check_network
from opjoule.cli.campaign.study_arguments import (
    databases_parser,
    is_study,
    studies_parser,
    study_campaign,
    study_parser,
)
from opjoule.cli.commission.arguments import check_options, commission_parser
from opjoule.cli.compare.arguments import compare_parser
from opjoule.cli.failures import one_line
from opjoule.cli.measure.arguments import add_live, again_parser, measure_parser
from opjoule.cli.measure.command_arguments import command_parser
from opjoule.cli.runs.arguments import ACTIONS as ACTIONS_ON_RUNS
from opjoule.cli.runs.arguments import runs_parser, view_parser
from opjoule.cli.sudoers.arguments import sudoers_parser
from opjoule.cli.twin.arguments import twin_parser
from opjoule.errors import BadInput
from opjoule.suggestion import suggestion

FIRST_COMMAND = "host/measure.py --db leveldb --device rpi4 --simulate"
COMMANDS = (
    *(
        "init",
        "record",
        "import",
        "doctor",
        "commission",
        "report",
        "verify",
        "restore",
        "sudoers",
        "virtual-board",
        "command",
        "again",
        "twin",
    ),
    *("calibrate", "runs", "view", "compare", "campaign", "studies", "databases"),
)
MEASURING = {"command": command_parser, "again": again_parser}


@dataclass(frozen=True)
class Asked:
    """What the user asked for; everything but `command` and `options` decides what bootstrap.py sets up."""

    command: str
    loader: bool = True
    simulate: bool = False
    ycsb: bool = False
    virtual: bool = False
    figures: bool = False
    fleet: bool = False
    board: str = ""
    packages: tuple[str, ...] = ()
    options: argparse.Namespace = field(default_factory=argparse.Namespace)


def parse(argv: list[str]) -> Asked:
    """Parses one command line; argparse exits with status 2 and one line on a mistake."""
    if argv and argv[0] == "calibrate":
        return _calibrate(argv[1:])
    if argv and argv[0] == "commission":
        return _commission(argv[1:])
    if argv and argv[0] == "runs":
        return _runs(argv[1:])
    if argv and argv[0] == "campaign":
        options, needs = campaign_options(argv[1:])
        return Asked("campaign", options=options, **needs)
    if is_study(argv):
        return _study(argv)
    measuring = MEASURING.get(argv[0]) if argv else None
    if argv and argv[0] in COMMANDS and not measuring:
        parser = {
            "init": _init,
            "record": _record,
            "import": _import,
            "doctor": _doctor,
            "report": _report,
            "verify": _verify,
            "restore": _restore,
            "sudoers": sudoers_parser,
            "virtual-board": _virtual_board,
            "view": view_parser,
            "compare": compare_parser,
            "studies": studies_parser,
            "databases": databases_parser,
            "twin": twin_parser,
        }[argv[0]]()
        options = parser.parse_args(argv[1:])
        return Asked(
            argv[0],
            loader=argv[0] == "doctor",
            simulate=argv[0] != "twin" and getattr(options, "simulate", False),
            virtual=argv[0] == "virtual-board",
            figures=bool(getattr(options, "plot", None)),
            options=options,
        )
    argv = ["--help"] if argv == ["help"] else argv
    if argv and not measuring and not argv[0].startswith("-"):
        _unknown(argv[0])
    if not argv:
        measure_parser().error(f"no command given; to begin: {FIRST_COMMAND}")
    options = measuring().parse_args(argv[1:]) if measuring else measure_parser().parse_args(argv)
    if options.study == "again":
        _look_ahead(options)
    if options.dry_run:  # the loader checks the workload
        needed = options.study != "command"
        return Asked("measure", loader=needed, ycsb=options.generator == "ycsb", options=options)
    virtual = options.device == "virtual"
    return Asked(
        "measure",
        simulate=options.simulate or virtual,
        ycsb=options.generator == "ycsb",
        virtual=virtual,
        board=board_architecture(options),
        options=options,
    )


def _calibrate(argv: list[str]) -> Asked:
    """`calibrate [check|show] ...`."""
    options = calibrate_options(argv)
    load = bool(getattr(options, "device", None))
    simulate = options.simulate and options.action != "show"
    board = board_architecture(options) if load else ""
    return Asked("calibrate", loader=load, simulate=simulate, board=board, options=options)


def _commission(argv: list[str]) -> Asked:
    """`commission ...`."""
    parser = commission_parser()
    options = parser.parse_args(argv)
    options.db = None
    check_options(parser, options)
    board = "" if options.simulate else board_architecture(options)
    return Asked("commission", simulate=options.simulate, board=board, options=options)


def _study(argv: list[str]) -> Asked:
    """`--study NAME ...`: a campaign over the study's cells."""
    parser = study_parser()
    options = parser.parse_args(argv)
    check_network(parser, options, options.scheduler or "")
    try:
        options.campaign = study_campaign(options, argv)
    except BadInput as error:
        parser.exit(BadInput.exit_code, f"measure.py: {one_line(str(error))}\n")
    options.action = ""
    return Asked("campaign", options=options, **for_campaign(parser, options))


def _runs(argv: list[str]) -> Asked:
    """`runs ACTION ...`."""
    action = argv[0] if argv and argv[0] in ACTIONS_ON_RUNS else ""
    options = runs_parser(action).parse_args(argv[1:] if action else argv)
    options.action = action
    return Asked("runs", loader=False, figures=action == "figures", options=options)


def _look_ahead(options: argparse.Namespace) -> None:
    """What set-up has to know of a plan that is read in full later; mistakes in it are reported then."""
    path = options.plan / "run.json" if options.plan.is_dir() else options.plan
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        plan = contents.get("plan", contents)
        options.device, options.simulate = str(plan["device"]), bool(plan["simulated"])
        options.generator = str(plan["study"].get("generator", options.generator))
        options.db = plan["study"].get("database")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return


def _unknown(word: str) -> NoReturn:
    hint = suggestion(word, COMMANDS)
    print(
        f"measure.py: unknown command '{one_line(word)}': {hint}there are {', '.join(COMMANDS)}; without "
        "a command it measures: --db NAME --device NAME",
        file=sys.stderr,
    )
    sys.exit(2)


def _record() -> Parser:
    parser = Parser(
        "record",
        description="Records a meter's power trace, no board involved: power.parquet, gaps.parquet, run.json.",
        epilog="example:\n  host/measure.py record --meter serial:/dev/ttyACM0 --out runs/bench --seconds 60",
    )
    parser.add_argument(
        "--meter",
        required=True,
        metavar="KIND:PLACE",
        help=METER_HELP,
    )
    parser.add_argument(
        "--storage-meter", metavar="KIND:PLACE", help="a second meter, recorded beside it as sensor 1"
    )
    parser.add_argument(
        "--out",
        type=directory,
        required=True,
        metavar="DIR",
        help="the record's directory; must not hold a record yet",
    )
    parser.add_argument(
        "--seconds",
        type=seconds,
        metavar="N",
        help="seconds of the meter's clock (default: until Ctrl-C or the meter ends)",
    )

    parser.add_room_temperature()
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON on stdout")
    add_live(parser)
    return parser


def _import() -> Parser:
    parser = Parser(
        "import",
        description="Makes a run record from a trace that another program recorded (PowerTool, PPK2, any CSV).",
        epilog="example:\n  host/measure.py import trace.csv --out runs/bench --columns current=I:mA --voltage 5.1",
    )
    parser.add_argument(
        "file", type=directory, metavar="FILE", help="a CSV file; units are read from its header"
    )
    parser.add_argument("--out", type=directory, required=True, metavar="DIR", help="the record's directory")
    parser.add_argument(
        "--columns",
        action="append",
        default=[],
        metavar="ROLE=NAME:UNIT",
        help="column that holds time, current, voltage or power, if the header does not tell",
    )
    parser.add_argument(
        "--voltage",
        type=voltage,
        metavar="V",
        help="voltage of the supply, for a file without a column of it",
    )
    parser.add_argument("--sensor", metavar="NAME", help=f"meter whose error bounds apply: {IMPORT_SENSORS}")
    return parser


def _init() -> Parser:
    parser = Parser(
        "init",
        description="Writes rig.toml by asking: board, address, meter, media, sync pin.",
    )
    parser.add_rig("file to write")
    return parser


def _virtual_board() -> Parser:
    parser = Parser(
        "virtual-board",
        description="A whole aarch64 Linux board under qemu, for trying the remote path without hardware.",
        epilog="measure on it with:\n  host/measure.py --db leveldb --device virtual --records 500 --operations 500",
    )
    parser.add_argument(
        "action", choices=("build", "start"), help="build: make and cache it; start: run it until Ctrl-C"
    )
    return parser


def _restore() -> Parser:
    parser = Parser(
        "restore",
        description="Restores a board after an interrupted measurement: a killed host, a lost link, a power cut.",
        epilog="example:\n  host/measure.py restore --device rpi4",
    )
    parser.add_argument("--device", required=True, metavar="NAME", help="the board, as rig.toml names it")
    parser.add_rig()
    parser.add_argument(
        "--out", type=directory, metavar="DIR", help="where its files go (default: runs/recovered)"
    )
    parser.add_argument(
        "--kept",
        action="store_true",
        help="also remove the loaded databases kept on its media for --reset copy, which are only named "
        "otherwise",
    )
    return parser


def _doctor() -> Parser:
    parser = Parser(
        "doctor",
        description="Checks programs, builds, rig.toml, meter and board, and says how to mend what is wrong.",
    )
    parser.add_rig()
    parser.add_argument("--simulate", action="store_true", help="check the simulated rig too")
    parser.add_argument(
        "--pulses",
        type=count,
        metavar="N",
        help="number of half-second pulses on each board's sync line, all of which the meter must see "
        "(default: 3; 0 plays none)",
    )
    return parser


def _report() -> Parser:
    parser = Parser(
        "report",
        description="Prints the summary of a run record and rewrites its report.html. If the run was "
        "killed, what it recorded is analysed first.",
    )
    parser.add_argument(
        "record", type=directory, metavar="DIR", help="a run record, for example one under runs/"
    )
    return parser


def _verify() -> Parser:
    parser = Parser(
        "verify",
        description="Compares every file of a record, raw and derived, with the checksum that its run "
        "left, reads its tables, and names each file that was changed, is missing or cannot "
        "be read. Exit status: 4 if there is one, else 0.",
        epilog="example:\n  host/measure.py verify runs/*",
    )
    parser.add_argument(
        "records", type=directory, nargs="+", metavar="RECORD", help="a run record under runs/"
    )
    parser.add_argument("--json", action="store_true", help="print what was found as JSON on stdout")
    return parser
