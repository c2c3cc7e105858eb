"""TOML: reading the tables of a file, the selection of cells, writing values. settings.py makes checked values of them.

Standard library only: the first set-up reads tables.
"""

import itertools
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from opjoule.base.errors import BadInput, unknown

Entry = Mapping[str, Any]


def read_toml(path: Path, remedy: str = "") -> dict[str, Any]:
    """The tables of a file. Raises: OSError: it cannot be read. BadInput: not valid TOML; ends with `remedy`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        why = "its tables are nested too deep"
    except ValueError as error:  # no TOML, no UTF-8, or a number of thousands of digits
        why = str(error)
    raise BadInput(f"{path} is not valid TOML: {why}" + (f"; {remedy}" if remedy else ""))


def axis_values(name: str, values: Any) -> tuple[str, ...]:
    """The values of an axis as text. Raises: BadInput: there is none, or one occurs twice."""
    if not isinstance(values, list) or not values:
        raise BadInput(f"[axes] {name}: give a list of values")
    texts = tuple(map(str, values))
    if len(set(texts)) < len(texts) or not all(text.strip() for text in texts):
        raise BadInput(f"[axes] {name}: name each value once")
    return texts


def check_match(match: Any, axes: Mapping[str, Sequence[str]]) -> None:
    """Checks that a table selects cells. Raises: BadInput: it names no axis, or an unknown axis or value."""
    if not isinstance(match, dict) or not match:
        raise BadInput(
            'name its axes, for example [[exclude]] storage = "emmc", or [[where]] when = { storage = "sd" }'
        )
    for name, wanted in match.items():
        if name not in axes:
            raise BadInput(unknown("axis", name, list(axes)))
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if str(value) not in axes[name]:
                raise BadInput(f"{name} = {value!r} must be one of {', '.join(axes[name])}")


def matches(match: Entry, cell: Mapping[str, str]) -> bool:
    """Whether a cell has the values in `match`, which are one value or a list for each axis."""
    return all(
        cell.get(name) in [str(value) for value in (wanted if isinstance(wanted, list) else [wanted])]
        for name, wanted in match.items()
    )


def where_values(special: Iterable[Entry], cell: Mapping[str, str]) -> dict[str, Any]:
    """Values from the [[where]] tables whose `when` matches a cell; later tables take precedence."""
    values: dict[str, Any] = {}
    for entry in special:
        if matches(entry["when"], cell):
            values |= {key: value for key, value in entry.items() if key != "when"}
    return values


def combinations(values: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """All combinations of the axes' values, each as axis -> value."""
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def toml_floats(values: Sequence[float]) -> str:
    """A TOML array."""
    return f"[{', '.join(map(toml_float, values))}]"


def toml_string(words: str) -> str:
    """A TOML basic string. JSON's escapes are valid in TOML; DEL needs an additional escape."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_float(value: float) -> str:
    """A TOML float with 10 digits."""
    text = f"{value:.10g}"
    return text if any(letter in text for letter in ".en") else f"{text}.0"
