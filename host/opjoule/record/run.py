"""Typed value of run.json: the fields that readers rely on, with their units. Other keys are kept and not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.record.json_file import Schema
from opjoule.record.phases import Phase

Status = Literal["partial", "complete", "failed"]


class AskedFor(Struct, frozen=True):
    """Options of the user that are shown again."""

    study: str | None = None
    db: str | None = None
    device: str | None = None
    storage: str | None = None
    workload: str | None = None
    distribution: str | None = None
    records: int | None = None
    operations: int | None = None
    seconds: int | float | None = None
    """Length of a run or of a recording [s]; None where something else ends it."""
    threads: int | None = None
    design: bool | None = None
    """In randomised blocks of changing mix."""
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
    """Facts of the board that are read; the record has more, which a report shows."""

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
    """The meter, as it named itself."""

    kind: str | None = None
    board: str | None = None
    serial_number: str | None = None
    firmware_version: str | None = None
    sensors: tuple[MeterSensor, ...] = ()
    voltage_at: str = ""
    """Point at which it reads the voltage; empty if it does not."""


class SupplyFacts(Struct, frozen=True):
    """The path from supply to board, as far as the check of the supply needs it."""

    least_voltage_v: float | None = None
    """The board's limit [V]."""
    remedy: str = ""


class Simulation(Struct, frozen=True):
    """Settings of the simulated rig."""

    load_step_s: float = 0.0
    """Length of the steps in which the simulated load follows the board [s]."""


class Imported(Struct, frozen=True):
    """Origin of a trace that another program recorded."""

    voltage_stated: bool = False
    """The user stated the voltage, nothing measured it."""


class StorageSensor(Struct, frozen=True):
    """The additional sensor in the supply of the storage medium."""

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
    """Processors of the board; None for a trace on its own."""
    storage: str | None = None
    storage_sensor: StorageSensor | None = None
    generator: Generator | None = None
    kept_database: str | None = None
    """Database from which each repeat's was copied; None if it was loaded."""
    device: DeviceFacts = DeviceFacts()
    meter: MeterFacts = MeterFacts()
    supply: SupplyFacts = SupplyFacts()
    simulation: Simulation = Simulation()
    imported: Imported = Imported()
    calibrations: dict[str, str] = {}
    """Sensor -> its calibration: date and reference."""
    warnings: tuple[str, ...] = ()
    """Lines that stand above the figures."""


class KindSummary(Struct, frozen=True):
    """The loader's counts of one kind of operation."""

    count: int
    bytes: int


class LoaderSummary(Struct, frozen=True):
    """The loader's summary at its end."""

    database: str | None = None
    database_version: str | None = None
    loader_version: str | None = None
    seed: int | None = None
    operations: int | None = None
    bytes: int | None = None
    """Size of the values moved [B]."""
    by_kind: dict[str, KindSummary] = {}
    settings: dict[str, str] = {}
    mix_blocks: int | None = None
    """Randomised blocks of a changing mix that the run had; None for one mix throughout."""
    workload: dict[str, str] = {}
    """The properties that were in effect."""


class PlannedStudy(Struct, frozen=True):
    """The part of a plan's study that any reader understands; the study itself reads the rest."""

    name: str = ""
    called: str = ""
    command: tuple[str, ...] = ()
    study: str = ""
    """Name of the study's folder."""
    cell: dict[str, str] = {}
    """Axis -> value."""
    parts: tuple[dict[str, str | tuple[int, ...]], ...] = ()
    """Values that its job varies itself, with the counts."""


class Planned(Struct, frozen=True):
    """The plan that was carried out."""

    study: PlannedStudy = PlannedStudy()
    idle_s: float = 0.0
    """Length of an idle phase."""


class LeastVoltageFound(Struct, frozen=True):
    """The least voltage of the whole trace."""

    value: float | None = None
    """[V]; None where the meter does not measure it."""
    u: float | None = None
    """Expanded uncertainty (k = 2) [V]."""
    unit: str = "V"
    where: str = ""
    at_meter_ns: int | None = None
    at_s: float | None = None
    """Into the trace [s]."""
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
    """The board's state: which limits the run broke, a line each."""

    broken: tuple[str, ...] = ()


class Run(Struct, frozen=True):
    """Contents of run.json."""

    schema: Schema
    status: Status
    simulated: bool
    """Any number of the run comes from the simulated rig."""
    asked: AskedFor = AskedFor()
    found: Found = Found()
    faults: tuple[str, ...] = ()
    """Faults, one line each."""
    sensor: ErrorBounds | None = None
    """Error bounds of the meter; None where they are not known."""
    further_sensors: dict[int, ErrorBounds] = {}
    """Number, from 1 -> error bounds of a sensor besides that of the board's supply."""
    plan: Planned = Planned()
    plan_sha256: str = ""
    phases: tuple[Phase, ...] = ()
    marked_phases: tuple[Phase, ...] = ()
    """Phases that the work marked inside its own."""
    clock_maps: dict[str, ClockMap] = {}
    """Every map that could be made, by its evidence."""
    clock_map_used: str | None = None
    """Name of the map that the result rests on."""
    signature: Mapping[str, float] = {}
    """Quality of the load signature's fit: peak and rival (1), step_w (W), lag_ns (ns)."""
    capture: Mapping[str, Any] = {}
    """Samples and losses of the meter."""
    loader: dict[str, LoaderSummary] = {}
    """By the tag of the phase, as "run-1"."""
    state: GateOutcome = GateOutcome()
    least_voltage: LeastVoltageFound = LeastVoltageFound()
    withheld: dict[str, str] = {}
    """Group of figures -> the first fault that makes them wrong."""
    clocks_checked: bool = False
    """The rates of the clocks were checked against their bounds when the run ended."""
    until_u: UntilOutcome | None = None
    checksums: dict[str, str] | None = None
    """SHA-256 of every other file; None until the run has ended."""
    damaged: dict[str, str] = {}
    """Reason for each raw file of a killed run that is damaged."""
    digest: str = ""
    """SHA-256 of everything else in run.json."""

    @property
    def summary(self) -> LoaderSummary:
        """The loader's of the first run, or of the first load."""
        return self.loader.get("run-1") or self.loader.get("load-1") or LoaderSummary()

    @property
    def database(self) -> str:
        """Name and version, the loader's or the system of the study; empty without one."""
        name = self.summary.database or self.plan.study.cell.get("system")
        return f"{name} {self.summary.database_version or ''}".strip() if name else ""
