"""The options of the main job: what is measured, the workload, the rig, and how it is measured."""

from __future__ import annotations

import argparse
from pathlib import Path

import opjoule
from opjoule.cli.argument_types import (
    METER_HELP,
    Parser,
    directory,
    percent,
    positive,
    repeats,
    seconds,
    seed,
    threads,
)
from opjoule.cli.twin_profiles import add_simulate

SETTLE_LIMIT_S = 60.0
_MEASURE_EPILOG = """\
examples:
  host/measure.py --db leveldb --device rpi4 --simulate
      the whole path on this computer, with a simulated board and meter
  host/measure.py --db sqlite --device rpi4 --storage ssd-usb3 --workload b --repeats 5
      a real board, as described in rig.toml
  host/measure.py --db leveldb --device rpi4 --seconds 30 --until-u 3%
      runs of 30 s, as many as it takes to know the energy above idle to 3 %
  host/measure.py --db leveldb --device rpi4 --seconds 60 --design
      what a read and what an update cost, with a meter too slow to tell in the plain workload
  host/measure.py --db leveldb --device rpi4 --simulate --dry-run
      the plan: phases, durations, settings; nothing is run

  host/measure.py --study s2 --device rpi4 --scale 0.1
      a whole published study (measure.py studies lists them), with joules beside each of its measures

other commands:
  host/measure.py studies   list the studies: their systems, and what of them is missing
  host/measure.py databases list the databases: built in, found, missing and how to get it
  host/measure.py command   measure any program on the board, as a whole and in the phases it marks
  host/measure.py again     measure once more what a record's plan says
  host/measure.py init      write rig.toml by asking
  host/measure.py doctor    check everything that can be checked, and say how to mend it
  host/measure.py commission   prove a rig on the desk, step by step, before its first figure is believed
  host/measure.py restore   put a board back after a measurement that was cut off
  host/measure.py sudoers   print what is done as root on a board, and a sudoers file that permits this alone
  host/measure.py virtual-board start   a virtual board with ssh, for trying
  host/measure.py twin      fit the simulated board to a real record, and see where it is off
  host/measure.py record    record a meter's trace on its own, no board involved
  host/measure.py import    make a record of a trace that another program recorded
  host/measure.py report    print the summary of a record again and rewrite its report.html
  host/measure.py verify    compare a record's files with the checksums its run left
  host/view.py              look at past runs in a browser, two on one time axis
(each has its own --help)
"""


def measure_parser() -> Parser:
    """The parser of the main job, which has no subcommand."""
    parser = Parser(
        description="Measures what one database operation costs in joules on a single-board computer.",
        epilog=_MEASURE_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"OpJoule {opjoule.__version__}")
    parser.set_defaults(study="ycsb")
    _what(parser)
    _workload(parser)
    add_rig(parser)
    add_how(parser)
    return parser


def again_parser() -> Parser:
    """The parser of `measure.py again`."""
    parser = Parser(
        "again",
        description="Repeats a measurement from its record's plan, here or on another rig: the same "
        "study, board, medium, repeats and idle. Records with the same plan_sha256 had the "
        "same plan.",
        epilog="examples:\n  host/measure.py again runs/20261122-101500-leveldb-rpi4-sd\n"
        "  host/measure.py --db leveldb --device rpi4 --dry-run --json > plan.json; host/measure.py again plan.json",
    )
    parser.set_defaults(
        study="again",
        simulate=False,
        twin_profile=None,
        storage=None,
        generator="loader",
        seconds=None,
        db=None,
        device="",
    )
    parser.add_argument(
        "plan", type=directory, metavar="RECORD", help="a run record, or a file that holds a plan"
    )
    parser.add_argument(
        "--seed",
        type=seed,
        metavar="N",
        help="seed of the simulated rig (default: another rig for each measurement)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan and stop")
    parser.add_argument(
        "--out", type=directory, metavar="DIR", help="the record's directory (default: a new one)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print result.json on stdout instead of the summary"
    )
    add_live(parser)
    add_rig(parser, simulate=False)
    return parser


