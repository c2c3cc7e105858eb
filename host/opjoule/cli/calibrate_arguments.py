"""The command line of host/calibrate.py, with the standard library alone."""

from __future__ import annotations

import argparse
from typing import Final

from opjoule.cli.argument_types import Parser, directory, seconds

ACTIONS: Final = ("check", "show")
ACCURACIES: Final = """\
accuracies as their maker states them: 0.05%+2mV (bounds), or "0.03% k=2" (a certificate)
"""
EXAMPLES: Final = """\
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
    """Of calibrating (no action) or of one of ACTIONS."""
    if action == "show":
        parser = Parser("show", program="calibrate.py", description="Lists the calibrations that there are.")
        _add_folder(parser)
        return parser
    what = (
        "Holds a sensor against a reference again, and says whether its calibration still holds."
        if action
        else "Calibrates a current sensor against a reference: gain and offset of current and voltage, with their "
        "covariance, in one readable file that every measurement with this sensor uses from then on."
    )
    parser = Parser(action, program="calibrate.py", description=what, epilog=ACCURACIES + "\n" + EXAMPLES)
    parser.add_argument(
        "--meter", metavar="KIND:PLACE", help="meter of the sensor (default: that of rig.toml)"
    )
    parser.add_rig()
    against = parser.add_mutually_exclusive_group(required=True)
    against.add_argument(
        "--reference", metavar="NAME", help="a multimeter whose readings are typed: model, number"
    )
    against.add_argument(
        "--reference-meter", metavar="KIND:PLACE", help="another meter of the rig, in series"
    )
    parser.add_argument("--current", metavar="ACCURACY", help="of typed currents, for example 0.2%%+1mA")
    parser.add_argument(
        "--over",
        metavar="OHM,ACCURACY",
        help="type the voltage over this resistor instead of a current: 0.1,0.1%%",
    )
    parser.add_argument(
        "--voltage",
        metavar="ACCURACY",
        help="of typed voltages at the sensor's board side, for example 0.05%%+1mV",
    )
    parser.add_argument(
        "--same-voltage",
        action="store_true",
        help="the reference meter reads its voltage at the same place as the sensor: use it, too",
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="a board of rig.toml plays the loads by itself (with --reference-meter)",
    )
    parser.add_argument(
        "--seconds", type=seconds, default=5.0, metavar="N", help="of each point (default: 5)"
    )
    parser.add_argument("--temperature", type=_celsius, metavar="C", help="of the room, in degrees Celsius")
    parser.add_argument(
        "--shunt-ppm", type=_ppm, metavar="PPM", help="the shunt's temperature coefficient (default: 200)"
    )
    parser.add_argument(
        "--keep", type=directory, metavar="DIR", help="where the recordings go (default: under runs/)"
    )
    _add_folder(parser)
    return parser


def _add_folder(parser: Parser) -> None:
    parser.add_argument(
        "--folder", type=directory, metavar="DIR", help="of the files (default: calibration/)"
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON on stdout")


def _celsius(text: str) -> float:
    return _number(text, -40.0, 85.0, "a room's temperature from -40 to 85")


def _ppm(text: str) -> float:
    return _number(text, 0.0, 5000.0, "ppm per kelvin from 0 to 5000")


def _number(text: str, least: float, most: float, words: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = most + 1
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"'{text}' is not {words}")
    return value
