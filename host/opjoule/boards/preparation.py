"""Brings a board into its measuring state, monitors that state, and restores the board.

A board that a measurement could not restore is cleaned up: after a killed host, a cut link, a power cut.
"""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from opjoule.base.errors import BadInput, DeviceFault, RigFault
from opjoule.base.settings import MEDIUM
from opjoule.boards.board_state import BlockDevices, BoardFacts, StateSettings, device_number, read_facts, read_state
from opjoule.boards.changes import PreparePlan, plan_preparation
from opjoule.boards.medium import Medium, find_kept, mount_steps, remove_kept
from opjoule.boards.profiles import Profile
from opjoule.boards.runner import RECONNECT_S
from opjoule.boards.sessions import BoardLock, find_sessions, remove_sessions, stop_and_fetch
from opjoule.boards.shell import SILENCE_S, LocalShell, Shell, script
from opjoule.boards.state_gate import StateWatch
from opjoule.boards.steps import (
    JOURNAL,
    Change,
    as_root,
    helper_command,
    helper_orders,
    prepare_script,
    restore_script,
)

_RUNS = script("runs_left.sh")
_LIMIT_S = 3600.0


def recover(
    shell: Shell, media: Iterable[Medium], fetched: Path, journal: str = JOURNAL, *, kept: bool = False
) -> tuple[list[str], list[str]]:
    """Stops loaders, fetches their files, undoes every change in the board's journal, and removes databases.

    A medium with a device of its own is mounted while it is searched.

    Args:
        fetched: host folder for the loaders' files, one folder per loader.
        kept: also remove the databases that are kept for --reset copy; otherwise they are listed.
    Returns: completed actions, and failures; one line each.
    Raises: LinkFault: the connection is gone. DeviceFault: another measurement is running, a loader does not stop, or
        the board refuses.
    """
    board = read_facts(shell, journal=journal)
    done: list[str] = []
    # after a lost connection, the lock is released within SILENCE_S
    with closing(BoardLock(shell, board.work, wait_s=2 * SILENCE_S)) as lock:
        lock.confirm()
        sessions = find_sessions(shell, [board.work])
        for folder in shell.run(["sh", "-c", _RUNS, "sh", *sessions]).text().split("\0")[:-1]:
            target = fetched / "-".join(folder.rsplit("/", 2)[-2:])
            target.mkdir(parents=True, exist_ok=True)
            names = ", ".join(sorted(stop_and_fetch(shell, folder, target))) or "none"
            done.append(f"files of an interrupted run fetched to {target}: {names}")
        removed, left = _remove_each(partial(remove_sessions, shell), sessions)
        # Before the media are searched: an unjournalled file system is checked when it gets its journal back.
        undone, not_undone = undo_changes(shell, board)
        for medium in {(medium.path, medium.device): medium for medium in media}.values():
            left += _mount(shell, board, medium) if medium.device else []
            more, not_removed = _clear(shell, medium, kept=kept)
            removed += more
            left += not_removed
            if medium.device:
                not_undone = undo_changes(shell, board)[1]
    return done + removed + undone, left + not_undone


def _mount(shell: Shell, board: BoardFacts, medium: Medium) -> list[str]:
    """Mounts a medium that has its own device, as a change in the journal; returns a line if that fails."""
    try:
        state = read_state(shell, board.rights, cpufreq="", device=medium.device, path=medium.path)
        steps = list(mount_steps(state, medium))
        if not steps:
            return []
        if board.rights == "none":
            return [f"NOT looked at: {medium.path} is not mounted, and mounting it needs root rights"]
        why = make_changes(shell, board, steps)[-1]
    except (BadInput, DeviceFault) as error:
        return [f"NOT looked at: {error}"]
    return [f"NOT looked at: {medium.path} is not mounted: {why}"] if why else []


def _clear(shell: Shell, medium: Medium, *, kept: bool) -> tuple[list[str], list[str]]:
    """Removes the sessions' files on a medium, and removes or lists its kept databases."""
    removed, left = _remove_each(partial(remove_sessions, shell), find_sessions(shell, [medium.path]))
    databases = find_kept(shell, [medium.path])
    if kept:
        more, not_removed = _remove_each(partial(remove_kept, shell), databases)
    else:
        more = [f"kept for --reset copy, restore --kept removes it: {database}" for database in databases]
        not_removed = []
    return removed + more, left + not_removed


def _remove_each(remove: Callable[[list[str]], list[str]], folders: list[str]) -> tuple[list[str], list[str]]:
    """Removes folders one by one; a line for each that is removed, and for each failure."""
    done: list[str] = []
    left: list[str] = []
    for folder in folders:
        try:
            done += [f"removed {gone}" for gone in remove([folder])]
        except DeviceFault as error:
            left.append(f"NOT removed: {error}")
    return done, left


def make_changes(shell: Shell, board: BoardFacts, steps: list[Change]) -> list[str]:
    """Makes changes on the board, in order; each is recorded in the journal there first.

    Returns: for each change, the reason why it was not made; empty if it was.
    Raises: LinkFault: the connection is gone. DeviceFault: the board did not accept the steps.
    """
    if board.rights == "helper":
        outcomes = _outcomes(shell, helper_command("change"), helper_orders(steps))
    else:
        outcomes = _outcomes(shell, [*as_root(board.rights), "sh", "-s"], prepare_script(steps, board.journal))
    missed = {number: "" if outcome == "done" else about or "failed" for outcome, number, about in outcomes}
    return [missed.get(f"{number:04}", "not reached") for number in range(1, len(steps) + 1)]


def undo_changes(shell: Shell, board: BoardFacts) -> tuple[list[str], list[str]]:
    """Undoes all changes in the board's journal, the last one first; returns the undone changes and the failures."""
    if board.rights == "none":
        return [], [f"NOT undone: {board.journal} needs root rights"] if board.journal_left else []
    if board.rights == "helper":
        outcomes = _outcomes(shell, helper_command("restore"), b"")
    else:
        outcomes = _outcomes(shell, [*as_root(board.rights), "sh", "-s"], restore_script(board.journal))
    undone = [f"undone: {about}" for outcome, _, about in outcomes if outcome == "done"]
    return undone, [f"NOT undone: {about}" for outcome, _, about in outcomes if outcome != "done"]


def _outcomes(shell: Shell, command: list[str], feed: bytes) -> list[tuple[str, str, str]]:
    """(outcome, number of the change, description or reason) of each change."""
    ran = shell.run(command, feed=feed, limit_s=_LIMIT_S)
    lines = ran.checked(f"{shell.target} cannot be prepared or restored").text().splitlines()
    parts = [[*line.split("\t", 2), "", ""] for line in lines]
    return [(outcome, number, about) for outcome, number, about, *_ in parts]


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
        remedy = f"mend [device.{self.profile.name}.{MEDIUM}] in rig.toml"
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
