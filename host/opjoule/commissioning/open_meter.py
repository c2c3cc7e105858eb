"""A meter that is open: who answered, and what is known of its sensor."""

from __future__ import annotations

from dataclasses import dataclass

from opjoule.energy.error_bounds import ErrorBounds
from opjoule.meters.interface import Meter, MeterIdentity


@dataclass(frozen=True)
class OpenMeter:
    """A meter that is open and configured."""

    meter: Meter
    identity: MeterIdentity
    bounds: ErrorBounds
    """Bounds of its first sensor, with its calibration where there is one."""
