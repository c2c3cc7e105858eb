"""The command lines of `host/calibrate.py`."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from opjoule.cli.argument_types import celsius, directory, number_between, seconds, seed
from opjoule.cli.command import Command, board_architecture
from opjoule.cli.needs import Needs
from opjoule.cli.options import EXCLUSIVE, RIG_FILE, RIG_HELP, ROOM_TEMPERATURE_HELP, Options, Parser, flag, option

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


_ppm = number_between(0.0, 5000.0, "ppm per kelvin from 0 to 5000")


class CalibrationsOptions(Options):
    """Folder of the calibrations, and the form of the output."""

    simulate: bool = flag("use a simulated sensor and multimeter; every output is marked SIMULATED")
    folder: Path | None = option(
        directory,
        "DIR",
        "folder of the calibrations (default: calibration/; with --simulate: build/simulated-calibrations/)",
    )
    json: bool = flag("print the outcome as JSON on stdout")


class PointsOptions(Options):
    """The sensor, its reference and how points are taken."""

    meter: str | None = option(str, "KIND:PLACE", "meter of the sensor (default: the meter of rig.toml)")
    rig: Path = option(directory, "FILE", RIG_HELP, RIG_FILE)
    reference: str | None = option(
        str, "NAME", "a multimeter whose readings you type: model and serial number", **{EXCLUSIVE: False}
    )
    reference_meter: str | None = option(str, "KIND:PLACE", "another meter of the rig, in series", **{EXCLUSIVE: False})
    current: str | None = option(str, "ACCURACY", "accuracy of typed currents, for example 0.2%%+1mA")
    over: str | None = option(
        str, "OHM,ACCURACY", "type the voltage over this resistor instead of a current: 0.1,0.1%%"
    )
    voltage: str | None = option(
        str, "ACCURACY", "accuracy of typed voltages on the board side of the sensor, for example 0.05%%+1mV"
    )
    same_voltage: bool = flag("also use the reference meter's voltage; it must measure at the same place as the sensor")
    device: str | None = option(
        str, "NAME", "a board of rig.toml that plays the loads by itself (with --reference-meter)"
    )
    seconds: float = option(
        seconds,
        "N",
        "length of each point (default: 60, long enough for the shunt's temperature to settle; with shorter points its "
        "self-heating is not calibrated)",
        SECONDS,
    )
    room_temperature: float | None = option(celsius, "C", ROOM_TEMPERATURE_HELP)
    shunt_ppm: float | None = option(
        _ppm, "PPM", "the shunt's temperature coefficient (default: shunt_ppm= of the meter, or 200)"
    )
    keep: Path | None = option(directory, "DIR", "folder for the recordings (default: under runs/)")
    seed: int = option(seed, "N", "seed of the simulated bench (default: 1)", 1)


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
