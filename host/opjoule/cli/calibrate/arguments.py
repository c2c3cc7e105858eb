"""The command line of host/calibrate.py, with the standard library alone."""

from __future__ import annotations

import argparse
from typing import Final

from opjoule.cli.argument_types import Parser, directory, number_between, seconds, seed

ACTIONS: Final = ("check", "show")
SECONDS: Final = 60.0
ACCURACIES: Final = """\
accuracies as their maker states them: 0.05%+2mV (bounds), or "0.03% k=2" (a certificate)
"""
EXAMPLES: Final = """\
To try it out without hardware, a minute (a simulated sensor and multimeter):
  host/calibrate.py --simulate

With a multimeter on the voltage over a 0.1 ohm 0.1 % resistor in series, and on
the board's voltage (the better way: its volts are far better than its amperes):
  host/calibrate.py --reference "Fluke 87V 123" --over 0.1,0.1% --voltage 0.05%+1mV

With a multimeter in series as an ammeter, and one for the voltage:
  host/calibrate.py --reference DMM --current 0.2%+1mA --voltage 0.05%+1mV

With another meter of the rig in series, both recorded at the same time:
  host/calibrate.py --reference-meter joulescope:000123
  host/calibrate.py --reference-meter joulescope:000123 --device rpi4
With --device the board plays the loads by itself, in five steps, and asks nothing.

Each point: set a steady load (a resistor, a board at work), press Enter, note what
the reference shows meanwhile. Six points or more, from no load to above the
board's peak; 'done' ends. What it writes: calibration/README.md
  host/calibrate.py check ...  has the sensor drifted since? (same options, 2 points)
  host/calibrate.py show       calibrations that there are, with date and age
"""


def calibrate_parser(action: str = "") -> Parser:
    """Parser of calibrating (no action) or of one of ACTIONS."""
    if action == "show":
        parser = Parser("show", program="calibrate.py", description="Lists all calibrations.")
        _add_folder(parser)
        return parser
    what = (
        "Compares a sensor with a reference again, and says whether its calibration is still valid."
        if action
        else "Calibrates a current sensor against a reference: gain and offset of current and voltage, with their "
        "covariance, in one readable file that every measurement with this sensor uses from then on."
    )
    parser = Parser(action, program="calibrate.py", description=what, epilog=ACCURACIES + "\n" + EXAMPLES)
    parser.add_argument(
        "--meter", metavar="KIND:PLACE", help="meter of the sensor (default: that of rig.toml)"
    )
    parser.add_rig()
    against = parser.add_mutually_exclusive_group()
    against.add_argument(
        "--reference", metavar="NAME", help="a multimeter whose readings are typed: model, number"
    )
    against.add_argument(
        "--reference-meter", metavar="KIND:PLACE", help="another meter of the rig, in series"
    )
    _add_accuracies(parser)
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="a board of rig.toml that plays the loads by itself (with --reference-meter)",
    )
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=SECONDS,
        metavar="N",
        help="length of each point (default: 60, long enough for the shunt's temperature to settle; "
        "shorter points leave its self-heating uncalibrated)",
    )
    parser.add_room_temperature()
    parser.add_argument(
        "--shunt-ppm",
        type=_ppm,
        metavar="PPM",
        help="the shunt's temperature coefficient (default: shunt_ppm= of the meter, or 200)",
    )
    parser.add_argument(
        "--keep", type=directory, metavar="DIR", help="where the recordings go (default: under runs/)"
    )
    parser.add_argument(
        "--seed", type=seed, default=1, metavar="N", help="seed of the simulated bench (default: 1)"
    )
    _add_folder(parser)
    return parser


def _add_accuracies(parser: Parser) -> None:
    """Options for the accuracy of typed readings."""
    parser.add_argument(
        "--current", metavar="ACCURACY", help="accuracy of typed currents, for example 0.2%%+1mA"
    )
    parser.add_argument(
        "--over",
        metavar="OHM,ACCURACY",
        help="type the voltage over this resistor instead of a current: 0.1,0.1%%",
    )
    parser.add_argument(
        "--voltage",
        metavar="ACCURACY",
        help="accuracy of typed voltages at the sensor's board side, for example 0.05%%+1mV",
    )
    parser.add_argument(
        "--same-voltage",
        action="store_true",
        help="also use the reference meter's voltage; it must be read at the same place as the sensor's",
    )


def calibrate_options(argv: list[str]) -> argparse.Namespace:
    """Parses `[check|show] ...`; argparse exits with status 2 and one line on a mistake."""
    action = argv[0] if argv and argv[0] in ACTIONS else ""
    parser = calibrate_parser(action)
    options = parser.parse_args(argv[1:] if action else argv)
    options.action, options.db = action, None
    if action == "show":
        return options
    own = {"--meter": options.meter, "--reference-meter": options.reference_meter, "--device": options.device}
    for name, value in own.items():
        if options.simulate and value:
            parser.error(
                f"{name} {value} and --simulate: a simulated bench has its own; leave out one of the two"
            )
    if not (options.simulate or options.reference or options.reference_meter):
        parser.error(
            "give --reference NAME or --reference-meter KIND:PLACE; without hardware, --simulate "
            "shows the procedure"
        )
    return options


def _add_folder(parser: Parser) -> None:
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="use a simulated sensor and multimeter; every output says SIMULATED",
    )
    parser.add_argument(
        "--folder",
        type=directory,
        metavar="DIR",
        help="folder of the calibrations (default: calibration/, simulated build/simulated-calibrations/)",
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON on stdout")


def _ppm(text: str) -> float:
    return number_between(text, 0.0, 5000.0, "ppm per kelvin from 0 to 5000")
