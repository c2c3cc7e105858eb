"""The command line of host/measure.py, parsed with the standard library alone.

It is read twice: before set-up (so that --help and a mistyped option need no set-up) and in .venv.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import opjoule
from opjoule.cli.board_build import board_architecture
from opjoule.cli.failures import one_line

COMMANDS = ("init", "record", "import", "doctor", "report", "verify", "restore", "virtual-board")

_MEASURE_EPILOG = """\
examples:
  host/measure.py --db leveldb --device rpi4 --simulate
      the whole path on this computer, with a simulated board and meter
  host/measure.py --db sqlite --device rpi4 --storage ssd-usb3 --workload b --repeats 5
      a real board, as described in rig.toml
  host/measure.py --db leveldb --device rpi4 --seconds 30 --until-u 3%
      runs of 30 s, as many as it takes to know the energy above idle to 3 %
  host/measure.py --db leveldb --device rpi4 --simulate --dry-run
      the plan: phases, durations, settings; nothing is run

other commands:
  host/measure.py init      write rig.toml by asking
  host/measure.py doctor    check everything that can be checked, and say how to mend it
  host/measure.py restore   put a board back after a measurement that was cut off
  host/measure.py virtual-board start   a virtual board with ssh, for trying
  host/measure.py record    record a meter's trace on its own, no board involved
  host/measure.py import    make a record of a trace that another program recorded
  host/measure.py report    print the summary of a record again and rewrite its report.html
  host/measure.py verify    compare a record's files with the checksums its run left
(each has its own --help)
"""


@dataclass(frozen=True)
class Asked:
    """What the user asked for; everything but `command` and `options` decides what bootstrap.py sets up."""

    command: str
    loader: bool = True
    simulate: bool = False
    ycsb: bool = False
    virtual: bool = False
    board: str = ""
    options: argparse.Namespace = field(default_factory=argparse.Namespace)


def parse(argv: list[str]) -> Asked:
    """Parses one command line; argparse exits with status 2 and one line on a mistake."""
    if argv and argv[0] in COMMANDS:
        parser = {
            "init": _init,
            "record": _record,
            "import": _import,
            "doctor": _doctor,
            "report": _report,
            "verify": _verify,
            "restore": _restore,
            "virtual-board": _virtual_board,
        }[argv[0]]()
        options = parser.parse_args(argv[1:])
        return Asked(
            argv[0],
            loader=argv[0] == "doctor",
            simulate=getattr(options, "simulate", False),
            virtual=argv[0] == "virtual-board",
            options=options,
        )
    if argv and not argv[0].startswith("-"):
        _unknown(argv[0])
    options = _measure().parse_args(argv)
    if options.dry_run:
        return Asked("measure", loader=False, options=options)
    virtual = options.device == "virtual"
    return Asked(
        "measure",
        simulate=options.simulate or virtual,
        ycsb=options.generator == "ycsb",
        virtual=virtual,
        board=board_architecture(options),
        options=options,
    )


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return value


def _percent(text: str) -> float:
    """A share from per cent: 0.03 from "3%" or "3"."""
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a percentage above 0 and below 100, for example 3%"
        )
    return value


def _voltage(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1000:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a voltage above 0 and up to 1000 V, for example 5.1"
        )
    return value


def _directory(text: str) -> Path:
    """A name for a directory or file; the empty one would be the folder one stands in."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty: give a name, for example runs/bench")
    return Path(text)


class _Parser(argparse.ArgumentParser):
    """A mistake is one line, as everywhere in this program."""

    def error(self, message: str) -> NoReturn:
        """Names the mistake and where to read on; exit status 2."""
        self.exit(2, f"measure.py: {one_line(message)} ('{self.prog} --help' explains)\n")


def _unknown(word: str) -> NoReturn:
    near = difflib.get_close_matches(word, COMMANDS, 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    print(
        f"measure.py: unknown command '{one_line(word)}': {hint}there are {', '.join(COMMANDS)}; without one it "
        "measures: --db NAME --device NAME",
        file=sys.stderr,
    )
    sys.exit(2)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds from 0 to 86400")
    return value


def _measure() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="measure.py",
        description="Measures what one database operation costs in joules on a single-board computer.",
        epilog=_MEASURE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"OpJoule {opjoule.__version__}")
    _what(parser)
    _workload(parser)
    _rig(parser)
    _how(parser)
    return parser


