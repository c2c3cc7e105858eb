"""The quantities of each kind of study, and the words for its results."""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import counted
from opjoule.boards.databases import known_databases
from opjoule.runs.evaluation.quantities.common import COMMON, SENSORS
from opjoule.runs.evaluation.quantities.definition import FIRST, Quantities
from opjoule.runs.evaluation.quantities.operations import KEY_VALUE, OPERATIONS
from opjoule.runs.evaluation.quantities.phases import PHASES
from opjoule.runs.record.phases import Role
from opjoule.runs.record.result import MONGOD, MONGODB_SERVER, PER_OPERATION, stand_in
from opjoule.runs.record.run import Generator, LoaderSummary, Run, title_of
from opjoule.runs.studies.definition import SYSTEM, in_words
from opjoule.runs.studies.properties import MIX_BLOCK, ignored_words, inserts_of_load


@dataclass(frozen=True)
class Wording:
    """Wording for one kind of study; the functions take run.json."""

    quantities: Quantities
    """The table's first quantity is the headline: --until-u refers to it, and its absence is explained."""
    subject: Callable[[Run], str]
    """The subject of the measurement, in a word or a command line."""
    work: Callable[[Run], str]
    """The work that was run, in a line."""
    more: Callable[[Run], str]
    """Options for a longer run."""
    longer: Callable[[Run, float, float, float], str]
    """Options after a run that was too short; takes run.json, the factor by which it must be longer, its length [s] and
    its number of operations."""
    notes: Callable[[Run], list[Notice]] = lambda run: []
    """Notes above the figures."""
    apart: Callable[[Run], str] = lambda run: ""
    """Option that makes kinds of operation identifiable; empty if there is none."""
    slower: Callable[[float], str] = lambda rate_per_s: ""
    """Option for a lower rate of operations than this one [1/s]; empty if there is none."""
    always_counted: bool = True
    """Whether the work consists of operations; if not, a result without operations does not mention them."""

    def quantities_of(self, result: Mapping[str, Any]) -> Quantities:
        """The quantities of one of its results."""
        counted = self.always_counted or (result.get("operations") or {}).get("value")
        return self.quantities if counted else self.quantities.without(PER_OPERATION)


YCSB_QUANTITIES: Final = Quantities((*COMMON, *OPERATIONS, *KEY_VALUE, *SENSORS))
_COMFORTABLE_S: Final = 30
_NOT_FOUND_MAX: Final = 0.01
_MORE: Final = 4.0
"""Factor by which a longer run is recommended if more work is needed: the random error halves."""


def _database(run: Run) -> str:
    """Name of the database in prose."""
    name = run.asked.db or "unknown database"
    return {database.name: database.title for database in known_databases()}.get(name, name)


def _workload(run: Run) -> str:
    """For example "workload a, zipfian, 100,000 records of 10 x 100 B, 500,000 operations, 4 threads"."""
    options, effective = run.asked, run.summary.workload
    words = [f"workload {options.workload}"] if options.workload else []
    distribution = effective.get("requestdistribution") or options.distribution
    words += [distribution] if distribution else []
    records = inserts_of_load(effective) if "recordcount" in effective else options.records
    words += [f"{int(records):,} records{_size(effective)}"] if records else []
    operations = effective.get("operationcount") or options.operations
    if seconds := _length_s(run):
        words += [f"operations for {seconds:g} s"]
    elif operations:
        words += [f"{int(operations):,} operations"]
    threads = int(effective.get("threadcount") or options.threads or 0)
    words += [counted(threads, "thread")] if threads else []
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


def _notes(run: Run) -> list[Notice]:
    summary = run.summary
    server = summary.settings.get(MONGODB_SERVER, MONGOD)
    is_mongod = server.partition(" ")[0] == MONGOD
    notes = [] if is_mongod else [stand_in(f"another server ({server})", "MongoDB")]
    made_by = run.found.generator
    words = ignored_words(summary.ignored, streamed=made_by is not None and made_by.runs_on == "host")
    notes += [Notice(NoticeKind.NOTE, words)] if words else []
    absent = max((_not_found(loader) for name, loader in run.loader.items() if name.startswith("run-")), default=0.0)
    if absent > _NOT_FOUND_MAX:
        line = f"{absent:.0%} of a run's operations asked for records that were not there: they cost less than others"
        notes.append(Notice(NoticeKind.NOTE, line))
    return notes


