"""The command lines of `host/runs.py`."""

from pathlib import Path
from typing import Annotated, Final

from opjoule.base.errors import BadInput, OpJouleError
from opjoule.base.scripts import Needs, program
from opjoule.cli.commands import Command
from opjoule.cli.options import Argument, Days, Flag, Option, Options, Parser, Positive
from opjoule.results.exports import formats
from opjoule.runs.record.directory import check_place
from opjoule.runs.studies.folder import find_study

STATUSES: Final = ("complete", "partial", "failed", "unreadable")
_JSON: Final = "print JSON on stdout"
_SELF: Final = program("runs")
_STUDY: Final = "(s1 to s5, or a folder)"
_OFTEN: Final = "may be given several times"


class PlacesOptions(Options):
    """The records, by folder."""

    places: Annotated[
        tuple[Path, ...], Argument("PLACE", "a record, or a folder of records at any depth (default: runs)")
    ] = (Path("runs"),)


class OneRunOptions(Options):
    """One record."""

    record: Annotated[Path, Argument("RECORD", "a run record, for example runs/example")]


class ListOptions(PlacesOptions):
    """The records to list, and their order."""

    db: Annotated[str | None, Option("NAME", "only records of this database")] = None
    device: Annotated[str | None, Option("NAME", "only records of this board")] = None
    storage: Annotated[str | None, Option("NAME", "only records of this medium")] = None
    status: Annotated[tuple[str, ...], Option(None, f"only records with this status; {_OFTEN}", choices=STATUSES)] = ()
    tag: Annotated[tuple[str, ...], Option("TAG", f"only records with this tag; {_OFTEN}")] = ()
    real: Annotated[bool, Flag("leave out simulated runs")] = False
    sort: Annotated[
        str, Option(None, "sort by this, ascending (default: date)", choices=("date", "name", "headline"))
    ] = "date"
    json: Annotated[bool, Flag(_JSON)] = False


class NoteOptions(OneRunOptions):
    """The note and the tags."""

    text: Annotated[str | None, Argument("TEXT", "the note; it replaces an earlier one")] = None
    tag: Annotated[tuple[str, ...], Option("TAG", f"add this tag; {_OFTEN}")] = ()
    untag: Annotated[tuple[str, ...], Option("TAG", f"remove this tag; {_OFTEN}")] = ()


class ShowOptions(OneRunOptions):
    """How a record is shown."""

    json: Annotated[bool, Flag("print its result.json instead")] = False


class VerifyPlacesOptions(PlacesOptions):
    """How the outcome is printed."""

    json: Annotated[bool, Flag(_JSON)] = False


class ExportOptions(OneRunOptions):
    """Limits of the Perfetto trace; the formats are those of `_with_formats`."""

    most: Annotated[
        Positive | None,
        Option(
            "N",
            "most power samples and operations in the Perfetto trace (default: 200000; if there are more, the trace is "
            "thinned out and says so)",
        ),
    ] = None
    all: Annotated[bool, Flag("write all samples and operations to the Perfetto trace")] = False


def _with_formats() -> type[ExportOptions]:
    """The options with one for each format, whose value is the file or folder to write."""
    named = {name: Annotated[Path | None, Option("PATH", words)] for name, words in formats().items()}
    return type("ExportOptions", (ExportOptions,), {"__annotations__": named, **dict.fromkeys(named)})


class ConclusionsOptions(PlacesOptions):
    """The study whose conclusions are compared."""

    study: Annotated[str | None, Option("NAME", f"only the conclusions of this study {_STUDY}")] = None
    json: Annotated[bool, Flag(_JSON)] = False


_ALTHOUGH: Final = Option(
    "GROUP,...", "draw even if the runs also differ in these settings (durability, opjoule, ...); as in 'compare'"
)


class FiguresOptions(PlacesOptions):
    """The figures to draw."""

    study: Annotated[
        str | None,
        Option(
            "NAME",
            f"draw only the counterparts of the figures in this study's paper, in its order, and its conclusions "
            f"{_STUDY}",
        ),
    ] = None
    out: Annotated[Path, Option("DIR", "folder to write to (default: figures)")] = Path("figures")
    although: Annotated[str | None, _ALTHOUGH] = None


class BundleOptions(PlacesOptions):
    """The contents of a bundle."""

    out: Annotated[Path, Option("FILE.zip", "the file to write")]
    study: Annotated[
        str | None, Option("NAME", f"draw the counterparts of the figures in this study's paper {_STUDY}")
    ] = None
    name: Annotated[str | None, Option("TEXT", "title in the description (default: the study's)")] = None
    license: Annotated[str, Option("TEXT", "licence of the data, for example CC-BY-4.0")] = "not stated"
    keep_names: Annotated[bool, Flag("keep paths, host names and user names")] = False
    although: Annotated[str | None, _ALTHOUGH] = None


class OpenOptions(Options):
    """The bundle, and where it is unpacked."""

    bundle: Annotated[Path, Argument("FILE.zip", "a file that 'runs bundle' wrote")]
    out: Annotated[Path | None, Option("DIR", "a new folder to unpack into (default: runs/FILE)")] = None


