"""How the program is started, and the folders of its clone; an installed package has neither scripts nor a clone.

A clone has the scripts under host/. `pip install` gives the program `opjoule` with the commands that analyse records
(cli/installed.py). Messages name a command as it is started: program().
"""

import sys
from collections.abc import Sequence
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
