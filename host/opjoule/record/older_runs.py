"""run.json of older versions in today's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opjoule.energy.error_bounds import CURRENT, RESONATOR_ERROR_MAX, SHUNT, VOLTAGE

_DEFAULTS: Final = {"seen_fraction": 0.5, "clock_error_max": RESONATOR_ERROR_MAX}
"""Defaults of records from before these were stated: an INA219 that reads pairs, on an Arduino Uno."""


def in_todays_form(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the error bounds in amperes that older versions held as a shunt's voltage, to the last digit.

    Raises: LookupError, TypeError, ArithmeticError: it holds what no run writes.
    """
    made = dict(document)
    if "sensor" in document:
        made["sensor"] = _in_amperes(document["sensor"])
    if "further_sensors" in document:
        made["further_sensors"] = {
            key: _in_amperes(each) for key, each in document["further_sensors"].items()
        }
    return made


def _in_amperes(entry: Any) -> Any:
    """Fields of ErrorBounds from those of an older record; others are left as they are."""
    if not isinstance(entry, Mapping) or "shunt_ohm" not in entry:
        return entry
    fields: dict[str, Any] = {**_DEFAULTS, **entry}
    ohm, tolerance = fields.pop("shunt_ohm"), fields.pop("shunt_tolerance")
    origin = fields.pop("shunt_from", None) or ""
    offset_v, step_v = fields.pop("offset_v_max"), fields.pop("shunt_lsb_v")
    offset_a, step_a = fields.pop("current_offset_max_a", None), fields.pop("current_step_a", None)
    gains = {CURRENT: fields.pop("gain_error_max"), VOLTAGE: fields.pop("bus_gain_error_max")}
    fields["voltage_step_v"] = fields.pop("bus_lsb_v")
    if ohm is None:
        own = {"current_offset_max_a": offset_a or 0.0, "current_step_a": step_a or 0.0}
        return {**fields, **own, "gain_errors_max": gains}
    return {
        **fields,
        "gain_errors_max": {SHUNT: tolerance, **gains},
        "current_offset_max_a": offset_v / ohm,
        "current_step_a": step_v / ohm,
        "shunt": {"ohm": ohm, "tolerance": tolerance, "origin": origin},
    }
