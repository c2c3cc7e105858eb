"""Desk for rehearsals of a commissioning: a drawn rig, faults that can be planted in it, steady loads. SIMULATED.

No program of a board is involved in a recording of a steady load, so time need not be real: each is a run of the rig
simulator with a profile. A busy computer makes it slower, but does not change it.
"""

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from opjoule.base.errors import BadInput, unknown
from opjoule.bench.simulation.imperfections import Imperfections
from opjoule.bench.simulation.models import Models
from opjoule.bench.simulation.power_model import PowerModel, Supply
from opjoule.bench.simulation.rig_simulator import RigSimulator, known_load
from opjoule.boards.profiles import BoardAndMedium, Profile

SHUNT_OHM: Final = 0.02
"""Shunt of the simulated rig.toml, as docs/how-to/wire-the-rig.md recommends."""
USUAL_OHM: Final = 0.1
"""R100, as on most breakouts; the sensor's random errors are drawn for it."""
ADVISED_TOLERANCE: Final = 0.5
"""The recommended part's tolerance, relative to that of R100."""
ADVISED_OFFSET: Final = 125 / 200
"""Bound of the offset in the range of 80 mV, relative to that in 320 mV (SBOS448G, 7.5)."""
CABLE_OHM: Final = 0.06
BETWEEN_OHM: Final = 0.05
"""Resistance between the second meter's voltage terminals and the rig's, without the shunt."""
FED_V: Final = 4.3
"""Voltage of a back-feed: 5 V of HDMI or a hub through a diode."""
HOT_PER_A2: Final = 1.7e-3
"""Relative change of a shunt at 1 A: 0.1 ohm x 85 K/W x 200 ppm/K."""
HOT_TAU_S: Final = 4.0
"""Thermal time constant, shorter than a real shunt's 10 to 20 s, as everything in the rehearsal is shorter."""
HOT_STEP_S: Final = 0.2
SPARE_S: Final = 2.0
"""Time for which a heating shunt is simulated after the recording [s]."""
LATE_S: Final = 30.0
"""Extra length of the load [s]: a busy computer ends a recording late, and the simulator must still run then."""
PLANTS: Final = {
    "swapped-inputs": "VIN+ and VIN- are exchanged",
    "back-feed": "HDMI feeds the board while its fuse is out",
    "wrong-shunt": "R100 is soldered in, and rig.toml says shunt=0.02",
    "floating-d8": "the sync wire is off at the board, and the buffer's input picks up the mains",
    "dead-sync": "the sync wire is off at the meter",
    "cable": "the cable has 0.4 ohm",
    "wrong-medium": "the path lies on another device than the medium",
    "hot-shunt": "R100 of 200 ppm/K and 85 K/W is soldered in, which heats itself; rig.toml says so",
    "second-meter": "the second meter reads 2 % too much",
    "i2c-errors": "SDA is held down for a while",
}
"""Name of a fault for `commission --simulate --plant` -> description."""


@dataclass(frozen=True)
class DrawnRig:
    """One simulated rig: sensor, supply, board and medium, drawn from a seed."""

    profile: Profile
    seed: int
    plant: str
    """A fault of PLANTS; empty for none."""
    supply: Supply
    sensor: Imperfections
    power: PowerModel

    @classmethod
    def draw(cls, board: BoardAndMedium, seed: int, plant: str | None = None) -> Self:
        """Draws a rig. Raises: BadInput: unknown fault, or no model of the board or medium."""
        if plant and plant not in PLANTS:
            raise BadInput(unknown("fault to plant", plant, PLANTS))
        profile = board.profile
        cable_ohm = 0.4 if plant == "cable" else CABLE_OHM
        true_ohm = USUAL_OHM if plant in ("wrong-shunt", "hot-shunt") else SHUNT_OHM
        supply = Supply((profile.nominal_voltage_v or 5.1) + 0.1, true_ohm + cable_ohm)
        sensor = _with_shunt(Imperfections.draw(seed), true_ohm).on(supply)
        stated = Models.stated().load(board, seed)
        power = PowerModel(stated.board, stated.medium, supply)
        return cls(profile, seed, plant or "", supply, sensor, power)

    @property
    def load_a_ohm(self) -> float:
        """The known resistor: about half an ampere."""
        return round(2 * self.supply.open_voltage_v)

    @property
    def load_b_ohm(self) -> float:
        """The second load: about an ampere and a half."""
        return 0.65 * self.supply.open_voltage_v

    @property
    def sign(self) -> int:
        """-1 if the sensor's inputs are exchanged."""
        return -1 if self.plant == "swapped-inputs" else 1

    def meter(self, port: str) -> str:
        """The meter's name on a port, as in the simulated rig.toml."""
        stated = f"shunt={SHUNT_OHM:g},shunt_tolerance=0.5%,shunt_ppm=50,kelvin=yes,genuine=yes,range=80"
        if self.plant == "hot-shunt":
            stated = f"shunt={USUAL_OHM:g}"
        return f"serial:{port},{stated},label=simulated-{self.seed}"


