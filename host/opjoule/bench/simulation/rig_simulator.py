"""The rig simulator as a process: the meter's real firmware behind a pty."""

import os
import subprocess
import time
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from opjoule.base.errors import RigFault
from opjoule.base.files import ProcessFolder
from opjoule.bench.simulation.imperfections import Imperfections

_START_LIMIT_S: Final = 60.0
_MEMORY: Final = Path("/dev/shm")


def folder_in_memory() -> ProcessFolder:
    """A temporary folder of this process, in memory if possible, so that no disk disturbs a simulated board."""
    return ProcessFolder(f"opjoule-twin-{os.getpid()}-", _MEMORY if os.access(_MEMORY, os.W_OK) else None)


def _end_if_left(process: subprocess.Popen[bytes]) -> None:
    """Kills a simulator that outlives its owner."""
    if process.poll() is None:
        process.kill()
        process.wait()  # else it stays as a zombie where no init process reaps it


def known_load(
    folder: Path, rows: Iterable[tuple[float, float, float]], edges: Iterable[tuple[float, int]] = ()
) -> list[str]:
    """Options for a load that is known beforehand, played as fast as possible; its files are written to `folder`.

    Args:
        rows: time [s] and the current [A] and voltage [V] from then on; the load ends with the last one.
        edges: time [s] and level of the sync line.
    """
    profile, sync = folder / "profile.csv", folder / "edges.csv"
    lines = (f"{time_s:.6f},{current_a:.6f},{voltage_v:.6f}\n" for time_s, current_a, voltage_v in rows)
    profile.write_text("time_s,current_a,voltage_v\n" + "".join(lines))
    sync.write_text("time_s,level\n" + "".join(f"{time_s:.6f},{level}\n" for time_s, level in edges))
    return ["--profile", str(profile), "--sync", str(sync), "--pace", "0"]


class RigSimulator:
    """One running rig-sim: a drawn sensor on a load; end() ends it."""

    def __init__(
        self, root: Path, folder: Path, load: Sequence[str], drawn: Imperfections, seed: int, truth: Path
    ) -> None:
        """Starts rig-sim and waits for its pty.

        Args:
            folder: temporary folder for its pty and log.
            load: options of the load: known_load(), or a feed that is followed.
            drawn: the sensor's errors; `seed` is that of its noise.
            truth: file for the true energies.
        Raises: RigFault: it does not start.
        """
        self.port = folder / "meter"
        """The pty."""
        self._log = (folder / "rig-sim.log").open("w+")
        firmware = ("--elf", str(root / ".pio/build/uno/firmware.elf"), "--pty", str(self.port))
        known = ("--truth", str(truth), "--seed", str(seed), *drawn.options())
        self._process = subprocess.Popen(
            [str(root / "build/rig-sim/rig-sim"), *firmware, *load, *known],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        # On a Ctrl-C before it has an owner, it would wait for its input for ever.
        weakref.finalize(self, _end_if_left, self._process)
        try:
            self._await()
        except BaseException:  # nobody else has a reference to end it
            self.end()
            raise

    def _await(self) -> None:
        limit_s = time.monotonic() + _START_LIMIT_S
        while not self.port.exists():
            if self._process.poll() is not None or time.monotonic() > limit_s:
                raise RigFault(
                    f"the rig simulator did not start: {self.last_words()}; run host/measure.py doctor --simulate"
                )
            time.sleep(0.01)

    def status(self, wait_s: float = 0.0) -> int | None:
        """Exit status of the simulator; None if it still runs after `wait_s`."""
        try:
            return self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return None

    def last_words(self) -> str:
        """The last line of its output."""
        self._log.seek(0)
        return (self._log.read().strip().splitlines() or ["it said nothing"])[-1]

    def end(self, limit_s: float = 0.0) -> None:
        """Ends the process unless it ends by itself within `limit_s`; may be called twice."""
        if self.status(limit_s) is None:
            self._process.terminate()
            self._process.wait()
        self._log.close()
