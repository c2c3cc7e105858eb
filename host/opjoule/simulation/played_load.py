"""Load patterns that a simulated board plays by its power model alone, for the rehearsal of a commissioning. SIMULATED.

The probe of a simulated board burns this computer's processors, of which a busy computer has few to give: a rehearsal
would fail for want of them. Here the model draws what a board with free processors would.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from opjoule.devices.programs.probe import BoardProbe
from opjoule.simulation.delayed_probe import ForwardingProbe
from opjoule.simulation.medium_work import MediumStretch
from opjoule.simulation.power_model import Activity, LoadModel, PowerModel
from opjoule.simulation.second_meter import Witness

MARGIN_NS: Final = 300_000_000
"""Idle before and behind a pattern; longer than the model waits for what happens."""


class PlayedLoad(LoadModel):
    """The board's power model with patterns on top, told to a second meter."""

    def __init__(self, model: PowerModel, witness: Witness, sign: int = 1) -> None:
        """Nothing is played yet.

        Args:
            sign: -1 for a sensor whose inputs are exchanged.
        """
        self._model, self._witness, self._sign = model, witness, sign
        self._lock = threading.Lock()
        self._changes: list[tuple[int, int]] = []
        """Time [board_ns] and level from then on."""
        self._level = 0

    def play(self, changes: Sequence[tuple[int, int]]) -> None:
        """Plays a pattern of the future: times [board_ns] and the levels from then on, 1 for busy."""
        with self._lock:
            self._changes += changes

    def rows(
        self, activity: Activity, later: Sequence[Activity], busy: Sequence[MediumStretch]
    ) -> list[tuple[int, float, float]]:
        """A row at each change of what the medium does, and of the pattern."""
        model, rows = self._model, []
        busy_cores = activity.cpu_s / activity.span_s
        for stretch in model.stretches(activity, busy):
            for at_ns, level in self._levels(stretch.start_ns, stretch.end_ns):
                cores = busy_cores + level * (len(model.board.busy_cores_w) - 1)
                power_w = model.board.power_w(cores) + model.medium.idle_w + model.medium_w(stretch.mode)
                rows.append((at_ns, *model.supply.at_power(power_w)))
        self._witness.tell(rows)
        return [(at_ns, self._sign * current_a, volts) for at_ns, current_a, volts in rows]

    def _levels(self, start_ns: int, end_ns: int) -> list[tuple[int, int]]:
        """The levels of a stretch, each from its time on; stretches follow on each other."""
        with self._lock:
            while self._changes and self._changes[0][0] <= start_ns:
                self._level = self._changes.pop(0)[1]
            levels = [(start_ns, self._level)]
            while self._changes and self._changes[0][0] < end_ns:
                levels.append(self._changes.pop(0))
                self._level = levels[-1][1]
        return levels


class PlayingProbe(ForwardingProbe):
    """A probe whose load patterns go to the power model; everything else is the probe's."""

    def __init__(self, probe: BoardProbe, load: PlayedLoad, folder: Path) -> None:
        """Stands before a running probe.

        Args:
            folder: the probe's, for the changes of each pattern.
        """
        super().__init__(probe)
        self._load, self._folder = load, folder
        self._played = 0

    def play_signature(self, bits: str, bit_ms: int) -> tuple[int, int]:
        """Has the model play the pattern; its start and end [board_ns]."""
        start_ns = time.monotonic_ns() + MARGIN_NS
        end_ns = start_ns + len(bits) * bit_ms * 1_000_000
        levels = np.array([int(bit) for bit in bits])
        steps = np.diff(np.concatenate([[0], levels, [0]]))
        places = np.flatnonzero(steps)
        changes = [(start_ns + int(at) * bit_ms * 1_000_000, int(steps[at] > 0)) for at in places]
        self._load.play(changes)
        self._played += 1
        lines = [
            json.dumps({"event": "load-change", "board_ns": at_ns, "u_ns": 0.0, "level": level})
            for at_ns, level in changes
        ]
        path = self._folder / f"played-{self._played}.events.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines))
        time.sleep(max(end_ns + MARGIN_NS - time.monotonic_ns(), 0) * 1e-9)
        return start_ns, end_ns
