"""One run as input of a comparison: its settings and its result; and the check whether runs may be compared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from opjoule.base.errors import BadInput, RecordFault, unknown
from opjoule.base.notices import Notice
from opjoule.base.units import Cause, Quantity, missing
from opjoule.results.answer import open_answer
from opjoule.results.comparison.settings import (
    GROUPS,
    RIG,
    VERSIONS,
    Disagreement,
    Settings,
    disagreements,
    groups_of,
    kept,
    settings_of,
    value_bytes,
)
from opjoule.results.comparison.value_words import label
from opjoule.results.long_table import kinds_in, means
from opjoule.runs.evaluation.quantities.definition import Definition, Quantities, Topic, told_path
from opjoule.runs.record.result import caveats_of
from opjoule.runs.record.run_record import RunRecord, reading
from opjoule.runs.studies.definition import SYSTEM

TWO_COSTS: Final = (
    "Energy above idle is what the work costs on a board that is on anyway; energy in all is what it costs on a board "
    "that is on only for this work."
)
NOT_JUDGED: Final = (
    "All told is what one operation of a kind costs above idle with everything that it causes later. It is not judged."
)
_ABOVE_IDLE: Final = "marginal_"
"""Beginning of the key of an energy above idle; the rest is the key of the same energy in all."""


def costs(quantities: Quantities) -> list[Definition]:
    """The headline, and the same energy in all if the headline is an energy above idle."""
    headline = quantities.headline
    both = costs_in([headline, *quantities]) if is_above_idle(headline) else []
    return both or [headline]


def costs_in(quantities: Sequence[Definition]) -> list[Definition]:
    """The first energy above idle among some quantities and the same energy in all; empty unless both are there."""
    above = next(filter(is_above_idle, quantities), None)
    in_all = [of for of in quantities if above and of.key == above.key.removeprefix(_ABOVE_IDLE)]
    return [above, *in_all] if above and in_all else []


def time_beside(quantities: Quantities) -> Definition | None:
    """The quantity that tells the time behind the headline: throughput, or time if it is not per operation."""
    return quantities.get("throughput_per_s" if "per_operation" in quantities.headline.key else "duration_s")


def kind_of(told: Definition) -> str:
    """The kind of operation whose cost all told a quantity is."""
    return told.key.split(".")[1]


def is_above_idle(of: Definition) -> bool:
    """Whether the quantity is an energy above idle."""
    return of.key.startswith(_ABOVE_IDLE)


def cost_words(of: Definition) -> str:
    """Which of the two costs a quantity is."""
    return "above idle" if is_above_idle(of) else "in all"


def energy_words(of: Definition) -> str:
    """Name of both costs together."""
    return "energy per operation" if "per_operation" in of.key else "energy"


COUNTED: Final = (Topic.USAGE, Topic.LATENCY)
"""Topics of counted quantities: a single repeat has no uncertainty; only the spread of runs gives one."""


Place = tuple[tuple[str, str], ...]
"""Axes with their values."""


def apart_from(axes: Iterable[str], cell: Iterable[tuple[str, str]]) -> Place:
    """A cell without the values of some axes."""
    return tuple((axis, value) for axis, value in cell if axis not in axes)


@dataclass(frozen=True)
class ComparedRun:
    """One record with a result, or one phase of it."""

    place: Path
    simulated: bool
    condition: Mapping[str, str]
    """Axis -> value, from its index; empty for a record outside a campaign."""
    index: Path | None
    """The folder whose index lists it."""
    rank: int
    """Place of its condition among those of the index, in the requested order."""
    subject: str
    """Subject of the run, in the wording of its study: a database, a command line."""
    status: str
    started_utc: str
    """ISO 8601; empty if the record does not state it."""
    trace_only: bool
    """Whether no workload was run."""
    asked: Mapping[str, Any] = field(repr=False)
    settings: Settings = field(repr=False)
    means: Mapping[str, Quantity] = field(repr=False)
    """Its means in the long table, by path."""
    quantities: Quantities = field(repr=False)
    repeats: int | None = None
    """Number of complete cycles behind its mean numbers."""
    too_short: bool = False
    """Whether the run's own warning says that it allows no conclusion."""
    warnings: tuple[Notice, ...] = ()
    """Notices of its end, its faults, and all else that limits its figures."""
    caveats: tuple[str, ...] = ()
    """What the measured software or data are not."""
    phase: str = ""
    """The phase that the job of a study reported; empty for the whole work. All below is of a phase alone."""
    operations: int = 0
    answer: Any = None
    not_supported: str = ""
    """Reason why the system has no such phase; empty if it has."""
    why: str = ""
    """Reason why the phase has no joules; empty if it has."""
    short_s: float | None = None
    """Length of one execution [s], if that is too short for joules."""
    software: str = ""
    """Name and version that the measured software reports; empty if the job does not give them."""

    def number(self, path: str) -> Quantity:
        """The mean at a path; a part of a missing group has the group's reason."""
        while path and path not in self.means:
            path = path.rpartition(".")[0]
        return self.means[path] if path else missing(Cause.ABSENT)

    def definition(self, path: str) -> Definition:
        """The quantity at a path; one without label and meaning if the study has none there."""
        return self.quantities.get(path) or Definition(path, "", Topic.PART)

    def side(self, of: Definition) -> Quantity:
        """The mean as a side of a comparison: a counted one is exact for its own run."""
        number = self.number(of.key)
        counted = of.topic in COUNTED and number.value is not None and number.u is None and not number.unbounded
        return replace(number, u=0.0, reason="", cause=Cause.OTHER) if counted else number

    @property
    def cell(self) -> dict[str, str]:
        """Axis -> value in its study: the record's own axes, and those that the job varied."""
        return {axis: str(value) for axis, value in (self.asked.get("cell") or {}).items()}

    @property
    def system(self) -> str:
        """The database in its study; empty for a study without databases."""
        return self.cell.get(SYSTEM, "")

    @property
    def stratum(self) -> Place:
        """The cell without its system: systems are compared within it."""
        return apart_from([SYSTEM], self.cell.items())

    @property
    def block(self) -> int:
        """Block of its campaign, from 1; 0 outside of one."""
        return int(self.asked.get("block") or 0)

    @property
    def kinds(self) -> list[str]:
        """Its kinds of operation; none if the record withholds all of them."""
        return kinds_in(self.means)

    def value(self, axis: str) -> str:
        """The run's value of an axis, or of a group of settings, as text."""
        if axis in self.condition:
            return self.condition[axis]
        known = self.settings.get(axis, {})
        if axis == RIG:  # `rig` of the options is a file
            return " ".join(known.values()) or "default"
        if axis == "value_size" and known:
            return value_bytes(known)
        if (asked := self.asked.get(axis)) is not None and not isinstance(asked, list | bool):
            return str(asked) if "," not in str(asked) else " ".join(known.values())
        return " ".join(known.values()) or "default"

    def words(self, axis: str) -> str:
        """The value for a figure: full names of databases and media, empty if nothing was stated."""
        if axis in ("db", SYSTEM):
            return self.subject
        known = self.value(axis)
        return "" if known == "default" and axis not in self.condition else label(axis, known)

    @cached_property
    def told(self) -> list[Definition]:
        """What an operation of each of its kinds costs all told; empty with one kind, whose cost is the headline."""
        paths = [path for kind in self.kinds if (path := told_path(kind)) in self.means]
        return [of for of in map(self.quantities.named, paths) if of] if len(self.kinds) > 1 else []

    @property
    def compared(self) -> list[Definition]:
        """Quantities that its study compares; the costs of the work, those of its kinds and its time come first."""
        time = time_beside(self.quantities)
        first = [*costs(self.quantities), *self.told, *([time] if time else [])]
        compared = self.quantities.shown("compared")
        return [*first, *(quantity for quantity in compared if quantity not in first)]


