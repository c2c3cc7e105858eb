"""The command line of `measure.py twin`."""

from pathlib import Path
from typing import Annotated, ClassVar, Final

from opjoule.cli.command import Command
from opjoule.cli.measure.options import MEDIUM_HELP
from opjoule.cli.options import SIMULATE, Flag, Option, Options

_EPILOG: Final = """\
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
    "opjoule.cli.twin.command:run_twin",
    "Fits the simulated board (the twin) to measured records: power by busy cores; rates, latencies and powers of the "
    "medium; the supply. Shows where model and measurement differ, and writes a profile for --simulate. Without --fit "
    "it prints the runs to make.",
    _EPILOG,
)
COMMANDS: Final = (TWIN,)
