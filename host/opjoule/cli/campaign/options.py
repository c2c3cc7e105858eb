"""The command lines of `host/campaign.py`, the options of a study, and a planned campaign of any kind."""

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Final, Self

from opjoule.base.errors import BadInput
from opjoule.base.scripts import Needs
from opjoule.campaign.axes import BLOCKS_LIMIT
from opjoule.cli.campaign.file import CampaignFile, restored_cell
from opjoule.cli.commands import Command
from opjoule.cli.measure.options import (
    WHAT,
    CycleOptions,
    DeviceOptions,
    HowOptions,
    OutputOptions,
    PlanningOptions,
    RigOptions,
    SimulateOptions,
    YcsbOptions,
    engines_of,
    needs_of_measurements,
)
from opjoule.cli.options import (
    MEDIUM_HELP,
    Argument,
    CommandName,
    Count,
    Flag,
    Option,
    Options,
    Parser,
    Percent,
    Port,
    RepeatCount,
    Seconds,
    Seed,
    Share,
    TimeSpan,
)

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 8786
_EPILOG: Final = """\
examples:
  host/campaign.py campaigns/three-engines.toml --dry-run
      how many cells there are, which are done, how long the rest takes
  host/campaign.py campaigns/three-engines.toml
      measure the missing cells; after an interruption the same command continues
  host/compare.py runs/three-engines --by storage
      what the records show

several rigs (docs/how-to/fleet.md):
  host/campaign.py scheduler
  host/campaign.py worker tcp://127.0.0.1:8786 --rig rig.toml     on each rig's computer
  host/campaign.py campaigns/three-engines.toml --scheduler tcp://127.0.0.1:8786
"""


class SchedulerChoice(Options):
    """The scheduler that gives a campaign its rigs."""

    GROUP: ClassVar[str] = "several rigs"

    scheduler: Annotated[
        str | None,
        Option(
            "ADDRESS", "measure on the rigs of this scheduler, for example tcp://127.0.0.1:8786 (docs/how-to/fleet.md)"
        ),
    ] = None
    wait: Annotated[
        Seconds,
        Option(
            "SECONDS",
            "with --scheduler: how long to wait for it, or for a rig that can measure the remaining cells "
            "(default: 300)",
        ),
    ] = 300.0


class TlsOptions(Options):
    """Encryption of the connections; only programs with a certificate can connect."""

    GROUP: ClassVar[str] = "several rigs"

    tls_ca_file: Annotated[
        Path | None, Option("FILE", "certificate of the authority (PEM); allows only connections with TLS")
    ] = None
    tls_cert: Annotated[
        Path | None, Option("FILE", "certificate of this program (PEM); allows only connections with TLS")
    ] = None
    tls_key: Annotated[
        Path | None, Option("FILE", "key of that certificate (PEM); allows only connections with TLS")
    ] = None

    @property
    def tls_files(self) -> list[Path]:
        """Files of authority, certificate and key; empty without TLS."""
        return [file for file in (self.tls_ca_file, self.tls_cert, self.tls_key) if file]

    def check_network(self, parser: Parser, address: str, *, trusted: bool = True) -> None:
        """Ends the program if a port would be open to an untrusted network, or if TLS is given only in part."""
        if self.tls_files and len(self.tls_files) < 3:
            parser.error("TLS needs all of --tls-ca-file, --tls-cert and --tls-key")
        host = address.rpartition("://")[2].rpartition(":")[0] or address
        is_loopback = host in ("localhost", "[::1]", "::1") or host.startswith("127.")
        if not (self.tls_files or trusted or is_loopback):
            parser.error(
                f"anyone who reaches {address} could run programs on this computer and on every rig: give "
                "--tls-ca-file, --tls-cert and --tls-key, or --trust-network if nobody else is in that network"
            )


class StudyChoice(Options):
    """The study, its board and medium, and how much of it is measured."""

    GROUP: ClassVar[str] = WHAT

    study: Annotated[str, Option("NAME", "its name (measure.py studies), or its folder")]
    device: Annotated[
        str,
        Option(
            "NAME",
            "board: rpi3, rpi4, odroid-c2, ...; several, separated by commas, if the study compares boards (only "
            "--dry-run "
            "plans without: for the paper's board, or rpi4 if the paper has none)",
        ),
    ] = ""
    storage: Annotated[str | None, Option("MEDIUM", MEDIUM_HELP)] = None
    scale: Annotated[Share, Option("X", "factor of the study's counts, above 0 and at most 1 (default: 1)")] = 1.0
    within: Annotated[
        TimeSpan | None,
        Option(
            "TIME",
            "choose the scale so that the study takes at most this long, for example 90min or 2h; needs records of the "
            "study at another scale",
        ),
    ] = None
    only: Annotated[
        tuple[str, ...],
        Option(
            "AXIS=VALUE[,VALUE]",
            "measure only these values of an axis, a count or the study's figures (figure=7); may be given "
            "several times",
        ),
    ] = ()
    dataset: Annotated[Path | None, Option("FILE", "your data instead of generated data")] = None
    connections: Annotated[
        Path | None,
        Option(
            "FILE",
            "your own databases, one per line: NAME = ODBC connection string (measure.py studies lists the names)",
        ),
    ] = None
    seed: Annotated[Seed, Option("N", "seed of the data, the order and a simulated rig (default: 1)")] = 1


