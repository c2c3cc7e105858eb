"""Names that commands, files and records have for things that the code calls otherwise; no other module spells them."""

from typing import Final

MEDIUM: Final = "storage"
"""The medium: option, axis, column, and key of rig.toml, plans, records, results and certificates."""
MEDIUM_SENSOR: Final = f"{MEDIUM}_sensor"
"""Key of the sensor in the medium's own supply in run.json."""
