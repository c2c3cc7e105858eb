"""The YCSB study: loads a database, runs a workload on it, and runs the same workload without a database as control."""

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from opjoule.attribution.windows import BLOCK_MIN_S, PERIODS_MIN, block_length_s
from opjoule.base.errors import BadInput, RigFault
from opjoule.base.files import write_whole
from opjoule.base.passwords import refuse_passwords
from opjoule.base.units import counted
from opjoule.boards.board import Board
from opjoule.boards.databases import Database, find_database
from opjoule.runs.record.phases import MIX, Role
from opjoule.runs.studies.interface import Step, Study, Workload, around
from opjoule.runs.studies.properties import (
    COPY,
    EQUAL,
    GO_ON,
    INSERT,
    INSERT_ROOM,
    LOAD,
    MIX_BLOCK,
    OF_THE_RUN_ALONE,
    PROPORTIONS,
    REMOVE,
    YcsbCore,
    at_random,
    changing_keys,
    check_settings,
    check_space,
    expected_operations,
    file_properties,
    file_text,
    in_favour_of,
    inserts_of_load,
    kinds,
    named_files,
    whole_number,
    write_shares,
)

HARNESS_S = 2.0
HARNESS_LIMIT_S: Final = 3
WARM_UP: Final = "warm-up"
WARM_UP_S: Final = 10
"""Usual length of the warm-up [s]: several times what an engine keeps in memory before it writes and merges files."""
RUN_WARM_UP: Final = "run-warm-up"
"""Name of the warm-up in each repeat, on the database of that repeat."""
_HARNESS_OPERATIONS = 2_000_000
_HARNESS_TIMED = 20_000_000
"""Number of operations of the harness of a timed run, if it makes them within HARNESS_LIMIT_S."""
_FILES = {"--op-log": "oplog", "--events": "events.jsonl"}
_BAD_INPUT_STATUS = 2
_DEFAULT: Final = "default"
_DESIGN_WORDS = (
    "changes at random from block to block and equals the workload's over the whole run; a block lasts "
    f"{PERIODS_MIN} samples of the meter, at least {BLOCK_MIN_S:g} s"
)


RUN_STEP: Final = Step("run", Role.WORK)


