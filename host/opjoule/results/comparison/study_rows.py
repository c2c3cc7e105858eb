"""A study's phases from its records: energy of each phase, the figures that the job reported, and faults.

Each record of a study is one cell (docs/reference/studies.md); its job may vary more axes within one run.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Self

from opjoule.base.errors import OpJouleError
from opjoule.base.settings import MEDIUM
from opjoule.base.units import Cause, Quantity, exact, missing
from opjoule.energy.trace.parquet_file import checked_metadata
from opjoule.results.comparison.compared_run import ComparedRun, read_compared
from opjoule.results.comparison.run_warnings import summary_of
from opjoule.results.comparison.value_words import measure_unit
from opjoule.results.long_table import BY_PHASE
from opjoule.runs.evaluation.quantities.phases import PHASES
from opjoule.runs.record.result import job_results
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.definition import StudyFolder

KIND: Final = "suite"
_SUMMED: Final = {name: of for of in PHASES if "operation" not in (name := of.key.rpartition(".")[2])}
"""Quantities of a marked phase, without those that count operations: the job reports its own."""
ENERGIES: Final = tuple(name for name, of in _SUMMED.items() if of.rests_on)
TIMES: Final = tuple(name for name in _SUMMED if name not in ENERGIES)
SAMPLES_MIN: Final = 10
"""Fewest samples of a phase with an energy: in a shorter one, the samples at its ends, partly outside it, dominate."""


@dataclass(frozen=True)
class StudyTable:
    """All rows of the records of one study."""

    definition: StudyFolder
    """Title, phases, and what is ranked and drawn, as the newest record states them."""
    rows: tuple[ComparedRun, ...]
    """Each phase that a job reported; the means are by measure, whose name ends in its unit."""
    lacking: tuple[str, ...] = ()
    """Unusable records and phases without a report, one line each."""
    of_other_jobs: int = 0
    """Records of another version of the job, which are left out."""
    runs: tuple[tuple[ComparedRun, ...], ...] = ()
    """The study's records by cell: those of one cell together, in block order."""

    @property
    def systems(self) -> list[str]:
        """Systems by name, because their measuring order is random."""
        return sorted({row.system for row in self.rows})

    @property
    def simulated(self) -> bool:
        """True if any row is simulated."""
        return any(row.simulated for row in self.rows)

    @property
    def warnings(self) -> str:
        """Warnings and caveats in one line, for a figure; empty without any."""
        return ", ".join(filter(None, (*self.caveats, summary_of(self.runs))))

    @property
    def caveats(self) -> list[str]:
        """What software or data of its records are not."""
        return list(dict.fromkeys(caveat for row in self.rows for caveat in row.caveats))

    def with_phases(self, phases: Sequence[str]) -> Self:
        """The table with the rows of some phases alone; without names, of all phases."""
        rows = tuple(row for row in self.rows if not phases or row.phase in phases)
        return replace(self, rows=rows)

    @property
    def faults(self) -> list[str]:
        """Missing phases and records, and phases with differing answers of systems."""
        return [*self.lacking, *disagreements(self.rows)]


@dataclass(frozen=True)
class _Measured:
    """One finished record of a study."""

    record: RunRecord
    study: Mapping[str, Any]
    """The study as stated in the plan."""

    @property
    def facets(self) -> dict[str, str]:
        """Settings in which the study's records may differ, besides its own axes."""
        run = self.record.run
        known = {"device": run.asked.device, MEDIUM: run.found.medium, "scale": self.study["scale"]}
        known |= {"seed": self.study["seed"], "dataset": self.study["dataset"] or "none"}
        return {name: str(value) for name, value in known.items()}

    @property
    def job(self) -> str:
        """Identity of the job, from its command and files: a different job is a different measurement."""
        return json.dumps([self.study["command"], self.study["files"]], sort_keys=True)

    @property
    def cell(self) -> str:
        """Identity of the measured cell, without its block."""
        return json.dumps([self.facets, self.study["cell"], self.study["parts"]], sort_keys=True)

    @property
    def run(self) -> tuple[str, str]:
        """Cell and block of the record; only one record of each counts."""
        return self.cell, str(self.record.document.get("asked", {}).get("block"))

    @cached_property
    def compared(self) -> ComparedRun:
        """The record's result. Raises: RecordFault: it has none."""
        return read_compared(self.record)


def read_studies(records: Iterable[Path]) -> list[StudyTable]:
    """The studies of some records, each with its rows.

    If a cell was measured again, the last measurement counts. Incomplete records, and those of another version of the
    job than the newest, are left out.
    """
    by_study: dict[str, list[_Measured]] = {}
    for path in records:
        with suppress(OpJouleError):
            record = RunRecord.open(path)
            study = record.document.get("plan", {}).get("study", {})
            if record.status != "partial" and study.get("name") == KIND:
                by_study.setdefault(str(study["study"]), []).append(_Measured(record, study))
    return [_one(name, measured) for name, measured in by_study.items()]


