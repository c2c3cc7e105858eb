"""The options of `measure.py command`: any program of the board."""

from __future__ import annotations

from opjoule.cli.argument_types import Parser, directory, seed
from opjoule.cli.measure.arguments import add_how, add_rig, add_storage

_COMMAND_EPILOG = """\
examples:
  host/measure.py command --device rpi4 -- python3 -c 'sum(range(10**8))'
      any program of the board, as a whole
  host/measure.py command --device rpi4 --file job.py --file opjoule_marks.py -- python3 {files}/job.py --data {storage}
      a program of yours, copied there, which marks its phases and operations (docs/how-to/measure-any-command.md)
  host/measure.py command --device rpi4 --simulate -- sh -c 'dd if=/dev/zero of={storage}/f bs=1M count=64'
      the same on a simulated board

In COMMAND, {files} is the folder of the copied files, {storage} a new folder on the chosen medium, both on the board.
"""


def command_parser() -> Parser:
    """The parser of `measure.py command`."""
    parser = Parser(
        "command",
        usage="measure.py command --device NAME [options] -- COMMAND [ARGUMENT ...]",
        description="Measures what any program costs in joules on a single-board computer: as a whole, in each phase "
        "that it marks, and per operation that it marks.",
        epilog=_COMMAND_EPILOG,
    )
    parser.set_defaults(
        study="command", db=None, generator="loader", seconds=None, operations=None, no_harness=True
    )
    what = parser.add_argument_group("what is measured")
    what.add_argument("--device", required=True, metavar="NAME", help="board: rpi3, rpi4, odroid-c2, ...")
    add_storage(what)
    what.add_argument(
        "--file",
        type=directory,
        action="append",
        default=[],
        metavar="FILE",
        help="copied to the board before anything is measured; {files}/NAME there",
    )
    what.add_argument(
        "--before",
        metavar="SHELL",
        help="a shell command before each repeat's idle; its energy is not counted",
    )
    what.add_argument(
        "--seed",
        type=seed,
        metavar="N",
        help="seed of the simulated rig (default: another rig for each measurement)",
    )
    what.add_argument("command", nargs="*", metavar="COMMAND", help="behind --, with its arguments")
    add_rig(parser)
    add_how(parser)
    return parser
