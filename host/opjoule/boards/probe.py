"""The probe on a board: a process that reports clock and pending writes, drives the sync line and samples the load.

docs/reference/probe.md lists its requests and answers. A board may be broken or hostile: lines that the probe would
not send are ignored, and memory use does not grow with the input.
"""

import contextlib
import json
import queue
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from opjoule.base.errors import DeviceFault, LinkFault
from opjoule.boards.shell import SILENCE_S, Shell, beat_until, end_by_input, script
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.operations.board_files import PHASE_BEGIN, PHASE_END, PhaseMark

LINE_MAX: Final = 1 << 18
"""Bytes of the longest line, the answer that repeats a signature; longer ones arrive in parts, which are no lines."""
TEXT_MAX: Final = 500
"""Characters that are kept of a message from the board."""
HELLO: Final = "probe"
"""Key of its first line."""
WORDS: Final = (HELLO, "clock", "pending", "files", "signature", "steering", "drain")
_INT64: Final = 1 << 63
ANSWER_S = 30.0
START_S = 60.0
PERIOD_MS = 100
"""Interval between two samples of the board's counters."""
WAITING_MAX = 10_000
"""Greatest number of unread marks, faults and answers; any more are lost."""
_LAST_WORDS_S = 5.0
_START = script("start_probe.sh")
T = TypeVar("T")


@dataclass(frozen=True)
class ProbeAnswer:
    """The probe's answer to a request."""

    word: str
    entry: dict[str, Any]


def probe_line(line: bytes) -> PhaseMark | ProbeAnswer | str | None:
    """Contents of one line; for a fault of the board its message; None if the line is not from the probe."""
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            return None
        if "mark" in entry:
            begins = entry["mark"] == PHASE_BEGIN
            return PhaseMark(number(entry, "board_ns"), str(entry["name"])[:TEXT_MAX], begins)
        if "fault" in entry:
            return str(entry["fault"])[:TEXT_MAX]
        word = _word(entry)
        return ProbeAnswer(word, entry) if word in WORDS else None
    except (ValueError, KeyError, RecursionError, DeviceFault):
        return None


def _word(entry: dict[str, Any]) -> str:
    """The request that an entry answers. An "error" answer repeats the request."""
    if HELLO in entry:
        return HELLO
    said = str(entry["answer"])
    return str(entry["line"]).partition(" ")[0] if said == "error" else said


def number(entry: dict[str, Any], key: str) -> int:
    """An integer of the entry. Raises: DeviceFault: there is none, or it has more than 63 bits."""
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not -_INT64 <= value < _INT64:
        raise DeviceFault(f"the probe's answer has no whole number '{key}': is another program in its place?")
    return value


