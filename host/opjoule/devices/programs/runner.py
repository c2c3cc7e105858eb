"""Starts programs on a board, each under the probe and in a folder of the session, and transfers files both ways."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opjoule.devices.connection.sessions import fetch_files
from opjoule.devices.connection.shell import Shell
from opjoule.devices.programs.workload_run import SILENCE_S, WorkloadRun

PROBE_FOLDER = "probe"
"""Folder of the probe's own files, in the session's folder."""
_MAKE_FIFO = 'mkdir -p -- "$1" && mkfifo -- "$2"'
_RECEIVE = 'mkdir -p -- "${1%/*}" && cat > "$1" && chmod "$2" "$1"'


@dataclass
class Runner:
    """Runs programs on one board for one session."""

    shell: Shell
    probe: str
    folder: str
    pin: str = ""
    """Processors that programs are restricted to, as taskset -c takes them; empty for all."""
    under: Sequence[str] = ()
    """A command of the board that starts each program, followed by the program's command line."""
    boot_id: str = ""
    """Identifier of the board's present boot; empty if unknown."""
    _copied: dict[Path, str] = field(default_factory=dict)

    def start(
        self,
        command: list[str],
        tag: str,
        raw: Path | None,
        *,
        files: Mapping[str, str] | None = None,
        phase: str = "",
        stream: list[str] | None = None,
        pinned: bool = True,
    ) -> WorkloadRun:
        """Starts a program; fetch() copies its files to raw/.

        Args:
            command: of the board, as an argument list.
            tag: name of its folder in the session's, and of its files.
            files: option of the command -> suffix of the file in that folder that it names.
            phase: marked from its start to its end; empty for none.
            pinned: restrict it to this session's processors.
            stream: a command of this computer, whose output the program reads as the file of --trace.
        Raises: RigFault: the board cannot be reached, or one of the programs cannot start.
        """
        folder = f"{self.folder}/{tag}"
        named = {option: f"{folder}/{tag}.{ending}" for option, ending in (files or {}).items()}
        options = [part for pair in named.items() for part in pair]
        marked = ["--phase", phase] if phase else []
        pin = ["--pin", self.pin] if pinned and self.pin else []
        marks = f"{self.folder}/{PROBE_FOLDER}/marks"
        keeper = [self.probe, "run", "--dir", self.folder, "--tag", tag, "--serve", marks]
        keeper += ["--silence-s", str(SILENCE_S), *pin, *marked, "--", *self.under]
        fifo = f"{folder}/operations"
        if stream:
            made = self.shell.run(["sh", "-c", _MAKE_FIFO, "sh", folder, fifo])
            made.checked(f"cannot make {fifo} on the board")
            options += ["--trace", fifo]
        run = WorkloadRun(self.shell, [*keeper, *command, *options], folder, raw, boot_id=self.boot_id)
        if stream:
            assert raw
            run.take_operations(stream, fifo, raw / f"{tag}.generator.log")
        return run

    @property
    def files_folder(self) -> str:
        """Folder on the board for copy_in()."""
        return f"{self.folder}/files"

    def copy_in(self, file: Path) -> str:
        """Copies a host file to the board once; returns its path there. Raises: LinkFault, DeviceFault."""
        if file not in self._copied:
            target = f"{self.files_folder}/{file.name}"
            mode = "700" if os.access(file, os.X_OK) else "600"
            copied = self.shell.run(["sh", "-c", _RECEIVE, "sh", target, mode], feed=file.read_bytes())
            copied.checked(f"cannot copy {file} to the board")
            self._copied[file] = target
        return self._copied[file]

    def fetch_probe_files(self, name: str, raw: Path) -> None:
        """Moves the probe's files of a name to raw/, after it has begun others. Raises: LinkFault, DeviceFault."""
        names = [f"{name}.events.jsonl", f"{name}.system.csv"]
        fetch_files(self.shell, f"{self.folder}/{PROBE_FOLDER}", names, raw)
