"""The answer of a run in words: what was measured, in one sentence, and what must be known before believing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opjoule.databases import known_databases
from opjoule.errors import NewerSchema, RecordFault
from opjoule.record.result import read_result
from opjoule.record.run_record import RunRecord
from opjoule.report.quantities import quantity, rounded_quantity
from opjoule.report.rounding import with_unit
from opjoule.units import Measured, Missing, Quantity, Unstated

PER_OPERATION = "energy_per_operation_j"
TRACE_ONLY = "no workload was run, so there is no energy per operation."
MARGINAL_PER_OPERATION = "marginal_energy_per_operation_j"


@dataclass(frozen=True)
class Banner:
    """Something the reader must see before any number; `kind` is simulated, partial, failed or altered."""

    kind: str
    title: str
    text: str


@dataclass(frozen=True)
class Subject:
    """What a run measured, in the words of its record."""

    database: str
    device: str
    storage: str
    workload: str
    simulated: bool

    @property
    def title(self) -> str:
        """For example "LevelDB on rpi4 (SIMULATED), sd"."""
        mark = " (SIMULATED)" if self.simulated else ""
        medium = f", {self.storage}" if self.storage else ""
        return f"{self.database} on {self.device}{mark}{medium}"


@dataclass(frozen=True)
class Answer:
    """A record with its result; `result` is empty and `problem` says why where there is no result.json."""

    record: RunRecord
    result: Mapping[str, Any]
    problem: str = ""

    @property
    def run(self) -> Mapping[str, Any]:
        """run.json."""
        return self.record.contents

    @property
    def trace_only(self) -> bool:
        """True for a power trace on its own (`measure.py record`): no board and no workload."""
        return not self.run.get("asked", {}).get("db")

    @property
    def title(self) -> str:
        """What was measured; for a trace on its own, where it came from."""
        if self.trace_only:
            return f"Power trace from {self.run.get('asked', {}).get('meter') or 'an unknown meter'}"
        return self.subject.title

    @property
    def subject(self) -> Subject:
        """What was measured."""
        asked, found = self.run.get("asked", {}), self.run.get("found", {})
        name = str(asked.get("db") or "unknown database")
        titles = {database.name: database.title for database in known_databases()}
        return Subject(
            titles.get(name, name),
            str(asked.get("device") or "unknown board"),
            str(found.get("storage") or asked.get("storage") or ""),
            workload_words(self.run),
            self.record.simulated,
        )

    def quantity(self, path: str) -> Quantity:
        """The quantity at a dotted path of result.json."""
        return quantity(self.result, path)

    @property
    def sentence(self) -> str:
        """One sentence: what it costs, with uncertainty; without a result, why there is none."""
        if self.trace_only:
            return f"{self.title}: {TRACE_ONLY}"
        per_operation = self.quantity(PER_OPERATION)
        if isinstance(per_operation, Missing):
            why = self.problem or per_operation.reason
            return f"{self.subject.title}: no energy per operation: {why}"
        sentence = f"{self.subject.title}: {in_words(per_operation)}"
        marginal = self.quantity(MARGINAL_PER_OPERATION)
        if isinstance(marginal, Missing):
            return f"{sentence}."
        return f"{sentence}; {in_words(marginal, 'above idle')}."

    @property
    def banners(self) -> list[Banner]:
        """What must be said above all numbers."""
        banners = []
        if self.record.simulated:
            banners.append(Banner("simulated", "SIMULATED", _SIMULATED))
        why = " ".join(_sentence(fault) for fault in self.record.faults)
        if self.record.status == "partial":
            banners.append(Banner("partial", "PARTIAL", f"{_PARTIAL} {why}".strip()))
        elif self.record.status == "failed":
            banners.append(Banner("failed", "FAILED", why or "The run failed; its record does not say why."))
        if altered := self.record.verify():
            banners.append(Banner("altered", "ALTERED", " ".join(_sentence(line) for line in altered)))
        return banners


_SIMULATED = (
    "No board and no meter was measured. The workload ran for real on this computer; a power model of the board and "
    "its storage turned its activity into the current that the simulated meter saw. These joules show how the rig "
    "works. "
    "They say nothing about the energy or speed of real hardware."
)
_PARTIAL = "This run did not come to its end. What was recorded up to then is shown."


def open_answer(record_dir: Path) -> Answer:
    """Reads run.json and result.json of a record, whatever state its run ended in.

    Raises: RecordFault: no readable run.json. NewerSchema: one of the two is of a newer version.
    """
    record = RunRecord.open(record_dir)
    try:
        if record.intact("result.json").exists():
            return Answer(record, read_result(record_dir))
    except NewerSchema:
        raise
    except RecordFault as fault:
        return Answer(record, {}, str(fault))
    return Answer(record, {}, record.faults[0] if record.faults else "the run wrote no result.json")


def in_words(of: Measured | Unstated, what: str = "per operation") -> str:
    """For example "1.235 mJ per operation ± 0.051 (k = 2)"."""
    shown = rounded_quantity(of)
    assert shown is not None
    number = f"{with_unit(shown.value, shown.unit.removesuffix('/operation'))} {what}"
    return number if shown.u is None else f"{number} ± {shown.u} (k = 2)"


def workload_words(run: Mapping[str, Any]) -> str:
    """For example "workload a, zipfian, 100,000 records, 500,000 operations, 4 threads": as run, else as asked."""
    asked: Mapping[str, Any] = run.get("asked", {})
    loader = (run.get("loader") or {}).get("run-1") or (run.get("loader") or {}).get("load-1") or {}
    effective: Mapping[str, Any] = loader.get("workload") or {}
    words = [f"workload {asked['workload']}"] if asked.get("workload") else []
    distribution = effective.get("requestdistribution") or asked.get("distribution")
    words += [str(distribution)] if distribution else []
    for name, key in (("records", "recordcount"), ("operations", "operationcount")):
        number = effective.get(key) or asked.get(name)
        words += [f"{int(number):,} {name}"] if number else []
    threads = asked.get("threads")
    words += [f"{threads} thread{'s' if threads != 1 else ''}"] if threads else []
    made_by = (run.get("found") or {}).get("generator") or {}
    if made_by.get("runs_on") == "host":
        words += [f"operations made by {made_by['name'].upper()} {made_by['version']}"]
    return ", ".join(words)


def _sentence(line: str) -> str:
    text = line[:1].upper() + line[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
