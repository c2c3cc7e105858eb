"""Monsoon power monitors, HVPM and LVPM: connection by the vendor's library, reader and decoder by this project."""

from opjoule.meters.monsoon.meter import MonsoonMeter, MonsoonSettings

__all__ = ["MonsoonMeter", "MonsoonSettings"]
