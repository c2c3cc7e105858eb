"""Groups of figures that a fault of a run withholds, by the names that run.json has for them."""

from typing import Final

ENERGY: Final = "energy"
"""Every energy and power of the run's windows."""
ABOVE_IDLE: Final = "above_idle"
"""Whatever idle power or the end of settle is part of."""
PER_OPERATION: Final = "per_operation"
"""Whatever is counted or divided by operations."""
