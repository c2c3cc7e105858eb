"""The command lines of a scheduler, a worker and its cells, and the options of what is measured on several rigs.

Parsed with the standard library alone, before set-up, too.
"""

from __future__ import annotations

import argparse
import socket
from pathlib import Path
from typing import Final

from opjoule.cli.argument_types import Parser, directory, port, seconds

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 8786
"""Port of a scheduler: distributed's own."""


def add_scheduler(parser: argparse._ActionsContainer) -> None:
    """--scheduler and what goes with it."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="measure on the rigs that work for this scheduler, as tcp://127.0.0.1:8786 (docs/how-to/fleet.md)",
    )
    parser.add_argument(
        "--wait",
        type=seconds,
        default=300.0,
        metavar="SECONDS",
        help="with --scheduler: how long to wait for it, or for a rig that can measure what is left (default: 300)",
    )
    _add_tls(parser)


def scheduler_parser() -> Parser:
    """The parser of `measure.py campaign scheduler`."""
    parser = Parser(
        program="campaign.py scheduler",
        description="Runs the scheduler (of Dask's distributed) that connects campaigns and workers, "
        "until Ctrl-C. Whoever can reach its port can run programs on this computer and on "
        "all workers.",
    )
    parser.add_argument(
        "--host", default=LOOPBACK, metavar="ADDRESS", help=f"where it listens (default: {LOOPBACK})"
    )
    parser.add_argument("--port", type=port, default=PORT, metavar="N", help=f"(default: {PORT})")
    _add_tls(parser)
    _add_trust(parser)
    return parser


def worker_parser() -> Parser:
    """The parser of `measure.py campaign worker`."""
    parser = Parser(
        program="campaign.py worker",
        description="Measures cells of campaigns on this computer's rig, one at a time, until Ctrl-C. "
        "Waits for its scheduler whenever that is away. Keeps each record until its "
        "campaign has fetched it.",
    )
    parser.add_argument("scheduler", metavar="ADDRESS", help="its scheduler, as tcp://127.0.0.1:8786")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--rig", type=directory, metavar="FILE", help="the rig: its boards, media and meter")
    what.add_argument("--simulate", action="store_true", help="a simulated rig")
    parser.add_argument(
        "--name",
        default=socket.gethostname(),
        metavar="NAME",
        help="name of the rig, unique and the same at every start (default: this computer's name)",
    )
    parser.add_argument(
        "--spool",
        type=directory,
        metavar="DIR",
        help="folder that keeps records until they are fetched (default: build/spool/NAME)",
    )
    parser.add_argument(
        "--host", metavar="ADDRESS", help="where it listens (default: the address that reaches the scheduler)"
    )
    _add_tls(parser)
    _add_trust(parser)
    return parser


def cell_parser() -> Parser:
    """The parser of `measure.py campaign cell`, which a worker calls."""
    parser = Parser(program="campaign.py cell", description="Measures the job in a worker's folder.")
    parser.add_argument("place", type=directory, metavar="FOLDER", help="of the job")
    parser.add_argument(
        "--rig", type=directory, metavar="FILE", help="the worker's (default: a simulated one)"
    )
    parser.add_argument("--name", required=True, help="the rig's")
    return parser


def has_tls(options: argparse.Namespace) -> bool:
    """Are connections to be encrypted, and to those alone who have a certificate?"""
    return options.tls_ca_file is not None


def check_network(parser: Parser, options: argparse.Namespace, address: str) -> None:
    """Ends the program where a port would be open to a network that anyone may be in, or TLS is asked for in part."""
    tls = (options.tls_ca_file, options.tls_cert, options.tls_key)
    if any(tls) and not all(tls):
        parser.error("TLS needs all of --tls-ca-file, --tls-cert and --tls-key")
    if not any(tls) and not getattr(options, "trust_network", True) and not _is_loopback(address):
        parser.error(
            f"anyone who reaches {address} could run programs on this computer and on every rig: give --tls-ca-file, "
            "--tls-cert and --tls-key, or --trust-network where nobody else is in that network"
        )


def _is_loopback(address: str) -> bool:
    host = address.rpartition("://")[2].rpartition(":")[0] or address
    return host in ("localhost", "[::1]", "::1") or host.startswith("127.")


def _add_tls(parser: argparse._ActionsContainer) -> None:
    for name, of in (("ca-file", "the authority"), ("cert", "this program"), ("key", "its key")):
        parser.add_argument(
            f"--tls-{name}",
            type=Path,
            metavar="FILE",
            help=f"of {of}, PEM; allows only connections with TLS",
        )


def _add_trust(parser: Parser) -> None:
    parser.add_argument(
        "--trust-network",
        action="store_true",
        help="listen beyond this computer without TLS: whoever is in that network can run programs here",
    )
