"""Command lines of the commands that make, show and compare records."""

from pathlib import Path
from typing import Annotated, Final

from opjoule.base.scripts import IS_CLONE, Needs, program
from opjoule.base.settings import written
from opjoule.cli.commands import Command
from opjoule.cli.options import (
    IMPORT_SENSORS,
    LIVE_HELP,
    METER_KINDS,
    ROOM_TEMPERATURE_HELP,
    Argument,
    Celsius,
    Flag,
    Hertz,
    Option,
    Options,
    Percent,
    Port,
    Seconds,
    Voltage,
)


class RecordOptions(Options):
    """The meters to record, and the record's directory."""

    meter: Annotated[str, Option("KIND:PLACE", f"{METER_KINDS} (docs/reference/meters.md)")]
    storage_meter: Annotated[
        str | None, Option("KIND:PLACE", "a second meter, recorded at the same time as sensor 1")
    ] = None
    out: Annotated[Path, Option("DIR", "the record's directory; must not hold a record yet")]
    seconds: Annotated[
        Seconds | None,
        Option("N", "length in seconds of the meter's clock (default: until Ctrl-C, or until the meter ends)"),
    ] = None
    room_temperature: Annotated[Celsius | None, Option("C", ROOM_TEMPERATURE_HELP)] = None
    json: Annotated[bool, Flag("print the outcome as JSON on stdout")] = False
    live: Annotated[bool, Flag(LIVE_HELP)] = False


RECORD: Final = Command(
    "record",
    RecordOptions,
    "opjoule.cli.record:run_record",
    "Records a meter's power trace without a board. The record has power.parquet, gaps.parquet and run.json.",
    "example:\n  host/measure.py record --meter serial:/dev/ttyACM0 --out runs/bench --seconds 60",
)


class ImportOptions(Options):
    """The file, and whatever its header does not state."""

    file: Annotated[Path, Argument("FILE", "the file of the other program; units are read from its header")]
    out: Annotated[Path, Option("DIR", "the record's directory")]
    columns: Annotated[
        tuple[str, ...],
        Option(
            "ROLE=NAME:UNIT",
            "column of time, current, voltage or power, if the header does not say; NAME may be its number, from 1",
        ),
    ] = ()
    rate: Annotated[Hertz | None, Option("N", "rows a second, if the file has no time that increases")] = None
    voltage: Annotated[Voltage | None, Option("V", "supply voltage, for a file without a voltage column")] = None
    sensor: Annotated[str | None, Option("NAME", f"meter whose error bounds apply: {IMPORT_SENSORS}")] = None


IMPORT: Final = Command(
    "import",
    ImportOptions,
    "opjoule.cli.import_trace:run_import",
    "Makes a run record from a trace that another program recorded (PowerTool, PPK2, Joulescope, any table).",
    f"example:\n  {program('import')} trace.csv --out runs/bench --columns current=I:mA --voltage 5.1",
)


class ReportOptions(Options):
    """Which record."""

    record: Annotated[Path, Argument("DIR", "a run record, for example one under runs/")]


REPORT: Final = Command(
    "report",
    ReportOptions,
    "opjoule.cli.report:run_report",
    "Prints the summary of a run record and rewrites its report.html. If the run was killed, what it recorded is "
    "analysed first.",
)


class VerifyOptions(Options):
    """Which records."""

    records: Annotated[tuple[Path, ...], Argument("RECORD", "a run record under runs/")]
    json: Annotated[bool, Flag("print what was found as JSON on stdout")] = False


VERIFY: Final = Command(
    "verify",
    VerifyOptions,
    "opjoule.cli.runs.command:run_verify",
    "Compares every file of a record, raw and derived, with the checksum that the run wrote, and reads its tables. "
    "Names each file that was changed, is missing or cannot be read. Exit status: 4 if there is such a file, else 0.",
    f"example:\n  {program('verify')} runs/*",
)


class ViewOptions(Options):
    """Which runs, and where the page is served."""

    runs: Annotated[Path | None, Argument("RUNS", "a folder of run records, or one (default: runs)")] = None
    listen: Annotated[
        str,
        Option(
            "ADDRESS",
            "address of this computer to listen on; 0.0.0.0 lets other computers connect (default: 127.0.0.1, "
            "only this "
            "computer)",
        ),
    ] = "127.0.0.1"
    port: Annotated[Port, Option("N", "port (default: any free port)")] = 0


