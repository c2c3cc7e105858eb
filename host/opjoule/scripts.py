"""The clone and its scripts under host/: which of them the user started, since its messages begin with its name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HOST: Final = Path(__file__).resolve().parents[1]
ROOT: Final = HOST.parent
"""The clone."""
CALIBRATIONS: Final = ROOT / "calibration"
"""Where the sensors' calibrations are."""
MEASURE: Final = "measure.py"


def script_name(argv: Sequence[str] | None = None) -> str:
    """Name of the script: a command of measure.py that has one of its own is started through that, as calibrate.py."""
    words = sys.argv[1:] if argv is None else argv
    script = f"{words[0]}.py" if words and words[0].isidentifier() else MEASURE
    return script if (HOST / script).is_file() else MEASURE
