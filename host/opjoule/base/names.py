"""Keys in commands and files for what the code calls otherwise; only options of cli/ spell them, too."""

from typing import Final

MEDIUM: Final = "storage"
"""The medium: option, axis, column, and key of rig.toml, plans, records, results and certificates."""
MEDIUM_SENSOR: Final = f"{MEDIUM}_sensor"
"""Key of the sensor in the medium's own supply in run.json."""
