"""Cleans up a board after a measurement that could not restore it: a killed host, a cut link, a power cut."""

from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path

from opjoule.base.errors import BadInput, DeviceFault
from opjoule.boards.connection.board_lock import BoardLock
from opjoule.boards.connection.sessions import find_sessions, remove_sessions, stop_and_fetch
from opjoule.boards.connection.shell import SILENCE_S, Shell
from opjoule.boards.connection.steps import (
    JOURNAL,
    Change,
    as_root,
    helper_command,
    helper_orders,
    prepare_script,
    restore_script,
)
from opjoule.boards.media.medium import Medium, find_kept, mount_steps, remove_kept
from opjoule.boards.on_board import script
from opjoule.boards.state.board_state import BoardFacts, read_facts, read_state

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