@dataclass(frozen=True)
class YcsbStudy(Study):
    """One workload on one database."""

    name: ClassVar[str] = "ycsb"

    database: Database
    workload: Path
    properties: Mapping[str, str]
    """Settings added to the workload file, in the form of the loader's -p."""
    threads: int
    seed: int
    harness: bool = True
    run_s: int | None = None
    """Length of the run [s], in place of a number of operations."""
    generator: YcsbCore | None = None
    """Generator of the operations on this computer; None: the loader's own."""
    design: bool = False
    """Run in mix blocks: the mix changes at random and equals the workload's over the whole run."""
    block_s: float = BLOCK_MIN_S
    """Length of a block [s]; longer with a slow meter."""
    reset: str = LOAD
    """Whether each repeat loads its database, copies one that was loaded once and is kept on the medium, or goes on
    with that of the repeat before it."""
    rate: float | str | None = None
    """Rate of the runs over the one that the warm-up reaches; EQUAL: that of all conditions of a campaign; None: as
    fast as they can, or by the property target."""
    warm_up_s: int | None = None
    """Length of the warm-up [s]: once, if the repeats go on with one database; else in each repeat, without inserts.
    None: the usual one where the repeats go on or have a part of its rate, and none in each repeat."""
    other_mixes: bool = False
    """Whether, if several kinds write, a run in favour of each of them follows the repeats."""
    work: Step = RUN_STEP
    """The step that runs the workload; no part of the plan."""
    campaign_per_s: float | None = None
    """The rate of all conditions of the campaign, once it is known; no part of the plan."""
    called: str = ""
    """Original name of the workload file, if the file has another name here."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Property that the command line sets -> the option that sets it; no part of the plan."""

    def __post_init__(self) -> None:
        """Raises: BadInput: properties that are impossible, contain a password, or exclude each other."""
        refuse_passwords([f"{key}={value}" for key, value in self.properties.items()], "a setting of -p")
        refuse_passwords([file_text(self.workload)], f"workload {self.workload}")
        inserts_of_load(self.effective)
        if self.generator and self.design:
            raise BadInput(
                "--design: the loader cannot change the mix with --generator ycsb, whose operations it replays; leave "
                "one of them out"
            )
        if self.generator:
            check_settings(self.effective, self.threads)
        if self.reset == COPY:
            self._check_copyable()
        if self.reset == GO_ON:
            self._check_going_on()
        if self.warms_up_each:
            self._check_warm_up()

    @property
    def warms_up(self) -> bool:
        """Whether a warm-up comes before all repeats."""
        return self.reset == GO_ON or isinstance(self.rate, float)

    @property
    def warms_up_each(self) -> bool:
        """Whether each repeat has a warm-up of its own."""
        return self.reset != GO_ON and self.warm_up_s is not None

    @property
    def once_s(self) -> int:
        """Length of the warm-up before all repeats [s]."""
        return self.warm_up_s if self.reset == GO_ON and self.warm_up_s else self._at_most(WARM_UP_S)

    def _check_warm_up(self) -> None:
        """Raises: BadInput: nothing can warm the database up without changing what the run does."""
        if self.generator:
            raise BadInput("--warm-up: --generator ycsb makes no warm-up; leave one of them out")
        if kinds(self.effective) == changing_keys(self.effective):
            raise BadInput(
                "--warm-up: the workload only inserts or removes records, and a warm-up must leave those of the run "
                "alone: leave it out"
            )

    def _at_most(self, length_s: int) -> int:
        """A length that does not exceed a run's [s]."""
        return min(length_s, self.run_s or length_s)

    def _check_going_on(self) -> None:
        """Raises: BadInput: later repeats would not do the same work on the same keys."""
        why = {
            INSERT: "the workload inserts records, so each repeat would insert keys that are there already",
            REMOVE: "the workload removes records, so each repeat would find fewer; or put them back (-p putback=true)",
        }
        for kind in changing_keys(self.effective):
            raise BadInput(f"--reset go-on: {why[kind]}; use --reset load")
        if self.generator:
            raise BadInput("--reset go-on: --generator ycsb makes no warm-up; use --reset load")

    def _check_copyable(self) -> None:
        """Raises: BadInput: the database is always open, or it cannot be checked that its load is still the same."""
        if self.database.is_server:
            raise BadInput(
                f"--reset copy with {self.database.name}: a server always keeps its files open, and a copy of open "
                "files is not a valid database; use --reset load"
            )

    @property
    def _files(self) -> dict[str, Path]:
        """Property -> the file on this computer that it names."""
        return {key: Path(path) for key, path in named_files(self.effective, self.workload).items()}

    def _file_hashes(self) -> dict[str, str]:
        """Property -> SHA-256 of the file that it names."""
        return {key: hashlib.sha256(file.read_bytes()).hexdigest() for key, file in self._files.items()}

    @property
    def effective(self) -> dict[str, str]:
        """The workload file's properties, with the added settings and the proportions that YCSB has by default."""
        return {**PROPORTIONS, **file_properties(self.workload), **self.properties}

    @property
    def label(self) -> str:
        """The database's name."""
        return self.database.name

    @property
    def engine(self) -> str:
        """The engine with which the loader must be built."""
        return self.database.name

    @property
    def title(self) -> str:
        """The database's name as written in text."""
        return self.database.title

    def words(self) -> dict[str, str]:
        """Phase that runs the loader -> its description."""
        work = f"{self.properties['operationcount']} operations"
        if self.run_s:
            work = f"as many operations as fit into {self.run_s} s"
        elif limit_s := whole_number(self.effective, "maxexecutiontime"):
            work += f", or as many as fit into {limit_s} s"
        if isinstance(self.rate, float):
            work += f", at {100 * self.rate:g} % of the rate that the warm-up reached"
        elif self.rate:
            work += ", at half of the rate that the campaign's slowest condition reaches"
        once = {
            COPY: ", once: a database that is kept on the medium is not loaded again",
            GO_ON: ", once: each repeat goes on with the database of the one before",
        }.get(self.reset, "")
        records = inserts_of_load(self.effective)
        changing = " and ".join(f"{kind}s" for kind in changing_keys(self.effective))
        without = f" without its {changing}" if changing else ""
        return {
            "load": f"{records} records into {self.database.title}{once}",
            f"{WARM_UP}-load": f"once: {records} records for the warm-up",
            WARM_UP: f"once: {self.once_s} s of the same work as fast as it can, in no figure",
            RUN_WARM_UP: f"{self.warm_up_s} s of the same work{without}, in no figure",
            "copy": "copy of the kept database, only for this repeat",
            "run": f"{work}, {counted(self.threads, 'thread')}",
            MIX: f"once in favour of each: {', '.join(self._favoured)}. The same work with half as many of the other "
            "kinds that write, like a further repeat; it shows what each kind costs all told",
            "harness": f"once: {HARNESS_S:g} s of the same workload without a database",
        }

    def settings(self) -> list[tuple[str, str]]:
        """(name, value in words) of each setting, for the displayed plan."""
        held = [
            f"{' '.join(f'{key}={value}' for key, value in properties.items())} ({origin})"
            for origin, properties in self._by_origin().items()
        ]
        lines = [("workload", str(self.workload)), ("settings", held[0]), *(("", text) for text in held[1:])]
        if self.generator:
            made = f"made by YCSB {self.generator.version} on this computer, as a stream"
            lines.append(("operations", made))
        if self.design:
            lines.append(("mix", _DESIGN_WORDS))
        return lines

    def _by_origin(self) -> dict[str, dict[str, str]]:
        """Origin of properties -> the properties that hold from there: options, -p, workload file, defaults."""
        held = {**self.effective, "threadcount": str(self.threads), "seed": str(self.seed)}
        if self.run_s:
            held["maxexecutiontime"] = str(self.run_s)
            del held["operationcount"]
        in_file = dict.fromkeys(file_properties(self.workload), self.called or self.workload.name)
        origins = {**in_file, **self.origins}
        grouped: dict[str, dict[str, str]] = {origin: {} for origin in (*self.origins.values(), *in_file.values())}
        for key, value in held.items():
            grouped.setdefault(origins.get(key, _DEFAULT), {})[key] = value
        return {origin: properties for origin, properties in grouped.items() if properties}

    def steps(self) -> list[Step]:
        """Load and run with the phases around them, and the harness."""
        load, run = Step("load", Role.PREPARE), around(self.work)
        prepared = {GO_ON: [], COPY: [load, Step("copy", Role.PREPARE)], LOAD: [load]}[self.reset]
        prepared += [Step(RUN_WARM_UP, Role.PREPARE)] if self.warms_up_each else []
        settled = [made for step in prepared for made in (step, Step(f"{step.name}-settle", Role.DRAIN))]
        return [*settled, *run, *([Step("harness", Role.CONTROL)] if self.harness else [])]

    def once(self) -> list[Step]:
        """Load and warm-up, if there is one. What the load leaves to do is done when the warm-up settles."""
        if not self.warms_up:
            return []
        load, warm_up = (Step(name, Role.PREPARE) for name in (self._first_load, WARM_UP))
        return [load, warm_up, Step(f"{WARM_UP}-settle", Role.DRAIN)]

    def under(self, period_s: float) -> Self:
        """The study with blocks that are long enough for the meter."""
        return replace(self, block_s=block_length_s(period_s))

    def check_here(self) -> None:
        """If YCSB makes the operations, checks that it can. Raises: BadInput, RigFault: it cannot."""
        if self.generator:
            self.generator.check(self.workload, self.properties)

    def check(self, board: Board) -> None:
        """Checks that the server can be started, if there is one, and makes the loader check workload and properties.

        Raises: BadInput, DeviceFault: the first problem.
        """
        board.check_server(self.database.name)
        path = board.database_path(self.database.name)
        command = self.check_command(board.programs.loader, board.runner.copy_in, path)
        checked = board.shell.run([*command])
        if checked.status != 0:
            why = checked.last_line().removeprefix("loader: ")
            raise BadInput(f"{why} (workload {self.workload.name})")
        if self.rate == EQUAL and self.campaign_per_s is None:
            raise BadInput(
                "--rate equal: the rate of a campaign's conditions is known only while the campaign runs; give full, a "
                "part such as 50%, or operations per second"
            )
        if self.reset == COPY and not board.preparation.keeps_files:
            raise BadInput(
                '--reset copy: file_system = "new" formats the medium before each measurement, so that no database is '
                "kept; use --state file_system=keep, or --reset load"
            )

    def check_space(self, board: Board) -> None:
        """Raises: BadInput: the records do not fit on the medium."""
        loads = self.reset == COPY and board.kept.size_bytes(self.kept_name(board.programs.loader_sha256)) is None
        check_space(self.effective, board.free_bytes(), board.medium.path, databases=1 + loads)

    @contextmanager
    def repeats(self, board: Board, raw: Path) -> Iterator[Iterable[Step]]:
        """Loads a database and warms it up; keeps it for the repeats if they go on with it; removes it at the end."""
        if not self.warms_up:
            yield []
            return
        fast = replace(self._for(self.once_s), run_s=self.once_s, design=False)
        fast = replace(fast, properties={**fast.properties, "target": "0"})
        work = replace(fast._workload(board, "run"), files={})
        load, warm_up, settle = self.once()
        steps = [
            replace(load, workload=self._workload(board, "load")),
            replace(warm_up, workload=work),
            settle,
        ]
        with self._database(board, raw):
            yield self._then_removed(board, raw, steps)

    def _then_removed(self, board: Board, raw: Path, steps: Sequence[Step]) -> Iterator[Step]:
        """The steps; the database is removed after them, unless the repeats go on with it."""
        yield from steps
        if self.reset != GO_ON:
            board.remove_database(self.database.name)

    @property
    def equal_rate_group(self) -> str:
        """Name of the workload, if its runs are at the rate that all conditions of a campaign with it have."""
        return f"workload {Path(self.called or self.workload.name).stem}" if self.rate == EQUAL else ""

    def ranging(self) -> Self:
        """A run as long as the warm-up, as fast as it goes, on a new database."""
        alone = replace(self._for(WARM_UP_S), harness=False, design=False, other_mixes=False)
        return replace(alone, rate=None, reset=LOAD, warm_up_s=None)

    def _for(self, length_s: int) -> Self:
        """The study with runs of this length [s], or shorter ones if its own are shorter."""
        properties = {**self.properties, **self._insert_room, "operationcount": "0"}
        return replace(self, run_s=self._at_most(length_s), properties=properties)

    @property
    def _insert_room(self) -> Mapping[str, str]:
        """The property with which a run of another length requests the same keys; empty if none is needed, or if the
        real YCSB, which has no such property, makes the operations."""
        if self.generator or INSERT not in kinds(self.effective) or INSERT_ROOM in self.effective:
            return {}
        operations = whole_number(self.properties, "operationcount")
        return {INSERT_ROOM: str(operations or whole_number(self.properties, "recordcount"))}

    def at_rate(self, operations_per_s: float) -> Self:
        """The study at the rate of its campaign."""
        return replace(self, campaign_per_s=operations_per_s)

    def after(self, summaries: Mapping[str, Mapping[str, Any]]) -> Self:
        """The study at a part of the warm-up's rate, if that is asked for."""
        warm_up = summaries.get(f"{WARM_UP}-1")
        if not isinstance(self.rate, float) or not warm_up:
            return self
        target = max(float(f"{self.rate * warm_up['throughput_per_s']:.2g}"), 1.0)
        return replace(self, properties={**self.properties, **at_random(self.effective), "target": f"{target:.0f}"})

    @contextmanager
    def repeat(self, board: Board, number: int, raw: Path) -> Iterator[Iterable[Step]]:
        """Loads or copies a new database, runs the workload on it, and removes it at the end.

        If the repeats go on with one database, only runs the workload: with other draws in each repeat, and without an
        idle phase of its own after the first, because it starts in that of the repeat before.
        """
        if self.reset == GO_ON:
            cycle = replace(self, seed=self.seed + number)._measured(board)
            yield cycle if number == 1 else cycle[1:]
            return
        with self._database(board, raw):
            run = [*self._warmed_up(board), *self._measured(board)]
            yield self._copied(board, run) if self.reset == COPY else [*self._loaded(board), *run]

    def _warmed_up(self, board: Board) -> list[Step]:
        """The warm-up of a repeat, at the rate of its run; it leaves the keys that the run inserts or removes alone."""
        if not self.warms_up_each:
            return []
        kept = {f"{kind}proportion": "0" for kind in changing_keys(self.effective)}
        properties = {**self.properties, **kept, "operationcount": "0"}
        study = replace(self, run_s=self.warm_up_s, properties=properties, design=False)
        work = replace(study._workload(board, "run"), files={})
        return [Step(RUN_WARM_UP, Role.PREPARE, work), Step(f"{RUN_WARM_UP}-settle", Role.DRAIN)]

    def _measured(self, board: Board) -> list[Step]:
        """The run with the phases around it."""
        return around(replace(self.work, workload=self._workload(board, "run")))

    @property
    def _favoured(self) -> list[str]:
        """Kinds in favour of which a run has another mix, in the order of the runs."""
        writing = list(write_shares(self.effective)) if self.other_mixes else []
        return random.Random(self.seed).sample(writing, len(writing)) if len(writing) > 1 else []

    def mixes(self) -> list[Self]:
        """For each of several kinds that write, in random order: the study with the others halved in its favour."""
        shares, work = write_shares(self.effective), Step(MIX, Role.MIX)
        return [
            replace(self, properties={**self.properties, **in_favour_of(kind, shares)}, work=work, other_mixes=False)
            for kind in self._favoured
        ]

    @contextmanager
    def _database(self, board: Board, raw: Path) -> Iterator[None]:
        """A new, empty database, removed at the end."""
        try:
            board.start_database(self.database.name, raw)
            yield
        finally:
            board.remove_database(self.database.name)

    @property
    def _first_load(self) -> str:
        """Name of the load before the warm-up: the repeats have loads of their own unless they go on with it."""
        return "load" if self.reset == GO_ON else f"{WARM_UP}-load"

    def _loaded(self, board: Board) -> list[Step]:
        load = Step("load", Role.PREPARE, self._workload(board, "load"))
        return [load, Step("load-settle", Role.DRAIN)]

    def _copied(self, board: Board, run: Sequence[Step]) -> Iterator[Step]:
        """Load, if no such database is kept yet, and the run on a copy."""
        path = board.database_path(self.database.name)
        name = self.kept_name(board.programs.loader_sha256)
        if board.kept.size_bytes(name) is None:
            yield from self._loaded(board)
            board.kept.keep(path, name)
        copy = Workload(board.kept.copy_command(name, path))
        yield from (Step("copy", Role.PREPARE, copy), Step("copy-settle", Role.DRAIN), *run)

    def kept_name(self, loader_sha256: str) -> str:
        """Name of the kept database: the engine's name, and a hash of everything that its load by this loader needs."""
        load = {key: value for key, value in self.effective.items() if key not in OF_THE_RUN_ALONE}
        load |= self._file_hashes()
        generator = f"{self.generator.name} {self.generator.version}" if self.generator else "loader"
        made = [self.engine, loader_sha256, load, self.threads, self.seed, generator]
        return f"{self.engine}-{_sha256(json.dumps(made, sort_keys=True))[:16]}"

    def controls(self, board: Board) -> Iterable[Step]:
        """The harness: the same workload on the null engine."""
        if not self.harness:
            return []
        operations = max(_HARNESS_OPERATIONS, whole_number(self.properties, "operationcount") or _HARNESS_TIMED)
        changes = {
            "operationcount": str(operations),
            "maxexecutiontime": f"{HARNESS_LIMIT_S}",
            **self._insert_room,
        }
        without = replace(self, properties={**self.properties, **changes}, run_s=None)
        workload = without._workload(board, "run", "null")
        return [Step("harness", Role.CONTROL, replace(workload, check=None))]

    def _workload(self, board: Board, command: str, database: str = "") -> Workload:
        database = database or self.database.name
        timed_s = self.run_s if command == "run" else None

        def check(summary: Mapping[str, Any], tag: str) -> None:
            """Checks the number of operations, as the loader cannot detect a stream that ends too early."""
            done, expected = summary["operations"], expected_operations(command, self.effective)
            if done < expected and self.generator:
                raise RigFault(
                    f"{self.generator.name} made {done} of {expected} operations in {tag}: see raw/{tag}.generator.log"
                )

        path = board.database_path(database)
        loader = self._command(board.programs.loader, board.runner.copy_in, command, database, path)
        operations = (
            whole_number(self.properties, "operationcount") if command == "run" else inserts_of_load(self.effective)
        )
        return Workload(
            command=(*loader, "--progress"),
            files=_FILES,
            bad_input_status=_BAD_INPUT_STATUS,
            marks=(f"{command}-start", f"{command}-end"),
            operations=0 if timed_s else operations,
            lasts_s=timed_s,
            stream=self._stream(command),
            check=check if self.generator else None,
        )

    def check_command(self, loader: str, put: Callable[[Path], str], path: str) -> tuple[str, ...]:
        """Command line with which a loader only checks workload and engine.

        Args:
            put: gives the path at which the loader reads a file of this computer.
        """
        return (*self._command(loader, put, "run", self.database.name, path), "--check")

    def _command(
        self, loader: str, put: Callable[[Path], str], command: str, database: str, path: str
    ) -> tuple[str, ...]:
        limit = self._limit(command)
        files = {key: put(file) for key, file in self._files.items()}
        own = MIX_BLOCK in self.effective
        blocks = {MIX_BLOCK: f"{self.block_s:g}"} if self.design and command == "run" and not own else {}
        paced = self.campaign_per_s and command == "run"
        target = {**at_random(self.effective), "target": f"{self.campaign_per_s:.0f}"} if paced else {}
        chosen = {**blocks, **target, **self.properties, **limit, **files}
        return (
            *(loader, command, "--db", database, "--path", path, "--workload", put(self.workload)),
            *("--threads", str(self.threads), "--seed", str(self.seed)),
            *(part for key, value in chosen.items() for part in ("-p", f"{key}={value}")),
        )

    def _limit(self, command: str) -> Mapping[str, str]:
        """The property that ends a timed run, or that keeps a time limit from ending a load."""
        if command == "load":
            return {"maxexecutiontime": "0"} if "maxexecutiontime" in self.effective else {}
        return {"maxexecutiontime": str(self.run_s)} if self.run_s else {}

    def _stream(self, phase: str) -> tuple[str, ...]:
        """The command that makes the operations of a phase; empty if the loader makes them."""
        if self.generator is None:
            return ()
        settings = {**self.properties, **self._limit(phase), "threadcount": str(self.threads)}
        return tuple(self.generator.command(phase, self.workload, settings))

    def facts(self, board: Board) -> dict[str, Any]:
        """The program that makes the operations (the loader, or one on this computer), and the copied database."""
        kept = {"kept_database": self.kept_name(board.programs.loader_sha256)} if self.reset == COPY else {}
        if self.generator is None:
            return {"generator": {"name": "loader", "runs_on": "board"}, **kept}
        made = {"name": self.generator.name, "version": self.generator.version, "runs_on": "host"}
        return {"generator": made, **kept}

    def to_json(self) -> dict[str, Any]:
        """All settings, including the text of the workload file, as its path is not valid elsewhere."""
        text = file_text(self.workload)
        return {
            "name": self.name,
            "database": self.database.name,
            "workload": {"name": self.called or self.workload.name, "text": text, "sha256": _sha256(text)},
            "properties": dict(self.properties),
            "threads": self.threads,
            "seed": self.seed,
            "harness": self.harness,
            "run_s": self.run_s,
            "generator": self.generator.name if self.generator else "loader",
            **({"file_sha256": hashes} if (hashes := self._file_hashes()) else {}),
            **({"design": True} if self.design else {}),
            **({"reset": self.reset} if self.reset != LOAD else {}),
            **({"rate": self.rate} if self.rate is not None else {}),
            **({"warm_up_s": self.warm_up_s} if self.warm_up_s is not None else {}),
            **({"other_mixes": True} if self._favoured else {}),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any], folder: Path, jars: Path) -> Self:
        """The study that to_json() wrote.

        Args:
            folder: folder in which the workload file is written.
            jars: folder of YCSB's jars, if YCSB makes the operations.
        Raises: BadInput: the entry does not describe a study.
        """
        described = entry["workload"]
        workload = folder / f"{described['sha256'][:12]}-{Path(described['name']).name}"
        if _sha256(described["text"]) != described["sha256"]:
            raise BadInput("the plan's workload was changed: its text does not match its checksum")
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(workload, described["text"].encode())
        study = cls(
            database=find_database(entry["database"]),
            workload=workload,
            properties=dict(entry["properties"]),
            threads=int(entry["threads"]),
            seed=int(entry["seed"]),
            harness=bool(entry["harness"]),
            run_s=entry["run_s"],
            generator=YcsbCore(jars) if entry["generator"] == YcsbCore.name else None,
            design=bool(entry.get("design", False)),
            reset=str(entry.get("reset", LOAD)),
            rate=entry.get("rate"),
            warm_up_s=entry.get("warm_up_s"),
            other_mixes=bool(entry.get("other_mixes", False)),
            called=described["name"],
            origins=dict.fromkeys((*entry["properties"], "threadcount", "seed", "maxexecutiontime"), "the plan"),
        )
        named_files(study.effective, workload)
        hashes = study._file_hashes()
        if entry.get("file_sha256", hashes) != hashes:
            raise BadInput(f"the plan's files were changed: {', '.join(map(str, study._files.values()))}")
        return study


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
