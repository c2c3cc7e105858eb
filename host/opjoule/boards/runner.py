"""Programs on a board: each is started under the probe in a folder of the session and followed live.

Its files are fetched when it ends or the link is back. One of them may disturb the measurement (study S2's disturbed
condition), as the result states.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path

from opjoule.base.errors import BadInput, DeviceFault, LinkFault, RigFault, unknown
from opjoule.boards.sessions import fetch_files, stop_and_fetch
from opjoule.boards.shell import SILENCE_S, LineProcess, Shell, beat_until, script
from opjoule.boards.ssh import SSH_LOST

PROBE_FOLDER = "probe"
"""Folder of the probe's own files, in the session's folder."""
_MAKE_FIFO = 'mkdir -p -- "$1" && mkfifo -- "$2"'
_RECEIVE = 'mkdir -p -- "${1%/*}" && cat > "$1" && chmod "$2" "$1"'
RECONNECT_S = 120.0
INTERRUPT_S = 30.0
"""Time limit from the request to the end: the probe kills a workload after 10 s."""
_BOOT_AND_FOLDER = 'cat /proc/sys/kernel/random/boot_id; [ -d "$1" ]'


class OperationStream:
    """Program that generates the operations, and the program that transfers them to the board."""

    def __init__(self, command: list[str], carrier: list[str], log: Path) -> None:
        """Starts both; the generator's stderr goes to `log`. Raises: RigFault: one does not start; neither runs."""
        # Nobody would end it if this process were killed: it would run without a reader.
        with_host = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        log.parent.mkdir(parents=True, exist_ok=True)
        nothing = subprocess.DEVNULL
        self._programs: list[subprocess.Popen[bytes]] = []
        try:
            with log.open("wb") as words:
                maker = subprocess.Popen(
                    [*with_host, *command],
                    stdin=nothing,
                    stdout=subprocess.PIPE,
                    stderr=words,
                    start_new_session=True,
                )
            self._programs.append(maker)
            assert maker.stdout
            # Closed here, the pipe is the carrier's alone: when the carrier ends, the generator has no reader.
            with maker.stdout as made:
                carrying = subprocess.Popen(carrier, stdin=made, stdout=nothing, stderr=nothing, start_new_session=True)
            self._programs.append(carrying)
        except OSError as error:
            self.stop()
            raise RigFault(f"cannot start {error.filename or command[0]}: {error.strerror}") from error

    def stop(self) -> None:
        """Ends the programs, whatever their state."""
        for process in self._programs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class WorkloadRun(LineProcess):
    """One run; `folder` on the board receives its files, `raw` on the host their copies."""

    def __init__(self, shell: Shell, command: list[str], folder: str, raw: Path | None, *, boot_id: str = "") -> None:
        """Starts `probe run`.

        Args:
            command: the probe's command line, followed by the workload's.
            folder: on the board, directly in a session's; its name is that of the run's files.
            raw: None for a program whose files are not needed.
            boot_id: of the board's present boot; empty if unknown.
        """
        self._shell = shell
        self._boot_id = boot_id
        self._folder = folder
        self._raw = raw
        self._ended = threading.Event()
        self._beat_lock = threading.Lock()
        self._stream: OperationStream | None = None
        log = raw / f"{folder.rpartition('/')[2]}.log" if raw else None
        super().__init__(shell.command(command), log=log)
        beat_until(self._ended, self._beat, "workload-lifeline")

    def _beat(self) -> None:
        assert self._process.stdin
        with self._beat_lock:
            self._process.stdin.write(".")
            self._process.stdin.flush()

    def take_operations(self, command: list[str], fifo: str, log: Path) -> None:
        """Transfers the operations that a command of this computer prints to the FIFO from which the workload reads."""
        carrier = self._shell.command(["sh", "-c", 'exec cat >"$1"', "sh", fifo])
        self._stream = OperationStream(command, carrier, log)

    def interrupt(self) -> None:
        """Ends the lifeline: the board stops the workload, which closes its files in order."""
        self._ended.set()
        if not self._all_read.is_set():
            why = "a process that it started does not end and keeps its output open; end it by hand"
            limit = threading.Timer(INTERRUPT_S, self.give_up, [why])
            limit.daemon = True
            limit.start()
        with self._beat_lock:
            if self._process.stdin and not self._process.stdin.closed:
                with contextlib.suppress(OSError):  # the connection is gone; wait() reports it
                    self._process.stdin.close()

    def wait(self) -> int:
        """Waits for the end without doing anything else on the board; after a lost link, its files are fetched.

        Raises: LinkFault: the link was lost; says whether the files were fetched.
        """
        status = super().wait()
        if self._stream:
            self._stream.stop()
        self.interrupt()
        if (self._shell.is_up() and status != SSH_LOST) or self._shell.is_still_up():
            return status
        raise LinkFault(self._after_lost_link())

    def fetch(self) -> None:
        """Copies its files to the host and removes them from the board; never called inside a window, as it loads the
        board.

        Raises: LinkFault, DeviceFault: the files did not arrive.
        """
        if self._raw:
            stop_and_fetch(self._shell, self._folder, self._raw)

    def _after_lost_link(self) -> str:
        why = f"the link to {self._shell.target} was lost ({self._shell.why_down()})"
        if not self._shell.reconnect(RECONNECT_S):
            return f"{why} and is not back after {RECONNECT_S:g} s; when it is, run measure.py restore"
        if not self._raw:
            return f"{why}; the board is back"
        if stop_and_fetch(self._shell, self._folder, self._raw):
            return f"{why}; the board is back and its files were fetched"
        return f"{why}; the board is back, but {self._why_no_files()}"

    def _why_no_files(self) -> str:
        """Why the board no longer has the files of this phase: a restart, or the end of the user's last session."""
        session = self._folder.rpartition("/")[0]
        now = self._shell.run(["sh", "-c", _BOOT_AND_FOLDER, "sh", session])
        if self._boot_id and now.text().strip() != self._boot_id:
            return "has restarted and kept no files of this phase"
        if now.status == 0 or not session.startswith("/dev/shm/"):
            return "without files of this phase"
        return (
            "without files of this phase: systemd-logind removes a user's files from /dev/shm after the last session "
            "(RemoveIPC); run 'loginctl enable-linger USER' there once, as root"
        )


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


