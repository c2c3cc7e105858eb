"""Another program running on the board while it is measured (study S2's disturbed condition), stated in the result."""

import contextlib
from dataclasses import astuple, dataclass

from opjoule.base.errors import BadInput, DeviceFault, LinkFault, unknown
from opjoule.boards.on_board import script
from opjoule.boards.programs.runner import Runner

_SCRIPT = script("disturb.sh")
TAG = "disturbance"
"""Tag of the disturbance's folder on the board."""


@dataclass(frozen=True)
class Disturbance:
    """One background load."""

    name: str
    about: str
    cpu_percent: int = 0
    """Share of one processor, in bursts within each second."""
    read_kib_per_s: int = 0
    write_kib_per_s: int = 0
    file_mib: int = 0
    """File on the measured medium that is read and written."""


DISTURBANCES = {
    load.name: load
    for load in (
        Disturbance("cpu", "one processor busy all the time", cpu_percent=100),
        Disturbance(
            "video",
            "like a video played in software: 60 % of one processor, 640 KiB/s read from the measured medium",
            cpu_percent=60,
            read_kib_per_s=640,
            file_mib=64,
        ),
        Disturbance(
            "writer",
            "like a logger: 512 KiB written and synced to the measured medium each second",
            write_kib_per_s=512,
            file_mib=8,
        ),
    )
}


def find_disturbance(name: str) -> Disturbance:
    """The disturbance called `name`. Raises: BadInput: unknown; names the known ones."""
    if name not in DISTURBANCES:
        raise BadInput(unknown("disturbance", name, sorted(DISTURBANCES)))
    return DISTURBANCES[name]


class RunningDisturbance:
    """The load on the board, from the start until stop(), or until this program or the connection ends."""

    def __init__(self, runner: Runner, disturbance: Disturbance, folder: str) -> None:
        """Starts the load, with its file in the board's `folder`. Raises: DeviceFault: it does not start."""
        _, _, *numbers = astuple(disturbance)
        command = ["sh", "-c", _SCRIPT, "sh", folder, *map(str, numbers)]
        self._run = runner.start(command, TAG, None, pinned=False)
        if next(self._run.lines(), None) != {"ready": True}:
            self.stop()
            raise DeviceFault(f"the disturbance '{disturbance.name}' does not start in {folder} on the board")

    def stop(self) -> None:
        """Ends the load and removes its file. After a lost link the board does so itself."""
        self._run.interrupt()
        with contextlib.suppress(LinkFault):
            self._run.wait()
