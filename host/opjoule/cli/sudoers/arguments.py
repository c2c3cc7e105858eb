"""The command line of `measure.py sudoers`."""

from __future__ import annotations

from opjoule.cli.argument_types import Parser, directory


def sudoers_parser() -> Parser:
    """The parser of `sudoers`."""
    parser = Parser(
        "sudoers",
        description="Prints what OpJoule does as root on a board, as a script that installs one program there, "
        "opjoule-root, and a sudoers file that permits this program alone.",
        epilog="example:\n  host/measure.py sudoers --device rpi4 --out opjoule-root.sh\n"
        "  scp opjoule-root.sh pi@raspberrypi: && ssh -t pi@raspberrypi sudo sh opjoule-root.sh",
    )
    parser.add_argument("--device", required=True, metavar="NAME", help="the board, as rig.toml names it")
    parser.add_rig()
    parser.add_argument("--user", metavar="NAME", help="who may run it (default: the user of the connection)")
    parser.add_argument(
        "--out", type=directory, metavar="FILE", help="file for the script (default: it is printed)"
    )
    return parser
