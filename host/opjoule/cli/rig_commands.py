"""Command lines of the commands that set up, check and calibrate a rig, and fit its twin."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Final

from opjoule.base.scripts import Needs
from opjoule.cli.commands import Command, board_architecture
from opjoule.cli.options import (
    MEDIUM_HELP,
    RIG_FILE,
    RIG_HELP,
    ROOM_TEMPERATURE_HELP,
    SIMULATE,
    Argument,
    Celsius,
    Count,
    Flag,
    Option,
    Options,
    Parser,
    PpmPerKelvin,
    Seconds,
    Seed,
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


STEP_KEYS: Final = (
    *("zero", "back-feed", "resistor", "additivity", "sync", "clocks"),
    *("load-steps", "full-load", "second-meter", "medium", "errors", "idle"),
)
PLANTED: Final = (
    *("swapped-inputs", "back-feed", "wrong-shunt", "floating-d8", "dead-sync"),
    *("cable", "wrong-medium", "hot-shunt", "second-meter", "i2c-errors"),
)
_COMMISSION_EPILOG: Final = """\
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


def _checked_commission(parser: Parser, options: CommissionOptions) -> CommissionOptions:
    if options.plant and not options.simulate:
        parser.error(f"--plant {options.plant} needs --simulate: faults are planted only in a simulated rig")
    if options.out and not options.simulate:
        parser.error(f"--out {options.out} needs --simulate: a real rig's certificate is written beside its rig.toml")
    return options


COMMISSION: Final = Command(
    "commission",
    CommissionOptions,
    "opjoule.cli.commission:run_commission",
    "Checks a rig before its first measurement: twelve steps, half an hour with the rewiring. Exit status: "
    "0 if every step passed or was left out with a reason, 6 if one failed, 1 if some are still to do.",
    _COMMISSION_EPILOG,
    checked=_checked_commission,
    needs=lambda options: Needs(
        loader=True,
        simulate=options.simulate,
        board=board_architecture(options.device, options.rig, simulated=options.simulate),
    ),
)


SECONDS: Final = 60.0
_CALIBRATE_EPILOG: Final = """\
Give accuracies as the maker states them: 0.05%+2mV (bounds), or "0.03% k=2" (a certificate).

To try it without hardware (about a minute, simulated sensor and multimeter):
  host/calibrate.py --simulate

With a multimeter that reads the voltage over a 0.1 ohm 0.1 % resistor in series,
and the board's voltage (the better way: it is far more accurate in volts than in
amperes):
  host/calibrate.py --reference "Fluke 87V 123" --over 0.1,0.1% --voltage 0.05%+1mV

With one multimeter in series as an ammeter, and one for the voltage:
  host/calibrate.py --reference DMM --current 0.2%+1mA --voltage 0.05%+1mV

With another meter of the rig in series, both recorded at the same time:
  host/calibrate.py --reference-meter joulescope:000123
  host/calibrate.py --reference-meter joulescope:000123 --device rpi4
With --device the board plays five loads by itself, and nothing is asked.

At each point: set a steady load (a resistor, a board at work), press Enter, and note
what the reference shows. Take six points or more, from no load to above the
board's peak; then type 'done'. The file it writes: calibration/README.md
  host/calibrate.py check ...  checks whether the sensor has drifted (same options, 2 points)
  host/calibrate.py show       lists the calibrations with date and age
"""


class CalibrationsOptions(Options):
    """Folder of the calibrations, and the form of the output."""

    simulate: Annotated[bool, Flag("use a simulated sensor and multimeter; every output is marked SIMULATED")] = False
    folder: Annotated[
        Path | None,
        Option(
            "DIR", "folder of the calibrations (default: calibration/; with --simulate: build/simulated-calibrations/)"
        ),
    ] = None
    json: Annotated[bool, Flag("print the outcome as JSON on stdout")] = False


class PointsOptions(Options):
    """The sensor, its reference and how points are taken."""

    meter: Annotated[str | None, Option("KIND:PLACE", "meter of the sensor (default: the meter of rig.toml)")] = None
    rig: Annotated[Path, Option("FILE", RIG_HELP)] = RIG_FILE
    reference: Annotated[
        str | None, Option("NAME", "a multimeter whose readings you type: model and serial number", exclusive=False)
    ] = None
    reference_meter: Annotated[
        str | None, Option("KIND:PLACE", "another meter of the rig, in series", exclusive=False)
    ] = None
    current: Annotated[str | None, Option("ACCURACY", "accuracy of typed currents, for example 0.2%%+1mA")] = None
    over: Annotated[
        str | None, Option("OHM,ACCURACY", "type the voltage over this resistor instead of a current: 0.1,0.1%%")
    ] = None
    voltage: Annotated[
        str | None,
        Option("ACCURACY", "accuracy of typed voltages on the board side of the sensor, for example 0.05%%+1mV"),
    ] = None
    same_voltage: Annotated[
        bool, Flag("also use the reference meter's voltage; it must measure at the same place as the sensor")
    ] = False
    device: Annotated[
        str | None, Option("NAME", "a board of rig.toml that plays the loads by itself (with --reference-meter)")
    ] = None
    seconds: Annotated[
        Seconds,
        Option(
            "N",
            "length of each point (default: 60, long enough for the shunt's temperature to settle; with shorter "
            "points its "
            "self-heating is not calibrated)",
        ),
    ] = SECONDS
    room_temperature: Annotated[Celsius | None, Option("C", ROOM_TEMPERATURE_HELP)] = None
    shunt_ppm: Annotated[
        PpmPerKelvin | None,
        Option("PPM", "the shunt's temperature coefficient (default: shunt_ppm= of the meter, or 200)"),
    ] = None
    keep: Annotated[Path | None, Option("DIR", "folder for the recordings (default: under runs/)")] = None
    seed: Annotated[Seed, Option("N", "seed of the simulated bench (default: 1)")] = 1


