"""Axes of conditions, the options of a measurement that each sets, and the interval until which blocks are added.

A new axis is a row of `AXES`: campaign files, order, index, table and page follow from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from opjoule.base.errors import BadInput, unknown
from opjoule.base.settings import MEDIUM


@dataclass(frozen=True)
class Axis:
    """An option, a property of workload or engine, or a change of the board's state."""

    field: str
    """Field of a measurement's options."""
    key: str = ""
    """Key of a property, or of the board's state, if the field has several."""


AXES: Final[Mapping[str, Axis]] = {
    **{name: Axis(name) for name in ("db", "device", "workload", "distribution", "records")},
    **{name: Axis(name) for name in ("operations", "seconds", "threads", "idle", MEDIUM)},
    "value_size": Axis("value_size"),
    "durability": Axis("properties", "durability"),
    "journal": Axis("state", "journal"),
    "memory_mb": Axis("state", "memory_mb"),
    "disturb": Axis("disturb"),
    "reset": Axis("reset"),
    "warm_up": Axis("warm_up"),
    "rate": Axis("rate"),
}


SEVERAL: Final = ("properties", "state")
"""Fields that collect the values of several axes."""


def axis(name: str) -> Axis:
    """The axis of a name; a name with a dot is a property of an engine (`leveldb.compression`).

    Raises: BadInput: unknown axis; the message names the nearest.
    """
    if name in AXES:
        return AXES[name]
    if "." in name:
        return Axis("properties", name)
    raise BadInput(unknown("axis", name, AXES))


def several(option: str, text: str | None) -> list[str]:
    """The values of an option, separated by commas; none without a text. Raises: BadInput: duplicate or empty value."""
    values = [part.strip() for part in text.split(",")] if text else []
    if len(set(values)) < len(values) or "" in values:
        raise BadInput(f"{option} {text}: name each one once, as in {option} a,b")
    return values


def media_of(text: str | None) -> list[str]:
    """Names of the media that a user's --storage asks for. Raises: BadInput: duplicate or empty name."""
    return several(f"--{MEDIUM}", text)


def fields_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Field of a measurement's options -> value, from settings as files name them: axes, options, properties."""
    values: dict[str, Any] = {}
    for name, value in settings.items():
        one = AXES.get(name) or (axis(name) if "." in name else Axis({"p": "properties"}.get(name, _field(name))))
        if one.key:
            values.setdefault(one.field, []).append(f"{one.key}={value}")
        elif one.field in SEVERAL:
            values.setdefault(one.field, []).extend(value if isinstance(value, list) else [value])
        else:
            values[one.field] = value
    return values


def _field(name: str) -> str:
    return name.replace("-", "_")


BLOCKS_LIMIT: Final = 30
"""Greatest number of blocks of a campaign with `until` that names none."""


@dataclass(frozen=True)
class UntilNarrow:
    """The interval that a campaign's contrasts are to reach, and how many blocks that may take."""

    half_width: float
    """Greatest half-width of every contrast's interval, relative to its ratio."""
    blocks_limit: int = BLOCKS_LIMIT