class StudyOptions(TlsOptions, SchedulerChoice, OutputOptions, HowOptions, RigOptions, SimulateOptions, StudyChoice):
    """Options of a study on one rig or several."""


class ListeningOptions(TlsOptions):
    """Options of a program that others connect to."""

    trust_network: Annotated[
        bool, Flag("let other computers connect without TLS: anyone in the network can then run programs here")
    ] = False


class SchedulerOptions(ListeningOptions):
    """Where a scheduler listens."""

    host: Annotated[str, Option("ADDRESS", f"address to listen on (default: {LOOPBACK})")] = LOOPBACK
    port: Annotated[Port, Option("N", f"port to listen on (default: {PORT})")] = PORT


class WorkerOptions(ListeningOptions):
    """A worker's scheduler, rig and folder."""

    scheduler: Annotated[str, Argument("ADDRESS", "address of its scheduler, for example tcp://127.0.0.1:8786")]
    rig: Annotated[Path | None, Option("FILE", "description of the rig: boards, media and meter", exclusive=True)] = (
        None
    )
    simulate: Annotated[bool, Flag("use a simulated rig", exclusive=True)] = False
    name: Annotated[
        str, Option("NAME", "name of the rig, unique and the same at every start (default: this computer's name)")
    ] = socket.gethostname()
    spool: Annotated[
        Path | None, Option("DIR", "folder for records that are not yet fetched (default: build/spool/NAME)")
    ] = None
    host: Annotated[
        str | None, Option("ADDRESS", "address to listen on (default: the one that reaches the scheduler)")
    ] = None


class CellOptions(Options):
    """A worker's folder with a job, and the rig."""

    place: Annotated[Path, Argument("FOLDER", "folder of the job")]
    rig: Annotated[Path | None, Option("FILE", "the worker's rig (default: a simulated one)")] = None
    name: Annotated[str, Option("NAME", "name of the rig")]


@dataclass(frozen=True)
class RigCell:
    """A cell of a campaign on the rig that measures it."""

    place: Path
    name: str
    options: PlanningOptions


def _checked(parser: Parser, options: SchedulerOptions | WorkerOptions) -> SchedulerOptions | WorkerOptions:
    address = options.scheduler if isinstance(options, WorkerOptions) else options.host
    options.check_network(parser, address, trusted=options.trust_network)
    return options


def _read_cell(parser: Parser, options: CellOptions) -> RigCell:
    try:
        job = json.loads((options.place / "job.json").read_text(encoding="utf-8"))
        cell = restored_cell(job["kind"], job["options"])
    except (BadInput, OSError, ValueError, KeyError, TypeError) as error:
        parser.refuse(ValueError(f"{options.place}: {error}"))
    return RigCell(options.place, options.name, replace(cell, rig=options.rig or cell.rig))


SCHEDULER: Final = Command(
    "campaign scheduler",
    SchedulerOptions,
    "opjoule.cli.campaign.fleet:run_scheduler",
    "Runs the scheduler (Dask's distributed) that connects campaigns and workers, until Ctrl-C. Anyone who can reach "
    "its port can run programs on this computer and on all workers.",
    checked=_checked,
    needs=lambda options: Needs(fleet=True),
)
WORKER: Final = Command(
    "campaign worker",
    WorkerOptions,
    "opjoule.cli.campaign.fleet:run_worker",
    "Measures cells of campaigns on this computer's rig, one at a time, until Ctrl-C. If the scheduler cannot be "
    "reached, the worker waits for it. Keeps each record until its campaign has fetched it.",
    checked=_checked,
    needs=lambda options: Needs(loader=True, simulate=options.simulate, fleet=True),  # before its cells need it
)
CELL: Final = Command(
    "campaign cell",
    CellOptions,
    "opjoule.cli.campaign.fleet:run_cell",
    "Measures the job in a worker's folder.",
    checked=_read_cell,
    needs=lambda cell: replace(needs_of_measurements([cell.options]), fleet=True),
)


