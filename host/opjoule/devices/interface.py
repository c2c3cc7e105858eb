"""What the measurement needs from a board, real or simulated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from opjoule.clocks.exchanges import Exchange
from opjoule.devices.state_gate import StateWatch


class LoaderRun(Protocol):
    """One loader process on the board."""

    def lines(self) -> Iterator[dict[str, Any]]:
        """Its JSON lines as they come, phases and progress alike, until it ends."""
        ...

    def wait(self) -> int:
        """Waits for its end and returns its exit status; nothing else is done on the board."""
        ...

    def fetch(self) -> None:
        """Brings its files to the host, where they are on the board: work for the board, kept out of all windows."""
        ...

    def interrupt(self) -> None:
        """Asks it to stop, as Ctrl-C would; its files stay readable."""
        ...

    def complaint(self) -> str:
        """Its last plain line on stderr, or an empty string."""
        ...


class Device(Protocol):
    """A board under test. Paths given to it are on the board; `raw` is the host's directory for fetched files."""

    name: str
    simulated: bool
    cores: int
    storage: str
    """Folder on the chosen medium that holds the databases."""

    def facts(self) -> dict[str, Any]:
        """Kernel, machine, memory, loader version and hash: for run.json."""
        ...

    def storage_free_bytes(self) -> int | None:
        """How much room the medium has at most, exactly once prepare() is done [B]; None where nobody can say."""
        ...

    def prepare(self) -> list[str]:
        """Brings the board into its measuring state; returns what was done, one line each."""
        ...

    def watch_state(self) -> StateWatch | None:
        """The state gate, to be started once prepare() is done; None where there is no board to watch."""
        ...

    def before_run(self) -> None:
        """Called between the load and each run: the page cache is dropped where the state asks for it."""
        ...

    def restore(self) -> list[str]:
        """Undoes prepare(); what could not be undone, one line each. Never raises for a board that is gone."""
        ...

    def start_database(self, database: str, raw: Path) -> None:
        """Starts the server of a server database, whose samples go to `raw`; nothing to do for the others."""
        ...

    def database_path(self, database: str) -> str:
        """Where on the chosen medium the database of this run lives."""
        ...

    def copy_in(self, file: Path) -> str:
        """Copies one host file (a workload) to the board and returns its path there."""
        ...

    def start_loader(
        self, arguments: list[str], raw: Path, tag: str, stream: list[str] | None = None
    ) -> LoaderRun:
        """Starts the loader. Its op log, events and system samples end as raw/TAG.oplog, .events.jsonl, .system.csv.

        Args:
            stream: a command of this computer whose output are the operations; the loader replays them as they come.
        Raises: RigFault: the board cannot be reached or the loader cannot start.
        """
        ...

    def check_workload(self, arguments: list[str]) -> None:
        """Has the loader check all properties without touching a database.

        Raises: BadInput: the loader's own line.
        """
        ...

    def clock_exchange(self) -> Exchange:
        """One round trip between host_ns and board_ns.

        Raises: RigFault: the board does not answer.
        """
        ...

    def pending_write_bytes(self) -> int:
        """Bytes that the board has yet to write to its medium."""
        ...

    def sync_carrier(self) -> str | None:
        """The loader's --sync argument, or None without a sync line."""
        ...

    def remove_database(self, path: str) -> None:
        """Removes what this run stored on the medium."""
        ...

    def close(self) -> None:
        """Ends the connection."""
        ...
