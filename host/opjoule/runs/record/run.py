"""Typed form of run.json: the fields that readers use, with their units. Other keys are kept but not read."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, Literal

from msgspec import Struct, field

from opjoule.base.notices import Notice
from opjoule.base.settings import MEDIUM, MEDIUM_SENSOR
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.runs.record.json_file import Schema
from opjoule.runs.record.phases import Phase

Status = Literal["partial", "complete", "failed"]


class AskedFor(Struct, frozen=True):
    """Options of the user that are shown in reports."""

    study: str | None = None
    db: str | None = None
    device: str | None = None
    medium: str | None = field(default=None, name=MEDIUM)
    workload: str | None = None
    distribution: str | None = None
    records: int | None = None
    operations: int | None = None
    seconds: int | float | None = None
    """Length of a run or of a recording [s]; None if something else ends it."""
    threads: int | None = None
    design: bool | None = None
    """True for mix blocks of changing mix."""
    properties: tuple[str, ...] = ()
    command: str | tuple[str, ...] | None = None
    meter: str | None = None
    imported_file: str | None = field(default=None, name="import")


class Generator(Struct, frozen=True):
    """Program that made the operations."""

    name: str = "loader"
    version: str | None = None
    runs_on: str | None = None
    """board or host."""


class DeviceFacts(Struct, frozen=True):
    """Facts of the board that the code reads; the record contains more, which a report shows."""

    connection: str | None = None
    model: str | None = None
    cpu: str | None = None
    system: str | None = None
    kernel: str | None = None
    machine: str | None = None
    loader_sha256: str | None = None
    disturbance: dict[str, Any] | None = None
    """Another program that ran on purpose, by name and numbers."""


class MeterSensor(Struct, frozen=True):
    """A chip that the meter found, and its address on the bus."""

    model: str | None = None
    address: int = 0


class MeterFacts(Struct, frozen=True):
    """The meter's own description."""

    kind: str | None = None
    board: str | None = None
    serial_number: str | None = None
    firmware_version: str | None = None
    sensors: tuple[MeterSensor, ...] = ()
    voltage_at: str = ""
    """Point at which it reads the voltage; empty if it does not read it."""


class SupplyFacts(Struct, frozen=True):
    """The facts about the path from supply to board that the check of the supply needs."""

    least_voltage_v: float | None = None
    """The board's limit [V]."""
    remedy: str = ""


class Simulation(Struct, frozen=True):
    """Settings of the simulated rig."""

    load_step_s: float = 0.0
    """Length of the steps in which the simulated load follows the board's activity [s]."""


class Imported(Struct, frozen=True):
    """Origin of a trace that another program recorded."""

    voltage_stated: bool = False
    """True if the user stated the voltage and nothing measured it."""


class MediumSensor(Struct, frozen=True):
    """The additional sensor in the supply of the medium."""

    number: int
    """From 1."""
    supply: Literal["board", "own"] = "board"
    """Supply of the medium: from the board (its energy is part of the board's) or its own."""


class Found(Struct, frozen=True):
    """Facts found at the beginning of the measurement."""

    opjoule: str | None = None
    commit: str | None = None
    command: tuple[str, ...] = ()
    started_utc: str | None = None
    ended_utc: str | None = None
    cores: int | None = None
    """Number of the board's processors; None for a trace on its own."""
    medium: str | None = field(default=None, name=MEDIUM)
    medium_sensor: MediumSensor | None = field(default=None, name=MEDIUM_SENSOR)
    generator: Generator | None = None
    device: DeviceFacts = DeviceFacts()
    meter: MeterFacts = MeterFacts()
    supply: SupplyFacts = SupplyFacts()
    simulation: Simulation = Simulation()
    imported: Imported = Imported()
    calibrations: dict[str, str] = {}
    """Sensor -> date and reference of its calibration."""


class KindSummary(Struct, frozen=True):
    """The loader's counts of one kind of operation."""

    count: int
    bytes: int
    not_found: int = 0
    """Number of operations whose record was not in the database."""


class LoaderSummary(Struct, frozen=True):
    """The loader's summary at its end."""

    database: str | None = None
    database_version: str | None = None
    loader_version: str | None = None
    seed: int | None = None
    operations: int | None = None
    bytes: int | None = None
    """Size of the values moved [B]."""
    duration_s: float | None = None
    cpu_s: float | None = None
    """Processor time of the loader [s]."""
    by_kind: dict[str, KindSummary] = {}
    opening_settled: bool = True
    """Whether the work that opening the database began ended before the phase."""
    settings: dict[str, str] = {}
    mix_blocks: int | None = None
    """Number of mix blocks of changing mix in the run; None if the mix was constant."""
    workload: dict[str, str] = {}
    """The properties that were in effect."""
    ignored: tuple[str, ...] = ()
    """The given properties that have no effect on this database."""