class FolderOptions(Options):
    """The folder of a campaign's records, and what is printed."""

    out: Annotated[
        Path | None, Option("DIR", "folder of its records (default: runs/NAME); a campaign continues in its folder")
    ] = None
    dry_run: Annotated[bool, Flag("print the plan and the missing cells, then stop")] = False
    json: Annotated[bool, Flag("print the plan, or the result at the end, as JSON")] = False


class FileOptions(FolderOptions):
    """The campaign's file."""

    file: Annotated[Path, Argument("FILE.toml", "the campaign (docs/how-to/run-a-campaign.md)")]


class CampaignOptions(TlsOptions, SchedulerChoice, FileOptions):
    """A campaign's file, and the rigs that measure it."""


class CommandsOptions(FolderOptions, CycleOptions, RigOptions, SimulateOptions, DeviceOptions):
    """The commands that are compared, and how they are measured."""

    GROUP: ClassVar[str] = WHAT
    scheduler: ClassVar[None] = None  # one rig measures them

    name: Annotated[
        tuple[CommandName, ...],
        Option(
            "NAME",
            "name of a command in the result; once for each command, in their order (default: the command itself)",
            names="-n --name",
        ),
    ] = ()
    blocks: Annotated[
        RepeatCount,
        Option(
            "N",
            "number of blocks; each measures every command once, in random order (default: 5)",
            names="-b --blocks --repeats",
        ),
    ] = 5
    until: Annotated[
        Percent | None,
        Option("P%", "after --blocks, add blocks until the interval of every ratio is within this, for example 5%%"),
    ] = None
    blocks_limit: Annotated[RepeatCount, Option("N", f"most blocks with --until (default: {BLOCKS_LIMIT})")] = (
        BLOCKS_LIMIT
    )
    warmup: Annotated[
        Count,
        Option(
            "N",
            "run the command N times before each measurement's idle, so that caches are filled (default: 0)",
            names="-w --warmup",
        ),
    ] = 0
    before: Annotated[
        str | None,
        Option("SHELL", "shell command to run before each run's idle, and each warm-up; its energy is not counted"),
    ] = None
    file: Annotated[
        tuple[Path, ...], Option("FILE", "file to copy to the board before the measurement; {files}/NAME in a command")
    ] = ()
    seed: Annotated[Seed, Option("N", "seed of the order and of a simulated rig (default: 1)")] = 1
    commands: Annotated[
        tuple[str, ...], Argument("COMMAND", "two or more shell commands after --, each in quotes")
    ] = ()


@dataclass(frozen=True)
class PlannedCampaign:
    """The cells of a campaign and how they are measured."""

    file: CampaignFile
    options: CampaignOptions | StudyOptions | CommandsOptions

    @classmethod
    def checked(
        cls,
        parser: Parser,
        options: CampaignOptions | StudyOptions | CommandsOptions,
        read: Callable[[], CampaignFile],
    ) -> Self:
        """The campaign that `read` returns; ends the program if that fails or its cells cannot be measured together."""
        try:
            file = read()
        except BadInput as error:
            parser.refuse(error)
        if isinstance(options, TlsOptions):
            options.check_network(parser, options.scheduler or "")
        boards = sorted({cell.options.architecture for cell in file.cells} - {""})
        if len(boards) > 1 and not (options.dry_run or options.scheduler):
            parser.error(f"one campaign cannot measure boards of {' and '.join(boards)}: use one campaign for each")
        return cls(file, options)


def needs_of_campaign(campaign: PlannedCampaign) -> Needs:
    """Set-up that all cells need, measured here or elsewhere."""
    cells = [cell.options for cell in campaign.file.cells]
    if campaign.options.dry_run or campaign.options.scheduler:
        # The loader checks a campaign file's workload and properties; those of a study are checked already.
        loader = not campaign.file.shared and any(isinstance(cell, YcsbOptions) for cell in cells)
        engines = frozenset().union(*map(engines_of, cells))
        return Needs(loader=loader, engines=engines if loader else frozenset(), fleet=not campaign.options.dry_run)
    return needs_of_measurements(cells)


CAMPAIGN: Final = Command(
    "campaign",
    CampaignOptions,
    "opjoule.cli.campaign.command:run_campaign",
    "Measures every combination of the axes in a file, in randomised blocks, with one record per measurement. Cells "
    "that have a complete record are not measured again.",
    _EPILOG,
    checked=lambda parser, options: PlannedCampaign.checked(parser, options, lambda: CampaignFile.read(options.file)),
    needs=needs_of_campaign,
)
COMMANDS: Final = (CAMPAIGN, SCHEDULER, WORKER, CELL)
