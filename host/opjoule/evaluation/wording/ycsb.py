"""Quantities of a YCSB workload on a key-value store, and their wording."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from opjoule.databases.registry import known_databases
from opjoule.evaluation.quantities.common import COMMON, SENSORS
from opjoule.evaluation.quantities.definition import Quantities
from opjoule.evaluation.quantities.operations import KEY_VALUE, OPERATIONS
from opjoule.evaluation.wording.wording import Wording
from opjoule.record.phases import Role
from opjoule.record.result import stand_in_words
from opjoule.record.run import Generator, Run
from opjoule.studies.ycsb.properties import MIX_BLOCK

QUANTITIES: Final = Quantities((*COMMON, *OPERATIONS, *KEY_VALUE, *SENSORS))
_COMFORTABLE_S: Final = 30
_MORE: Final = 4.0
"""Factor by which a longer run is recommended if more work is needed: the random error halves."""


def _subject(run: Run) -> str:
    """Name of the database in prose."""
    name = run.asked.db or "unknown database"
    return {database.name: database.title for database in known_databases()}.get(name, name)


def _work(run: Run) -> str:
    """For example "workload a, zipfian, 100,000 records of 10 x 100 B, 500,000 operations, 4 threads"."""
    options, effective = run.asked, run.summary.workload
    words = [f"workload {options.workload}"] if options.workload else []
    distribution = effective.get("requestdistribution") or options.distribution
    words += [distribution] if distribution else []
    records = effective.get("recordcount") or options.records
    words += [f"{int(records):,} records{_size(effective)}"] if records else []
    operations = effective.get("operationcount") or options.operations
    if seconds := _length_s(run):
        words += [f"operations for {seconds:g} s"]
    elif operations:
        words += [f"{int(operations):,} operations"]
    words += [f"{options.threads} thread{'s' if options.threads != 1 else ''}"] if options.threads else []
    words += [f"in mix blocks of {effective[MIX_BLOCK]} s"] if run.summary.mix_blocks else []
    if (made_by := run.found.generator) and made_by.runs_on == "host":
        words += [f"operations made by {made_by.name.upper()} {made_by.version}"]
    return ", ".join(words)


def _size(effective: Mapping[str, str]) -> str:
    if "fieldlength" not in effective:
        return ""
    if effective.get("fieldlengthdistribution", "constant") != "constant":
        return f" of {effective['fieldcount']} fields of up to {effective['fieldlength']} B"
    return f" of {effective['fieldcount']} x {effective['fieldlength']} B"


def _notes(run: Run) -> list[str]:
    summary = run.summary
    server = summary.settings.get("mongodb.server", "mongod")
    notes = [] if server.startswith("mongod") else [stand_in_words(f"another server ({server})", "MongoDB")]
    if summary.mix_blocks:
        notes.append(
            f"the run had {summary.mix_blocks} mix blocks of {summary.workload[MIX_BLOCK]} s, each with another "
            "mix of operations. This separates what kinds of operation cost. Only the whole run has the workload's "
            "mix: compare its figures with other runs in blocks, not with the plain workload"
        )
    return notes


def _apart(run: Run) -> str:
    """The option for mix blocks, if the loader generates the operations and its run had no blocks."""
    had_blocks = any(summary.mix_blocks for summary in run.loader.values())
    return "" if had_blocks or (run.found.generator or Generator()).runs_on == "host" else "--design"


def _length_s(run: Run) -> float | None:
    """Configured length of a run [s]; None if a number of operations ends it."""
    return run.asked.seconds or float(run.summary.workload.get("maxexecutiontime", "0")) or None


def _more(run: Run) -> str:
    """The options for a run four times as long."""
    runs = [phase for phase in run.phases if phase.role is Role.WORK]
    run_s = min((phase.duration_s for phase in runs), default=0.0)
    return _longer(run, _MORE, run_s, float(max((phase.operations for phase in runs), default=0)))


def _after_short(run: Run, times: float, run_s: float, operations: float) -> str:
    """The options after a run that was too short; never less than is advised for more work."""
    return _longer(run, max(times, _MORE), run_s, operations)


def _longer(run: Run, times: float, run_s: float, operations: float) -> str:
    words = f"--seconds {max(math.ceil(run_s * times), _COMFORTABLE_S)}"
    if _length_s(run):
        return words
    count = operations * times
    step = int(10 ** max(math.floor(math.log10(max(count, 1.0))) - 1, 0))  # rounded up to two digits
    return f"{words}, or --operations {math.ceil(count / step) * step}"


WORDING: Final = Wording(
    QUANTITIES, _subject, _work, more=_more, longer=_after_short, notes=_notes, apart=_apart
)
