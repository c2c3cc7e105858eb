"""The command line of `measure.py commission`. Standard library alone."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from opjoule.cli.argument_types import directory, seed
from opjoule.cli.command import Command, Needs, board_architecture
from opjoule.cli.options import RIG_FILE, RIG_HELP, Options, Parser, flag, option, repeated

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


class ProcedureOptions(Options):
    """The rig to prove, and the steps to take."""

    device: str | None = option(str, "NAME", "the board (default: the only one of rig.toml)")
    storage: str | None = option(str, "MEDIUM", "the medium that is written to (default: the board's first)")
    rig: Path = option(directory, "FILE", RIG_HELP, RIG_FILE)
    step: tuple[str, ...] = repeated(
        str,
        "STEP",
        f"this step alone, also if it has passed; may be given several times: {', '.join(STEP_KEYS)}",
        choices=STEP_KEYS,
    )
    anew: bool = flag("repeat every step, also those that passed")
    simulate: bool = flag("rehearse it on the simulated rig; all of it says SIMULATED")


class CommissionOptions(ProcedureOptions):
    """With what a rehearsal takes besides."""

    GROUP: ClassVar[str] = "with --simulate"

    plant: str | None = option(str, "FAULT", f"plant a fault: {', '.join(PLANTED)}", choices=PLANTED)
    seed: int = option(seed, "N", "seed of the simulated rig (default: 1)", 1)
    out: Path | None = option(
        directory, "DIR", "where the rehearsal's files go (default: a new folder under runs/)"
    )


def _checked(parser: Parser, options: CommissionOptions) -> CommissionOptions:
    if options.plant and not options.simulate:
        parser.error(f"--plant {options.plant} is for --simulate: a real rig has faults of its own")
    if options.out and not options.simulate:
        parser.error(f"--out {options.out} is for --simulate: a rig's certificate lies beside its rig.toml")
    return options


COMMISSION: Final = Command(
    "commission",
    CommissionOptions,
    "opjoule.cli.commission.command:run_commission",
    "Checks a rig before its first measurement: twelve steps, about 15 minutes without the time for rewiring. Exit "
    "status: 0 if every step passed or was left out with a reason, 6 if one failed, 1 if some are still to do.",
    _EPILOG,
    checked=_checked,
    needs=lambda options: Needs(
        loader=True,
        simulate=options.simulate,
        board=board_architecture(options.device, options.rig, simulated=options.simulate),
    ),
)
