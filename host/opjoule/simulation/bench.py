"""A simulated bench: a sensor with errors of its own on a load that is set, a multimeter beside it. SIMULATED.

The sensor is the real firmware in the rig simulator; what the multimeter shows goes where a person would type it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from opjoule.calibration.reference import Reference
from opjoule.calibration.typed import TypedQuantity, TypedReference
from opjoule.errors import RigFault
from opjoule.simulation.feed import DELAY_NS
from opjoule.simulation.imperfections import Imperfections
from opjoule.simulation.medium_work import MediumStretch
from opjoule.simulation.power_model import Activity, LoadModel, Supply
from opjoule.simulation.supply import SimulatedSupply

STEPS: Final = 2
"""Steps of the feed that pass after a load was set: the first may have begun before it."""
FOLLOW_LIMIT_S: Final = 60.0
ATTEMPTS: Final = 3
"""At each load, on average; then something is wrong that taking the point again does not mend."""
_FORMATS: Final[dict[TypedQuantity, Callable[[float], str]]] = {
    TypedQuantity.CURRENT: lambda value: f"{value:.4f}",
    TypedQuantity.DROP: lambda value: f"{1e3 * value:.2f}m",
    TypedQuantity.VOLTAGE: lambda value: f"{value:.4f}",
}
"""To the digits that a handheld multimeter of 60,000 counts shows."""


class LoadByHand(LoadModel):
    """A current that somebody sets, on a supply: in the place of a board's power model."""

    def __init__(self, supply: Supply) -> None:
        """Nothing is drawn yet."""
        self._supply = supply
        self._changed = threading.Condition()
        self._steps = 0
        self.current_a = 0.0

    @property
    def voltage_v(self) -> float:
        """At the load."""
        return self._supply.open_voltage_v - self._supply.resistance_ohm * self.current_a

    def set(self, current_a: float) -> None:
        """Sets the load, and waits until the meter's simulator has it. Raises: RigFault: it does not follow."""
        with self._changed:
            self.current_a, enough = current_a, self._steps + STEPS
            if not self._changed.wait_for(lambda: self._steps >= enough, FOLLOW_LIMIT_S):
                raise RigFault(
                    "this computer is too busy to simulate the load: end other programs, and start again"
                )

    def rows(
        self, activity: Activity, later: Sequence[Activity], busy: Sequence[MediumStretch]
    ) -> list[tuple[int, float, float]]:
        """One row, whatever the activity."""
        with self._changed:
            self._steps += 1
            self._changed.notify_all()
            return [(activity.start_board_ns, self.current_a, self.voltage_v)]


class Multimeter:
    """What it shows, wrong by what is drawn from its stated accuracy, once and for all."""

    def __init__(self, typed: TypedReference, seed: int) -> None:
        """A multimeter of this seed is always wrong by the same."""
        chance = random.Random(f"multimeter {seed}")  # nothing of it goes with the sensor's errors
        self._over_ohm = typed.over_ohm or 1.0
        self._reference: Reference = typed.reference
        self._errors = [chance.gauss(0.0, 1.0) for _ in typed.reference.common]

    def shows(self, quantity: TypedQuantity, current_a: float, voltage_v: float) -> str:
        """The reading as a person would type it."""
        for size, each in zip(self._errors, self._reference.common, strict=True):
            current_a, voltage_v = (
                current_a + size * (each.current_share * current_a + each.current_a),
                voltage_v + size * (each.voltage_share * voltage_v + each.voltage_v),
            )
        value = {
            TypedQuantity.CURRENT: current_a,
            TypedQuantity.DROP: current_a * self._over_ohm,
            TypedQuantity.VOLTAGE: voltage_v,
        }
        return _FORMATS[quantity](value[quantity])


class SimulatedBench:
    """Gives the meter's address, sets one load after the other and answers what a person would; close() ends it."""

    def __init__(
        self, typed: TypedReference, loads_a: Sequence[float], *, root: Path, truth: Path, seed: int
    ) -> None:
        """Starts everything.

        Args:
            loads_a: of the points.
            truth: where the simulator's truth goes.
            seed: of sensor, supply and multimeter; the same is the same bench.
        """
        drawn = Imperfections.draw(seed)
        self._loads_a = tuple(loads_a)
        self._attempts = 0
        self._multimeter = Multimeter(typed, seed)
        self.load = LoadByHand(drawn.supply)
        self._supply = SimulatedSupply(drawn, self.load, root=root, truth=truth, seed=seed, course=False)
        self.meter = f"{self._supply.meter},label=simulated-{seed}"

    def set_load(self, current_a: float) -> None:
        """Returns when the sensor sees it: it lives a delay behind this computer."""
        self.load.set(current_a)
        time.sleep(DELAY_NS * 1e-9)

    def next_load(self, number: int) -> bool:
        """Sets the load of a point, from 1; False once there are no more, or one cannot be taken again and again."""
        self._attempts += 1
        if number > len(self._loads_a) or self._attempts > ATTEMPTS * len(self._loads_a):
            return False
        self.set_load(self._loads_a[number - 1])
        return True

    def answer(self, quantity: TypedQuantity) -> str:
        """What the multimeter shows now."""
        return self._multimeter.shows(quantity, self.load.current_a, self.load.voltage_v)

    def close(self) -> None:
        """Ends sensor and supply."""
        self._supply.close()