_SCRIPT = script("disturb.sh")
TAG = "disturbance"
"""Tag of the disturbance's folder on the board."""


@dataclass(frozen=True)
class Disturbance:
    """One background load."""

    name: str
    about: str
    cpu_percent: int = 0
    """Share of one processor, in bursts within each second."""
    read_kib_per_s: int = 0
    write_kib_per_s: int = 0
    file_mib: int = 0
    """File on the measured medium that is read and written."""


DISTURBANCES = {
    load.name: load
    for load in (
        Disturbance("cpu", "one processor busy all the time", cpu_percent=100),
        Disturbance(
            "video",
            "like a video played in software: 60 % of one processor, 640 KiB/s read from the measured medium",
            cpu_percent=60,
            read_kib_per_s=640,
            file_mib=64,
        ),
        Disturbance(
            "writer",
            "like a logger: 512 KiB written and synced to the measured medium each second",
            write_kib_per_s=512,
            file_mib=8,
        ),
    )
}


def find_disturbance(name: str) -> Disturbance:
    """The disturbance called `name`. Raises: BadInput: unknown; names the known ones."""
    if name not in DISTURBANCES:
        raise BadInput(unknown("disturbance", name, sorted(DISTURBANCES)))
    return DISTURBANCES[name]


class RunningDisturbance:
    """The load on the board, from the start until stop(), or until this program or the connection ends."""

    def __init__(self, runner: Runner, disturbance: Disturbance, folder: str) -> None:
        """Starts the load, with its file in the board's `folder`. Raises: DeviceFault: it does not start."""
        _, _, *numbers = astuple(disturbance)
        command = ["sh", "-c", _SCRIPT, "sh", folder, *map(str, numbers)]
        self._run = runner.start(command, TAG, None, pinned=False)
        if next(self._run.lines(), None) != {"ready": True}:
            self.stop()
            raise DeviceFault(f"the disturbance '{disturbance.name}' does not start in {folder} on the board")

    def stop(self) -> None:
        """Ends the load and removes its file. After a lost link the board does so itself."""
        self._run.interrupt()
        with contextlib.suppress(LinkFault):
            self._run.wait()