def _what(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what is measured")
    what.add_argument(
        "--db", required=True, metavar="NAME", help="database: leveldb, sqlite, ... (measure.py databases)"
    )
    what.add_argument("--device", required=True, metavar="NAME", help="board: rpi3, rpi4, odroid-c2, ...")
    add_storage(what)


def add_storage(group: argparse._ArgumentGroup) -> None:
    """--storage."""
    group.add_argument(
        "--storage",
        metavar="MEDIUM",
        help="sd, emmc, ssd-usb2, ssd-usb3 (default: the board's first); several with commas are measured in turn",
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
    work.add_argument("--records", type=positive, metavar="N", help="records loaded first (default: 20000)")
    work.add_argument(
        "--operations", type=positive, metavar="N", help="number of operations, instead of a length"
    )
    work.add_argument(
        "--seconds",
        type=positive,
        metavar="S",
        help="run as many operations as fit into S seconds (default: 10)",
    )
    work.add_argument(
        "--value-size",
        type=positive,
        metavar="BYTES",
        help="one field of this size (default: the workload's fields)",
    )
    _mix(work)
    work.add_argument("--threads", type=threads, default=1, metavar="N", help="client threads (default: 1)")
    work.add_argument(
        "--seed",
        type=seed,
        metavar="N",
        help="seed of keys, values and order (default: 1), and of the simulated rig (default: another rig "
        "for each measurement)",
    )
    work.add_argument(
        "--generator",
        choices=("loader", "ycsb"),
        default="loader",
        metavar="NAME",
        help="program that makes the operations: loader, on the board; or ycsb, the original (Java), "
        "which runs on this computer and streams them to the board (default: loader)",
    )
    work.add_argument(
        "--reset",
        choices=("load", "copy"),
        default="load",
        metavar="HOW",
        help="how each repeat gets its database: load it, or copy one that was loaded once and stays on "
        "its medium (default: load)",
    )
    work.add_argument("--no-harness", action="store_true", help="skip measuring the loader's own cost")
    work.add_argument(
        "-p",
        dest="properties",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any YCSB or engine property",
    )


def _mix(work: argparse._ArgumentGroup) -> None:
    """What tells kinds of operation apart."""
    work.add_argument(
        "--design",
        action="store_true",
        help="run in randomised blocks: the mix of operations changes at random every 10 samples of the "
        "meter (at least 0.02 s); over the whole run it is the workload's. This separates what "
        "each kind of operation costs, even with a slow meter; use --seconds 60 or more",
    )
    work.add_argument(
        "--blocks",
        action=argparse.BooleanOptionalAction,
        help="after the repeats, one cycle in such blocks, three times as long as --seconds but at most "
        "20 s longer. It separates what each kind of operation costs; no other figure uses it "
        "(default: on if the workload mixes kinds)",
    )


def add_rig(parser: argparse.ArgumentParser, *, simulate: bool = True) -> None:
    """Board, meter and sync line."""
    rig = parser.add_argument_group("the rig")
    if simulate:
        add_simulate(rig)
    rig.add_argument(
        "--meter",
        metavar="KIND:PLACE",
        help=f"{METER_HELP} (default: rig.toml's)",
    )
    rig.add_argument(
        "--storage-meter",
        metavar="KIND:PLACE",
        help="a second meter, in the medium's own supply (docs/how-to/use-a-usb-tester.md; default: rig.toml's)",
    )
    rig.add_argument(
        "--sync",
        metavar="CARRIER",
        help="gpio:GPIO17, gpio:/dev/gpiochip0:17, gpio:sysfs:249, or none (default: rig.toml's)",
    )
    rig.add_argument(
        "--rig",
        type=directory,
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
        help="measure again, at most N times, if the board's state broke a limit (default: 0)",
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


def add_how(parser: argparse.ArgumentParser) -> None:
    """Idle, repeats, limits, and where the record goes."""
    how = parser.add_argument_group("how it is measured")
    how.add_argument(
        "--idle",
        type=seconds,
        metavar="S",
        help="idle before and after each run; its first third, at most 10 s, is left out (default: 30, simulated 3)",
    )
    how.add_argument(
        "--repeats",
        type=repeats,
        default=3,
        metavar="N",
        help="whole cycles: load, idle, run, settle, idle; every interval includes their spread (default: 3)",
    )
    how.add_argument(
        "--until-u",
        type=percent,
        metavar="P%",
        help="repeat until the energy above idle (of a database: per operation) is known to this, for example 3%%",
    )
    how.add_argument(
        "--repeats-limit",
        type=repeats,
        default=30,
        metavar="N",
        help="most repeats with --until-u (default: 30)",
    )
    how.add_argument(
        "--settle-limit",
        type=seconds,
        default=SETTLE_LIMIT_S,
        metavar="S",
        help="longest wait without progress of the medium's writes, and for the power to come to rest after them; "
        "as long as writes make progress, the wait goes on (default: 60)",
    )
    how.add_argument(
        "--signature",
        action=argparse.BooleanOptionalAction,
        help="play a busy and idle pattern before and after, found again in the trace (default: without a sync line)",
    )
    how.add_argument(
        "--dry-run", action="store_true", help="print the plan, with --json as a value, and stop"
    )
    how.add_argument(
        "--out",
        type=directory,
        metavar="DIR",
        help="the record's directory (default: a new one under runs/)",
    )
    how.add_argument("--json", action="store_true", help="print result.json on stdout instead of the summary")
    add_live(how)


def add_live(group: argparse._ActionsContainer) -> None:
    """--live."""
    group.add_argument(
        "--live",
        action="store_true",
        help="serve a page on this computer that shows power, operations, temperature and phase as they happen",
    )
