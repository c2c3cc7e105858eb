"""A simulated rig whose board plays loads and writes to its medium for the commissioning, as it happens. SIMULATED."""

from __future__ import annotations

import contextlib
import random
import shutil
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from opjoule.devices.programs.binaries import installed_here
from opjoule.simulation.line_fifo import LineFifo
from opjoule.simulation.medium_simulator import PROGRAM, MediumSimulator
from opjoule.simulation.planted_faults import BETWEEN_OHM, SHUNT_OHM, DrawnRig
from opjoule.simulation.played_load import PlayedLoad, PlayingProbe
from opjoule.simulation.rig import simulated_board
from opjoule.simulation.second_meter import Witness
from opjoule.simulation.supply import SimulatedSupply

HUM_HZ: Final = 100
"""Edges that a floating input picks up from the mains: two a period of 50 Hz."""


class Hum(threading.Thread):
    """Edges of the mains on a floating sync line."""

    def __init__(self, line: LineFifo) -> None:
        super().__init__(name="twin-hum", daemon=True)
        self._line, self._ended = line, threading.Event()

    def run(self) -> None:
        """Until stop()."""
        level, chance = 0, random.Random(1)
        with contextlib.suppress(OSError), self._line.path.open("w", buffering=1) as sink:
            while not self._ended.wait(chance.uniform(0.5, 1.5) / HUM_HZ):
                level = 1 - level
                sink.write(f"{time.monotonic_ns()} {level}\n")

    def stop(self) -> None:
        """Ends it."""
        self._ended.set()
        self.join()


class RehearsalRig:
    """Gives the meter's name, the board and a second meter; close() ends everything."""

    def __init__(self, rig: DrawnRig, *, root: Path, storage: Path) -> None:
        """Starts everything.

        Args:
            storage: folder for the simulated board's files; made here, and removed in the end.
        """
        self._open = ExitStack()
        storage.mkdir(parents=True)
        self._open.callback(shutil.rmtree, storage, ignore_errors=True)
        self.witness = Witness(1.02 if rig.plant == "second-meter" else 1.0, SHUNT_OHM + BETWEEN_OHM)
        try:
            power = rig.power
            load = PlayedLoad(power, self.witness, rig.sign)
            simulator = MediumSimulator(root / "build" / "loader" / PROGRAM, power.board, power.medium)
            self._open.callback(simulator.close)
            supply = SimulatedSupply(
                rig.sensor,
                load,
                root=root,
                truth=storage / "truth.json",
                seed=rig.seed,
                medium=power.medium,
                work=simulator.work,
                course=False,
            )
            self._open.callback(supply.close)
            unheard = LineFifo(supply.folder / "unheard.fifo")
            self._open.callback(unheard.close)
            wired = rig.plant not in ("dead-sync", "floating-d8")
            self.board = simulated_board(
                rig.profile,
                supply,
                simulator,
                installed_here(root / "build", ""),
                storage,
                None,
                sync=True,
                kept=None,
                line=supply.feed.sync if wired else unheard,
                slowed=rig.plant != "wrong-medium",
                playing=lambda probe, folder: PlayingProbe(probe, load, folder),
            )
            self._open.callback(self.board.close)
            if rig.plant == "floating-d8":
                hum = Hum(supply.feed.sync)
                hum.start()
                self._open.callback(hum.stop)
        except BaseException:
            self.close()
            raise
        self.meter = rig.meter(supply.meter.removeprefix("serial:").partition(",")[0])

    def close(self) -> None:
        """Ends everything, and removes what was temporary."""
        self._open.close()
