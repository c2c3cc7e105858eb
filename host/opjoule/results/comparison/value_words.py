"""Words for the compared values (media, databases, boards) and for quantities, as used in sentences."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from opjoule.base.settings import MEDIUM
from opjoule.boards.databases import database_called
from opjoule.runs.evaluation.quantities.definition import Definition
from opjoule.runs.evaluation.quantities.phases import PHASES
from opjoule.runs.studies.definition import DEVICE, SYSTEM

MEDIA: Final[Mapping[str, str]] = {
    "sd": "SD card",
    "emmc": "eMMC",
    "ssd-usb2": "SSD on USB 2",
    "ssd-usb3": "SSD on USB 3",
    "nvme": "NVMe SSD",
    "disk": "disk",
}
"""Media by the names of board profiles; other names are used unchanged."""
NOUNS: Final[Mapping[str, str]] = {
    "db": "database",
    SYSTEM: "database",
    MEDIUM: "medium",
    DEVICE: "board",
    "workload": "workload",
}
"""Nouns for the values of an axis."""
NAMED: Final = ("db", SYSTEM, MEDIUM, DEVICE)
"""Axes whose values are self-explanatory names."""
CELLS_MAX: Final = 3
"""Greatest number of cells named in a line."""
_MEASURE_UNITS: Final = {"j": "J", "s": "s", "w": "W", "bytes": "B"}


def value_words(axis: str, value: str, among: Iterable[str] = ()) -> str:
    """A value as a noun phrase: "the SD card", "LevelDB", "threads 4"; `among`: all values of the axis."""
    if axis == MEDIUM and value in MEDIA:
        return f"the {label(axis, value, among)}"
    return value if axis in NAMED else f"{axis.replace('_', ' ')} {value}"


def label(axis: str, value: str, among: Iterable[str] = ()) -> str:
    """A value as the label of a row, bar or point: "SD card", "SSD" if there is no other, "LevelDB", "4"."""
    if axis in ("db", SYSTEM):
        database = database_called(value)
        return database.title if database else value
    if axis != MEDIUM:
        return value
    ssds = {name for name in among if name.startswith("ssd-")}
    return "SSD" if value in ssds and len(ssds) == 1 else MEDIA.get(value, value)


def noun(axes: Sequence[str]) -> str:
    """Noun for the values of some axes."""
    return NOUNS.get(axes[0], axes[0].replace("_", " ")) if len(axes) == 1 else "combination"


def value_order(text: str) -> list[tuple[bool, int, str]]:
    """Sort key of an axis's values if no campaign gives their order: numbers by size, letters in any case."""
    parts = re.findall(r"\d+|\D+", text.casefold())
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


_WORDS: Final = {
    "energy_per_operation_j": "energy in all per operation",
    "energy_j": "energy in all",
    "duration_s": "time",
}
"""Names of quantities that are shown beside energy above idle."""


def quantity_words(of: Definition) -> str:
    """Name of a quantity as the object of a sentence; never its key."""
    label = _WORDS.get(of.key) or of.label or measure_words(of.key)
    return f"energy {label[1:].strip()}" if label.startswith("…") else label


def measure_words(key: str) -> str:
    """Name of a job's measure without its unit."""
    known = {of.key.rpartition(".")[2]: of.label for of in PHASES}
    known |= {"phase_energy_j": "energy of a phase", "mean_s": "mean time"}
    name, _, unit = key.rpartition("_")
    is_rate = name.endswith("_per")
    plain = name if unit in ("j", "s", "us", "w") and name and not is_rate else key.removesuffix("_bytes_per_s")
    words = known.get(key, plain.replace("_", " ").replace(".", ", "))
    return f"time {words}" if words.startswith("per ") and unit in ("s", "us") else words


def measure_unit(key: str) -> str:
    """Unit at the end of a measure's name; "1" for any other ending."""
    return _MEASURE_UNITS.get(key.rpartition("_")[2], "1")


def listed(words: Sequence[str]) -> str:
    """Several phrases as one: "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), *words[-1:]]) if len(words) > 1 else "".join(words)


def sentence_case(text: str) -> str:
    """The text with a capital first letter; a name keeps its own spelling."""
    return text[:1].upper() + text[1:]
