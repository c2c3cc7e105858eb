"""The command line of `measure.py commission`, with the standard library alone."""

from __future__ import annotations

import argparse
from typing import Final

from opjoule.cli.argument_types import Parser, directory, seed

STEP_KEYS: Final = (
    *("zero", "back-feed", "resistor", "additivity", "sync", "clocks"),
    *("load-steps", "full-load", "second-meter", "medium", "errors", "idle"),
)
PLANTED: Final = (
    *("swapped-inputs", "back-feed", "wrong-shunt", "floating-d8", "dead-sync"),
    *("cable", "wrong-medium", "hot-shunt", "second-meter", "i2c-errors"),
)
_EPILOG: Final = """\
It asks for one thing after the other, measures, and says what to mend. Answers:
Enter goes on, 'skip WHY' leaves a step out, 'stop' ends here. What is finished is
kept; the same command continues. It writes commissioning.toml and commissioning.html
beside rig.toml. What each step is for: docs/how-to/commission-the-rig.md

To rehearse it without hardware, about three minutes:
  host/measure.py commission --simulate
  host/measure.py commission --simulate --plant dead-sync --step sync
"""


def commission_parser() -> Parser:
    """Parser of `measure.py commission`."""
    parser = Parser(
        "commission",
        description="Checks a rig before its first measurement: twelve steps, about 15 minutes without "
        "the time for rewiring. Exit status: 0 if every step passed or was left out with a "
        "reason, 6 if one failed, 1 if some are still to do.",
        epilog=_EPILOG,
    )
    parser.add_argument("--device", metavar="NAME", help="the board (default: the only one of rig.toml)")
    parser.add_argument(
        "--storage", metavar="MEDIUM", help="the medium that is written to (default: the board's first)"
    )
    parser.add_rig()
    parser.add_argument(
        "--step",
        action="append",
        choices=STEP_KEYS,
        metavar="STEP",
        help=f"this step alone, also if it has passed; may be given several times: {', '.join(STEP_KEYS)}",
    )
    parser.add_argument("--anew", action="store_true", help="repeat every step, also those that passed")
    parser.add_argument(
        "--simulate", action="store_true", help="rehearse it on the simulated rig; all of it says SIMULATED"
    )
    rehearsal = parser.add_argument_group("with --simulate")
    rehearsal.add_argument(
        "--plant", choices=PLANTED, metavar="FAULT", help=f"plant a fault: {', '.join(PLANTED)}"
    )
    rehearsal.add_argument(
        "--seed", type=seed, default=1, metavar="N", help="seed of the simulated rig (default: 1)"
    )
    rehearsal.add_argument(
        "--out",
        type=directory,
        metavar="DIR",
        help="where the rehearsal's files go (default: a new folder under runs/)",
    )
    return parser


def check_options(parser: Parser, options: argparse.Namespace) -> None:
    """Ends the program with one line for options that do not go together."""
    if options.plant and not options.simulate:
        parser.error(f"--plant {options.plant} is for --simulate: a real rig has faults of its own")
    if options.out and not options.simulate:
        parser.error(f"--out {options.out} is for --simulate: a rig's certificate lies beside its rig.toml")
