"""A board as a load: the probe keeps its processors busy part of the time, step by step. For calibrations."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from opjoule.boards.connection.board_lock import BoardLock
from opjoule.boards.connection.sessions import new_session, remove_sessions
from opjoule.boards.programs.binaries import install_programs
from opjoule.boards.programs.probe import Probe
from opjoule.boards.programs.runner import PROBE_FOLDER
from opjoule.boards.rig.board import open_shell
from opjoule.boards.rig.file import RigDevice
from opjoule.boards.state.board_state import read_facts

CHIPS: Final = 8
"""Number of chips in a repeating pattern; a step is busy in some of them."""
CHIP_MS: Final = 20
PERIOD_NS: Final = CHIPS * CHIP_MS * 1_000_000
LEVELS: Final = (0, 2, 4, 6, 8)
LEAD_S: Final = 1.0
"""Start of a step, in which supply and frequencies settle; the probe idles 250 ms before and after."""
TAIL_S: Final = 0.5


def pattern(level: int, seconds: float) -> str:
    """The probe's load signature of this duration, busy in `level` of 8 chips, evenly spread."""
    chips = "".join("1" if (chip + 1) * level // CHIPS > chip * level // CHIPS else "0" for chip in range(CHIPS))
    return chips * max(round(seconds * 1e9 / PERIOD_NS), 1)


LoadSteps = Callable[[int, float], tuple[int, int]]
"""play() on a board whose probe runs."""


def play(probe: Probe, level: int, seconds: float) -> tuple[int, int]:
    """Plays one step; returns start and end [host_ns] of `seconds` of it, whole periods of the pattern.

    Raises: LinkFault, DeviceFault: the board does not answer.
    """
    begun_ns = time.monotonic_ns()
    probe.play_signature(pattern(level, LEAD_S + seconds + TAIL_S), CHIP_MS)
    start_ns = begun_ns + round(LEAD_S * 1e9)
    periods = max((time.monotonic_ns() - round(TAIL_S * 1e9) - start_ns) // PERIOD_NS, 1)
    return start_ns, start_ns + min(periods, round(seconds * 1e9 / PERIOD_NS)) * PERIOD_NS


@contextmanager
def load_steps(described: RigDevice, builds: Path) -> Iterator[LoadSteps]:
    """Connects to a board and runs the probe there; it changes nothing else, and nothing stays installed.

    Raises: LinkFault, DeviceFault: out of reach, without the probe, or in use by another measurement.
    """
    with closing(open_shell(described)) as shell:
        facts = read_facts(shell)
        programs = install_programs(shell, builds, facts.machine, facts.cache)
        folder = f"{facts.work}/{new_session()}"
        shell.run(["mkdir", "-p", "--", folder])
        try:
            with closing(BoardLock(shell, facts.work)) as lock:
                lock.confirm()
                with closing(Probe(shell, programs.probe, f"{folder}/{PROBE_FOLDER}", [])) as probe:
                    yield partial(play, probe)
        finally:
            remove_sessions(shell, [folder])