class Probe:
    """A running `probe serve`. Safe from several threads."""

    def __init__(self, shell: Shell, program: str, folder: str, options: list[str]) -> None:
        """Starts the probe.

        Args:
            folder: on the board, directly in a session's: for its files and the marks' socket.
        Raises: LinkFault, DeviceFault: it does not start; gives its last line.
        """
        self._shell = shell
        self._answers: dict[str, queue.Queue[tuple[dict[str, Any], int] | None]] = {
            word: queue.Queue(WAITING_MAX) for word in WORDS
        }
        self._asking = {word: threading.Lock() for word in WORDS}
        self._writing = threading.Lock()
        self._marks: queue.Queue[PhaseMark] = queue.Queue(WAITING_MAX)
        self._kept: IO[str] | None = None
        self._faults: queue.Queue[str] = queue.Queue(WAITING_MAX)
        self._ended = threading.Event()
        command = [program, "serve", "--dir", folder, "--silence-s", str(SILENCE_S), *options]
        self._process = shell.begin(["sh", "-c", _START, "sh", folder, *command], bufsize=-1)
        self._said = ""
        self._listener = threading.Thread(target=self._listen, name="probe-complaints", daemon=True)
        self._listener.start()
        threading.Thread(target=self._read, name="probe-answers", daemon=True).start()
        try:
            started = self._answers[HELLO].get(timeout=START_S)
        except queue.Empty:
            started = None
        if started is None:
            self._ended.set()
            words = self._last_words()
            self.close()
            raise DeviceFault(f"the probe on {shell.target} does not start: {words}")
        beat_until(self._ended, lambda: self._send(""), "probe-lifeline")

    def clock_exchange(self) -> Exchange:
        """One round trip between host_ns and board_ns. Raises: LinkFault: the board does not answer."""
        answer, sent_ns, received_ns = self._ask("clock")
        return Exchange(sent_ns, number(answer, "received_ns"), number(answer, "sent_ns"), received_ns)

    def pending_write_bytes(self) -> int:
        """Bytes that the board has not yet written to its media: Dirty and Writeback of its /proc/meminfo."""
        return number(self._ask("pending")[0], "bytes")

    def begin_files(self, name: str) -> None:
        """Sends events and samples to NAME.events.jsonl and NAME.system.csv from now on; earlier files are complete."""
        self._ask(f"files {name}")

    def play_signature(self, bits: str, bit_ms: int) -> tuple[int, int]:
        """Plays a busy and idle pattern; returns its start and end [board_ns]."""
        answer = self._ask(f"signature {bits} {bit_ms}", limit_s=ANSWER_S + len(bits) * bit_ms * 1e-3)[0]
        return number(answer, "start_ns"), number(answer, "end_ns")

    def steering(self) -> dict[str, Any]:
        """adjtimex of the board: status, frequency_ppm, offset_s, tick_us; a reason if it cannot be read."""
        adjtimex = self._ask("steering")[0].get("adjtimex")
        return adjtimex if isinstance(adjtimex, dict) and adjtimex else {"reason": "the probe gives no reason"}

    def keep_marks(self, path: Path) -> None:
        """Writes each phase mark to this file as it arrives, in the format of the board's file of events."""
        self._kept = path.open("x", encoding="utf-8", buffering=1)

    def marks(self) -> list[PhaseMark]:
        """Phase marks that have arrived since the last call, in order."""
        return drained(self._marks)

    def faults(self) -> list[str]:
        """Faults of the board since the last call, one line each."""
        return drained(self._faults)

    def warnings(self) -> list[str]:
        """Warnings of the board's run, after all work is done; a real probe has only faults."""
        return []

    def close(self) -> None:
        """Ends the probe; its files are complete then."""
        self._ended.set()
        with self._writing:
            end_by_input(self._process, ANSWER_S)

    def _ask(self, request: str, limit_s: float = ANSWER_S) -> tuple[dict[str, Any], int, int]:
        """(answer, host_ns when the request left, host_ns when the answer arrived)."""
        word = request.partition(" ")[0]
        with self._asking[word]:
            sent_ns = self._send(request)
            try:
                arrived = None if self._ended.is_set() else self._answers[word].get(timeout=limit_s)
            except queue.Empty:
                self._ended.set()  # a later answer would be matched to another request
                arrived = None
            if arrived is None:
                raise LinkFault(f"the probe on {self._shell.target} does not answer: {self._last_words()}")
        answer, received_ns = arrived
        if "error" in answer:
            raise DeviceFault(f"the probe on {self._shell.target}: {str(answer['error'])[:TEXT_MAX]}")
        return answer, sent_ns, received_ns

    def _send(self, request: str) -> int:
        assert self._process.stdin
        line = request.encode() + b"\n"
        with self._writing:
            sent_ns = time.monotonic_ns()
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except (OSError, ValueError):
                raise LinkFault(f"the probe on {self._shell.target} is gone: {self._last_words()}") from None
        return sent_ns

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as answers:
            while line := answers.readline(LINE_MAX):
                self._take(line, time.monotonic_ns())
        self._ended.set()
        if self._kept:
            self._kept.close()
        for waiting in self._answers.values():
            _put(waiting, None)

    def _listen(self) -> None:
        assert self._process.stderr
        with self._process.stderr as complaints:
            while line := complaints.readline(LINE_MAX):
                self._said = line.decode(errors="replace").strip()[:TEXT_MAX] or self._said

    def _take(self, line: bytes, received_ns: int) -> None:
        said = probe_line(line)
        if isinstance(said, PhaseMark):
            _put(self._marks, said)
            self._keep(said)
        elif isinstance(said, str):
            _put(self._faults, said)
        elif isinstance(said, ProbeAnswer):
            _put(self._answers[said.word], (said.entry, received_ns))

    def _keep(self, mark: PhaseMark) -> None:
        if self._kept is None:
            return
        event = PHASE_BEGIN if mark.begins else PHASE_END
        line = {"event": event, "board_ns": mark.board_ns, "detail": mark.name}
        try:
            self._kept.write(json.dumps(line) + "\n")
        except (OSError, ValueError) as error:  # the board's own file of events contains them too
            self._kept = None
            _put(self._faults, f"marks are not written down here: {error}")

    def _last_words(self) -> str:
        if self._process.poll() is None:
            if not self._ended.is_set():
                return self._shell.why_down() or "no answer in time"
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_LAST_WORDS_S)
        self._listener.join(timeout=_LAST_WORDS_S)
        if self._said:
            return self._said
        return self._shell.why_down() or ("it has ended" if self._process.poll() is not None else "no answer")


def _put(waiting: queue.Queue[T], item: T) -> None:
    """Adds an item; drops it if too many are unread."""
    with contextlib.suppress(queue.Full):
        waiting.put_nowait(item)


def drained(waiting: queue.Queue[T]) -> list[T]:
    """Removes and returns all unread items."""
    items = []
    with contextlib.suppress(queue.Empty):
        while True:
            items.append(waiting.get_nowait())
    return items
