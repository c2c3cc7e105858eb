"""Brings a board back after a measurement that could not do it itself: a killed host, a cut link, a power cut."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

from opjoule.devices.connection.board_lock import SILENCE_S, BoardLock
from opjoule.devices.connection.fetching import stop_and_fetch
from opjoule.devices.connection.sessions import find_sessions, remove_sessions
from opjoule.devices.connection.shell import Shell
from opjoule.devices.connection.steps import JOURNAL, undo_steps
from opjoule.devices.media.kept_databases import find_kept, remove_kept
from opjoule.devices.on_board import script
from opjoule.devices.state.facts import BoardFacts, read_facts
from opjoule.errors import DeviceFault

_RUNS = script("runs_left.sh")


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
