"""Settings of a run by group, so that runs can be checked for comparability.

A group is an argument of `compare.py --although`; a new group is a row of `GROUPS`. Thousands of runs are stored in
compact copies, equal texts once.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from opjoule.base.settings import MEDIUM
from opjoule.runs.studies.definition import COMMAND, SYSTEM

Settings = Mapping[str, Mapping[str, str]]
"""Group -> key -> value."""

_WORKLOAD_GROUPS: Final = {
    "recordcount": "records",
    "insertcount": "records",
    "operationcount": "operations",
    "requestdistribution": "distribution",
    "fieldcount": "value_size",
    "fieldlength": "value_size",
    "threadcount": "threads",
    "maxexecutiontime": "seconds",
    "target": "rate",
    "seed": "",
}
"""Properties of a workload that have their own group; "" for those that may differ between repeats of one setting."""
_STUDY_OWN: Final = (
    *("name", "database", "workload", "properties", "threads"),
    *("seed", "run_s", "called", "files", "reset", "rate", "warm_up_s", "other_mixes"),
)
"""Keys of a study that belong to other groups."""


RIG: Final = "rig"
"""The rig of a fleet that measured a run. It differs within a campaign: contrasts.py takes that into account."""

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "simulated": {"simulated": "simulated"},
    "db": {"db": "asked.db"},
    "device": {"device": "asked.device", "cpu": "found.device.cpu", "model": "found.device.model"},
    MEDIUM: {MEDIUM: f"found.{MEDIUM}"},
    **{key: {} for key in ("study", "workload", "distribution", "records", "operations", "value_size")},
    **{key: {} for key in ("threads", "seconds", "reset", "rate", "durability", "engine", "board")},
    "disturb": {"disturb": "found.device.disturbance"},
    RIG: {"rig": "asked.rig_name"},
    "idle": {"idle": "plan.idle_s"},
    "settle_limit": {"settle_limit": "plan.settle_limit_s"},
    "opjoule": {"version": "found.opjoule", "commit": "found.commit"},
    "database": {},
    "firmware": {"firmware": "found.meter.firmware_version", "meter": "found.meter.kind"},
    "kernel": {"kernel": "found.device.kernel", "system": "found.device.system"},
}
"""Groups of settings that must be equal in compared runs, except those by which they are compared: key -> path in
run.json. `settings_of` adds those that have no fixed path."""
VERSIONS: Final = ("opjoule", "database", "firmware", "kernel")
"""Groups that show a change of a program, as before and after it."""
GOES_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "db": ("engine", "database"),
    "device": ("kernel",),
    COMMAND: ("study",),
    "workload": ("distribution", "records", "operations", "value_size", "rate"),
}
"""Groups that necessarily change with another group."""


def settings_of(document: Mapping[str, Any]) -> Settings:
    """The settings of a run, from its run.json; missing ones are left out."""
    settings = {
        group: {key: value for key, path in paths.items() if (value := _at(document, path)) is not None}
        for group, paths in GROUPS.items()
    }
    study, state = _at(document, "plan.study") or {}, _at(document, "asked.state")
    settings["study"] = {key: value for key, value in study.items() if key not in _STUDY_OWN}
    if isinstance(state, list):  # changes of the board on top of rig.toml, as `--state` takes them
        settings["board"] = dict(change.partition("=")[::2] for change in state)
    # The loader's summary of the first run; empty for a study without a loader.
    summary = _at(document, "loader.run-1") or _at(document, "loader.load-1") or {}
    rate = study.get("rate")
    of_warm_up = {"target": f"{100 * rate:g} % of the warm-up's"} if isinstance(rate, float) else {}
    for key, value in ((summary.get("workload") or {}) | of_warm_up).items():
        timed = key == "operationcount" and study.get("run_s")  # its length ends such a run
        if not timed and (group := _WORKLOAD_GROUPS.get(key, "workload")):
            settings[group][key] = value
    for key, value in (summary.get("settings") or {}).items():
        settings["durability" if key == "durability" else "engine"][key] = value
    settings["database"] = {}
    if "database_version" in summary:
        settings["database"]["database"] = f"{summary.get('database', '')} {summary['database_version']}".strip()
    if "loader_version" in summary:
        settings["database"]["loader_version"] = summary["loader_version"]
    if summary:
        warm_up = {"warm_up_s": study["warm_up_s"]} if study.get("warm_up_s") else {}
        settings["reset"] = {"reset": study.get("reset") or "load", **warm_up}
    return {
        group: _once(tuple((key, str(value)) for key, value in values.items())) for group, values in settings.items()
    }


def _at(document: Mapping[str, Any], path: str) -> Any:
    value: Any = document
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def value_bytes(known: Mapping[str, str]) -> str:
    """The group `value_size` as text: number of fields times their length; unchanged if one is not a number."""
    try:
        return f"{int(known['fieldcount']) * int(known['fieldlength'])} B"
    except (KeyError, ValueError):
        return " ".join(known.values())


def groups_of(axis: str) -> tuple[str, ...]:
    """Groups that differ between the values of an axis; one named after a property belongs to engine or workload."""
    if axis == SYSTEM:
        return groups_of("db")
    if axis in GROUPS or axis in GOES_WITH:
        return (axis, *GOES_WITH.get(axis, ()))
    return ("engine", "workload") if "." in axis else ("board",)


@dataclass(frozen=True)
class Disagreement:
    """A key whose value is not equal in all runs."""

    group: str
    key: str
    values: tuple[str, ...]
    """Distinct values in the order of the runs; "none" for a run without the key."""

    def __str__(self) -> str:
        shown = " / ".join(value if len(value) <= 40 else f"{value[:37]}..." for value in self.values[:4])
        name = self.group if self.key == self.group else f"{self.group}: {self.key}"
        return f"{name} {shown}{' / ...' if len(self.values) > 4 else ''}"


def disagreements(runs: Sequence[Settings], apart_from: Iterable[str] = ()) -> list[Disagreement]:
    """Every key that is not equal in all runs, without the keys of some groups."""
    left_out = set(apart_from)
    return [
        Disagreement(group, key, tuple(values))
        for group in GROUPS
        if group not in left_out
        for key in {key: None for run in runs for key in run.get(group, {})}
        if len(values := dict.fromkeys(run.get(group, {}).get(key, "none") for run in runs)) > 1
    ]


def kept(contents: Any) -> Any:
    """The contents of a JSON file in a form that takes less memory."""
    if isinstance(contents, str):
        return sys.intern(contents)
    if isinstance(contents, Mapping):
        return {sys.intern(key): kept(value) for key, value in contents.items()}
    return [kept(item) for item in contents] if isinstance(contents, list) else contents


@lru_cache(maxsize=4096)
def _once(texts: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Shared copy of equal mappings of texts."""
    return {sys.intern(key): sys.intern(value) for key, value in texts}
