"""The command study: one program, started by the probe, which can mark phases and operations.

The job of a study folder is such a program, with the system, data and counts of one cell.
"""

import json
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from opjoule.base.errors import BadInput, NoWheels
from opjoule.base.files import file_sha256
from opjoule.base.passwords import refuse_passwords
from opjoule.base.settings import MEDIUM
from opjoule.boards.board import Board
from opjoule.boards.databases import database_called, is_server
from opjoule.boards.server import filled
from opjoule.runs.record.phases import Role
from opjoule.runs.record.run import SHELL, program_of, title_of
from opjoule.runs.studies.definition import SYSTEM, Part, StudyFolder, in_words
from opjoule.runs.studies.folder import find_study, given_names
from opjoule.runs.studies.interface import Step, Study, Workload, around
from opjoule.runs.studies.wheels import bring_jars, bring_wheels

RESULTS: Final = "results.jsonl"
"""Suffix of the file in which the job reports its phases."""
_PATH: Final = "PYTHONPATH"
_LOOKUP: Final = (*SHELL, 'command -v -- "$1" >/dev/null', "sh")
"""Looks up a program, or a command of the shell itself."""


@dataclass(frozen=True)
class CommandStudy(Study):
    """One command with its arguments, and the files that it needs from this computer."""

    name: ClassVar[str] = "command"
    GENERATOR: ClassVar[str] = "command"

    command: tuple[str, ...]
    files: tuple[Path, ...] = ()
    """Files copied to the board before the measurement."""
    called: str = ""
    """Name of the study, if it is not just its command line."""
    before: str = ""
    """Shell command run on the board before each repeat's idle phase; its energy is in no figure."""

    def __post_init__(self) -> None:
        """Raises: BadInput: the command is missing or contains a password, or a file cannot be read."""
        if not self.command:
            raise BadInput("no command: write it after --, as in measure.py command --device rpi4 -- python3 job.py")
        refuse_passwords([*self.command, self.before], "the command")
        for file in self.files:
            if not file.is_file():
                raise BadInput(f"{file}: no such file; --file names a file to be copied to the board")
        names = [file.name for file in self.files]
        if len(set(names)) < len(names):
            raise BadInput("two files of --file have the same name, but the board keeps them in one folder: rename one")

    @property
    def label(self) -> str:
        """ "command" with the study's name or that of the program or script."""
        called = self.called or title_of(self.command)
        return "command-" + "".join(letter if letter.isalnum() else "-" for letter in called)[:32]

    @property
    def title(self) -> str:
        """Name of the study, or the command line."""
        return self.called or shlex.join(self.command)

    def words(self) -> dict[str, str]:
        """Phase that runs something -> its description."""
        return {"prepare": self.before, "run": shlex.join(self.command)}

    def settings(self) -> list[tuple[str, str]]:
        """(name, value in words) of each setting, for the displayed plan."""
        files = [("files", ", ".join(map(str, self.files)))] if self.files else []
        return [("command", shlex.join(self.command)), *files]

    def steps(self) -> list[Step]:
        """The command with the phases before and after it."""
        prepare = Step("prepare", Role.PREPARE) if self.before else None
        return around(Step("run", Role.WORK), prepare=prepare)

    def check_simulated(self) -> None:
        """Checks that this computer, which is the simulated board, has the program. Raises: BadInput: it has not."""
        program = program_of(self.command)
        if "{" not in program and subprocess.run([*_LOOKUP, program], check=False).returncode != 0:
            raise BadInput(
                f"{program}: this computer, which is the simulated board, has no such program; "
                "to copy one there, use --file and write {files}/NAME"
            )

    def check(self, board: Board) -> None:
        """Checks that the board has the program. Raises: BadInput: it has not."""
        program = program_of(self._placed(board, "/"))
        lookup = board.shell.run([*_LOOKUP, program])
        if lookup.status != 0:
            raise BadInput(
                f"{program}: the board has no such program; to copy one there, use --file and write {{files}}/NAME"
            )

    @contextmanager
    def repeat(self, board: Board, number: int, raw: Path) -> Iterator[Iterable[Step]]:
        """Runs the command in a new folder on the medium, and removes the folder at the end."""
        folder = board.database_path("command")
        board.make_folder(folder)
        try:
            work = Workload(self._placed(board, folder))
            prepare = None
            if self.before:
                first = Workload(self._placed(board, folder, ("sh", "-c", self.before)))
                prepare = Step("prepare", Role.PREPARE, first)
            yield around(Step("run", Role.WORK, work), prepare=prepare)
        finally:
            board.remove_database("command")

    def _placed(self, board: Board, folder: str, command: Sequence[str] | None = None) -> tuple[str, ...]:
        """A command with its placeholders filled in: {storage}, and {files}, the folder of the copied files."""
        for file in self.files:
            board.runner.copy_in(file)
        places = {MEDIUM: folder, "files": board.runner.files_folder}
        return filled(tuple(command or self.command), places)

    def facts(self, board: Board) -> dict[str, Any]:
        """Name of the program that makes the operations."""
        return {"generator": {"name": self.GENERATOR, "runs_on": "board"}}

    def to_json(self) -> dict[str, Any]:
        """Command and names of the files, without the files' contents."""
        return {
            "name": self.name,
            "command": list(self.command),
            "files": [str(file) for file in self.files],
            "called": self.called,
            "before": self.before,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """The study that to_json() wrote. Raises: BadInput: one of its files is not here."""
        files = tuple(Path(file) for file in entry["files"])
        return cls(tuple(entry["command"]), files, entry.get("called", ""), entry.get("before", ""))


@dataclass(frozen=True)
class JobStudy(CommandStudy):
    """A job of one study on one system and data."""

    name: ClassVar[str] = "suite"
    GENERATOR: ClassVar[str] = "job"

    definition: StudyFolder = field(default_factory=lambda: StudyFolder("", Path(), "", ("true",), ()))
    cell: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ({},)
    """Parts of the cell, with their counts after scaling."""
    scale: float = 1.0
    seed: int = 1
    dataset: Path | None = None
    """The user's data file, which replaces the data that the job makes."""
    connections: Path | None = None
    """The user's file of connections to databases that the rig does not start."""
    given: tuple[str, ...] = ()
    """Names of the databases in that file."""
    cache: Path = Path("build/wheels")
    said: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Answer of the job's own check: `bytes` that it stores, and `operations`, the final count of its progress."""
    lacking: list[str] = field(default_factory=list, compare=False, repr=False)
    """Reasons why Python modules were not copied; the board's own modules are used if it has them."""

    @classmethod
    def of(
        cls,
        definition: StudyFolder,
        cell: Mapping[str, str],
        parts: Sequence[Part],
        *,
        along: Sequence[Path],
        scale: float,
        seed: int,
        dataset: Path | None,
        connections: Path | None,
        cache: Path,
    ) -> Self:
        """The study of one cell. Its files are the files that every study gets (`along`) and its own.

        Raises: BadInput: a file cannot be read, or has another form.
        """
        files = (*definition.files, *along, *([dataset] if dataset else []))
        return cls(
            definition.command,
            files,
            definition.title,
            definition=definition,
            cell=cell,
            parts=tuple(parts),
            scale=scale,
            seed=seed,
            dataset=dataset,
            connections=connections,
            given=given_names(connections, definition),
            cache=cache,
        )

    @property
    def system(self) -> str:
        """Name of the database; empty if the study has no axis `system`."""
        return self.cell.get(SYSTEM, "")

    @property
    def server(self) -> str:
        """Name of the server that the rig starts on the board; empty if the cell has none or the user provides it."""
        servers = (value for value in (self.system, *self.cell.values()) if is_server(value))
        return next((server for server in servers if server not in self.given), "")

    @property
    def label(self) -> str:
        """The study's name."""
        return "".join(letter if letter.isalnum() else "-" for letter in Path(self.definition.name).name)[:40]

    @property
    def engine(self) -> str:
        """The database that the loader must support, if the job runs the loader."""
        return self.system if any("{loader}" in part for part in self.command) else ""

    def words(self) -> dict[str, str]:
        """Phase that runs something -> its description."""
        cell = in_words(self.cell)
        return {"run": f"the job, with {cell}" if cell else "the job"}

    def settings(self) -> list[tuple[str, str]]:
        """(name, value in words) of each setting, for the displayed plan."""
        parts = [("part" if self.definition.within else "counts", in_words(part)) for part in self.parts]
        return [
            ("study", f"{self.definition.name} (scale {self.scale:g})"),
            ("cell", in_words(self.cell) or "the only one"),
            *(part for part in parts if part[1]),
        ]

    def check(self, board: Board) -> None:
        """Checks that the system's server can be started and that the job can work, and asks how much the job stores.

        Raises:
            DeviceFault: the server's programs are missing or have another version, or its port is taken.
            BadInput: python3, wheels, jars or a client are missing; in the job's own words.
        """
        super().check(board)
        board.check_server(self.server, self._jars(board))
        ran = board.shell.run([*self._placed(board, "/nowhere"), "--check"], limit_s=300)
        if ran.status != 0:
            why = ran.last_line().removeprefix("job.py: ")
            lacking = f" ({'; '.join(self.lacking)})" if self.lacking else ""
            raise BadInput(f"{self.title}, {self.system or 'job'}: {why}{lacking}")
        for line in ran.text().splitlines():
            if line.startswith("{"):
                said = json.loads(line)
                self.said.update({name: int(said[name]) for name in ("bytes", "operations") if name in said})

    def check_space(self, board: Board) -> None:
        """Raises: BadInput: the job's data does not fit on the medium."""
        needed, free_bytes = self.said.get("bytes", 0), board.free_bytes()
        if free_bytes is not None and needed > free_bytes:
            raise BadInput(
                f"{self.title} stores {needed / 1e9:,.1f} GB in this cell, but {free_bytes / 1e9:,.1f} GB are free on "
                f"{board.medium.path}: ask for less with --scale or --only, or free some space"
            )

    @contextmanager
    def repeat(self, board: Board, number: int, raw: Path) -> Iterator[Iterable[Step]]:
        """Runs the job in a new folder on the medium, with the system's server if any. Removes both at the end."""
        folder = board.database_path("study")
        board.make_folder(folder)
        try:
            commands = ""
            if self.server and any("{server_commands}" in part for part in self.command):
                commands = json.dumps(board.set_up_server(self.server, self._jars(board)))
            elif self.server:
                board.start_database(self.server, raw)
            command, operations = self._placed(board, folder, server=commands), self.said.get("operations")
            work = Workload(command, files={"--results": RESULTS}, operations=operations or 0)
            yield around(Step("run", Role.WORK, work))
        finally:
            if self.server:
                board.remove_database(self.server)
            board.remove_database("study")

    def _jars(self, board: Board) -> dict[str, str]:
        """Program -> path on the board, for the system's Java programs that were copied there."""
        database = database_called(self.server)
        return bring_jars(board, database, self.cache.parent / "jars") if database else {}

    def _placed(
        self, board: Board, folder: str, command: Sequence[str] | None = None, server: str = ""
    ) -> tuple[str, ...]:
        values = {
            **self.cell,
            **self._counts(),
            "loader": board.programs.loader,
            "server_commands": server,
            "server": board.database_path(self.server) if self.server else "",
            "connections": board.runner.copy_in(self.connections) if self.connections else "",
            "dataset": board.runner.copy_in(self.dataset) if self.dataset else "",
            "seed": str(self.seed),
        }
        placed = super()._placed(board, folder, filled(tuple(command or self.command), values))
        wheels = self._bring_wheels(board)
        return ("env", f"{_PATH}={wheels}", *placed) if wheels else placed

    def _counts(self) -> dict[str, str]:
        """Values for the placeholders of the counts, or of the parts that contain them."""
        if self.definition.within:
            return {"parts": json.dumps(self.parts)}
        return {name: ",".join(map(str, counts)) for part in self.parts for name, counts in part.items()}

    def _bring_wheels(self, board: Board) -> str:
        """Copies the cell's Python modules to the board. Returns: their folder; empty if there are none.

        Modules without wheels must already be on the board; the job's check reports missing ones.
        """
        self.lacking.clear()
        folder = ""
        for file in dict.fromkeys(
            self.definition.wheels[value] for value in self.cell.values() if value in self.definition.wheels
        ):
            try:
                folder = bring_wheels(board, file, self.cache)
            except NoWheels as error:
                self.lacking.append(str(error))
        return folder

    def to_json(self) -> dict[str, Any]:
        """The study with the checksums of its files instead of their contents."""
        return {
            "name": self.name,
            "study": self.definition.name,
            "called": self.title,
            "command": list(self.command),
            "files": {file.name: file_sha256(file) for file in self.files},
            "cell": dict(self.cell),
            "parts": json.loads(json.dumps(self.parts)),
            "scale": self.scale,
            "seed": self.seed,
            "dataset": str(self.dataset) if self.dataset else None,
            "phases": list(self.definition.phases),
            "best": dict(self.definition.best),
            **({"connections": str(self.connections), "given": list(self.given)} if self.connections else {}),
            **self._shown(),
        }

    def _shown(self) -> dict[str, Any]:
        said = self.definition
        shown = {"per": said.per, "cold": dict(said.cold), "bars": dict(said.bars), "grid": dict(said.grid)}
        return {key: value for key, value in {"unranked": list(said.unranked), **shown}.items() if value}

    @classmethod
    def written(cls, entry: Mapping[str, Any], along: Sequence[Path], cache: Path) -> Self:
        """The study that to_json() wrote. Raises: BadInput: the study is not here, or was changed."""
        made = cls.of(
            find_study(entry["study"]),
            dict(entry["cell"]),
            entry["parts"],
            along=along,
            scale=float(entry["scale"]),
            seed=int(entry["seed"]),
            dataset=Path(entry["dataset"]) if entry["dataset"] else None,
            connections=Path(entry["connections"]) if entry.get("connections") else None,
            cache=cache,
        )
        if made.to_json() != dict(entry):
            raise BadInput(f"study {entry['study']} was changed since then: its job, command or title is different")
        return made
