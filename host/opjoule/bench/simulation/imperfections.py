"""Differences between a simulated rig and a perfect one: drawn for each measurement, within data-sheet limits."""

import hashlib
import json
import random
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from opjoule.bench.simulation.power_model import PowerModel, Supply
from opjoule.energy.error_bounds import ROOM_K, SHUNT_K_PER_W, SHUNT_PER_K
from opjoule.energy.shunt_heat import TAU_LEAST_S, TAU_MOST_S

BUS_GAIN_ERROR_MAX: Final = 0.005
SUPPLY_OHM_MAX: Final = 0.8
"""Resistance of a supply with a long or thin cable: a public trace of a Raspberry Pi 3B+ at a desk has 5.046 V - 0.781
ohm x I."""
HEADROOM_V: Final = 0.02
"""Margin for noise and steps of a reading [V]."""
_OF_THE_SUPPLY = ("supply_ohm", "supply_open_v")


@dataclass(frozen=True)
class Imperfections:
    """Errors of one rig: INA219A with its shunt, microcontroller, supply. The estimate must not use them."""

    shunt_ohm: float
    """0.1 ohm, 1 %, at its room's temperature, without current"""
    shunt_ppm: float
    """its temperature coefficient per kelvin"""
    shunt_thermal: str
    """thermal resistance [K/W] and time constant [s] of the shunt"""
    gain_error: float
    """gain error of the current channel without the shunt"""
    offset_uv: float
    """offset of the shunt voltage, in the range of 320 mV"""
    bus_gain_error: float
    noise_uv: float
    """r.m.s. of one conversion of 532 us; chosen, no data sheet states it"""
    clock_error_ppm: float
    """error of the microcontroller's ceramic resonator when it starts"""
    clock_warmup: str
    """change of that error as it warms up [ppm], and time constant [s]"""
    sensor_clock_error_ppm: float
    """error of the oscillator that times the conversions"""
    ripple: str
    """ripple of the supply voltage: amplitude [mV] and frequency [Hz]"""
    supply_ohm: float
    """resistance of supply and cable"""
    supply_open_v: float

    @classmethod
    def draw(cls, seed: int | random.Random) -> Self:
        """One rig from the population.

        Source: SBOS448G (INA219), 7.5: gain 0.5 %, offset 200 uV at PGA /8, bus 0.5 %, 532 us typical and 586 us at
        most, as much assumed the other way. Arduino Uno's CSTCE16M0V53: 0.5 % initial tolerance; -2021 ppm and about
        10 ppm/K are published of one. Supplies: 4.9 to 5.25 V and up to 50 mV of ripple are assumed; the cable is
        within SUPPLY_OHM_MAX. The shunt is of thick film, within 200 ppm/K, in a room within 15 K of 25 degrees C, with
        50 to 100 K/W on its board (energy/error_bounds.py has the sources) and a time constant of 2 to 30 s (assumed).
        """
        chance = seed if isinstance(seed, random.Random) else random.Random(seed)
        ripple_mv = chance.choice([0.0, chance.uniform(1, 50)])
        drawn = cls(
            shunt_ohm=round(0.1 * (1 + chance.uniform(-0.01, 0.01)), 8),
            shunt_ppm=0.0,
            shunt_thermal="0,1",
            gain_error=round(chance.uniform(-0.005, 0.005), 7),
            offset_uv=round(chance.uniform(-200, 200), 3),
            bus_gain_error=round(chance.uniform(-BUS_GAIN_ERROR_MAX, BUS_GAIN_ERROR_MAX), 7),
            noise_uv=round(chance.uniform(5, 40), 2),
            clock_error_ppm=round(chance.uniform(-5000, 5000), 2),
            clock_warmup=f"{chance.uniform(-50, 50):.3f},{chance.uniform(30, 600):.3f}",
            sensor_clock_error_ppm=round(chance.uniform(-91_000, 100_000), 1),
            ripple=f"{ripple_mv:.3f},{50 * 2000 ** chance.random():.6f}",
            supply_ohm=round(chance.choice([0.0, chance.uniform(0.02, SUPPLY_OHM_MAX)]), 4),
            supply_open_v=round(chance.uniform(4.9, 5.25), 4),
        )
        return drawn.heating_up(chance)

    def heating_up(self, chance: random.Random) -> Self:
        """The rig with a shunt that its current heats, in a room that is not at 25 degrees C."""
        ppm, away_k = chance.uniform(-1, 1) * SHUNT_PER_K * 1e6, chance.uniform(-1, 1) * ROOM_K
        k_per_w = chance.uniform(SHUNT_K_PER_W / 2, SHUNT_K_PER_W)
        tau_s = TAU_LEAST_S * (TAU_MOST_S / TAU_LEAST_S) ** chance.random()
        return replace(
            self,
            shunt_ohm=round(self.shunt_ohm * (1 + ppm * 1e-6 * away_k), 8),
            shunt_ppm=round(ppm, 3),
            shunt_thermal=f"{k_per_w:.3f},{tau_s:.3f}",
        )

    @property
    def meter_name(self) -> str:
        """Name of its meter: equal for equal errors, so that common errors of two measurements are recognised. The name
        does not reveal the errors."""
        errors = json.dumps(self._of_meter, sort_keys=True)
        return f"simulated-{hashlib.sha256(errors.encode()).hexdigest()[:12]}"

    @property
    def _of_meter(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name not in _OF_THE_SUPPLY}

    def carrying(self, power_w: float, least_v: float) -> Self:
        """The rig with a supply that keeps the board running: stiffer if the drawn supply would fall below `least_v`.

        At the board's greatest power, its readings with ripple and bus gain error stay above `least_v`.
        """
        held_v = least_v * (1 + BUS_GAIN_ERROR_MAX) + float(self.ripple.partition(",")[0]) * 1e-3 + HEADROOM_V
        open_v = max(self.supply_open_v, round(held_v, 4))
        most_ohm = max(round((open_v - held_v) * held_v / power_w, 4), 0.0)
        return replace(self, supply_open_v=open_v, supply_ohm=min(self.supply_ohm, most_ohm))

    def on(self, supply: Supply) -> Self:
        """The rig with another supply."""
        return replace(self, supply_open_v=supply.open_voltage_v, supply_ohm=supply.resistance_ohm)

    @property
    def supply(self) -> Supply:
        """The supply of the power model."""
        return Supply(self.supply_open_v, self.supply_ohm)

    def options(self) -> list[str]:
        """Sensor, clocks and ripple as options of rig-sim; the power model contains the supply's resistance."""
        return [f"--{name.replace('_', '-')}={value}" for name, value in self._of_meter.items()]

    def write(self, path: Path, seed: int, power: PowerModel | None) -> None:
        """Writes the errors and the drawn board and medium, for use after the measurement."""
        entry = {"schema": {"name": "simulator-imperfections", "version": 1}, "simulated": True, "seed": seed}
        drawn = {"board": asdict(power.board), "medium": asdict(power.medium)} if power else {}
        path.write_text(json.dumps({**entry, **asdict(self), **drawn}, indent=2) + "\n")