def _what(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what is measured")
    what.add_argument(
        "--db", required=True, metavar="NAME", help="database: leveldb, sqlite, ... (doctor lists them)"
    )
    what.add_argument("--device", required=True, metavar="NAME", help="board: rpi3, rpi4, odroid-c2, ...")
    what.add_argument(
        "--storage",
        metavar="MEDIUM",
        help="sd, emmc, ssd-usb2, ssd-usb3 (default: the board's first); several with commas",
    )


def _workload(parser: argparse.ArgumentParser) -> None:
    work = parser.add_argument_group("the workload (YCSB)")
    work.add_argument(
        "--workload",
        default="a",
        metavar="NAME",
        help="a to f, a name under ycsb-workloads/, or a file (default: a)",
    )
    work.add_argument(
        "--distribution", metavar="NAME", help="zipfian, latest, uniform, ... (default: the workload's)"
    )
    work.add_argument("--records", type=_positive, metavar="N", help="records loaded first (default: 20000)")
    work.add_argument("--operations", type=_positive, metavar="N", help="operations run (default: 100000)")
    work.add_argument(
        "--seconds", type=_positive, metavar="S", help="run as many operations as fit into S seconds instead"
    )
    work.add_argument(
        "--value-size",
        type=_positive,
        metavar="BYTES",
        help="one field of this size (default: the workload's fields)",
    )
    work.add_argument("--threads", type=_positive, default=1, metavar="N", help="client threads (default: 1)")
    work.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="seed of keys, values and order (default: 1); a simulated rig is drawn from it, without --seed anew",
    )
    work.add_argument(
        "--generator",
        choices=("loader", "ycsb"),
        default="loader",
        metavar="NAME",
        help="who makes the operations: loader, on the board; or ycsb, the real one (Java) on this computer, whose "
        "operations stream to the board (default: loader)",
    )
    work.add_argument(
        "-p",
        dest="properties",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any YCSB or engine property",
    )


def _rig(parser: argparse.ArgumentParser) -> None:
    rig = parser.add_argument_group("the rig")
    rig.add_argument(
        "--simulate", action="store_true", help="simulated board and meter; every figure says SIMULATED"
    )
    rig.add_argument(
        "--meter",
        metavar="KIND:PLACE",
        help="serial:/dev/ttyACM0, monsoon:voltage=5.1, rapl, ... (default: rig.toml's)",
    )
    rig.add_argument(
        "--sync",
        metavar="CARRIER",
        help="gpio:GPIO17, gpio:/dev/gpiochip0:17, gpio:sysfs:249, or none (default: rig.toml's)",
    )
    rig.add_argument(
        "--rig",
        type=_directory,
        default=Path("rig.toml"),
        metavar="FILE",
        help="the rig's description (default: rig.toml)",
    )
    rig.add_argument(
        "--again",
        type=int,
        choices=range(10),
        default=0,
        metavar="N",
        help="measure again, at most N times, where the board's state broke a limit (default: 0)",
    )
    rig.add_argument(
        "--disturb", metavar="NAME", help="a stated background load on the board: cpu, video or writer"
    )
    rig.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="state of the board, on top of rig.toml's: memory_mb=1024, journal=off, ...",
    )


def _how(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("how it is measured")
    how.add_argument(
        "--idle",
        type=_seconds,
        metavar="S",
        help="idle before and after each run; its first third, at most 10 s, is left out (default: 30, simulated 3)",
    )
    how.add_argument(
        "--repeats",
        type=_positive,
        default=3,
        metavar="N",
        help="whole cycles: load, idle, run, settle, idle; their spread is in every interval (default: 3)",
    )
    how.add_argument(
        "--until-u",
        type=_percent,
        metavar="P%",
        help="repeat until the energy above idle per operation is known to this, for example 3%%",
    )
    how.add_argument(
        "--repeats-limit",
        type=_positive,
        default=30,
        metavar="N",
        help="most repeats with --until-u (default: 30)",
    )
    how.add_argument(
        "--settle-limit",
        type=_seconds,
        default=60.0,
        metavar="S",
        help="longest wait for writes and for the power to be back at rest (default: 60)",
    )
    how.add_argument(
        "--signature",
        action=argparse.BooleanOptionalAction,
        help="play a busy and idle pattern before and after, found again in the trace (default: without a sync line)",
    )
    how.add_argument("--no-harness", action="store_true", help="skip measuring the loader's own cost")
    how.add_argument("--dry-run", action="store_true", help="print the plan and stop")
    how.add_argument(
        "--out",
        type=_directory,
        metavar="DIR",
        help="the record's directory (default: a new one under runs/)",
    )
    how.add_argument("--json", action="store_true", help="print result.json on stdout instead of the summary")


def _record() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="measure.py record",
        description="Records a meter's power trace, no board involved: power.parquet, gaps.parquet, run.json.",
        epilog="example:\n  host/measure.py record --meter serial:/dev/ttyACM0 --out runs/bench --seconds 60",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--meter",
        required=True,
        metavar="KIND:PLACE",
        help="serial:/dev/ttyACM0, monsoon:voltage=5.1, rapl, ... (docs/reference/meters.md)",
    )
    parser.add_argument(
        "--out",
        type=_directory,
        required=True,
        metavar="DIR",
        help="the record's directory; must not hold a record yet",
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        metavar="N",
        help="seconds of the meter's clock (default: until Ctrl-C or the meter ends)",
    )

    parser.add_argument("--json", action="store_true", help="print the outcome as JSON on stdout")
    return parser


