"""How the program is started, the folders of its clone, and what set-up has to do for a command.

A clone has the scripts under host/. `pip install` gives the program `opjoule` with the commands that analyse records
(cli/installed.py). Messages name a command as it is started: program(). Standard library only: the first set-up makes
the Python environment.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOST: Final = Path(__file__).resolve().parents[2]
ROOT: Final = HOST.parent
"""Folder of the clone."""
MEASURE: Final = "measure.py"
IS_CLONE: Final = (HOST / MEASURE).is_file()
"""False if the package is installed."""
INSTALLED: Final = "opjoule"
"""Name of the program that `pip install` gives."""
CALIBRATIONS: Final = ROOT / "calibration"
"""Folder of the sensors' calibrations."""
RUNS: Final = ROOT / "runs" if IS_CLONE else Path("runs")
"""Folder of the records: the clone's, or that of the working directory."""
_BESIDE: Final = ROOT if IS_CLONE else Path(__file__).parents[1] / "beside"
STUDIES: Final = _BESIDE / "studies"
"""Folder of the studies; an installed package has their study.toml and winners.csv alone."""
CITATION: Final = _BESIDE / "CITATION.cff"


def script_name(argv: Sequence[str] | None = None) -> str:
    """Name of the started script; a command of measure.py with its own script, as calibrate.py, is named by that."""
    if not IS_CLONE:
        return INSTALLED
    words = sys.argv[1:] if argv is None else argv
    script = f"{words[0]}.py" if words and words[0].isidentifier() else MEASURE
    return script if (HOST / script).is_file() else MEASURE


def program(command: str) -> str:
    """How a command is started: `host/runs.py`, `host/measure.py report`; `opjoule report` in an installed package."""
    if not IS_CLONE:
        return f"{INSTALLED} {command}"
    script = script_name([command])
    return f"host/{script}" if script != MEASURE else f"host/{MEASURE} {command}"


@dataclass(frozen=True)
class Needs:
    """What set-up has to do for a command."""

    loader: bool = False
    """Loader and probe, for this computer."""
    engines: frozenset[str] = frozenset()
    """Databases that a loader contains or connects to; the other engines are not built."""
    simulate: bool = False
    """The simulated rig: simulator and firmware."""
    test: bool = False
    ycsb: bool = False
    virtual: bool = False
    """The programs that build the virtual board."""
    board: str = ""
    """Architecture of a board whose loader is built here (aarch64, armhf, amd64), or empty."""
    figures: bool = False
    """The libraries that draw figures for print."""
    fleet: bool = False
    """The libraries that connect several rigs."""
    packages: tuple[str, ...] = ()
    """Further system packages, for a study's databases."""

    @property
    def sections(self) -> list[str]:
        """The sections of host/packages.txt, without those of engines."""
        wanted = {
            "host": True,
            "loader": self.loader or self.simulate,
            "rig": self.simulate,
            "test": self.test,
            "virtual": self.virtual or self.test,
            "ycsb": self.ycsb,
        }
        return [section for section, needed in wanted.items() if needed]

    @property
    def pins(self) -> str:
        """Name of the file in host/requirements that pins the Python packages."""
        return "test" if self.test else "figures" if self.figures else "fleet" if self.fleet else "measure"
