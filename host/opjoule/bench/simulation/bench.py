"""A simulated bench: a sensor with its own errors on a sequence of loads, and a multimeter. SIMULATED.

The sensor is the real firmware in the rig simulator, which plays all loads in one run as fast as possible: a point
takes a minute of simulated time, not of the user's. The multimeter's readings replace the values that a person would
type.
"""

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opjoule.base.errors import RigFault
from opjoule.bench.simulation.power_model import Supply
from opjoule.bench.simulation.simulators import Imperfections, RigSimulator, known_load
from opjoule.energy.calibration.means import ReadPoint
from opjoule.energy.calibration.reference import Reference, TypedQuantity, TypedReference
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.journal import read_edges, read_trace
from opjoule.meters.serial.options import SIMULATED_SENSOR

SETTLE_S: Final = 0.5
"""Time from setting a load to the first sample that counts."""
REST_S: Final = 0.1
"""Time between the last sample of a point and the next load."""
ATTEMPTS: Final = 3
"""Mean number of attempts per load, above which the points are not repeated any more."""


@dataclass(frozen=True)
class SteadyLoad:
    """One load of the bench."""

    current_a: float
    supply: Supply

    @property
    def voltage_v(self) -> float:
        """Voltage at the load."""
        return self.supply.open_voltage_v - self.supply.resistance_ohm * self.current_a


class Multimeter:
    """A multimeter with a constant error, drawn from its stated accuracy."""

    def __init__(self, typed: TypedReference, seed: int) -> None:
        chance = random.Random(f"multimeter {seed}")  # independent of the sensor's errors
        self._over_ohm = typed.over_ohm or 1.0
        self._reference: Reference = typed.reference
        self._errors = [chance.gauss(0.0, 1.0) for _ in typed.reference.common]

    def shows(self, quantity: TypedQuantity, current_a: float, voltage_v: float) -> str:
        """The reading as a person would type it, with the digits of a handheld multimeter of 60,000 counts."""
        for size, error in zip(self._errors, self._reference.common, strict=True):
            current_a, voltage_v = (
                current_a + size * (error.current_share * current_a + error.current_a),
                voltage_v + size * (error.voltage_share * voltage_v + error.voltage_v),
            )
        if quantity is TypedQuantity.DROP:
            return f"{1e3 * current_a * self._over_ohm:.2f}m"
        return f"{current_a if quantity is TypedQuantity.CURRENT else voltage_v:.4f}"


class SimulatedBench:
    """Plays the loads to the meter of this address, and gives the answers of a person; close() ends it."""

    def __init__(
        self,
        typed: TypedReference,
        loads_a: Sequence[float],
        unseen_a: Sequence[float],
        *,
        seconds: float,
        root: Path,
        truth: Path,
        seed: int,
    ) -> None:
        """Starts the simulator, which waits for the first command to its meter.

        Args:
            loads_a: loads of the points; unseen_a: loads that are read after them.
            seed: the same seed draws the same sensor, supply and multimeter.
        """
        drawn = Imperfections.draw(seed)
        self._loads = [SteadyLoad(load_a, drawn.supply) for load_a in (*loads_a, *unseen_a)]
        self._points, self._seconds = len(loads_a), seconds
        self._attempts = self._place = 0
        self._multimeter = Multimeter(typed, seed)
        self._temporary = tempfile.TemporaryDirectory(prefix="opjoule-bench-")
        folder = Path(self._temporary.name)
        truth.parent.mkdir(parents=True, exist_ok=True)
        self._simulator = RigSimulator(root, folder, self._played(folder), drawn, seed, truth)
        self.meter = f"serial:{self._simulator.port},{SIMULATED_SENSOR},label=simulated-{seed}"
        self._cells: Cells | None = None
        self._edges_ns: list[int] = []

    @property
    def load(self) -> SteadyLoad:
        """The present load."""
        return self._loads[self._place]

    @property
    def plays_s(self) -> float:
        """Duration of all loads, in the sensor's time."""
        return self._step_s * len(self._loads)

    @property
    def _step_s(self) -> float:
        return SETTLE_S + self._seconds + REST_S

    def played(self, record: Path) -> None:
        """Reads the recording of all loads. Raises: RigFault: the simulator ended too early."""
        self._cells = Cells.of(read_trace(record))
        self._edges_ns = read_edges(record).meter_ns.tolist()
        if len(self._edges_ns) < 2 * len(self._loads):
            raise RigFault(
                f"the rig simulator ended too early: {self._simulator.last_words()}; "
                "run host/measure.py doctor --simulate"
            )

    def next_load(self, number: int) -> bool:
        """Sets the load of a point, from 1; False after the last one, or after too many attempts."""
        self._attempts += 1
        if number > self._points or self._attempts > ATTEMPTS * self._points:
            return False
        self._place = number - 1
        return True

    def read(self, bounds: ErrorBounds, *, steady: bool) -> ReadPoint:
        """The sensor's reading at the present load. Raises: CalibrationFault: as mean_reading()."""
        assert self._cells
        start_ns, end_ns = self._edges_ns[2 * self._place : 2 * self._place + 2]
        return ReadPoint.of(self._cells, (start_ns, end_ns), bounds, u_ns=0.0, period_ns=0, steady=steady)

    def unseen(self, bounds: ErrorBounds, *, steady: bool) -> list[tuple[SteadyLoad, ReadPoint]]:
        """The loads without a calibration point, and the sensor's readings at them."""
        pairs = []
        for place in range(self._points, len(self._loads)):
            self._place = place
            pairs.append((self.load, self.read(bounds, steady=steady)))
        return pairs

    def answer(self, quantity: TypedQuantity) -> str:
        """The multimeter's present reading."""
        return self._multimeter.shows(quantity, self.load.current_a, self.load.voltage_v)

    def _played(self, folder: Path) -> list[str]:
        """Options with the loads, and with edges at the start and end of the part of each load that counts."""
        rows: list[tuple[float, float, float]] = []
        edges: list[tuple[float, int]] = []
        for number, load in enumerate(self._loads):
            at_s = number * self._step_s
            rows.append((at_s, load.current_a, load.voltage_v))
            edges += [(at_s + SETTLE_S, 1), (at_s + SETTLE_S + self._seconds, 0)]
        return known_load(folder, [*rows, (self.plays_s, 0.0, self._loads[-1].voltage_v)], edges)

    def close(self) -> None:
        """Ends the simulator and removes temporary files."""
        self._simulator.end()
        self._temporary.cleanup()
