"""What each lasting error of the sensor may be, who says so, and what it adds to the energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opjoule.drawing.markup import Element, element, row, table
from opjoule.energy.error_bounds import HEAT, WIRE, ErrorBounds
from opjoule.opened.answer import Answer
from opjoule.opened.quantities import NONE
from opjoule.opened.rounding import percent, rounded
from opjoule.units import COVERAGE_FACTOR

OFFSET = "offset"


def sensor_errors(answer: Answer) -> list[Element]:
    """A table of the errors; nothing where the record does not say what its sensor's are."""
    sensor = answer.run.sensor
    if sensor is None:
        return []
    of_energy = _contributions(answer.result, sensor)
    bounds = _bounds(sensor)
    names = list(dict.fromkeys([*bounds, *of_energy]))
    if not names:
        return []
    body = [
        row(
            name,
            bounds.get(name, NONE),
            sensor.origins.get(name, "the calibration, or its reference" if sensor.calibration else NONE),
            element("span", _joules(of_energy.get(name)), class_="figure"),
        )
        for name in names
    ]
    head = ("error of the sensor", "bound", "who says so", "in the energy (k = 2)")
    return [table(head, body, "Errors of the sensor, alike in all its measurements", class_="budget")]


def _bounds(sensor: ErrorBounds) -> dict[str, str]:
    """Bounds of what is not calibrated, in words; the wire's stays with a calibration."""
    wire = {WIRE: f"{sensor.wire_max_ohm:g} ohm"} if sensor.wire_max_ohm else {}
    if sensor.calibration:
        return wire
    gains = {name: percent(bound) for name, bound in sensor.gain_errors_max.items()}
    offset = {OFFSET: str(rounded(sensor.current_offset_max_a, None, "A", 2))}
    heat = {}
    if sensor.heating_max_per_a2:
        heat = {HEAT: f"{percent(sensor.heating_max_per_a2)} per squared ampere"}
    return {**gains, **offset, **heat, **wire}


def _contributions(result: Mapping[str, Any], sensor: ErrorBounds) -> dict[str, float]:
    """Error -> what one standard uncertainty of it adds to the energy [J], where the record lists them."""
    shared = result.get("shared")
    budget = shared.get("budget") if isinstance(shared, Mapping) else None
    contributions = budget.items() if isinstance(budget, Mapping) else ()
    return {str(name).removeprefix(f"{sensor.sensor_id}: "): float(value) for name, value in contributions}


def _joules(value_j: float | None) -> str:
    return NONE if value_j is None else str(rounded(COVERAGE_FACTOR * abs(value_j), None, "J", 2))
