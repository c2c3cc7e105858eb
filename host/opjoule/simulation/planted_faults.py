"""Simulated rig for rehearsals of a commissioning, and the faults that can be planted in it. SIMULATED."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from opjoule.devices.profiles import BoardAndMedium, Profile
from opjoule.errors import BadInput, unknown
from opjoule.simulation.imperfections import Imperfections, medium_chance
from opjoule.simulation.models import Models
from opjoule.simulation.power_model import PowerModel, Supply

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
    def draw(cls, board: BoardAndMedium, seed: int, plant: str | None = None) -> DrawnRig:
        """Draws a rig. Raises: BadInput: unknown fault, or no model of the board or medium."""
        if plant and plant not in PLANTS:
            raise BadInput(unknown("fault to plant", plant, PLANTS))
        profile = board.profile
        cable_ohm = 0.4 if plant == "cable" else CABLE_OHM
        true_ohm = USUAL_OHM if plant in ("wrong-shunt", "hot-shunt") else SHUNT_OHM
        supply = Supply((profile.nominal_voltage_v or 5.1) + 0.1, true_ohm + cable_ohm)
        sensor = _with_shunt(Imperfections.draw(seed), true_ohm).on(supply)
        chance = medium_chance(board.medium, seed)
        stated = Models.stated().load(board, chance)
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
