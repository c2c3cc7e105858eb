"""The command lines of a scheduler, a worker and its cells; the options of a study, and of measuring on several rigs.

Standard library alone.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

from opjoule.cli.argument_types import directory, port, seconds, seed, share, time_span
from opjoule.cli.campaign.cells import needs_of_cells, restored_cell
from opjoule.cli.command import Command
from opjoule.cli.measure.options import (
    STORAGE_HELP,
    WHAT,
    HowOptions,
    OutputOptions,
    PlanningOptions,
    RigOptions,
    SimulateOptions,
)
from opjoule.cli.needs import Needs
from opjoule.cli.options import EXCLUSIVE, Options, Parser, flag, option, positional, repeated, required

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 8786
"""Port of a scheduler: distributed's own."""


@dataclass(frozen=True, kw_only=True)
class SchedulerChoice(Options):
    """The scheduler that gives a campaign its rigs."""

    GROUP: ClassVar[str] = "several rigs"

    scheduler: str | None = option(
        str,
        "ADDRESS",
        "measure on the rigs that work for this scheduler, as tcp://127.0.0.1:8786 (docs/how-to/fleet.md)",
    )
    wait: float = option(
        seconds,
        "SECONDS",
        "with --scheduler: how long to wait for it, or for a rig that can measure what is left (default: 300)",
        300.0,
    )


@dataclass(frozen=True, kw_only=True)
class TlsOptions(Options):
    """Encryption of the connections, to those alone who have a certificate."""

    GROUP: ClassVar[str] = "several rigs"

    tls_ca_file: Path | None = option(Path, "FILE", "of the authority, PEM; allows only connections with TLS")
    tls_cert: Path | None = option(Path, "FILE", "of this program, PEM; allows only connections with TLS")
    tls_key: Path | None = option(Path, "FILE", "of its key, PEM; allows only connections with TLS")

    @property
    def tls_files(self) -> list[Path]:
        """Authority, certificate and key; empty without TLS."""
        return [file for file in (self.tls_ca_file, self.tls_cert, self.tls_key) if file]

    def check_network(self, parser: Parser, address: str, *, trusted: bool = True) -> None:
        """Ends the program where a port would be open to a network that anyone may be in, or TLS is given in part."""
        if self.tls_files and len(self.tls_files) < 3:
            parser.error("TLS needs all of --tls-ca-file, --tls-cert and --tls-key")
        host = address.rpartition("://")[2].rpartition(":")[0] or address
        is_loopback = host in ("localhost", "[::1]", "::1") or host.startswith("127.")
        if not (self.tls_files or trusted or is_loopback):
            parser.error(
                f"anyone who reaches {address} could run programs on this computer and on every rig: give "
                "--tls-ca-file, --tls-cert and --tls-key, or --trust-network where nobody else is in that network"
            )


@dataclass(frozen=True, kw_only=True)
class FleetOptions(TlsOptions, SchedulerChoice):
    """A campaign on several rigs."""


@dataclass(frozen=True, kw_only=True)
class StudyChoice(Options):
    """Which study, where, and how much of it."""

    GROUP: ClassVar[str] = WHAT

    study: str = required(str, "NAME", "its name (measure.py studies), or its folder")
    device: str = required(
        str, "NAME", "board: rpi3, rpi4, odroid-c2, ...; several with commas if the study compares boards"
    )
    storage: str | None = option(str, "MEDIUM", STORAGE_HELP)
    scale: float = option(
        share, "X", "multiplies the study's counts, above 0 and at most 1 (default: 1)", 1.0
    )
    within: float | None = option(
        time_span,
        "TIME",
        "chooses the scale so that the study takes no longer than this, judging by records of it at another scale: "
        "90min, 2h",
    )
    only: tuple[str, ...] = repeated(
        str,
        "AXIS=VALUE[,VALUE]",
        "only these values of an axis, a count or the study's figures (figure=7); may be given several times",
    )
    dataset: Path | None = option(directory, "FILE", "your data instead of generated data")
    connections: Path | None = option(
        directory,
        "FILE",
        "databases of yours, one per line: NAME = ODBC connection string (measure.py studies lists the names)",
    )
    seed: int = option(seed, "N", "seed of the data, the order and a simulated rig (default: 1)", 1)


