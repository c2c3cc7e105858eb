"""The board that is this computer: the host software runs on the board under test itself."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from opjoule.clocks.exchanges import Exchange
from opjoule.databases.registry import is_server
from opjoule.devices.loader_process import LoaderProcess
from opjoule.devices.operation_stream import OperationStream
from opjoule.errors import BadInput, RigFault


def loader_files(raw: Path, tag: str) -> dict[str, Path]:
    """Where the files of the loader run `tag` end up, by the loader option that writes them."""
    return {
        "--op-log": raw / f"{tag}.oplog",
        "--events": raw / f"{tag}.events.jsonl",
        "--system": raw / f"{tag}.system.csv",
    }


def file_options(command: str, files: dict[str, Path]) -> list[str]:
    """The loader's file options for one subcommand; `idle` and `sync` have no operations to log."""
    return [
        part
        for option, path in files.items()
        if command not in {"idle", "sync"} or option != "--op-log"
        for part in (option, str(path))
    ]


def _system() -> str | None:
    """Name and version of the operating system, as os-release has it."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _cpu() -> str | None:
    """The processor's own name; ARM kernels give none."""
    with Path("/proc/cpuinfo").open(errors="replace") as lines:
        names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        return next(names, None)


def start_stream(stream: list[str] | None, raw: Path, tag: str) -> OperationStream | None:
    """Starts the program that makes the operations, if one is to; its own words go to raw/TAG.generator.log."""
    return OperationStream(stream, raw / f"{tag}.generator.log") if stream else None


class LocalDevice:
    """Runs the loader as a child process on this computer."""

    simulated = False

    def __init__(self, name: str, cores: int, loader: Path, storage: Path, sync: str | None) -> None:
        self.name = name
        self.cores = cores
        self._loader = loader
        self._storage = storage
        self.storage = str(storage)
        self._sync = sync

    def facts(self) -> dict[str, Any]:
        """Kernel, machine, memory and the loader's hash."""
        names = os.uname()
        return {
            "connection": "local",
            "kernel": f"{names.sysname} {names.release}",
            "machine": names.machine,
            "system": _system(),
            "cpu": _cpu(),
            "processors": os.cpu_count(),
            "python": platform.python_version(),
            "loader_sha256": hashlib.sha256(self._loader.read_bytes()).hexdigest(),
            "storage_path": self.storage,
            "storage_free_bytes": self.storage_free_bytes(),
        }

    def storage_free_bytes(self) -> int | None:
        """Free bytes of the disk that the storage directory is on, or will be."""
        there = next(place for place in (self._storage, *self._storage.absolute().parents) if place.exists())
        return shutil.disk_usage(there).free

    def prepare(self) -> list[str]:
        """Makes the storage directory."""
        try:
            self._storage.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"cannot make {self._storage}: {error.strerror}; mend [device.{self.name}.storage] in rig.toml"
            ) from error
        return [f"directory {self._storage}"]

    def watch_state(self) -> None:
        """A simulated board has no sensors."""

    def before_run(self) -> None:
        """This computer's page cache is left alone."""

    def restore(self) -> list[str]:
        """Nothing was changed."""
        return []

    def start_database(self, database: str, raw: Path) -> None:
        """Only databases inside the loader: the power model sees no other process.

        Raises: BadInput: a server database.
        """
        if is_server(database):
            raise BadInput(
                f"{database} runs as a server of its own, which a simulated board's power model does not see"
            )

    def database_path(self, database: str) -> str:
        """A directory of its own below the medium's path."""
        return str(self._storage / f"opjoule-{database}")

    def copy_in(self, file: Path) -> str:
        """The file is on this computer already."""
        return str(file)

    def start_loader(
        self, arguments: list[str], raw: Path, tag: str, stream: list[str] | None = None
    ) -> LoaderProcess:
        """Starts the loader with its files under `raw`."""
        options = file_options(arguments[0], loader_files(raw, tag))
        options += ["--trace", "-"] if stream else []
        return LoaderProcess([str(self._loader), *arguments, *options], stream=start_stream(stream, raw, tag))

    def check_workload(self, arguments: list[str]) -> None:
        """Runs the loader's own check of all properties."""
        checked = subprocess.run(
            [str(self._loader), *arguments, "--check"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if checked.returncode != 0:
            lines = checked.stderr.strip().splitlines() or [
                f"the loader ended with status {checked.returncode}"
            ]
            raise BadInput(lines[-1].removeprefix("loader: "))

    def clock_exchange(self) -> Exchange:
        """Board and host share one clock here; the exchange still has its width."""
        sent_ns = time.monotonic_ns()
        board_ns = time.monotonic_ns()
        return Exchange(sent_ns, board_ns, board_ns, time.monotonic_ns())

    def pending_write_bytes(self) -> int:
        """Dirty and Writeback of /proc/meminfo."""
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return sum(int(fields[key].split()[0]) * 1024 for key in ("Dirty", "Writeback"))

    def sync_carrier(self) -> str | None:
        """The GPIO line that rig.toml or --sync names."""
        return self._sync

    def remove_database(self, path: str) -> None:
        """Removes one database directory that database_path() gave."""
        target = Path(path)
        if target.parent != self._storage or not target.name.startswith("opjoule-"):
            raise RigFault(f"refusing to remove {target}: it is not below {self._storage}")
        shutil.rmtree(target, ignore_errors=True)

    def close(self) -> None:
        """Nothing is held open."""