class CalibrateOptions(CalibrationsOptions, PointsOptions):
    """Options of a calibration, or of a check of one."""


def _checked_calibrate(parser: Parser, options: CalibrateOptions) -> CalibrateOptions:
    stated = {
        "--meter": options.meter,
        "--reference-meter": options.reference_meter,
        "--device": options.device,
    }
    for name, value in stated.items() if options.simulate else ():
        if value:
            parser.error(f"{name} {value} and --simulate: a simulated bench has its own; leave out one of the two")
    if not (options.simulate or options.reference or options.reference_meter):
        parser.error(
            "give --reference NAME or --reference-meter KIND:PLACE; without hardware, --simulate shows the procedure"
        )
    return options


def _calibrate_needs(options: CalibrateOptions) -> Needs:
    if not options.device:
        return Needs(simulate=options.simulate)
    board = board_architecture(options.device, options.rig, simulated=options.simulate)
    return Needs(loader=True, simulate=options.simulate, board=board)


CALIBRATE: Final = Command(
    "calibrate",
    CalibrateOptions,
    "opjoule.cli.calibrate:run_calibrate",
    "Calibrates a current sensor against a reference. Writes gain and offset of current and voltage, with their "
    "covariance, to one readable file. Every measurement with this sensor uses the file from then on.",
    _CALIBRATE_EPILOG,
    checked=_checked_calibrate,
    needs=_calibrate_needs,
)
CHECK: Final = replace(
    CALIBRATE,
    name="calibrate check",
    run="opjoule.cli.calibrate:run_check",
    description="Compares a sensor with a reference again and says whether its calibration is still valid.",
)
SHOW: Final = Command(
    "calibrate show", CalibrationsOptions, "opjoule.cli.calibrate:run_show", "Lists all calibrations."
)


_TWIN_EPILOG: Final = """\
examples:
  host/measure.py twin --device rpi4 --storage sd
      print the runs to make on a board so that its twin can be fitted; nothing is run
  host/measure.py twin --fit runs/20261122-101500-command-rpi4-sd runs/20261122-103000-leveldb-rpi4-sd
      fit them together; writes twins/rpi4-sd.toml, and twins/rpi4-sd.html with measured and modelled power
  host/measure.py --db leveldb --device rpi4 --storage sd --simulate rpi4-sd
      simulate with that twin instead of published figures

A parameter that the records do not determine keeps its published value, and the output names the run
that would determine it.
docs/how-to/fit-the-twin.md
"""


class FitOptions(Options):
    """The records, and where the profile is written."""

    fit: Annotated[tuple[Path, ...], Option("RECORD", "records of one board with one medium", together=True)] = ()
    out: Annotated[
        Path | None, Option("FILE", "the profile to write, with its page beside it (default: twins/BOARD-MEDIUM.toml)")
    ] = None
    json: Annotated[bool, Flag("print the parameters as JSON on stdout")] = False


class TwinOptions(FitOptions):
    """Options of the fit, and the board for the runs to make."""

    GROUP: ClassVar[str] = "the runs to make (without --fit)"

    device: Annotated[str, Option("NAME", "board (default: rpi4)")] = "rpi4"
    storage: Annotated[str | None, Option("MEDIUM", MEDIUM_HELP)] = None
    simulate: Annotated[bool, SIMULATE] = False
    twin_profile: Path | None = None


TWIN: Final = Command(
    "twin",
    TwinOptions,
    "opjoule.cli.twin:run_twin",
    "Fits the simulated board (the twin) to measured records: power by busy cores; rates, latencies and powers of the "
    "medium; the supply. Shows where model and measurement differ, and writes a profile for --simulate. Without --fit "
    "it prints the runs to make.",
    _TWIN_EPILOG,
)
COMMANDS: Final = (
    *(INIT, DOCTOR, RESTORE, SUDOERS, VIRTUAL_BOARD, COMMISSION),
    *(CALIBRATE, CHECK, SHOW, TWIN),
)
