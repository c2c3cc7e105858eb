"""Command lines of the commands that take few options."""

from pathlib import Path
from typing import Annotated, Final

from opjoule.base.scripts import program
from opjoule.cli.argument_types import Celsius, Count, Hertz, Port, Seconds, Voltage
from opjoule.cli.command import Command
from opjoule.cli.needs import Needs
from opjoule.cli.options import (
    IMPORT_SENSORS,
    LIVE_HELP,
    METER_KINDS,
    RIG_FILE,
    RIG_HELP,
    ROOM_TEMPERATURE_HELP,
    Argument,
    Flag,
    Option,
    Options,
)


class InitOptions(Options):
    """Where rig.toml is written."""

    rig: Annotated[Path, Option("FILE", "file to write (default: rig.toml)")] = RIG_FILE


INIT: Final = Command(
    "init",
    InitOptions,
    "opjoule.cli.init:run_init",
    "Asks for board, address, meter, media and sync pin, and writes rig.toml.",
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


class DoctorOptions(Options):
    """What is checked."""

    rig: Annotated[Path, Option("FILE", RIG_HELP)] = RIG_FILE
    simulate: Annotated[bool, Flag("check the simulated rig too")] = False
    pulses: Annotated[
        Count | None,
        Option(
            "N",
            "number of half-second pulses on each board's sync line; the meter must see all of them (default: 3; 0: no "
            "pulses)",
        ),
    ] = None


DOCTOR: Final = Command(
    "doctor",
    DoctorOptions,
    "opjoule.cli.doctor:run_doctor",
    "Checks programs, builds, rig.toml, meter and board, and says how to fix what is wrong.",
    needs=lambda options: Needs(loader=True, simulate=options.simulate),
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


class RigBoardOptions(Options):
    """A board that rig.toml describes."""

    device: Annotated[str, Option("NAME", "the board, as rig.toml names it")]
    rig: Annotated[Path, Option("FILE", RIG_HELP)] = RIG_FILE


class RestoreOptions(RigBoardOptions):
    """Which board is restored, and what else is removed from it."""

    out: Annotated[Path | None, Option("DIR", "folder for the files found on the board (default: runs/recovered)")] = (
        None
    )
    kept: Annotated[
        bool, Flag("also remove the loaded databases kept on its media for --reset copy (default: only list them)")
    ] = False


RESTORE: Final = Command(
    "restore",
    RestoreOptions,
    "opjoule.cli.boards:run_restore",
    "Restores a board after an interrupted measurement: a killed host, a lost link, a power cut.",
    "example:\n  host/measure.py restore --device rpi4",
)


class SudoersOptions(RigBoardOptions):
    """Which board, and who uses it."""

    user: Annotated[str | None, Option("NAME", "user who may run it (default: the user of the connection)")] = None
    out: Annotated[Path | None, Option("FILE", "file for the script (default: it is printed)")] = None


SUDOERS: Final = Command(
    "sudoers",
    SudoersOptions,
    "opjoule.cli.boards:run_sudoers",
    "Prints a script that installs opjoule-root on a board, the one program that does what OpJoule needs root for, "
    "and a sudoers file that permits only this program.",
    "example:\n  host/measure.py sudoers --device rpi4 --out opjoule-root.sh\n"
    "  scp opjoule-root.sh pi@raspberrypi: && ssh -t pi@raspberrypi sudo sh opjoule-root.sh",
)


class VirtualBoardOptions(Options):
    """What to do with the virtual board."""

    action: Annotated[
        str, Argument(None, "build: build and cache it; start: run it until Ctrl-C", choices=("build", "start"))
    ]


VIRTUAL_BOARD: Final = Command(
    "virtual-board",
    VirtualBoardOptions,
    "opjoule.cli.boards:run_virtual_board",
    "A complete aarch64 Linux board under qemu, to try the remote path without hardware.",
    "measure on it with:\n  host/measure.py --db leveldb --device virtual --records 500 --operations 500",
    needs=lambda options: Needs(virtual=True),
)


class ListingOptions(Options):
    """How databases, or studies, are listed."""

    json: Annotated[bool, Flag("print JSON on stdout")] = False


STUDIES: Final = Command(
    "studies",
    ListingOptions,
    "opjoule.cli.databases:run_studies",
    "Lists the studies that --study repeats: title, systems, which systems are missing on this computer and how to "
    "get them.",
)


DATABASES: Final = Command(
    "databases",
    ListingOptions,
    "opjoule.cli.databases:run_databases",
    "Lists the databases: built into the loader, found on this computer, or missing (with how to get them).",
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
COMMANDS: Final = (
    *(INIT, RECORD, IMPORT, DOCTOR, REPORT, VERIFY, RESTORE, SUDOERS, VIRTUAL_BOARD),
    *(STUDIES, DATABASES, VIEW),
)
