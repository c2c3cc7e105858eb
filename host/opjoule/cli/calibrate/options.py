"""The command lines of `host/calibrate.py`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from opjoule.cli.argument_types import Celsius, PpmPerKelvin, Seconds, Seed
from opjoule.cli.command import Command, board_architecture
from opjoule.cli.needs import Needs
from opjoule.cli.options import RIG_FILE, RIG_HELP, ROOM_TEMPERATURE_HELP, Flag, Option, Options, Parser

SECONDS: Final = 60.0
_EPILOG: Final = """\
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


def _checked(parser: Parser, options: CalibrateOptions) -> CalibrateOptions:
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


def _needs(options: CalibrateOptions) -> Needs:
    if not options.device:
        return Needs(simulate=options.simulate)
    board = board_architecture(options.device, options.rig, simulated=options.simulate)
    return Needs(loader=True, simulate=options.simulate, board=board)


CALIBRATE: Final = Command(
    "calibrate",
    CalibrateOptions,
    "opjoule.cli.calibrate.command:run_calibrate",
    "Calibrates a current sensor against a reference. Writes gain and offset of current and voltage, with their "
    "covariance, to one readable file. Every measurement with this sensor uses the file from then on.",
    _EPILOG,
    checked=_checked,
    needs=_needs,
)
CHECK: Final = replace(
    CALIBRATE,
    name="calibrate check",
    run="opjoule.cli.calibrate.command:run_check",
    description="Compares a sensor with a reference again and says whether its calibration is still valid.",
)
SHOW: Final = Command(
    "calibrate show", CalibrationsOptions, "opjoule.cli.calibrate.command:run_show", "Lists all calibrations."
)
COMMANDS: Final = (CALIBRATE, CHECK, SHOW)