def _not_found(summary: LoaderSummary) -> float:
    """Part of a phase's operations whose record was not in the database."""
    kinds = summary.by_kind.values()
    return sum(kind.not_found for kind in kinds) / max(sum(kind.count for kind in kinds), 1)


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


def _longer(run: Run, times: float, run_s: float, operations: float) -> str:
    """The options after a run that was too short; never less than is advised for more work."""
    times = max(times, _MORE)
    words = f"--seconds {max(math.ceil(run_s * times), _COMFORTABLE_S)}"
    if _length_s(run):
        return words
    count = operations * times
    step = int(10 ** max(math.floor(math.log10(max(count, 1.0))) - 1, 0))  # rounded up to two digits
    return f"{words}, or --operations {math.ceil(count / step) * step}"


def _slower(rate_per_s: float) -> str:
    """The option for half the rate, at which the medium keeps up with the bytes of an engine that it slowed down."""
    return f"--rate {float(f'{max(rate_per_s / 2.0, 1.0):.2g}'):.0f}"


YCSB: Final = Wording(
    YCSB_QUANTITIES,
    _database,
    _workload,
    more=_more,
    longer=_longer,
    notes=_notes,
    apart=_apart,
    slower=_slower,
)


_CHANGED: Final[dict[str, dict[str, Any]]] = {
    "marginal_energy_j": {
        "headline": "above idle",
        "compared": True,
        "rank": {"headline": FIRST, "budget": FIRST},
    },
    "peak_memory_bytes": {"meaning": "of the command's processes together"},
    "write_back_energy_j": {
        "headline": "above idle after its end",
        "line": ("settle", "above idle, {settle_s} from its end to rest"),
        "column": "after its end",
    },
}

COMMAND_QUANTITIES: Final = Quantities((*Quantities((*COMMON, *OPERATIONS, *SENSORS)).changed(_CHANGED), *PHASES))


def _command(run: Run) -> Sequence[str]:
    return run.plan.study.command or run.asked.command or ()


def _program(run: Run) -> str:
    """The name that the user gave the measured command, or else that of its program or script."""
    command = _command(run)
    return run.plan.study.called or (title_of(command) if command else "unknown command")


COMMAND: Final = Wording(
    COMMAND_QUANTITIES,
    _program,
    work=lambda run: shlex.join(_command(run)),
    more=lambda run: "a command that does more",
    longer=lambda run, times, run_s, operations: f"let it work {times:.2g} times as long",
    always_counted=False,
)


def _cell(run: Run) -> str:
    """One cell of a study; the study's job is the same in all cells."""
    study = run.plan.study
    cell = in_words({axis: value for axis, value in study.cell.items() if axis != SYSTEM})
    return f"{study.called} ({'; '.join(filter(None, [cell, *map(in_words, study.parts)]))})"


SUITE: Final = replace(COMMAND, work=_cell)
"""Wording for a cell of a study that is a folder."""


TRACE: Final = Wording(
    Quantities(COMMON),
    subject=lambda run: "Power trace",
    work=lambda run: "",
    more=lambda run: "a longer trace",
    longer=lambda run, times, run_s, operations: "record for longer",
)
"""Wording for a power trace on its own: no study, no board, no workload."""

WORDINGS: Final[dict[str, Wording]] = {"ycsb": YCSB, "command": COMMAND, "suite": SUITE}
"""Name of a study -> its wording."""


def wording_of(run: Run) -> Wording:
    """The wording for a record, from its run.json; records without a plan are from YCSB studies."""
    name = run.plan.study.name or run.asked.study or ("ycsb" if run.asked.db else "")
    return WORDINGS.get(name, YCSB) if name else TRACE
