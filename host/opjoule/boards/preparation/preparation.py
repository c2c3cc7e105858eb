"""Brings a board into its measuring state, monitors that state, and restores the board."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from opjoule.base.errors import BadInput, DeviceFault, RigFault
from opjoule.boards.connection.board_lock import BoardLock
from opjoule.boards.connection.shell import LocalShell, Shell
from opjoule.boards.connection.steps import Change
from opjoule.boards.media.medium import Medium
from opjoule.boards.preparation.changes import PreparePlan, plan_preparation
from opjoule.boards.preparation.recovery import make_changes, undo_changes
from opjoule.boards.profiles import Profile
from opjoule.boards.programs.runner import RECONNECT_S
from opjoule.boards.state.block_devices import BlockDevices, device_number
from opjoule.boards.state.board_state import BoardFacts, read_state
from opjoule.boards.state.state_gate import StateWatch
from opjoule.boards.state.state_settings import StateSettings

_MAKE_FOLDER = 'mkdir -p -- "$1" && exec stat -c %d -- "$1"'


def plan_for(
    shell: Shell,
    board: BoardFacts,
    medium: Medium,
    wanted: StateSettings,
    cpufreq: str,
    sync: str | None = None,
) -> tuple[PreparePlan, BlockDevices]:
    """Reads the board's settings and plans the changes to the wanted state; returns the plan and the block devices.

    Raises: BadInput: the medium may not be written to as requested, or a setting that the board does not support.
        DeviceFault: packages are being upgraded.
    """
    state = read_state(shell, board.rights, cpufreq=cpufreq, device=medium.device, path=medium.path)
    plan = plan_preparation(
        state,
        wanted,
        medium,
        board,
        remote=not isinstance(shell, LocalShell),
        found_by_mdns=shell.hostname.endswith(".local"),
        sync=bool(sync),
    )
    return plan, state.blocks


@dataclass(eq=False)
class Preparation:
    """Preparation of a board without settings: only the directory on its medium is created."""

    shell: Shell
    medium: Medium

    def prepare(self) -> list[str]:
        """Brings the board into its measuring state; returns a line for each action."""
        make_folder(self.shell, self.medium.path, "free some space, or start anew")
        return [f"directory {self.medium.path}"]

    def watch_state(self, steering: Callable[[], dict[str, Any]]) -> StateWatch | None:
        """The state gate, to be started after prepare(); None if there is no state to watch."""
        return None

    @property
    def keeps_files(self) -> bool:
        """Whether files on the medium are kept until the next measurement."""
        return True

    def before_run(self) -> None:
        """Called between the load and each run: drops the page cache if the state requires it."""

    def restore(self) -> list[str]:
        """Undoes prepare(); returns a line for each failure. Never raises for a board that is gone."""
        return []

    def close(self) -> None:
        """Releases the board for others."""


@dataclass(eq=False)
class BoardPreparation(Preparation):
    """Preparation of a real board: settings, medium, and a lock that excludes simultaneous measurements."""

    profile: Profile
    board: BoardFacts
    _: KW_ONLY
    sync: str | None
    """The sync line's carrier, which the user must have access to; None for no sync line."""
    wanted: StateSettings
    cpufreq: str
    history: Path | None = None
    """Host file with earlier speeds of the media; None for no comparison."""

    def __post_init__(self) -> None:
        """Requests the board's lock; nothing is changed yet."""
        self._blocks = BlockDevices({})
        self._device_number = ""
        self._locked = False
        self._lock = BoardLock(self.shell, self.board.work)

    def prepare(self) -> list[str]:
        """Undoes the changes of an interrupted run, runs the plan's steps, and creates the folder on the medium.

        Raises: BadInput, DeviceFault: a step that the measurement requires has failed.
        """
        self._lock.confirm()  # before the lock is held, the changes may be those of a running measurement
        self._locked = True
        done = []
        if self.board.journal_left:
            undone, left = undo_changes(self.shell, self.board)
            done = [f"left by an earlier run: {line}" for line in undone + left]
        settings = self.medium, self.wanted, self.cpufreq, self.sync
        plan, self._blocks = plan_for(self.shell, self.board, *settings)
        done += plan.lines()
        if plan.steps:
            reasons = make_changes(self.shell, self.board, plan.steps)
            failed = [(step, why) for step, why in zip(plan.steps, reasons, strict=True) if why]
            for step, why in failed:
                if step.is_needed:
                    raise DeviceFault(f"the board cannot be prepared: {step.about}: {why}")
                done.append(f"FAILED: {step.about}: {why}")
        remedy = f"mend [device.{self.profile.name}.storage] in rig.toml"
        self._device_number = device_number(make_folder(self.shell, self.medium.path, remedy))
        return done

    def watch_state(self, steering: Callable[[], dict[str, Any]]) -> StateWatch:
        """The state gate of this measurement; `steering` reads the adjustment of the board's clock."""
        device = self._blocks.by_number(self._device_number)
        whole = self._blocks.devices.get(device.whole, device) if device else None
        known = [whole.model, whole.serial, f"{whole.size_bytes} bytes"] if whole else [self.medium.path]
        return StateWatch(
            self.shell,
            self.profile,
            folder=self.medium.path,
            identity=" ".join(part for part in [self.board.values.get("hostname", ""), *known] if part),
            cpufreq=self.cpufreq,
            history=self.history,
            discipline=steering,
        )

    @property
    def keeps_files(self) -> bool:
        """False for a file system that is created anew each time."""
        return self.wanted.file_system != "new"

    def before_run(self) -> None:
        """Drops the page cache, if the state requires it and the user has the rights."""
        if self.wanted.page_cache == "drop" and self.board.rights != "none":
            make_changes(self.shell, self.board, [Change("page cache dropped", ("drop_page_cache",))])

    def restore(self) -> list[str]:
        """Undoes prepare(), after a lost link once the board is back; returns a line for each failure."""
        if not self._locked:
            return []
        try:
            if not self.shell.is_up() and not self.shell.reconnect(RECONNECT_S):
                return [f"the board is out of reach ({self.shell.why_down()}): restore it with measure.py restore"]
            return undo_changes(self.shell, self.board)[1]
        except RigFault as error:
            return [f"the board could not be restored: {error}; run measure.py restore"]

    def close(self) -> None:
        """Releases the board's lock."""
        self._lock.close()


def make_folder(shell: Shell, folder: str, remedy: str) -> str:
    """Creates the directory on the medium; returns its device number. Raises: BadInput: that failed."""
    made = shell.run(["sh", "-c", _MAKE_FOLDER, "sh", folder])
    if made.status != 0:
        raise BadInput(f"cannot make {folder} on the board: {made.last_line()}; {remedy}")
    return made.text().strip()
