"""The command lines of `host/runs.py`. Standard library alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from opjoule.cli.argument_types import days, directory, positive
from opjoule.cli.command import Command, Needs
from opjoule.cli.options import Options, flag, option, optional, positional, positionals, repeated, required

STATUSES: Final = ("complete", "partial", "failed", "unreadable")
_JSON: Final = "print JSON on stdout"
_STUDY: Final = "(s1 to s5, or a folder)"
_OFTEN: Final = "may be given several times"


class PlacesOptions(Options):
    """Which records."""

    places: tuple[Path, ...] = positionals(
        directory, "PLACE", "a record, or a folder of records at any depth (default: runs)", (Path("runs"),)
    )


class OneRunOptions(Options):
    """Which record."""

    record: Path = positional(directory, "RECORD", "for example runs/example")


class ListOptions(PlacesOptions):
    """What is listed, and in which order."""

    db: str | None = option(str, "NAME", "only of this db")
    device: str | None = option(str, "NAME", "only of this device")
    storage: str | None = option(str, "NAME", "only of this storage")
    status: tuple[str, ...] = repeated(
        str, None, f"only records with this status; {_OFTEN}", choices=STATUSES
    )
    tag: tuple[str, ...] = repeated(str, "TAG", f"only with this tag; {_OFTEN}")
    real: bool = flag("leave out simulated runs")
    sort: str = option(str, None, "least first (default: date)", "date", choices=("date", "name", "headline"))
    json: bool = flag(_JSON)


class NoteOptions(OneRunOptions):
    """The note and the tags."""

    text: str | None = optional(str, "TEXT", "the note; it replaces an earlier one")
    tag: tuple[str, ...] = repeated(str, "TAG", f"adds a tag; {_OFTEN}")
    untag: tuple[str, ...] = repeated(str, "TAG", f"removes a tag; {_OFTEN}")


class ShowOptions(OneRunOptions):
    """How a record is shown."""

    json: bool = flag("print its result.json instead")


class VerifyPlacesOptions(PlacesOptions):
    """How the outcome is printed."""

    json: bool = flag(_JSON)


class ExportOptions(OneRunOptions):
    """What is written."""

    perfetto: Path | None = option(
        directory,
        "FILE",
        "phases, operations, background work, power and counters on one time axis, for https://ui.perfetto.dev",
    )
    most: int | None = option(
        positive,
        "N",
        "power samples and operations in the Perfetto trace (default 200000; if there are more, the trace is thinned "
        "out and says so)",
    )
    all: bool = flag("all samples and operations in the Perfetto trace")
    openmetrics: Path | None = option(
        directory, "FILE", "every number of the result, for Prometheus and the like"
    )
    csv: Path | None = option(directory, "DIR", "every table, the phases and the result")


class ConclusionsOptions(PlacesOptions):
    """Whose conclusions."""

    study: str | None = option(str, "NAME", f"only this study's {_STUDY}")
    json: bool = flag(_JSON)


class FiguresOptions(PlacesOptions):
    """What is drawn."""

    study: str | None = option(
        str,
        "NAME",
        f"draw only the counterparts of the figures in this study's paper, in its order, and its conclusions {_STUDY}",
    )
    out: Path = option(directory, "DIR", "folder to write to (default: figures)", Path("figures"))
    although: str | None = option(
        str,
        "GROUP,...",
        "draw even if the runs also differ in these settings (durability, opjoule, ...), as compare.py does",
    )


class BundleOptions(PlacesOptions):
    """What is packed."""

    out: Path = required(directory, "FILE.zip", "the file to write")
    study: str | None = option(
        str, "NAME", f"draw the counterparts of the figures in this study's paper {_STUDY}"
    )
    name: str | None = option(str, "TEXT", "title in the description (default: the study's)")
    license: str = option(str, "TEXT", "of the data, for example CC-BY-4.0", "not stated")
    keep_names: bool = flag("keep paths, host and user names")


class OpenOptions(Options):
    """Which bundle."""

    bundle: Path = positional(directory, "FILE.zip", "what runs.py bundle wrote")
    out: Path | None = option(directory, "DIR", "a new folder (default: runs/FILE)")


class PruneOptions(PlacesOptions):
    """Rules, all of which a record must match."""

    status: tuple[str, ...] = repeated(str, None, f"records with this status; {_OFTEN}", choices=STATUSES)
    older_than: int | None = option(days, "DAYS", "records begun more than DAYS days ago")
    simulated: bool = flag("simulated records")
    keep: tuple[str, ...] = repeated(str, "PATTERN", "except these, for example --keep '*paper*'")
    yes: bool = flag("delete them")


def _action(
    name: str,
    options: type[Options],
    description: str,
    epilog: str = "",
    needs: Callable[[Any], Needs] = lambda options: Needs(),
    module: str = "command",
) -> Command:
    run = f"opjoule.cli.runs.{module}:run_{name}"
    return Command(f"runs {name}", options, run, description, epilog, needs=needs)


ACTIONS: Final = (
    _action(
        "list",
        ListOptions,
        "Prints one line per record: date, subject, board and medium, status, and headline with interval (95 %). "
        "Simulated records say SIMULATED; tags and note stand below.",
    ),
    _action(
        "note",
        NoteOptions,
        "Writes a note and tags beside one record, for 'list' and the table of view.py. Without TEXT, --tag and "
        "--untag it prints what is there. The measured files stay as they are.",
        "examples:\n  host/runs.py note runs/example 'fan was off'\n  host/runs.py note runs/example --tag paper "
        "--untag draft\n  host/runs.py note runs/example ''        # removes the note, keeps the tags",
    ),
    _action("show", ShowOptions, "Prints the summary of one record."),
    _action(
        "verify",
        VerifyPlacesOptions,
        "Compares every file of records with the checksum that its run left, reads every table, and names each file "
        "that was changed, is missing or cannot be read. Exit status: 4 if there is one, else 0.",
    ),
    _action(
        "export",
        ExportOptions,
        "Writes a record in other programs' formats. Simulated records say SIMULATED in each.",
        "example:\n  host/runs.py export runs/example --perfetto example.perfetto-trace --csv example-csv",
    ),
    _action(
        "conclusions",
        ConclusionsOptions,
        "Compares the conclusions of a study's paper with records of that study: the paper's ratio, the records' ratio "
        "with its interval, the ratio of the energies, and whether they agree. Single runs allow no verdict.",
        "example:\n  host/runs.py conclusions runs/s3-rpi4",
        module="conclusions",
    ),
    _action(
        "figures",
        FiguresOptions,
        "Draws runs for print (PDF, SVG, PNG): bandwidth and latency, energy and power, processor and disk, energy "
        "against delay and throughput, joules by kind and activity; with the table (CSV, LaTeX) and a paragraph on "
        "methods. Runs of the same settings become one bar with their mean.",
        "examples:\n  host/runs.py figures runs/leveldb runs/sqlite --out figures\n"
        "  host/runs.py figures runs/s3-rpi4 --study s3 --out figures",
        needs=lambda options: Needs(figures=True),
    ),
    _action(
        "bundle",
        BundleOptions,
        "Packs records, their figures, tables and methods, CITATION.cff and checksums into one ZIP file, described as "
        "an RO-Crate, to be attached to a paper. Paths, and the names of this computer and its user, are removed from "
        "all texts.",
        "example:\n  host/runs.py bundle runs/s3-rpi4 --study s3 --out s3.zip\n  host/runs.py open s3.zip",
        needs=lambda options: Needs(figures=True),
        module="bundle",
    ),
    _action(
        "open",
        OpenOptions,
        "Checks every file of a bundle against its checksum, then unpacks the bundle into a new folder.",
        "example:\n  host/runs.py open s3.zip --out s3-of-others",
        module="bundle",
    ),
    _action(
        "prune",
        PruneOptions,
        "Names the records that match all given rules and the space that deleting them would free; with --yes it "
        "deletes them. Never deleted: the example, a record that is still being written, and finished runs of a "
        "comparison or campaign.",
    ),
)


class RunsOptions(Options):
    """One of the actions."""

    action: str = positional(
        str, None, "what to do", choices=tuple(action.name.removeprefix("runs ") for action in ACTIONS)
    )


RUNS: Final = Command(
    "runs",
    RunsOptions,
    "",  # each action is a command
    "Lists, notes, shows, checks, exports and deletes run records. 'runs.py ACTION --help' says more.",
    "examples:\n  host/runs.py list --db leveldb --sort headline\n  host/runs.py note runs/example 'the one of the "
    "paper' --tag paper\n  host/runs.py export runs/example --perfetto example.perfetto-trace\n  host/runs.py prune "
    "--status failed --older-than 30",
)
