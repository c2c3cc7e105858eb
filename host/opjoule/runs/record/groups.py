"""Groups of figures that a fault of a run withholds, by their names in run.json."""

from typing import Final

ENERGY: Final = "energy"
"""Every energy and power of the run's windows."""
ABOVE_IDLE: Final = "above_idle"
"""Every figure that depends on idle power or on the end of settle."""
PER_OPERATION: Final = "per_operation"
"""Every figure that counts operations or is divided by their number."""
