"""Data of one repeat: energies of its windows, operations, and samples of the board.

All quantities of a repeat are computed from this (runs/evaluation/quantities/common.py).
"""

from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from opjoule.attribution.shares import Attribution
from opjoule.base.units import Cause, Quantity, missing
from opjoule.energy.baseline import IdlePower, MarginalEnergy
from opjoule.energy.operations.operation_table import Latency, OperationTable
from opjoule.energy.window import EnergyResult
from opjoule.runs.record.phases import Cycle


@dataclass(frozen=True)
class RepeatEnergy:
    """Energies of one repeat; those above idle are None if idle power is unknown."""

    run: EnergyResult
    whole: EnergyResult
    """Run and settle, including idle."""
    idle: IdlePower | None
    energy: MarginalEnergy | None
    """Run including idle, plus settle above idle."""
    marginal: MarginalEnergy | None
    """`energy` less idle power times the run's duration."""
    write_back: MarginalEnergy | None
    """Settle above idle; None also without a settle phase."""


@dataclass(frozen=True)
class MediumEnergy:
    """Energy of one repeat from a sensor in the medium's own supply."""

    marginal: MarginalEnergy | None
    """Run and settle above idle; None if idle power is unknown."""
    of_board: bool
    """Whether the medium draws from the board's supply, so that its energy is part of the board's."""


@dataclass(frozen=True)
class SystemSamples:
    """The board's samples of one repeat, from its run to its end, including settle and idle."""

    table: pa.Table
    """Columns as in system.parquet, cumulative unless stated otherwise there."""
    first: int
    """Rows of the last sample before the run and the first one after it."""
    last: int
    settled: int
    """Row of the first sample after settle; `last` without a settle phase."""
    cores: int

    @classmethod
    def of_cycle(cls, table: pa.Table, cycle: Cycle, cores: int) -> Self | Quantity:
        """The samples of one repeat; Missing without samples around its run."""
        if len(table) < 2:
            return missing(Cause.NO_SAMPLES)
        stamps = table.column("board_ns").to_numpy()
        first = max(int(stamps.searchsorted(cycle.work.start_board_ns, "right")) - 1, 0)
        ends_ns = [phase.end_board_ns for phase in (cycle.work, cycle.drain or cycle.work)]
        last, settled = (min(int(row), len(table) - 1) for row in stamps.searchsorted(ends_ns))
        return cls(table, first, last, settled, cores) if last > first else missing(Cause.NO_SAMPLES)

    @property
    def span_s(self) -> float:
        """Time from the first to the last sample of the run [s]."""
        stamps = self.table.column("board_ns")
        return float(stamps[self.last].as_py() - stamps[self.first].as_py()) * 1e-9

    def grown(self, column: str, *, settle: bool) -> float:
        """Increase of a cumulative column during the run, or during run and settle."""
        values = self.table.column(column)
        return float(values[self.settled if settle else self.last].as_py() - values[self.first].as_py())

    def peak(self, column: str) -> float:
        """The greatest value of a column from the start of the run on."""
        return float(max(self.table.column(column).to_numpy()[self.first :]))


@dataclass(frozen=True)
class Repeat:
    """One measured repeat. An additional sensor has only the energies."""

    number: int
    energy: RepeatEnergy
    run_s: float
    """Length of the run by the board's clock [s]."""
    settle_s: float | None = None
    """Length of settle [s]; None without that phase."""
    counted: int = 0
    """Operations of the run by the loader's own count."""
    operations: OperationTable = field(default_factory=OperationTable.empty)
    """The run's operations; empty if the log is off."""
    samples: SystemSamples | Quantity = field(default_factory=lambda: missing(Cause.NO_SAMPLES))
    attribution: Attribution | Quantity = field(default_factory=lambda: missing(Cause.NO_IDLE))
    harness: Quantity = field(default_factory=lambda: missing("the harness was not measured", "J"))
    """Energy of the loader itself for the same number of operations [J]."""
    core_w: float | None = None
    """Power above idle of a processor that is busy with the loader, without a database [W]; None if not measured."""

    medium: MediumEnergy | None = None
    """None without a sensor in the medium's own supply."""

    @property
    def latency(self) -> Latency | None:
        """Latency of the operations; None if none was logged."""
        return self.operations.latency

    @property
    def clock_u(self) -> float:
        """Relative standard uncertainty of the board's seconds."""
        return self.energy.run.timebase.relative_u
