"""The command study: one program, started by the probe; what it marks are its phases and operations."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from opjoule.devices.board import Board
from opjoule.devices.server.setup import filled
from opjoule.errors import BadInput
from opjoule.passwords import refuse_passwords
from opjoule.record.phases import Role
from opjoule.studies.interface import Step, Study, Workload, around


@dataclass(frozen=True)
class CommandStudy(Study):
    """One command with its arguments, and the files that it needs from this computer."""

    name: ClassVar[str] = "command"
    GENERATOR: ClassVar[str] = "command"

    command: tuple[str, ...]
    files: tuple[Path, ...] = ()
    """Copied to the board before anything is measured."""
    called: str = ""
    """What it is, where that is more than its command line."""
    before: str = ""
    """A shell command on the board before each repeat's idle; its energy is in no figure."""

    def __post_init__(self) -> None:
        """Raises: BadInput: no command, one that holds a password, or a file that cannot be read."""
        if not self.command:
            raise BadInput(
                "no command: write it behind --, as in measure.py command --device rpi4 -- python3 job.py"
            )
        refuse_passwords([*self.command, self.before], "the command")
        for file in self.files:
            if not file.is_file():
                raise BadInput(f"{file}: no such file; --file names what is copied to the board")
        names = [file.name for file in self.files]
        if len(set(names)) < len(names):
            raise BadInput("two files of --file have the same name; on the board they lie in one folder")

    @property
    def label(self) -> str:
        """command, and what it is called or the program's own name."""
        called = self.called or Path(self.command[0]).name
        return "command-" + "".join(letter if letter.isalnum() else "-" for letter in called)[:32]

    @property
    def title(self) -> str:
        """What it is called, or the command as one would type it."""
        return self.called or shlex.join(self.command)

    def words(self) -> dict[str, str]:
        """What happens in the phases that run something."""
        return {"prepare": self.before, "run": shlex.join(self.command)}

    def settings(self) -> list[tuple[str, str]]:
        """What is set, in words, for the plan that is shown."""
        files = [("files", ", ".join(map(str, self.files)))] if self.files else []
        return [("command", shlex.join(self.command)), *files]

    def steps(self) -> list[Step]:
        """The command with what lies around it."""
        prepare = Step("prepare", Role.PREPARE) if self.before else None
        return around(Step("run", Role.WORK), prepare=prepare)

    def check_simulated(self) -> None:
        """Sees that this computer, which is the simulated board, has the program. Raises: BadInput: it has not."""
        program = self.command[0]
        if "{" not in program and shutil.which(program) is None:
            raise BadInput(
                f"{program}: this computer has no such program, and a simulated board has those of this computer; "
                "--file copies one there, as {files}/NAME"
            )

    def check(self, board: Board) -> None:
        """Sees that the board has the program. Raises: BadInput: it has not."""
        program = self._placed(board, "/")[0]
        lookup = board.shell.run(["sh", "-c", 'command -v -- "$1" >/dev/null', "sh", program])
        if lookup.status != 0:
            raise BadInput(
                f"{program}: the board has no such program; --file copies one there, as {{files}}/NAME"
            )

    @contextmanager
    def repeat(self, board: Board, number: int, raw: Path) -> Iterator[Iterable[Step]]:
        """A new folder on the medium, the command, and the folder removed in the end."""
        storage = board.database_path("command")
        board.make_folder(storage)
        try:
            work = Workload(self._placed(board, storage))
            prepare = None
            if self.before:
                first = Workload(self._placed(board, storage, ("sh", "-c", self.before)))
                prepare = Step("prepare", Role.PREPARE, first)
            yield around(Step("run", Role.WORK, work), prepare=prepare)
        finally:
            board.remove_database("command")

    def _placed(self, board: Board, storage: str, command: Sequence[str] | None = None) -> tuple[str, ...]:
        """A command with its places filled in: {storage}, and {files}, the folder that the files are copied to."""
        for file in self.files:
            board.runner.copy_in(file)
        places = {"storage": storage, "files": board.runner.files_folder}
        return filled(tuple(command or self.command), places)

    def facts(self, board: Board) -> dict[str, Any]:
        """What makes the operations."""
        return {"generator": {"name": self.GENERATOR, "runs_on": "board"}}

    def to_json(self) -> dict[str, Any]:
        """Command and files; the files' own contents are not in it."""
        return {
            "name": self.name,
            "command": list(self.command),
            "files": [str(file) for file in self.files],
            "called": self.called,
            "before": self.before,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> CommandStudy:
        """The study that to_json() wrote. Raises: BadInput: a file of it is not here."""
        files = tuple(Path(file) for file in entry["files"])
        return cls(tuple(entry["command"]), files, entry.get("called", ""), entry.get("before", ""))
