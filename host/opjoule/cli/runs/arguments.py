"""The command lines of host/runs.py and host/view.py, with the standard library alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from opjoule.cli.argument_types import Parser, days, directory, port, positive

STATUSES: Final = ("complete", "partial", "failed", "unreadable")
_FOLDERS: Final = "a record, or a folder of records at any depth (default: runs)"


def runs_parser(action: str) -> Parser:
    """Parser of one of ACTIONS; of runs.py itself for anything else."""
    made = ACTIONS.get(action)
    if made:
        return made()
    parser = Parser(
        program="runs.py",
        description="Lists, notes, shows, checks, exports and deletes run records. 'runs.py ACTION --help' says more.",
        epilog="examples:\n"
        "  host/runs.py list --db leveldb --sort headline\n"
        "  host/runs.py note runs/example 'the one of the paper' --tag paper\n"
        "  host/runs.py export runs/example --perfetto example.perfetto-trace\n"
        "  host/runs.py prune --status failed --older-than 30",
    )
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    return parser


def _list() -> Parser:
    parser = Parser(
        "list",
        program="runs.py",
        description="Prints one line per record: date, subject, board and medium, status, and headline "
        "with interval (95 %). Simulated records say SIMULATED; tags and note stand below.",
    )
    _add_places(parser)
    for name in ("db", "device", "storage"):
        parser.add_argument(f"--{name}", metavar="NAME", help=f"only of this {name}")
    _add_status(parser, "only records with this status; may be given several times")
    parser.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="TAG",
        help="only with this tag; may be given several times",
    )
    parser.add_argument("--real", action="store_true", help="leave out simulated runs")
    parser.add_argument(
        "--sort", choices=("date", "name", "headline"), default="date", help="least first (default: date)"
    )
    _add_json(parser)
    return parser


def _note() -> Parser:
    parser = Parser(
        "note",
        program="runs.py",
        description="Writes a note and tags beside one record, for 'list' and the table of view.py. Without TEXT, "
        "--tag and --untag it prints what is there. The measured files stay as they are.",
        epilog="examples:\n"
        "  host/runs.py note runs/example 'fan was off'\n"
        "  host/runs.py note runs/example --tag paper --untag draft\n"
        "  host/runs.py note runs/example ''        # removes the note, keeps the tags",
    )
    parser.add_argument("record", type=directory, metavar="RECORD", help="for example runs/example")
    parser.add_argument("text", nargs="?", metavar="TEXT", help="the note; it replaces an earlier one")
    for name, words in (("--tag", "adds a tag"), ("--untag", "removes a tag")):
        parser.add_argument(
            name, action="append", default=[], metavar="TAG", help=f"{words}; may be given several times"
        )
    return parser


def _show() -> Parser:
    parser = Parser("show", program="runs.py", description="Prints the summary of one record.")
    parser.add_argument("record", type=directory, metavar="RECORD", help="for example runs/example")
    parser.add_argument("--json", action="store_true", help="print its result.json instead")
    return parser


def _verify() -> Parser:
    parser = Parser(
        "verify",
        program="runs.py",
        description="Compares every file of records with the checksum that its run left, reads every "
        "table, and names each file that was changed, is missing or cannot be read. Exit "
        "status: 4 if there is one, else 0.",
    )
    _add_places(parser)
    _add_json(parser)
    return parser


def _export() -> Parser:
    parser = Parser(
        "export",
        program="runs.py",
        description="Writes a record in other programs' formats. Simulated records say SIMULATED in each.",
        epilog="example:\n  host/runs.py export runs/example --perfetto example.perfetto-trace --csv example-csv",
    )
    parser.add_argument("record", type=directory, metavar="RECORD", help="for example runs/example")
    parser.add_argument(
        "--perfetto",
        type=directory,
        metavar="FILE",
        help="phases, operations, background work, power and counters on one time axis, for https://ui.perfetto.dev",
    )
    parser.add_argument(
        "--most",
        type=positive,
        metavar="N",
        help="power samples and operations in the Perfetto trace (default 200000; if there are more, the "
        "trace is thinned out and says so)",
    )
    parser.add_argument("--all", action="store_true", help="all samples and operations in the Perfetto trace")
    parser.add_argument(
        "--openmetrics",
        type=directory,
        metavar="FILE",
        help="every number of the result, for Prometheus and the like",
    )
    parser.add_argument("--csv", type=directory, metavar="DIR", help="every table, the phases and the result")
    return parser


def _conclusions() -> Parser:
    parser = Parser(
        "conclusions",
        program="runs.py",
        description="Compares the conclusions of a study's paper with records of that study: the "
        "paper's ratio, the records' ratio with its interval, the ratio of the energies, "
        "and whether they agree. Single runs allow no verdict.",
        epilog="example:\n  host/runs.py conclusions runs/s3-rpi4",
    )
    _add_places(parser)
    _add_study(parser, "only this study's")
    _add_json(parser)
    return parser


def _add_study(parser: argparse.ArgumentParser, words: str) -> None:
    parser.add_argument("--study", metavar="NAME", help=f"{words} (s1 to s5, or a folder)")


def _figures() -> Parser:
    parser = Parser(
        "figures",
        program="runs.py",
        description="Draws runs for print (PDF, SVG, PNG): bandwidth and latency, energy and power, processor and "
        "disk, energy against delay and throughput, joules by kind and activity; with the table (CSV, LaTeX) and a "
        "paragraph on methods. Runs of the same settings become one bar with their mean.",
        epilog="examples:\n  host/runs.py figures runs/leveldb runs/sqlite --out figures\n"
        "  host/runs.py figures runs/s3-rpi4 --study s3 --out figures",
    )
    _add_places(parser)
    _add_study(
        parser,
        "draw only the counterparts of the figures in this study's paper, in its order, and its conclusions",
    )
    parser.add_argument(
        "--out",
        type=directory,
        default=Path("figures"),
        metavar="DIR",
        help="folder to write to (default: figures)",
    )
    parser.add_argument(
        "--although",
        metavar="GROUP,...",
        help="draw even if the runs also differ in these settings (durability, opjoule, ...), as "
        "compare.py does",
    )
    return parser


def _bundle() -> Parser:
    parser = Parser(
        "bundle",
        program="runs.py",
        description="Packs records, their figures, tables and methods, CITATION.cff and checksums into "
        "one ZIP file, described as an RO-Crate, to be attached to a paper. Paths, and the "
        "names of this computer and its user, are removed from all texts.",
        epilog="example:\n  host/runs.py bundle runs/s3-rpi4 --study s3 --out s3.zip\n  host/runs.py open s3.zip",
    )
    _add_places(parser)
    parser.add_argument("--out", type=directory, required=True, metavar="FILE.zip", help="the file to write")
    _add_study(parser, "draw the counterparts of the figures in this study's paper")
    parser.add_argument("--name", metavar="TEXT", help="title in the description (default: the study's)")
    parser.add_argument(
        "--license", default="not stated", metavar="TEXT", help="of the data, for example CC-BY-4.0"
    )
    parser.add_argument("--keep-names", action="store_true", help="keep paths, host and user names")
    return parser


def _open() -> Parser:
    parser = Parser(
        "open",
        program="runs.py",
        description="Checks every file of a bundle against its checksum, then unpacks the bundle into a new folder.",
        epilog="example:\n  host/runs.py open s3.zip --out s3-of-others",
    )
    parser.add_argument("bundle", type=directory, metavar="FILE.zip", help="what runs.py bundle wrote")
    parser.add_argument("--out", type=directory, metavar="DIR", help="a new folder (default: runs/FILE)")
    return parser


def _prune() -> Parser:
    parser = Parser(
        "prune",
        program="runs.py",
        description="Names the records that match all given rules and the space that deleting them "
        "would free; with --yes it deletes them. Never deleted: the example, a record that "
        "is still being written, and finished runs of a comparison or campaign.",
    )
    _add_places(parser)
    _add_status(parser, "records with this status; may be given several times")
    parser.add_argument(
        "--older-than", type=days, metavar="DAYS", help="records begun more than DAYS days ago"
    )
    parser.add_argument("--simulated", action="store_true", help="simulated records")
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="PATTERN",
        help="except these, for example --keep '*paper*'",
    )
    parser.add_argument("--yes", action="store_true", help="delete them")
    return parser


def view_parser() -> Parser:
    """Parser of view.py."""
    parser = Parser(
        program="view.py",
        description="Serves a page with a table of past runs, to be sorted and filtered. Chosen runs lie on one time "
        "axis, from the whole run to single samples; a selected stretch shows its joules, joules above idle, joules "
        "per operation and mean power, and how the joules add up. Prints the page's address; whoever has it sees the "
        "runs.",
        epilog="examples:\n  host/view.py\n  host/view.py runs/example",
    )
    parser.add_argument(
        "runs",
        type=directory,
        nargs="?",
        metavar="RUNS",
        help="a folder of run records, or one (default: runs)",
    )
    parser.add_argument(
        "--listen",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address of this computer to listen on; 0.0.0.0 lets other computers connect (default: "
        "127.0.0.1, this one alone)",
    )
    parser.add_argument("--port", type=port, default=0, metavar="N", help="port (default: any that is free)")
    return parser


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places", type=directory, nargs="*", default=[Path("runs")], metavar="PLACE", help=_FOLDERS
    )


def _add_status(parser: argparse.ArgumentParser, words: str) -> None:
    parser.add_argument("--status", action="append", choices=STATUSES, default=[], help=words)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")


ACTIONS: Final = {
    "list": _list,
    "note": _note,
    "show": _show,
    "verify": _verify,
    "export": _export,
    "conclusions": _conclusions,
    "figures": _figures,
    "bundle": _bundle,
    "open": _open,
    "prune": _prune,
}
