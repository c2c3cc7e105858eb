"""What a reader of files finds: columns over time, in base units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from opjoule.energy.trace.power_trace import Float64Array


@dataclass
class Signals:
    """The contents of a file; arrays of shape (n,)."""

    kind: str
    """format of the file"""
    columns: dict[str, str]
    """role (time, current, voltage, power) -> name of its column or signal"""
    time_s: Float64Array
    """increasing"""
    values: dict[str, Float64Array]
    """current [A], voltage [V] and power [W], as far as the file has them; NaN where a value is missing"""
    notes: list[str] = field(default_factory=list)
    """assumptions made"""
    place: Callable[[int], str] = lambda row: f"row {row + 1}"
    """where a row is in the file, in words"""
