"""The clone and its scripts under host/, and the name of the started script, with which its messages begin."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HOST: Final = Path(__file__).resolve().parents[1]
ROOT: Final = HOST.parent
"""Folder of the clone."""
CALIBRATIONS: Final = ROOT / "calibration"
"""Folder of the sensors' calibrations."""
MEASURE: Final = "measure.py"


def script_name(argv: Sequence[str] | None = None) -> str:
    """Name of the started script; a command of measure.py with its own script, as calibrate.py, is named by that."""
    words = sys.argv[1:] if argv is None else argv
    script = f"{words[0]}.py" if words and words[0].isidentifier() else MEASURE
    return script if (HOST / script).is_file() else MEASURE