class PlannedStudy(Struct, frozen=True):
    """The part of a plan's study that every reader understands; the study itself reads the rest."""

    name: str = ""
    called: str = ""
    command: tuple[str, ...] = ()
    study: str = ""
    """Name of the study's folder."""
    cell: dict[str, str] = {}
    """Axis -> value."""
    parts: tuple[dict[str, str | tuple[int, ...]], ...] = ()
    """Values that the study's job varies itself, with the counts."""


class Planned(Struct, frozen=True):
    """The plan that was carried out."""

    study: PlannedStudy = PlannedStudy()
    idle_s: float = 0.0
    """Length of an idle phase."""


class LeastVoltageFound(Struct, frozen=True):
    """The least voltage of the whole trace."""

    value: float | None = None
    """[V]; None if the meter does not measure the voltage."""
    u: float | None = None
    """Expanded uncertainty (k = 2) [V]."""
    unit: str = "V"
    where: str = ""
    phase: str = ""
    limit_v: float | None = None
    """Least voltage that the board allows [V]."""
    unchecked: str = ""
    """Reason why it was not checked against a limit."""


class UntilOutcome(Struct, frozen=True):
    """Outcome of --until-u."""

    asked: float
    """Relative expanded uncertainty of the headline."""
    reached: float | None
    repeats: int
    not_reached: str = ""
    """Reason; empty if the uncertainty was reached."""


class GateOutcome(Struct, frozen=True):
    """The board's state: the limits that the run broke, one line each."""

    broken: tuple[str, ...] = ()


class Run(Struct, frozen=True):
    """Contents of run.json."""

    schema: Schema
    status: Status
    simulated: bool
    """True if any number of the run comes from the simulated rig."""
    asked: AskedFor = AskedFor()
    found: Found = Found()
    notices: tuple[Notice, ...] = ()
    """Faults, and all else that stands above the figures."""
    sensor: ErrorBounds | None = None
    """Error bounds of the meter; None if they are not known."""
    further_sensors: dict[int, ErrorBounds] = {}
    """Number (from 1) -> error bounds of each sensor besides the one in the board's supply."""
    plan: Planned = Planned()
    plan_sha256: str = ""
    phases: tuple[Phase, ...] = ()
    marked_phases: tuple[Phase, ...] = ()
    """Phases that the work marked inside its own phase."""
    clock_maps: dict[str, ClockMap] = {}
    """Every clock map that could be made, by its evidence."""
    clock_map_used: str | None = None
    """Name of the clock map used for the result."""
    signature: Mapping[str, float] = {}
    """Quality of the load signature's fit: peak and rival (1), step_w (W), lag_ns (ns)."""
    capture: Mapping[str, Any] = {}
    """Samples and losses of the meter."""
    loader: dict[str, LoaderSummary] = {}
    """Loader summaries by the tag of their phase, for example "run-1"."""
    state: GateOutcome = GateOutcome()
    least_voltage: LeastVoltageFound = LeastVoltageFound()
    clocks_checked: bool = False
    """True if the rates of the clocks were checked against their bounds when the run ended."""
    until_u: UntilOutcome | None = None
    checksums: dict[str, str] | None = None
    """SHA-256 of every other file; None until the run has ended."""
    damaged: dict[str, str] = {}
    """Reason for each damaged raw file of a killed run."""
    digest: str = ""
    """SHA-256 of everything else in run.json."""

    @property
    def summary(self) -> LoaderSummary:
        """The loader's summary of the first run, or of the first load."""
        return self.loader.get("run-1") or self.loader.get("load-1") or LoaderSummary()

    @property
    def database(self) -> str:
        """Name and version of the loader's database or of the study's system; empty if there is none."""
        name = self.summary.database or self.plan.study.cell.get("system")
        return f"{name} {self.summary.database_version or ''}".strip() if name else ""


def program_words(version: str | None, commit: str | None) -> str:
    """A version of OpJoule with its commit."""
    return f"{version or 'unknown'} ({commit})" if commit else version or "unknown"


SHELL: Final = ("sh", "-c")
_PLAIN_WORD: Final = re.compile(r"[\w.+/-]+(?=\s|$)")
_INTERPRETER: Final = re.compile(r"(python|pypy|perl|ruby|node|bash|sh|lua|julia|Rscript)[\d.]*")
_WITH_VALUE: Final = ("-W", "-X")
"""Options of Python that have a value in the next word."""


def program_of(command: Sequence[str]) -> str:
    """The program that a command starts: of a shell command its first word, if that is a plain name; else the shell."""
    if tuple(command[:2]) == SHELL and len(command) == 3 and (word := _PLAIN_WORD.match(command[2].lstrip())):
        return word[0]
    return command[0]


def title_of(command: Sequence[str]) -> str:
    """Name of the work without its folder.

    It is `job.py` for `python3 -O {files}/job.py --data x`, and `dd` for `sh -c 'dd if=...'`.
    """
    name = PurePosixPath(program_of(command)).name
    rest = iter(command[1:] if _INTERPRETER.fullmatch(name) else ())
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, "")
        elif word == "-m":
            return next(rest, name)
        elif word in ("-c", "-e"):
            return name
        elif not word.startswith("-"):
            return PurePosixPath(word).name
    return name