def _one(name: str, records: Sequence[_Measured]) -> StudyTable:
    in_time = sorted(records, key=lambda measured: measured.record.run.found.started_utc or "")
    newest = in_time[-1]
    same_job = [measured for measured in in_time if measured.job == newest.job]
    last = list({measured.run: measured for measured in same_job}.values())
    facets = {facet: {measured.facets[facet] for measured in last} for facet in newest.facets}
    apart = [facet for facet, values in facets.items() if len(values) > 1]
    rows: list[ComparedRun] = []
    lacking: list[str] = []
    cells: dict[str, list[ComparedRun]] = {}
    for measured in last:
        try:
            cells.setdefault(measured.cell, []).append(measured.compared)
            record_rows = _rows(measured, {facet: measured.facets[facet] for facet in apart})
        except OpJouleError as error:
            lacking.append(f"{measured.record.directory.name}: {error}")
            continue
        known = {row.phase for row in record_rows}
        lacking += [
            f"{measured.record.directory.name}: phase {phase} was neither reported nor declared as not supported"
            for phase in measured.study["phases"]
            if phase not in known
        ]
        rows += record_rows
    stated = newest.study
    shown = {key: stated[key] for key in ("best", "unranked", "per", "cold", "bars", "grid") if key in stated}
    phases = dict.fromkeys(stated["phases"], "")
    definition = StudyFolder(name, Path(), str(stated["called"]), phases=phases, **shown)
    others = len(in_time) - len(same_job)
    return StudyTable(definition, tuple(rows), tuple(lacking), others, tuple(map(tuple, cells.values())))


def _rows(of: _Measured, apart: Mapping[str, str]) -> list[ComparedRun]:
    """The phases of a record. Raises: RecordFault, DataFault: no result, or an unreadable file of its job."""
    record, run = of.record, of.compared
    shortest_s = SAMPLES_MIN * _period_s(record)
    lengths: dict[str, list[float]] = {}
    for phase in record.run.marked_phases:
        lengths.setdefault(phase.name, []).append(phase.duration_s)
    asked = {**run.asked, **of.facets, "block": run.block or 1}
    has_phases = any(path.startswith(BY_PHASE) for path in run.means)
    unmarked = "its phase was not marked" if has_phases else "its record has no energies of phases"
    rows = []
    phases, software = job_results(record)
    for line in phases:
        paths = {name: f"{BY_PHASE}{line['mark']}.{name}" for name in _SUMMED}
        known = {name: _in_its_row(run.means[path]) for name, path in paths.items() if path in run.means}
        why = "" if line["not_supported"] else _why_none(known) if known else unmarked
        length_s = fmean(lengths[line["mark"]]) if known else None
        is_short = length_s is not None and length_s < shortest_s
        if is_short:
            why = f"shorter than {SAMPLES_MIN} samples of the meter"
            known = {name: known[name] for name in TIMES if name in known}
        reported = line["figures"].items()
        figures = {name: exact(float(value), measure_unit(name)) for name, value in reported if value is not None}
        rows.append(
            replace(
                run,
                asked={**asked, "cell": {**apart, **of.study["cell"], **line["cell"]}},
                means={} if line["not_supported"] else _measured(known, line) | figures,
                phase=str(line["phase"]),
                operations=int(line["operations"]),
                answer=line["answer"],
                not_supported=str(line["not_supported"]),
                why=why,
                short_s=length_s if is_short else None,
                software="; ".join(map(str, software)),
            )
        )
    return rows


def _why_none(known: Mapping[str, Quantity]) -> str:
    """Why a marked phase has no energy; empty if it has one."""
    energy = known.get("energy_j") or missing(Cause.ABSENT)
    return "" if energy.value is not None else f"not integrated ({energy.reason})"


def _period_s(record: RunRecord) -> float:
    times = checked_metadata(record.path("power.parquet"))
    groups = [times.row_group(number).column(0).statistics for number in range(times.num_row_groups)]
    span_ns = max(group.max for group in groups) - min(group.min for group in groups)
    return float(span_ns * 1e-9 / max(times.num_rows - 1, 1))


def _in_its_row(of: Quantity) -> Quantity:
    """A quantity of a phase; without a stated uncertainty it is exact in its own row, unless none would be valid."""
    return exact(of.value, of.unit) if of.u is None and of.value is not None and not of.unbounded else of


def _measured(known: Mapping[str, Quantity], line: Mapping[str, Any]) -> dict[str, Quantity]:
    """Joules and time of the marked phase, also per operation that the job reports, and of one execution."""
    measured: dict[str, Quantity] = {}
    for name in _SUMMED:
        if name not in known or known[name].value is None:
            continue
        measured[name] = known[name]
        if line["operations"] and name in ENERGIES:
            measured[name.replace("_j", "_per_operation_j")] = known[name].scale(1.0 / line["operations"])
    calls = line["figures"].get("calls")
    if calls and "energy_per_operation_j" in measured:
        measured["phase_energy_j"] = known["energy_j"].scale(1.0 / line["operations"] * calls)
    return measured


_CLOSE: Final = 1e-6
"""Relative difference of equal numbers that systems sum in different order."""


def disagreements(rows: Sequence[ComparedRun]) -> list[str]:
    """One line for each phase in which systems gave different answers for the same data."""
    answers: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if row.answer is not None and not row.not_supported:
            answers.setdefault((row.stratum, row.phase), {}).setdefault(row.system, row.answer)
    lines = []
    for (place, phase), by_system in answers.items():
        (first, expected), *others = by_system.items()
        for system, answer in others:
            if not agree(expected, answer):
                where = ", ".join(f"{axis} {value}" for axis, value in place)
                lines.append(f"phase {phase} ({where}): {system} answers {_short(answer)}, {first} {_short(expected)}")
    return lines


def agree(one: Any, other: Any) -> bool:
    """Whether two answers are equal except for rounding."""
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if numbers and not isinstance(one, bool):
        return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(agree(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(agree(one[key], other[key]) for key in one)
    return bool(one == other)


def _short(answer: Any) -> str:
    text = json.dumps(answer)
    return text if len(text) <= 60 else f"{text[:57]}..."