def _import() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="measure.py import",
        description="Makes a run record of a trace that another program recorded (PowerTool, PPK2, any CSV).",
        epilog="example:\n  host/measure.py import trace.csv --out runs/bench --columns current=I:mA --voltage 5.1",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "file", type=_directory, metavar="FILE", help="a CSV file; units are read from its header"
    )
    parser.add_argument("--out", type=_directory, required=True, metavar="DIR", help="the record's directory")
    parser.add_argument(
        "--columns",
        action="append",
        default=[],
        metavar="ROLE=NAME:UNIT",
        help="time, current, voltage or power, where the header does not say",
    )
    parser.add_argument(
        "--voltage", type=_voltage, metavar="V", help="of the supply, where the file has none"
    )
    parser.add_argument(
        "--sensor", metavar="NAME", help="whose error bounds to use: monsoon-hvpm, ppk2, ina219, ..."
    )
    return parser


def _init() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="measure.py init",
        description="Writes rig.toml by asking: board, address, meter, media, sync pin.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--rig",
        type=_directory,
        default=Path("rig.toml"),
        metavar="FILE",
        help="file to write (default: rig.toml)",
    )
    return parser


def _virtual_board() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="measure.py virtual-board",
        description="A whole aarch64 Linux board under qemu, for trying the remote path without hardware.",
        epilog="measure on it with:\n  host/measure.py --db leveldb --device virtual --records 500 --operations 500",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "action", choices=("build", "start"), help="build: make and cache it; start: run it until Ctrl-C"
    )
    return parser


def _restore() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="measure.py restore",
        description="Puts a board back after a measurement that was cut off: a killed host, a lost link, a power cut.",
        epilog="example:\n  host/measure.py restore --device rpi4",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--device", required=True, metavar="NAME", help="the board, as rig.toml names it")
    parser.add_argument(
        "--rig",
        type=_directory,
        default=Path("rig.toml"),
        metavar="FILE",
        help="the rig's description (default: rig.toml)",
    )
    parser.add_argument(
        "--out", type=_directory, metavar="DIR", help="where its files go (default: runs/recovered)"
    )
    return parser


def _doctor() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="measure.py doctor",
        description="Checks programs, builds, rig.toml, meter and board, and says how to mend what is wrong.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--rig",
        type=_directory,
        default=Path("rig.toml"),
        metavar="FILE",
        help="the rig's description (default: rig.toml)",
    )
    parser.add_argument("--simulate", action="store_true", help="check the simulated rig too")
    parser.add_argument(
        "--pulses",
        type=_positive,
        default=0,
        metavar="N",
        help="drive each board's sync line: N pulses of half a second; without, it is only asked for and shown",
    )
    return parser


def _report() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="measure.py report",
        description="Prints the summary of a run record and rewrites its report.html. "
        "What a killed run has recorded is analysed first.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "record", type=_directory, metavar="DIR", help="a run record, for example one under runs/"
    )
    return parser


def _verify() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="measure.py verify",
        description="Compares every file of a record, raw and derived, with the checksum that its run left, and names "
        "those that were changed or are missing. Exit status 0 if all are as they were, 4 if not.",
        epilog="example:\n  host/measure.py verify runs/*",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "records", type=_directory, nargs="+", metavar="RECORD", help="a run record under runs/"
    )
    parser.add_argument("--json", action="store_true", help="print what was found as JSON on stdout")
    return parser
