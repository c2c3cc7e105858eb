"""The command line of `measure.py commission`."""

from pathlib import Path
from typing import Annotated, ClassVar, Final

from opjoule.cli.argument_types import Seed
from opjoule.cli.command import Command, board_architecture
from opjoule.cli.needs import Needs
from opjoule.cli.options import RIG_FILE, RIG_HELP, Flag, Option, Options, Parser

STEP_KEYS: Final = (
    *("zero", "back-feed", "resistor", "additivity", "sync", "clocks"),
    *("load-steps", "full-load", "second-meter", "medium", "errors", "idle"),
)
PLANTED: Final = (
    *("swapped-inputs", "back-feed", "wrong-shunt", "floating-d8", "dead-sync"),
    *("cable", "wrong-medium", "hot-shunt", "second-meter", "i2c-errors"),
)
_EPILOG: Final = """\
Each step asks for one action, measures, and says what to fix. Possible answers:
Enter continues, 'skip WHY' leaves a step out, 'stop' ends here. Finished steps are
kept; the same command continues. It writes commissioning.toml and commissioning.html
beside rig.toml. What each step is for: docs/how-to/commission-the-rig.md

To rehearse it without hardware (about three minutes):
  host/measure.py commission --simulate
  host/measure.py commission --simulate --plant dead-sync --step sync
"""


class ProcedureOptions(Options):
    """The rig to check, and the steps to carry out."""

    device: Annotated[str | None, Option("NAME", "the board (default: the only one in rig.toml)")] = None
    storage: Annotated[str | None, Option("MEDIUM", "the medium to write to (default: the board's first)")] = None
    rig: Annotated[Path, Option("FILE", RIG_HELP)] = RIG_FILE
    step: Annotated[
        tuple[str, ...],
        Option(
            "STEP",
            f"only this step, even if it has passed; may be given several times: {', '.join(STEP_KEYS)}",
            choices=STEP_KEYS,
        ),
    ] = ()
    anew: Annotated[bool, Flag("repeat every step, even those that passed")] = False
    simulate: Annotated[bool, Flag("rehearse it on the simulated rig; every output is marked SIMULATED")] = False


class CommissionOptions(ProcedureOptions):
    """Options of the procedure, and further ones for a rehearsal."""

    GROUP: ClassVar[str] = "with --simulate"

    plant: Annotated[str | None, Option("FAULT", f"plant a fault: {', '.join(PLANTED)}", choices=PLANTED)] = None
    seed: Annotated[Seed, Option("N", "seed of the simulated rig (default: 1)")] = 1
    out: Annotated[Path | None, Option("DIR", "folder for the rehearsal's files (default: a new one under runs/)")] = (
        None
    )


def _checked(parser: Parser, options: CommissionOptions) -> CommissionOptions:
    if options.plant and not options.simulate:
        parser.error(f"--plant {options.plant} needs --simulate: faults are planted only in a simulated rig")
    if options.out and not options.simulate:
        parser.error(f"--out {options.out} needs --simulate: a real rig's certificate is written beside its rig.toml")
    return options


COMMISSION: Final = Command(
    "commission",
    CommissionOptions,
    "opjoule.cli.commission.command:run_commission",
    "Checks a rig before its first measurement: twelve steps, half an hour with the rewiring. Exit status: "
    "0 if every step passed or was left out with a reason, 6 if one failed, 1 if some are still to do.",
    _EPILOG,
    checked=_checked,
    needs=lambda options: Needs(
        loader=True,
        simulate=options.simulate,
        board=board_architecture(options.device, options.rig, simulated=options.simulate),
    ),
)
COMMANDS: Final = (COMMISSION,)