@dataclass(frozen=True, kw_only=True)
class StudyOptions(FleetOptions, OutputOptions, HowOptions, RigOptions, SimulateOptions, StudyChoice):
    """A study, on one rig or several."""


@dataclass(frozen=True, kw_only=True)
class ListeningOptions(TlsOptions):
    """A program that others connect to."""

    trust_network: bool = flag(
        "listen beyond this computer without TLS: whoever is in that network can run programs here"
    )


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions(ListeningOptions):
    """Where a scheduler listens."""

    host: str = option(str, "ADDRESS", f"where it listens (default: {LOOPBACK})", LOOPBACK)
    port: int = option(port, "N", f"(default: {PORT})", PORT)


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(ListeningOptions):
    """A worker's scheduler, rig and folder."""

    scheduler: str = positional(str, "ADDRESS", "its scheduler, as tcp://127.0.0.1:8786")
    rig: Path | None = option(directory, "FILE", "the rig: its boards, media and meter", **{EXCLUSIVE: True})
    simulate: bool = flag("a simulated rig", **{EXCLUSIVE: True})
    name: str = option(
        str,
        "NAME",
        "name of the rig, unique and the same at every start (default: this computer's name)",
        socket.gethostname(),
    )
    spool: Path | None = option(
        directory, "DIR", "folder that keeps records until they are fetched (default: build/spool/NAME)"
    )
    host: str | None = option(
        str, "ADDRESS", "where it listens (default: the address that reaches the scheduler)"
    )


@dataclass(frozen=True, kw_only=True)
class CellOptions(Options):
    """A worker's folder with a job, and the rig."""

    place: Path = positional(directory, "FOLDER", "of the job")
    rig: Path | None = option(directory, "FILE", "the worker's (default: a simulated one)")
    name: str = required(str, "NAME", "the rig's")


@dataclass(frozen=True)
class RigCell:
    """A cell of a campaign, on the rig that measures it."""

    place: Path
    name: str
    """The rig's."""
    options: PlanningOptions


def _checked(parser: Parser, options: SchedulerOptions | WorkerOptions) -> SchedulerOptions | WorkerOptions:
    address = options.scheduler if isinstance(options, WorkerOptions) else options.host
    options.check_network(parser, address, trusted=options.trust_network)
    return options


def _read_cell(parser: Parser, options: CellOptions) -> RigCell:
    try:
        job = json.loads((options.place / "job.json").read_text(encoding="utf-8"))
        cell = restored_cell(job["kind"], job["options"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.refuse(ValueError(f"{options.place}: {error}"))
    return RigCell(options.place, options.name, replace(cell, rig=options.rig or cell.rig))


SCHEDULER: Final = Command(
    "campaign scheduler",
    SchedulerOptions,
    "opjoule.cli.campaign.fleet:run_scheduler",
    "Runs the scheduler (of Dask's distributed) that connects campaigns and workers, until Ctrl-C. Whoever can reach "
    "its port can run programs on this computer and on all workers.",
    checked=_checked,
    needs=lambda options: Needs(fleet=True),
)
WORKER: Final = Command(
    "campaign worker",
    WorkerOptions,
    "opjoule.cli.campaign.fleet:run_worker",
    "Measures cells of campaigns on this computer's rig, one at a time, until Ctrl-C. Waits for its scheduler whenever "
    "that is away. Keeps each record until its campaign has fetched it.",
    checked=_checked,
    needs=lambda options: Needs(
        loader=True, simulate=options.simulate, fleet=True
    ),  # before its cells need it
)
CELL: Final = Command(
    "campaign cell",
    CellOptions,
    "opjoule.cli.campaign.fleet:run_cell",
    "Measures the job in a worker's folder.",
    checked=_read_cell,
    needs=lambda cell: replace(needs_of_cells([cell.options]), fleet=True),
)
