"""A simulated sensor with a steady load; successive recordings at full speed. SIMULATED.

No program of a board is involved, so time need not be real: each recording is a run of the rig simulator with a
profile. A busy computer makes it slower, but does not change it.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from opjoule.simulation.planted_faults import FED_V, HOT_PER_A2, DrawnRig
from opjoule.simulation.rig_simulator import RigSimulator

HOT_TAU_S: Final = 4.0
"""Thermal time constant, shorter than a real shunt's 10 to 20 s, as everything in the rehearsal is shorter."""
HOT_STEP_S: Final = 0.2
SPARE_S: Final = 2.0
"""Time for which a heating shunt is simulated after the recording [s]."""
LATE_S: Final = 30.0
"""Extra length of the load [s]: a busy computer ends a recording late, and the simulator must still run then."""


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
            (folder / "profile.csv").write_text(self._profile(seconds))
            held = ["--hold-sda=1,30"] if self._rig.plant == "i2c-errors" else []
            options = [
                *("--profile", str(folder / "profile.csv"), "--pace", "0"),
                *("--truth", str(folder / "truth.json"), "--seed", str(self._rig.seed)),
                *self._rig.sensor.options(),
                *held,
            ]
            simulator = RigSimulator(self._root, folder, options)
            try:
                yield self._rig.meter(str(simulator.port))
            finally:
                simulator.end()

    def _profile(self, seconds: float) -> str:
        """The steady load as the sensor sees it; a heating shunt continues from the end of the last recording."""
        length_s = seconds + SPARE_S
        lines = ["time_s,current_a,voltage_v"]
        if self._rig.plant != "hot-shunt":
            lines.append(f"0,{self._rig.sign * self._current_a:.6f},{self._voltage_v:.6f}")
        else:
            aim = HOT_PER_A2 * self._current_a**2
            for step in range(round(length_s / HOT_STEP_S)):
                self._hot += (aim - self._hot) * -math.expm1(-HOT_STEP_S / HOT_TAU_S)
                lines.append(
                    f"{step * HOT_STEP_S:.3f},{self._current_a * (1 + self._hot):.6f},{self._voltage_v:.6f}"
                )
        return "\n".join([*lines, f"{length_s + LATE_S:.3f},0,{self._voltage_v:.6f}"]) + "\n"
