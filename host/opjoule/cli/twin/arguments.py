"""The command line of `measure.py twin`. Standard library alone."""

from __future__ import annotations

from opjoule.cli.argument_types import Parser, directory
from opjoule.cli.measure.arguments import add_storage
from opjoule.cli.twin_profiles import add_simulate

_EPILOG = """\
examples:
  host/measure.py twin --device rpi4 --storage sd
      the runs to make on a board so that its twin can be fitted; nothing is run
  host/measure.py twin --fit runs/20261122-101500-command-rpi4-sd runs/20261122-103000-leveldb-rpi4-sd
      fit them together: twins/rpi4-sd.toml, and twins/rpi4-sd.html with measured and modelled power on one axis
  host/measure.py --db leveldb --device rpi4 --storage sd --simulate rpi4-sd
      simulate with that twin in place of published figures

A parameter that the records do not determine keeps its published value, and the output names the run
that would determine it.
docs/how-to/fit-the-twin.md
"""


def twin_parser() -> Parser:
    """The parser of `measure.py twin`."""
    parser = Parser(
        "twin",
        description="Fits the simulated board (the twin) to measured records: power by busy cores, the medium's rates, "
        "latencies and powers, the supply. Shows where model and measurement differ, and writes a profile that "
        "--simulate takes. Without --fit it prints the runs to make.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--fit", type=directory, nargs="+", metavar="RECORD", help="records of one board with one medium"
    )
    parser.add_argument(
        "--out",
        type=directory,
        metavar="FILE",
        help="the profile; its page goes beside it (default: twins/BOARD-MEDIUM.toml)",
    )
    parser.add_argument("--json", action="store_true", help="print the parameters as JSON on stdout")
    runs = parser.add_argument_group("the runs to make (without --fit)")
    runs.add_argument("--device", metavar="NAME", default="rpi4", help="board (default: rpi4)")
    add_storage(runs)
    add_simulate(runs)
    return parser
