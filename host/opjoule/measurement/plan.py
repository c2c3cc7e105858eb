"""What a measurement will do, worked out and checked before anything is touched."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opjoule.databases import Database
from opjoule.devices.profiles import Profile
from opjoule.errors import BadInput
from opjoule.measurement.ycsb_core import YcsbCore, file_properties

DEFAULT_RECORDS = 20_000
DEFAULT_OPERATIONS = 100_000
HARNESS_S = 2.0
IDLE_S = 30.0
"""Idle before and after each run on a board."""
SIMULATED_IDLE_S = 3.0
"""The same on the simulated rig, whose board comes to rest at once."""
LEAD_IN_MAX_S = 10.0
FASTEST_PER_S = 1_000_000
"""More operations a second than any engine makes: --seconds sets the operation count by it."""
DISTRIBUTIONS = ("zipfian", "latest", "uniform", "truezipfian", "hotspot", "exponential", "sequential")


@dataclass(frozen=True)
class Plan:
    """Everything a measurement needs to know, complete and checked."""

    database: Database
    profile: Profile
    medium: str
    workload: Path
    properties: dict[str, str]
    """Settings on top of the workload file, as the loader's -p takes them."""
    threads: int
    seed: int
    idle_s: float
    """Length of an idle phase, its lead-in included."""
    repeats: int
    """The fewest; `until_u` may ask for more."""
    settle_limit_s: float
    harness: bool
    simulated: bool
    signature: bool | None = None
    """Play the load signature before and after; None: where there is no sync line."""
    run_s: int | None = None
    """Run for so long instead of for a number of operations."""
    until_u: float | None = None
    """Repeat until the headline's relative interval (k = 2) is no wider, at most repeats_limit times."""
    repeats_limit: int = 30
    generator: YcsbCore | None = None
    """What makes the operations on this computer; None: the loader makes its own."""
    asked: dict[str, Any] = field(default_factory=dict)
    """The user's own words, for run.json."""

    @property
    def lead_in_s(self) -> float:
        """Start of an idle phase that is left out: a third of it, at most 10 s."""
        return min(self.idle_s / 3.0, LEAD_IN_MAX_S)

    def loader_arguments(self, command: str, database: str, path: str, workload: str) -> list[str]:
        """The loader's command line for `load` or `run`, files and sync line aside."""
        limit = {"maxexecutiontime": str(self.run_s)} if self.run_s and command == "run" else {}
        chosen = {**self.properties, **limit}
        settings = [part for key, value in chosen.items() for part in ("-p", f"{key}={value}")]
        return [
            *(command, "--db", database, "--path", path, "--workload", workload),
            *("--threads", str(self.threads), "--seed", str(self.seed)),
            *settings,
        ]

    def operation_stream(self, phase: str, **changes: str) -> list[str] | None:
        """The command that makes the operations of a phase, with some properties changed; None: the loader does."""
        if self.generator is None:
            return None
        return self.generator.command(phase, self.workload, {**self.properties, **changes})

    def phases(self) -> list[tuple[str, str]]:
        """(phase, what happens in it) of one repeat, in order."""
        steps = [
            (
                "load",
                f"{self.properties.get('recordcount', 'the workload')} records into {self.database.title}",
            ),
            ("settle", f"until the load's writes are on the medium, at most {self.settle_limit_s:g} s"),
            ("idle", self._idle_words()),
            ("run", f"{self._run_words()}, {self.threads} thread(s)"),
            (
                "settle",
                f"until writes are done and the power is back at rest, at most {self.settle_limit_s:g} s",
            ),
            ("idle", self._idle_words()),
        ]
        if self.harness:
            steps.append(("harness", f"{HARNESS_S:g} s of the same workload without a database"))
        return steps

    def _run_words(self) -> str:
        if self.run_s:
            return f"as many operations as fit into {self.run_s} s"
        return f"{self.properties.get('operationcount', 'the workload')} operations"

    def _idle_words(self) -> str:
        return f"{self.idle_s:g} s of idle power, the first {self.lead_in_s:.3g} s left out"


def find_workload(name: str, folder: Path) -> Path:
    """The property file of a workload given by letter, by name under `folder`, or by path.

    Raises: BadInput: no such workload; names the nearest.
    """
    inside = (folder / f"{stem}.properties" for stem in (f"workload{name}", name))
    for candidate in (*inside, folder / name, Path(name)):
        if candidate.is_file():
            return candidate.resolve()
    known = [
        str(path.relative_to(folder)).removesuffix(".properties")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    letters = [entry.removeprefix("workload") for entry in known if "/" not in entry]
    near = difflib.get_close_matches(name, known + letters, 1, 0.4)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise BadInput(
        f"unknown workload '{name}': {hint}give {', '.join(letters[:6])}, a name under {folder}, or a file"
    )


def parse_properties(settings: list[str]) -> dict[str, str]:
    """-p KEY=VALUE settings as a mapping; the loader checks keys and values.

    Raises: BadInput: a setting without '='.
    """
    parsed: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"-p {setting!r} is not KEY=VALUE; for example -p readproportion=0.9")
        parsed[key.strip()] = value.strip()
    return parsed


def workload_properties(
    settings: list[str],
    workload: Path,
    *,
    distribution: str | None,
    records: int | None,
    operations: int | None,
    value_size: int | None,
) -> dict[str, str]:
    """The properties that the command line sets on top of the workload file; -p wins over the named options.

    Record and operation counts are always among them: the core workloads' own 1,000 are an example, any other
    file's are meant.

    Raises: BadInput: an unknown distribution or a malformed -p.
    """
    if distribution is not None and distribution not in DISTRIBUTIONS:
        near = difflib.get_close_matches(distribution, DISTRIBUTIONS, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise BadInput(f"unknown distribution '{distribution}': {hint}known are {', '.join(DISTRIBUTIONS)}")
    core = workload.stem.startswith("workload") and len(workload.stem) == len("workloada")
    counts = {} if core else file_properties(workload)
    chosen: dict[str, str] = {
        "recordcount": str(records or counts.get("recordcount", DEFAULT_RECORDS)),
        "operationcount": str(operations or counts.get("operationcount", DEFAULT_OPERATIONS)),
    }
    if distribution:
        chosen["requestdistribution"] = distribution
    if value_size:
        chosen |= {"fieldcount": "1", "fieldlength": str(value_size)}
    return chosen | parse_properties(settings)
