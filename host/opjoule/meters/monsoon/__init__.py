"""Monsoon power monitors, HVPM and LVPM: the library's connection, this project's own reader and decoder."""

from opjoule.meters.monsoon.meter import MonsoonMeter, MonsoonSettings

__all__ = ["MonsoonMeter", "MonsoonSettings"]
