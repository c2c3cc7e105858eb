"""What was asked, found and run, in a few lines for the head of every output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opjoule.energy.error_bounds import ErrorBounds
from opjoule.report.rounding import percent, rounded
from opjoule.studies.results import wording_of

_NAMED = {"recordcount", "operationcount", "requestdistribution", "fieldcount", "fieldlength"}
"""Properties that have words of their own."""


def head_lines(run: Mapping[str, Any]) -> list[str]:
    """What was run, settings that differ from its file, engine and durability, board and system, program and commit."""
    lines = [
        wording_of(run).work(run),
        _settings(run),
        _engine(run),
        _board(run),
        _shunt(run),
        _supply(run),
        _program(run),
    ]
    return [line for line in lines if line]


def _loader(run: Mapping[str, Any]) -> Mapping[str, Any]:
    summaries = run.get("loader") or {}
    return summaries.get("run-1") or summaries.get("load-1") or {}


def _settings(run: Mapping[str, Any]) -> str:
    asked = (run.get("asked") or {}).get("properties") or []
    changed = [str(one) for one in asked if str(one).partition("=")[0].strip() not in _NAMED]
    return f"changed from the workload: {' '.join(changed)}" if changed else ""


def _engine(run: Mapping[str, Any]) -> str:
    loader = _loader(run)
    parts = (
        [f"{loader['database']} {loader.get('database_version', '')}".strip()] if "database" in loader else []
    )
    durability = (loader.get("settings") or {}).get("durability")
    parts += [f"durability {durability}"] if durability else []
    disturbed = ((run.get("found") or {}).get("device") or {}).get("disturbance")
    parts += ["DISTURBED on purpose"] if disturbed else []
    return ", ".join(parts)


def _board(run: Mapping[str, Any]) -> str:
    device = (run.get("found") or {}).get("device") or {}
    model = device.get("model") if device.get("model") not in {None, "unknown"} else None
    parts = [part for part in (model, device.get("cpu"), device.get("system"), device.get("kernel")) if part]
    where = "ran on" if device.get("connection") == "simulated" else "board"
    return f"{where}: {', '.join(str(part) for part in parts)}" if parts else ""


def _shunt(run: Mapping[str, Any]) -> str:
    """Which one the current was measured with, and who says so; empty for a meter that has its own."""
    sensor = run.get("sensor")
    shunt = ErrorBounds.from_json(sensor).shunt if sensor else None
    if shunt is None or not shunt.origin:
        return ""
    return f"shunt: {shunt.ohm:g} ohm \N{PLUS-MINUS SIGN}{percent(shunt.tolerance)}, {shunt.origin}"


def _supply(run: Mapping[str, Any]) -> str:
    """The least voltage of the whole trace, or why it is not known."""
    least = run.get("least_voltage") or {}
    if least.get("value") is None:
        return f"supply: {least['unchecked']}" if least.get("unchecked") else ""
    limit = least.get("limit_v")
    against = f"limit {limit:g} V" if limit is not None else least.get("unchecked", "")
    shown = rounded(float(least["value"]), float(least["u"]), "V")
    return f"supply: least voltage {shown} (k = 2) {least.get('where', '')}, {against}"


def _program(run: Mapping[str, Any]) -> str:
    found = run.get("found") or {}
    if not found.get("opjoule"):
        return ""
    commit = found.get("commit")
    return f"OpJoule {found['opjoule']}" + (f", commit {commit}" if commit else "")
