"""Power meters: one interface, the serial meter of firmware/, and the capture that records one."""

from opjoule.meters.capture import Capture, CaptureSummary
from opjoule.meters.interface import Meter, MeterIdentity
from opjoule.meters.registry import open_meter

__all__ = ["Capture", "CaptureSummary", "Meter", "MeterIdentity", "open_meter"]