def told_by(runs: Iterable[ComparedRun]) -> list[Definition]:
    """What an operation of each kind in some runs costs all told."""
    return list({of.key: of for run in runs for of in run.told}.values())


def read_compared(record: RunRecord, condition: Mapping[str, str] | None = None, rank: int = 0) -> ComparedRun:
    """Reads a record for comparisons; `condition` and `rank` come from its index, None and 0 without one.

    Raises: RecordFault: unreadable, changed since it ended, or without a result.
    """
    with reading(record.directory):
        answer = open_answer(record)
        if not answer.result:
            raise RecordFault("; ".join(fault.text for fault in record.faults) or answer.problem)
        return ComparedRun(
            record.directory,
            record.simulated,
            condition or {},
            None if condition is None else record.directory.parent,
            rank,
            answer.wording.subject(record.run),
            record.status,
            record.run.found.started_utc or "",
            answer.trace_only,
            kept(record.document.get("asked", {})),
            settings_of(record.document),
            means(answer.concluded, answer.quantities),
            answer.quantities,
            answer.concluded.repeats,
            answer.concluded.too_short,
            tuple(answer.warnings),
            caveats_of(record),
        )


SIDE: Final = "side"
"""The axis of runs before and after a change."""
SHORT: Final = "short"
"""In `although`: allows runs that are too short."""
STUDY_CELL: Final = ("study", "cell")
"""Group and key of a setting."""
_SHOWN: Final = 4
"""Greatest number of differences in a refusal."""


