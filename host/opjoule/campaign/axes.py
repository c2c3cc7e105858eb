"""Axes of conditions, and how each is passed to a measurement's options.

A new axis is a row of `AXES`: campaign files, order, index, table and page follow from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from opjoule.base.errors import BadInput, unknown


@dataclass(frozen=True)
class Axis:
    """An option, a property of workload or engine, or a change of the board's state."""

    option: str
    """An option of measure.py, without dashes."""
    key: str = ""

    def words(self, value: str) -> list[str]:
        """The condition as words of a command line."""
        dashes = "-" if len(self.option) == 1 else "--"
        return [f"{dashes}{self.option}", f"{self.key}={value}" if self.key else value]


AXES: Final[Mapping[str, Axis]] = {
    **{name: Axis(name) for name in ("db", "device", "workload", "distribution", "records")},
    **{name: Axis(name) for name in ("operations", "seconds", "threads", "idle", "storage")},
    "value_size": Axis("value-size"),
    "durability": Axis("p", "durability"),
    "journal": Axis("state", "journal"),
    "memory_mb": Axis("state", "memory_mb"),
    "disturb": Axis("disturb"),
    "reset": Axis("reset"),
    "warm_up": Axis("warm_up"),
    "rate": Axis("rate"),
}


def axis(name: str) -> Axis:
    """The axis of a name; a name with a dot is a property of an engine (`leveldb.compression`).

    Raises: BadInput: unknown axis; the message names the nearest.
    """
    if name in AXES:
        return AXES[name]
    if "." in name:
        return Axis("p", name)
    raise BadInput(unknown("axis", name, AXES))


def several(option: str, text: str | None) -> list[str]:
    """The values of an option, separated by commas; none without a text. Raises: BadInput: duplicate or empty value."""
    values = [part.strip() for part in text.split(",")] if text else []
    if len(set(values)) < len(values) or "" in values:
        raise BadInput(f"{option} {text}: name each one once, as in {option} a,b")
    return values


def words_of(options: Mapping[str, Any]) -> list[str]:
    """Command line of measure.py from options by name: true is a flag, a list is an option given several times.

    Raises: BadInput: a value that no option takes.
    """
    words: list[str] = []
    for name, value in options.items():
        option = "-p" if name in ("p", "properties") else f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif isinstance(value, list):
            words += [word for item in value for word in (option, str(item))]
        elif isinstance(value, str | int | float) and value is not False:
            words += axis(name).words(str(value)) if name in AXES or "." in name else [option, str(value)]
        elif value is not False:
            raise BadInput(f"{name} = {value!r}: give a text, a number, true or a list of them")
    return words