class PruneOptions(PlacesOptions):
    """Rules for deletion; a record must match all of them."""

    status: Annotated[tuple[str, ...], Option(None, f"records with this status; {_OFTEN}", choices=STATUSES)] = ()
    older_than: Annotated[Days | None, Option("DAYS", "records begun more than DAYS days ago")] = None
    simulated: Annotated[bool, Flag("simulated records")] = False
    keep: Annotated[tuple[str, ...], Option("PATTERN", "keep these records, for example --keep '*paper*'")] = ()
    yes: Annotated[bool, Flag("delete the records (default: only list them)")] = False


def _action(
    name: str,
    options: type[Options],
    description: str,
    epilog: str = "",
    module: str = "command",
) -> Command:
    run = f"opjoule.cli.runs.{module}:run_{name}"
    if not issubclass(options, FiguresOptions | BundleOptions):
        return Command(f"runs {name}", options, run, description, epilog)
    needs = Needs(figures=True)
    return Command(f"runs {name}", options, run, description, epilog, checked=_checked, needs=lambda options: needs)


def _checked(parser: Parser, options: FiguresOptions | BundleOptions) -> FiguresOptions | BundleOptions:
    """The options; a wrong study or place, or a bundle that exists, is refused before libraries are installed."""
    try:
        if options.study:
            find_study(options.study)
        for place in options.places:
            check_place(place)
        if isinstance(options, BundleOptions) and options.out.exists():
            raise BadInput(f"--out {options.out} exists already: name another file, or remove it")
    except OpJouleError as error:
        parser.refuse(error)
    return options


ACTIONS: Final = (
    _action(
        "list",
        ListOptions,
        "Prints one line per record: date, subject, board and medium, status, and headline with interval (95 %). "
        "Simulated records are marked SIMULATED; tags and note follow on the next line.",
        module="listing",
    ),
    _action(
        "note",
        NoteOptions,
        "Writes a note and tags beside one record, for 'list' and the table of 'view'. Without TEXT, --tag and "
        "--untag it prints the present ones. The measured files are not changed.",
        f"examples:\n  {_SELF} note runs/example 'fan was off'\n  {_SELF} note runs/example --tag paper "
        f"--untag draft\n  {_SELF} note runs/example ''        # removes the note, keeps the tags",
    ),
    _action("show", ShowOptions, "Prints the summary of one record."),
    _action(
        "verify",
        VerifyPlacesOptions,
        "Compares every file of records with the checksum that its run wrote, and reads every table. Names each file "
        "that was changed, is missing or cannot be read. Exit status: 4 if there is such a file, else 0.",
    ),
    _action(
        "export",
        _with_formats(),
        "Writes a record in formats of other programs. Simulated records are marked SIMULATED in each.",
        f"example:\n  {_SELF} export runs/example --perfetto example.perfetto-trace --csv example-csv",
    ),
    _action(
        "conclusions",
        ConclusionsOptions,
        "Compares the conclusions of a study's paper with records of that study. Prints the paper's ratio, the ratio "
        "in the records with its interval, the ratio of the energies, and whether they agree. Single runs allow no "
        "verdict.",
        f"example:\n  {_SELF} conclusions runs/s3-rpi4",
        module="conclusions",
    ),
    _action(
        "figures",
        FiguresOptions,
        "Draws runs for print (PDF, SVG, PNG): bandwidth and latency, energy and power, processor and disk, energy "
        "against delay and throughput, joules by kind and activity. Adds the table (CSV, LaTeX) and a paragraph on "
        "methods. Runs with the same settings become one bar with their mean.",
        f"examples:\n  {_SELF} figures runs/leveldb runs/sqlite --out figures\n"
        f"  {_SELF} figures runs/s3-rpi4 --study s3 --out figures",
    ),
    _action(
        "bundle",
        BundleOptions,
        "Packs records, their figures, tables and methods, CITATION.cff and checksums into one ZIP file that can be "
        "attached to a paper; an RO-Crate describes it. Paths, and the names of this computer and its user, are "
        "removed from all texts.",
        f"example:\n  {_SELF} bundle runs/s3-rpi4 --study s3 --out s3.zip\n  {_SELF} open s3.zip",
        module="bundle",
    ),
    _action(
        "open",
        OpenOptions,
        "Checks every file of a bundle against its checksum, then unpacks the bundle into a new folder.",
        f"example:\n  {_SELF} open s3.zip --out s3-of-others",
        module="bundle",
    ),
    _action(
        "prune",
        PruneOptions,
        "Lists the records that match all given rules and the space that deleting them would free; with --yes it "
        "deletes them. It never deletes the example, a record that is still being written, or finished runs of a "
        "comparison or campaign.",
    ),
)


class RunsOptions(Options):
    """One of the actions."""

    action: Annotated[
        str, Argument(None, "what to do", choices=tuple(action.name.removeprefix("runs ") for action in ACTIONS))
    ]


RUNS: Final = Command(
    "runs",
    RunsOptions,
    "",  # each action is a command of its own
    f"Lists, notes, shows, checks, exports and deletes run records. '{_SELF} ACTION --help' says more.",
    f"examples:\n  {_SELF} list --db leveldb --sort headline\n  {_SELF} note runs/example 'used in the "
    f"paper' --tag paper\n  {_SELF} export runs/example --perfetto example.perfetto-trace\n  {_SELF} prune "
    "--status failed --older-than 30",
)
COMMANDS: Final = (RUNS, *ACTIONS)
