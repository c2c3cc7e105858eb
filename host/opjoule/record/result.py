"""result.json: what a run concluded. Every key is there, as a number or with the reason for its absence.

Schema: docs/reference/run-record.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from opjoule.energy.budget import PARTS, Budget
from opjoule.errors import NewerSchema, RecordFault
from opjoule.record.run_record import read_json, write_json
from opjoule.units import Measured, Missing, Unstated

RESULT_VERSION: Final = 2
NUMBER_MAX: Final = 1e300
"""No quantity comes near it; a damaged file may."""

UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run_energy_j": "J",
        "write_back_energy_j": "J",
        "energy_j": "J",
        "marginal_energy_j": "J",
        "energy_per_operation_j": "J",
        "marginal_energy_per_operation_j": "J",
        "power_w": "W",
        "idle_power_w": "W",
        "duration_s": "s",
        "settle_s": "s",
        "harness_energy_j": "J",
        "operations": "1",
        "throughput_per_s": "1/s",
        "bandwidth_bytes_per_s": "B/s",
        "cpu_fraction": "1",
        "disk_read_bytes": "B",
        "disk_written_bytes": "B",
        "peak_memory_bytes": "B",
        "lost_samples": "1",
    }
)
"""Keys that hold one number each, and its unit."""
LATENCIES: Final = ("mean", "p50", "p95", "p99", "max")
ACTIVITIES: Final = ("flush", "compaction", "sync", "checkpoint")
GROUPS: Final[Mapping[str, tuple[Sequence[str], str]]] = MappingProxyType(
    {"latency_s": (LATENCIES, "s"), "by_activity": (ACTIVITIES, "J"), "budget": (PARTS, "J")}
)
"""Keys that hold one number under each of several names, the names and the unit."""
KIND_KEYS: Final = ("count", "energy_per_operation_j", "identifiable")
ALIGNMENT_KEYS: Final = ("method", "residual_s", "checks")


def result_json(entries: Mapping[str, object], *, simulated: bool) -> dict[str, Any]:
    """The contents of result.json from the numbers of a run.

    Args:
        entries: every key of the schema; numbers as Measured, Unstated or Missing, or as their JSON form.
            A Missing in the place of a group (for example `latency_s`) stands for each of its numbers.
            Further keys are kept as they are.
    Raises: ValueError: a key is missing, a number has another unit, or a null has no reason.
    """
    wanted = [*UNITS, *GROUPS, "by_operation", "alignment"]
    if absent := [key for key in wanted if key not in entries]:
        raise ValueError(
            f"result.json lacks {', '.join(absent)}: give the number, or Missing with its reason"
        )
    contents = {key: _plain(value) for key, value in entries.items()}
    for key, (names, unit) in GROUPS.items():
        contents[key] = _group(key, contents[key], names, unit)
    for key, unit in UNITS.items():
        _check_number(key, contents[key], unit)
    by_operation = {} if "reason" in contents["by_operation"] else contents["by_operation"]
    for kind, entry in by_operation.items():
        _check_keys(f"by_operation.{kind}", entry, KIND_KEYS)
        _check_number(f"by_operation.{kind}", entry["energy_per_operation_j"], "J")
    _check_keys("alignment", contents["alignment"], ALIGNMENT_KEYS)
    _check_number("alignment.residual_s", contents["alignment"]["residual_s"], "s")
    head = {"schema": {"name": "result", "version": RESULT_VERSION}, "simulated": simulated}
    return head | contents


def write_result(directory: Path, entries: Mapping[str, object], *, simulated: bool) -> None:
    """Checks the numbers of a run and writes result.json, whole or not at all.

    Raises: ValueError: as `result_json`.
    """
    write_json(directory / "result.json", result_json(entries, simulated=simulated))


def read_result(directory: Path) -> dict[str, Any]:
    """result.json of a run directory.

    Raises: RecordFault: absent or corrupt. NewerSchema: of a newer schema version.
    """
    path = directory / "result.json"
    try:
        contents: dict[str, Any] = read_json(path)
        name, version = contents["schema"]["name"], int(contents["schema"]["version"])
    except FileNotFoundError:
        raise RecordFault(
            f"{directory}: no result.json: the run did not end, see status in run.json"
        ) from None
    except (ValueError, KeyError, TypeError, OverflowError):
        raise RecordFault(f"{path} is corrupt: not a result with a schema version") from None
    if name == "result" and version > RESULT_VERSION:
        raise NewerSchema(path, name, version, RESULT_VERSION)
    if name != "result" or not _is_sound(contents):
        raise RecordFault(f"{path} is corrupt: a number of it is none, or it is no result")
    return contents


def _is_sound(entry: object) -> bool:
    """Are all values and uncertainties inside numbers that can be shown, or null?"""
    if isinstance(entry, list):
        return all(_is_sound(each) for each in entry)
    if not isinstance(entry, dict):
        return True
    if {"value", "u", "unit"} <= entry.keys():
        return _is_number(entry["value"]) and _is_number(entry["u"]) and isinstance(entry["unit"], str)
    return all(_is_sound(each) for each in entry.values())


def _is_number(entry: object) -> bool:
    if entry is None:
        return True
    return isinstance(entry, int | float) and not isinstance(entry, bool) and abs(entry) < NUMBER_MAX


def _plain(value: object) -> Any:  # JSON values
    if isinstance(value, (Measured, Unstated, Missing, Budget)):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return value


def _group(key: str, entry: dict[str, Any], names: Sequence[str], unit: str) -> dict[str, Any]:
    """A group's numbers; one absent number in its place stands for all of them."""
    if "reason" in entry and "value" in entry:
        return {name: dict(entry, unit=unit) for name in names}
    _check_keys(key, entry, names)
    for name in names:
        _check_number(f"{key}.{name}", entry[name], unit)
    return entry


def _check_keys(name: str, entry: object, wanted: Sequence[str]) -> None:
    absent = [key for key in wanted if not isinstance(entry, Mapping) or key not in entry]
    if absent:
        raise ValueError(f"{name} lacks {', '.join(absent)}")


def _check_number(name: str, entry: object, unit: str) -> None:
    if not isinstance(entry, Mapping) or not {"value", "u", "unit"} <= set(entry):
        raise ValueError(f"{name} is {entry!r}: give a Measured, or Missing with its reason")
    if entry["unit"] != unit and not (entry["value"] is None and not entry["unit"]):
        raise ValueError(f"{name} is in '{entry['unit']}', expected '{unit}'")
    if None in (entry["value"], entry["u"]) and not str(entry.get("reason", "")).strip():
        raise ValueError(f"{name} has a null without a reason")