def _with_shunt(sensor: Imperfections, ohm: float) -> Imperfections:
    """The sensor on a given shunt: the usual one as drawn, the recommended one with proportionally smaller errors."""
    if ohm == USUAL_OHM:
        return sensor
    shunt_ohm = round(ohm * (1 + ADVISED_TOLERANCE * (sensor.shunt_ohm / USUAL_OHM - 1)), 8)
    return replace(sensor, shunt_ohm=shunt_ohm, offset_uv=round(sensor.offset_uv * ADVISED_OFFSET, 3))


class LoadBench:
    """A simulated sensor with a steady load, and its recordings."""

    def __init__(self, rig: DrawnRig, root: Path) -> None:
        """Starts with the board connected, idle."""
        self._rig, self._root = rig, root
        self._hot = 0.0
        self.connect(None)

    def connect(self, conductance: float | None) -> None:
        """Connects a load [1/ohm] instead of the board, 0 for none; None: the board, idle."""
        supply, board = self._rig.supply, self._rig.power
        if conductance is None:
            self._current_a, self._voltage_v = supply.at_power(board.rest_w)
        else:
            self._voltage_v = supply.open_voltage_v / (1 + conductance * supply.resistance_ohm)
            self._current_a = conductance * self._voltage_v

    def pull_fuse(self) -> None:
        """Cuts off the supply; everything else stays connected."""
        self._current_a = 0.0
        self._voltage_v = FED_V if self._rig.plant == "back-feed" else 0.02

    @contextmanager
    def running(self, seconds: float) -> Iterator[str]:
        """A meter's name, for one recording of this length. Raises: RigFault: the simulator does not start."""
        with tempfile.TemporaryDirectory(prefix="opjoule-rig-") as made:
            folder = Path(made)
            held = ["--hold-sda=1,30"] if self._rig.plant == "i2c-errors" else []
            load = [*known_load(folder, self._rows(seconds)), *held]
            drawn = (self._rig.sensor, self._rig.seed)
            simulator = RigSimulator(self._root, folder, load, *drawn, folder / "truth.json")
            try:
                yield self._rig.meter(str(simulator.port))
            finally:
                simulator.end()

    def _rows(self, seconds: float) -> list[tuple[float, float, float]]:
        """The steady load as the sensor sees it; a heating shunt continues from the end of the last recording."""
        length_s = seconds + SPARE_S
        rows: list[tuple[float, float, float]] = []
        if self._rig.plant != "hot-shunt":
            rows.append((0.0, self._rig.sign * self._current_a, self._voltage_v))
        else:
            aim = HOT_PER_A2 * self._current_a**2
            for step in range(round(length_s / HOT_STEP_S)):
                self._hot += (aim - self._hot) * -math.expm1(-HOT_STEP_S / HOT_TAU_S)
                rows.append((step * HOT_STEP_S, self._current_a * (1 + self._hot), self._voltage_v))
        return [*rows, (length_s + LATE_S, 0.0, self._voltage_v)]