def check_comparable(
    strata: Iterable[Sequence[Sequence[ComparedRun]]],
    by: Sequence[str],
    although: Iterable[str] = (),
    *,
    cells: bool = False,
) -> list[str]:
    """Checks that runs differ only in the axes by which they are compared.

    Args:
        strata: groups to compare with each other, each a list of runs of one setting.
        by: axes of the comparison; (SIDE,) for before and after.
        cells: whether the cells of a study may differ: they are shown side by side, not judged.
    Returns: a line for each difference in a group of `although`.
    Raises: BadInput: another difference.
    """
    refused: dict[str, Disagreement] = {}
    lines: dict[str, str] = {}
    allowed, is_change = set(although), tuple(by) == (SIDE,)
    explained = {RIG} | {group for axis in by if axis != SIDE for group in groups_of(axis)}
    if is_change:
        explained |= set(VERSIONS)
    for groups in strata:
        everything = [run.settings for runs in groups for run in runs]
        of_groups = [disagreements([run.settings for run in runs], {RIG}) for runs in groups]
        inside = {(one.group, one.key): one for differences in of_groups for one in differences}
        between = {(one.group, one.key): one for one in disagreements(everything, explained)}
        indexes = {run.index for runs in groups for run in runs}
        declared = len(indexes) == 1 and None not in indexes and not is_change  # by the file of one campaign
        for setting, one in {**inside, **between}.items():
            if cells and setting == STUDY_CELL:
                continue
            line = str(one)
            if one.group in allowed:
                lines[line] = f"compared although they differ: {line}"
            elif declared and setting not in inside and one.group not in (*VERSIONS, "simulated"):
                lines[line] = f"beside {', '.join(by)} the campaign's file varies {line}"
            else:
                refused[line] = one
        if is_change:
            lines |= {str(one): f"the change: {one}" for one in disagreements(everything) if one.group in VERSIONS}
    if refused:
        raise BadInput(_refusal(refused))
    return list(lines.values())


def allowed_groups(text: str | None) -> frozenset[str]:
    """Groups of settings named by `--although`, separated by commas. Raises: BadInput: an unknown group."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    for name in names:
        if name not in (*GROUPS, SHORT):
            raise BadInput(f"--although: {unknown('group of settings', name, (*GROUPS, SHORT))}")
    return frozenset(names)


def _refusal(refused: dict[str, Disagreement]) -> str:
    names = ",".join(dict.fromkeys(difference.group for difference in refused.values()))
    shown = "; ".join(list(refused)[:_SHOWN]) + ("; and more" if len(refused) > _SHOWN else "")
    return (
        f"these runs are not comparable. They differ in {shown}. Compare them by it, name fewer runs, or allow it with "
        f"--although {names}"
    )
