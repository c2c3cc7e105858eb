"""A board under test behind a shell: ssh, or this computer when it is the board itself."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from opjoule.clocks.exchanges import Exchange
from opjoule.databases.registry import is_server
from opjoule.devices.block_devices import BlockDevices, device_number
from opjoule.devices.board_loader import RECONNECT_S, BoardLoader
from opjoule.devices.board_lock import BoardLock
from opjoule.devices.board_state import read_state
from opjoule.devices.clock_discipline import read_discipline
from opjoule.devices.dialogue import Dialogue
from opjoule.devices.disturbance import Disturbance, RunningDisturbance
from opjoule.devices.facts import BoardFacts, read_facts
from opjoule.devices.free_space import read_free_bytes
from opjoule.devices.loader_binary import find_loader, install_loader
from opjoule.devices.local import file_options, loader_files, start_stream
from opjoule.devices.medium import Medium
from opjoule.devices.prepare import PreparePlan, plan_preparation
from opjoule.devices.profiles import Profile
from opjoule.devices.recovery import undo_changes
from opjoule.devices.rig_file import CPUFREQ
from opjoule.devices.server import PORT, MongoServer
from opjoule.devices.sessions import database_folder, new_session, remove_sessions
from opjoule.devices.shell import LocalShell, Shell
from opjoule.devices.state_gate import StateWatch
from opjoule.devices.state_settings import StateSettings
from opjoule.devices.steps import JOURNAL, Step, as_root, prepare_script, run_as_root
from opjoule.errors import BadInput, DeviceFault, LinkFault, OpJouleError, RigFault

_MAKE_STORAGE = 'mkdir -p -- "$1" && exec stat -c %d -- "$1"'
_PENDING = (Path(__file__).parent / "pending.sh").read_text()


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
    state = read_state(shell, as_root(board.rights), cpufreq=cpufreq, device=medium.device, path=medium.path)
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


class BoardDevice:
    """One board of the rig. The loader is copied over and verified as it is made."""

    simulated = False

    def __init__(
        self,
        profile: Profile,
        shell: Shell,
        *,
        builds: Path,
        medium: Medium,
        sync: str | None,
        wanted: StateSettings | None = None,
        cpufreq: str = CPUFREQ,
        journal: str = JOURNAL,
        history: Path | None = None,
        database: str = "",
    ) -> None:
        """Reads the board's facts and installs the loader.

        Args:
            builds: the host's build folder, which holds a loader for each architecture.
            medium: the chosen storage medium of the board.
            sync: the loader's --sync argument, or None without a sync line.
            wanted: the state to measure in.
            cpufreq: the board's folder of CPU settings.
            journal: the board's folder that says what has to be undone.
            history: host file with earlier speeds of the media; None for no comparison.
            database: what will be measured, where the loader has to have a certain engine.
        Raises: LinkFault, DeviceFault: the board is out of reach, or the loader cannot be installed.
        """
        self.name = profile.name
        self._profile = profile
        self.shell = shell
        self.storage = medium.path
        self._medium = medium
        self._sync = sync
        self._wanted = wanted or StateSettings()
        self._cpufreq = cpufreq
        self._journal = journal
        self._history = history
        # A folder for each session: one that was cut off leaves its files to `restore`, never to the next run.
        self._session = new_session()
        self.board: BoardFacts = read_facts(shell, journal=journal, session=self._session)
        self.cores = int(self.board.values.get("processors") or profile.cores)
        self._lock = BoardLock(shell, self.board.work)
        self._loader, self._loader_sha256 = install_loader(
            shell, find_loader(builds, self.board.machine, database), self.board.cache
        )
        self.session_folder = f"{self.board.work}/{self._session}"
        self._clock = Dialogue(shell, [self._loader, "clock"])
        self._pending = Dialogue(shell, ["sh", "-c", _PENDING])
        self._clock.start()
        self.disturbance: Disturbance | None = None
        """A background load to measure under."""
        self._disturbing: RunningDisturbance | None = None
        self.mongod = "mongod"
        self.mongod_options: list[str] = []
        self._server: MongoServer | None = None
        self._servers = 0
        self._blocks = BlockDevices({})
        self._storage_number = ""
        self._locked = False
        self._copied: dict[Path, str] = {}

    def facts(self) -> dict[str, Any]:
        """Everything that facts.sh found, the loader's hash and the storage's free space."""
        return {
            "connection": self.shell.target,
            **self.board.values,
            "loader_sha256": self._loader_sha256,
            "storage_path": self.storage,
            "storage_free_bytes": self.storage_free_bytes(),
            "disturbance": self.disturbance.to_json() if self.disturbance else None,
        }

    def storage_free_bytes(self) -> int | None:
        """Free bytes where the databases go; of a device that is not mounted yet, all of it."""
        return read_free_bytes(self.shell, self._medium)

    def preparation(self) -> PreparePlan:
        """What prepare() would change now.

        Raises: BadInput: the medium may not be written to as asked, or a setting that the board cannot take.
        """
        plan, self._blocks = plan_for(
            self.shell, self.board, self._medium, self._wanted, self._cpufreq, self._sync
        )
        return plan

    def prepare(self) -> list[str]:
        """Undoes what an interrupted run has left, runs the plan's steps, and makes the storage directory.

        Raises: BadInput, DeviceFault: a step that the measurement cannot do without has failed.
        """
        self._lock.confirm()  # what another measurement has changed must not be undone under it
        self._locked = True
        done = []
        if self.board.journal_left:
            undone, left = undo_changes(self.shell, self.board, self._journal)
            done = [f"left by an earlier run: {line}" for line in undone + left]
        plan = self.preparation()
        done += plan.lines()
        if plan.steps:
            outcomes = self._run_as_root(prepare_script(plan.steps, self._journal))
            for number, step in enumerate(plan.steps, 1):
                outcome, *why = outcomes.get(f"{number:04}", ["failed", "the board did not get to it"])
                if outcome != "done":
                    self._failed(step, " ".join(why), done)
        made = self.shell.run(["sh", "-c", _MAKE_STORAGE, "sh", self.storage])
        if made.status != 0:
            raise BadInput(
                f"cannot make {self.storage} on the board: {made.last_line()}; "
                f"mend [device.{self.name}.storage] in rig.toml"
            )
        self._storage_number = device_number(made.text().strip())
        if self.disturbance:
            self._disturbing = RunningDisturbance(self.shell, self.disturbance, self.storage)
            done.append(f"DISTURBED on purpose: {self.disturbance.about}")
        return done

    @staticmethod
    def _failed(step: Step, why: str, done: list[str]) -> None:
        if step.is_needed:
            raise DeviceFault(f"the board cannot be prepared: {step.about}: {why or 'failed'}")
        done.append(f"FAILED: {step.about}: {why}")

    def _run_as_root(self, script: bytes) -> dict[str, list[str]]:
        return run_as_root(self.shell, self.board.rights, script)

    def watch_state(self) -> StateWatch:
        """The state gate of this measurement; to be started once prepare() is done."""
        device = self._blocks.by_number(self._storage_number)
        whole = self._blocks.devices.get(device.whole, device) if device else None
        known = [whole.model, whole.serial, f"{whole.size_bytes} bytes"] if whole else [self.storage]
        return StateWatch(
            self.shell,
            self._profile,
            storage=self.storage,
            identity=" ".join(part for part in [self.board.values.get("hostname", ""), *known] if part),
            cpufreq=self._cpufreq,
            history=self._history,
            discipline=lambda: read_discipline(self.shell, self._loader),
        )

    def before_run(self) -> None:
        """Drops the page cache, if the state asks for it and the user may."""
        if self._wanted.page_cache == "drop" and self.board.rights != "none":
            self._run_as_root(
                prepare_script([Step("page cache dropped", ("drop_page_cache",))], self._journal)
            )

    def restore(self) -> list[str]:
        """Undoes prepare(), after a lost link once the board is back; what could not be undone, one line each."""
        if self._disturbing:
            self._disturbing.stop()
        if not self._locked:
            return []
        try:
            if not self.shell.is_up() and not self.shell.reconnect(RECONNECT_S):
                return [
                    f"the board is out of reach ({self.shell.why_down()}): restore it with measure.py restore"
                ]
            return undo_changes(self.shell, self.board, self._journal)[1]
        except RigFault as error:
            return [f"the board could not be restored: {error}; run measure.py restore"]

    def start_database(self, database: str, raw: Path) -> None:
        """Starts the server of a server database; nothing to do for the others.

        Raises: DeviceFault: it does not start.
        """
        if is_server(database):
            self._servers += 1
            self._server = MongoServer(
                self.shell,
                mongod=self.mongod,
                options=self.mongod_options,
                data=database_folder(self.storage, self._session, database),
                folder=f"{self.session_folder}/server-{self._servers}",
                samples=raw / f"server-{self._servers}.csv",
            )

    def database_path(self, database: str) -> str:
        """A directory of its own below the medium's path; the address of a server database."""
        if is_server(database):
            return f"mongodb://127.0.0.1:{PORT}"
        return database_folder(self.storage, self._session, database)

    def copy_in(self, file: Path) -> str:
        """Copies a host file to the board once and gives its path there."""
        if file not in self._copied:
            target = f"{self.session_folder}/files/{file.name}"
            copied = self.shell.run(["sh", "-c", 'cat > "$1"', "sh", target], feed=file.read_bytes())
            if copied.status != 0:
                raise DeviceFault(f"cannot copy {file} to the board: {copied.last_line()}")
            self._copied[file] = target
        return self._copied[file]

    def start_loader(
        self, arguments: list[str], raw: Path, tag: str, stream: list[str] | None = None
    ) -> BoardLoader:
        """Starts the loader on the board; its files come to raw/ when it ends."""
        folder = f"{self.session_folder}/{tag}"
        options = file_options(arguments[0], loader_files(Path(folder), tag))
        pinned = ["taskset", "-c", self._wanted.pin] if self._wanted.pin else []
        if not stream:
            return self._start([*pinned, self._loader, *arguments, *options], folder, raw, tag)
        fifo = f"{folder}/operations"
        made = self.shell.run(["sh", "-c", 'mkdir -p -- "$1" && mkfifo -- "$2"', "sh", folder, fifo])
        if made.status != 0:
            raise DeviceFault(f"cannot make {fifo} on the board: {made.last_line()}")
        command = [*pinned, self._loader, *arguments, *options, "--trace", fifo]
        loader = self._start(command, folder, raw, tag)
        operations = start_stream(stream, raw, tag)
        assert operations
        loader.take_operations(operations, fifo)
        return loader

    def _start(self, command: list[str], folder: str, raw: Path, tag: str) -> BoardLoader:
        return BoardLoader(self.shell, command, folder, raw)

    def check_workload(self, arguments: list[str]) -> None:
        """Has the loader on the board check all properties."""
        checked = self.shell.run([self._loader, *arguments, "--check"])
        if checked.status != 0:
            raise BadInput(checked.last_line().removeprefix("loader: "))

    def clock_exchange(self) -> Exchange:
        """One line to `loader clock` on the board and back."""
        sent_ns, answer, received_ns = self._clock.ask()
        if not answer.isdigit():
            raise LinkFault(f"the board's clock answers {answer!r}")
        return Exchange(sent_ns, int(answer), int(answer), received_ns)

    def pending_write_bytes(self) -> int:
        """Dirty and Writeback of the board's /proc/meminfo."""
        answer = self._pending.ask()[1]
        if not answer.isdigit():
            raise LinkFault(f"the board's /proc/meminfo answers {answer!r}")
        return int(answer) * 1024

    def sync_carrier(self) -> str | None:
        """The GPIO line that rig.toml or --sync names."""
        return self._sync

    def remove_database(self, path: str) -> None:
        """Removes one database that database_path() gave, a server with it; a lost link leaves it to `restore`."""
        if path.startswith("mongodb://"):
            server, self._server = self._server, None
            if server:
                server.stop()
            return
        own = database_folder(self.storage, self._session, "")
        name = path.removeprefix(own)
        if name in ("", path) or "/" in name:
            raise DeviceFault(f"refusing to remove {path}: this measurement's databases are {own}NAME")
        if self.shell.is_up():
            remove_sessions(self.shell, [path])

    def close(self) -> None:
        """Ends server and helpers on the board, removes this session's files there and ends the connection."""
        with contextlib.suppress(OpJouleError):  # the board is gone: `restore` clears what it kept
            if self._server:
                self._server.stop()
        self._clock.close()
        self._pending.close()
        self._lock.close()
        with contextlib.suppress(OpJouleError):
            if self.shell.is_up():
                remove_sessions(self.shell, [f"{self.session_folder}/files"])
                self.shell.run(["rmdir", "--", self.session_folder])  # files that could not be fetched stay
        self.shell.close()
