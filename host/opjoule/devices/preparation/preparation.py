"""Brings a board into its measuring state, watches that it stays there, and puts it back; or clears up after a run.

A measurement cannot put it back itself after a killed host, a cut link or a power cut: recover() does so then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from opjoule.devices.connection.board_lock import SILENCE_S, BoardLock
from opjoule.devices.connection.sessions import find_sessions, remove_sessions, stop_and_fetch
from opjoule.devices.connection.shell import LocalShell, Shell
from opjoule.devices.connection.steps import JOURNAL, Change, make_changes, undo_steps
from opjoule.devices.media.medium import Medium, find_kept, remove_kept
from opjoule.devices.on_board import script
from opjoule.devices.preparation.changes import PreparePlan, plan_preparation
from opjoule.devices.profiles import Profile
from opjoule.devices.programs.workload_run import RECONNECT_S
from opjoule.devices.state.block_devices import BlockDevices, device_number
from opjoule.devices.state.board_state import BoardFacts, read_facts, read_state
from opjoule.devices.state.state_gate import StateWatch
from opjoule.devices.state.state_settings import StateSettings
from opjoule.errors import BadInput, DeviceFault, RigFault

_MAKE_STORAGE = 'mkdir -p -- "$1" && exec stat -c %d -- "$1"'
_RUNS = script("runs_left.sh")


def plan_for(
    shell: Shell,
    board: BoardFacts,
    medium: Medium,
    wanted: StateSettings,
    cpufreq: str,
    sync: str | None = None,
) -> tuple[PreparePlan, BlockDevices]:
    """Reads the board's settings and plans how to bring it into the wanted state; the plan and the block devices.

    Raises: BadInput: the medium may not be written to as asked, or a setting that the board cannot take.
    """
    state = read_state(shell, board.rights, cpufreq=cpufreq, device=medium.device, path=medium.path)
    plan = plan_preparation(
        state,
        wanted,
        medium,
        rights=board.rights,
        user=board.values.get("user", ""),
        interface=board.connection_interface,
        remote=not isinstance(shell, LocalShell),
        found_by_mdns=shell.hostname.endswith(".local"),
        gpio_denied=bool(sync) and board.values.get("gpio") == "denied",
    )
    return plan, state.blocks


@dataclass(eq=False)
class Preparation:
    """Preparation of a board that has no settings: only the directory on its medium is made."""

    shell: Shell
    storage: str

    def prepare(self) -> list[str]:
        """Brings the board into its measuring state; returns what was done, one line each."""
        make_storage(self.shell, self.storage, "free some space, or start anew")
        return [f"directory {self.storage}"]

    def watch_state(self, steering: Callable[[], dict[str, Any]]) -> StateWatch | None:
        """The state gate, to be started once prepare() is done; None where there is no state to watch."""
        return None

    @property
    def keeps_files(self) -> bool:
        """Are files on the medium still there in the next measurement?"""
        return True

    def before_run(self) -> None:
        """Called between the load and each run: the page cache is dropped where the state asks for it."""

    def restore(self) -> list[str]:
        """Undoes prepare(); what could not be undone, one line each. Never raises for a board that is gone."""
        return []

    def close(self) -> None:
        """Lets others have the board."""


@dataclass(eq=False)
class BoardPreparation(Preparation):
    """Preparation of a real board: settings, medium, and a lock, so that no two measurements change it at once."""

    profile: Profile
    board: BoardFacts
    medium: Medium
    _: KW_ONLY
    sync: str | None
    """The sync line's carrier, which the user must be able to open; None for none."""
    wanted: StateSettings
    cpufreq: str
    journal: str = JOURNAL
    """The board's folder that says what has to be undone."""
    history: Path | None = None
    """Host file with earlier speeds of the media; None for no comparison."""

    def __post_init__(self) -> None:
        """Asks for the board's lock; nothing is changed yet."""
        self._blocks = BlockDevices({})
        self._storage_number = ""
        self._locked = False
        self._lock = BoardLock(self.shell, self.board.work)

    def prepare(self) -> list[str]:
        """Undoes what an interrupted run has left, runs the plan's steps, and makes the storage directory.

        Raises: BadInput, DeviceFault: a step that the measurement cannot do without has failed.
        """
        self._lock.confirm()  # what another measurement has changed must not be undone under it
        self._locked = True
        done = []
        if self.board.journal_left:
            undone, left = undo_changes(self.shell, self.board, self.journal)
            done = [f"left by an earlier run: {line}" for line in undone + left]
        settings = self.medium, self.wanted, self.cpufreq, self.sync
        plan, self._blocks = plan_for(self.shell, self.board, *settings)
        done += plan.lines()
        if plan.steps:
            outcomes = self._make(plan.steps)
            for number, step in enumerate(plan.steps, 1):
                outcome, *why = outcomes.get(f"{number:04}", ["failed", "not reached"])
                if outcome != "done" and step.is_needed:
                    raise DeviceFault(
                        f"the board cannot be prepared: {step.about}: {' '.join(why) or 'failed'}"
                    )
                if outcome != "done":
                    done.append(f"FAILED: {step.about}: {' '.join(why)}")
        remedy = f"mend [device.{self.profile.name}.storage] in rig.toml"
        self._storage_number = device_number(make_storage(self.shell, self.medium.path, remedy))
        return done

    def _make(self, steps: list[Change]) -> dict[str, list[str]]:
        return make_changes(self.shell, self.board.rights, steps, self.journal)

    def watch_state(self, steering: Callable[[], dict[str, Any]]) -> StateWatch:
        """The state gate of this measurement; `steering` reads how the board's clock is steered."""
        device = self._blocks.by_number(self._storage_number)
        whole = self._blocks.devices.get(device.whole, device) if device else None
        storage = self.storage
        known = [whole.model, whole.serial, f"{whole.size_bytes} bytes"] if whole else [storage]
        return StateWatch(
            self.shell,
            self.profile,
            storage=storage,
            identity=" ".join(part for part in [self.board.values.get("hostname", ""), *known] if part),
            cpufreq=self.cpufreq,
            history=self.history,
            discipline=steering,
        )

    @property
    def keeps_files(self) -> bool:
        """Not on a file system that is made anew each time."""
        return self.wanted.file_system != "new"

    def before_run(self) -> None:
        """Drops the page cache, if the state asks for it and the user may."""
        if self.wanted.page_cache == "drop" and self.board.rights != "none":
            self._make([Change("page cache dropped", ("drop_page_cache",))])

    def restore(self) -> list[str]:
        """Undoes prepare(), after a lost link once the board is back; what could not be undone, one line each."""
        if not self._locked:
            return []
        try:
            if not self.shell.is_up() and not self.shell.reconnect(RECONNECT_S):
                return [
                    f"the board is out of reach ({self.shell.why_down()}): restore it with measure.py restore"
                ]
            return undo_changes(self.shell, self.board, self.journal)[1]
        except RigFault as error:
            return [f"the board could not be restored: {error}; run measure.py restore"]

    def close(self) -> None:
        """Gives the board's lock back."""
        self._lock.close()