VIEW: Final = Command(
    "view",
    ViewOptions,
    "opjoule.cli.view:run_view",
    "Serves a page with a table of past runs that can be sorted and filtered. Chosen runs are shown on one time axis, "
    "from the whole run to single samples. A selected stretch shows its joules, joules above idle, joules per "
    "operation and mean power, and how the joules add up. Prints the page's address; whoever has it sees the runs.",
    f"examples:\n  {program('view')}\n  {program('view')} runs/example",
)


FIGURES: Final = (".pdf", ".svg", ".png")
"""Allowed endings of a figure's file name."""
_MEASURING: Final = """
measure commands, then compare them:
  host/compare.py --device rpi4 --simulate -- 'sleep 2' 'sleep 4'
      by what factor two shell commands differ in energy and time; its options: host/compare.py --help --
"""
"""How commands are measured and compared, which an installed package cannot."""
_COMPARE_EPILOG: Final = f"""\
examples:
  {program("compare")} runs/20261122-101500-leveldb-rpi4-by-storage
      the media of one measurement (--storage sd,emmc,ssd-usb3)
  {program("compare")} runs/s1 --by storage --metric marginal_energy_per_operation_j,throughput_per_s
      a campaign; each database and workload is compared separately
  {program("compare")} 'runs/*-sqlite-*' 'runs/*-leveldb-*' --by db --against sqlite
      separate records, chosen by patterns
  {program("compare")} --before runs/old --after runs/new --tolerance 2%
      whether a change made it worse; exit status 7 if so (docs/how-to/compare-runs.md)
"""


def _figure(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in FIGURES:
        raise ValueError
    return path


Figure = Annotated[Path, written(_figure, f"a file that ends with {', '.join(FIGURES)}")]


class CompareOptions(Options):
    """The runs, what is compared, and where the outcome is written."""

    runs: Annotated[
        tuple[str, ...], Argument("RUNS", "records, folders of several (campaigns), or patterns of either")
    ] = ()
    by: Annotated[
        str | None,
        Option(
            "AXIS,...",
            "axis to compare by: storage, db, device, workload, durability, ... (default: the campaign's axis, "
            "if it has "
            "only one). Values of a campaign's other axes are not mixed",
        ),
    ] = None
    metric: Annotated[
        str | None,
        Option(
            "KEY,...",
            "quantities of result.json (default: energy above idle and energy in all, for a workload "
            "marginal_energy_per_operation_j,energy_per_operation_j)",
        ),
    ] = None
    against: Annotated[str | None, Option("VALUE", "compare every value only with this one (default: every pair)")] = (
        None
    )
    before: Annotated[
        tuple[str, ...], Option("RUN", "runs before a change; the output ends with a verdict", together=True)
    ] = ()
    after: Annotated[tuple[str, ...], Option("RUN", "runs after the change", together=True)] = ()
    tolerance: Annotated[
        Percent, Option("P%", "with --before and --after: smaller changes count as no change (default: 0)")
    ] = 0.0
    although: Annotated[
        str | None,
        Option(
            "GROUP,...",
            "compare even if these settings differ (simulated, durability, opjoule, ...) or runs are too short "
            "(short); "
            "the output says so",
        ),
    ] = None
    csv: Annotated[Path | None, Option("FILE", "also write the comparisons as CSV")] = None
    html: Annotated[Path | None, Option("FILE", "also write an HTML page that needs no network")] = None
    plot: Annotated[Figure | None, Option("FILE", "also draw the ratios for print, as .pdf, .svg or .png")] = None
    json: Annotated[bool, Flag("print the comparison as JSON on stdout")] = False


COMPARE: Final = Command(
    "compare",
    CompareOptions,
    "opjoule.cli.compare:run_compare",
    "Compares runs: prints ratios with intervals, and what can be concluded from them. Errors that both sides share "
    "cancel, and several comparisons are judged together (Holm's method). Runs that are not comparable are refused.",
    f"{_COMPARE_EPILOG}{_MEASURING if IS_CLONE else ''}",
    needs=lambda options: Needs(figures=bool(options.plot)),
)
COMMANDS: Final = (RECORD, IMPORT, REPORT, VERIFY, COMPARE, VIEW)
