"""Whether the records of a workload have room on the medium, before any of them is loaded."""

from __future__ import annotations

from collections.abc import Mapping

from opjoule.errors import BadInput

_DEFAULTS = {"recordcount": "0", "fieldcount": "10", "fieldlength": "100"}
"""As YCSB has them (CoreWorkload)."""


def values_bytes(properties: Mapping[str, str]) -> int | None:
    """Bytes of all values of a workload [B]; None where they do not follow from its counts alone.

    Args:
        properties: the effective ones.
    """
    if properties.get("fieldlengthdistribution", "constant") != "constant":
        return None
    if "valuecompressratio" in properties or "valuetext" in properties:
        return None
    counts = [properties.get(key, default).strip() for key, default in _DEFAULTS.items()]
    if not all(count.isdecimal() for count in counts):
        return None
    records, fields, length = (int(count) for count in counts)
    return records * fields * length


def check_space(
    properties: Mapping[str, str], free_bytes: int | None, where: str, *, databases: int = 1
) -> None:
    """Raises: BadInput: the values alone need more than is free.

    Args:
        free_bytes: on the medium [B]; None if the board does not say.
        databases: that have to have room beside each other.
    """
    needed = values_bytes(properties)
    if free_bytes is None or needed is None or databases * needed <= free_bytes:
        return
    twice = f", {databases} times (one is kept, and copied with --reset copy)" if databases > 1 else ""
    raise BadInput(
        f"the values of {int(properties['recordcount']):,} records are {needed / 1e9:,.1f} GB{twice}, and "
        f"{free_bytes / 1e9:,.1f} GB are free on {where}: ask for fewer with --records, for smaller ones with "
        f"--value-size, {'use --reset load, ' if twice else ''}or free some space"
    )