def make_storage(shell: Shell, storage: str, remedy: str) -> str:
    """Makes the directory on the medium; the number of the device that it is on. Raises: BadInput: that failed."""
    made = shell.run(["sh", "-c", _MAKE_STORAGE, "sh", storage])
    if made.status != 0:
        raise BadInput(f"cannot make {storage} on the board: {made.last_line()}; {remedy}")
    return made.text().strip()


def recover(
    shell: Shell, storage: list[str], fetched: Path, journal: str = JOURNAL, *, kept: bool = False
) -> tuple[list[str], list[str]]:
    """Stops loaders, fetches what they left, removes databases, undoes every change in the board's journal.

    Args:
        fetched: host folder for the loaders' files, one folder a loader.
        kept: remove the databases that are kept for --reset copy, too; otherwise they are named.
    Returns: what was done, and what could not be done; one line each.
    Raises: LinkFault: the connection is gone. DeviceFault: another measurement runs, a loader does not stop, or the
        board refuses.
    """
    board = read_facts(shell, journal=journal)
    done: list[str] = []
    left: list[str] = []
    # a lost connection lets go of the lock within SILENCE_S
    with closing(BoardLock(shell, board.work, wait_s=2 * SILENCE_S)) as lock:
        lock.confirm()
        sessions = find_sessions(shell, [board.work])
        for folder in shell.run(["sh", "-c", _RUNS, "sh", *sessions]).text().split("\0")[:-1]:
            target = fetched / "-".join(folder.rsplit("/", 2)[-2:])
            target.mkdir(parents=True, exist_ok=True)
            names = ", ".join(sorted(stop_and_fetch(shell, folder, target))) or "none"
            done.append(f"files of an interrupted run fetched to {target}: {names}")
        made = sessions + find_sessions(shell, storage)
        databases = find_kept(shell, storage)  # while the media are still mounted
        removals = [partial(remove_sessions, shell, [folder]) for folder in made]
        removals += [partial(remove_kept, shell, [database]) for database in databases if kept]
        for remove in removals:
            try:
                done += [f"removed {gone}" for gone in remove()]
            except DeviceFault as error:
                left.append(f"NOT removed: {error}")
        if not kept:
            done += [
                f"kept for --reset copy, restore --kept removes it: {database}" for database in databases
            ]
        undone, not_undone = undo_changes(shell, board, journal)
    return done + undone, left + not_undone


def undo_changes(shell: Shell, board: BoardFacts, journal: str = JOURNAL) -> tuple[list[str], list[str]]:
    """Undoes all of the board's journal, the last change first; returns what was undone and what could not be."""
    if board.rights == "none":
        return [], [f"NOT undone: {journal} needs root rights"] if board.journal_left else []
    outcomes = undo_steps(shell, board.rights, journal)
    undone = [f"undone: {' '.join(about)}" for outcome, *about in outcomes.values() if outcome == "done"]
    left = [f"NOT undone: {' '.join(why)}" for outcome, *why in outcomes.values() if outcome != "done"]
    return undone, left
