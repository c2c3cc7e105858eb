"""Where things are in a clone."""

from __future__ import annotations

from typing import Final

from opjoule.scripts import HOST

ROOT: Final = HOST.parent
CALIBRATIONS: Final = ROOT / "calibration"
"""Where the sensors' calibrations are."""
