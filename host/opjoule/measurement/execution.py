"""Runs a plan: rest, then load, idle, run, settle, idle for each repeat, while the meter is captured throughout.

From the start of idle-before to the end of idle-after nothing is done on the board but the phases themselves: the
loaders' files are fetched afterwards. Whatever ends it, the record holds everything up to that moment and says so.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from opjoule.clocks.played_signature import chip_ms, chips_text
from opjoule.devices.interface import Device, LoaderRun
from opjoule.errors import BadInput, DeviceFault, MeterFault, RigFault
from opjoule.measurement.phases import Phase, PhaseMarks
from opjoule.measurement.plan import Plan
from opjoule.measurement.progress import PhaseProgress
from opjoule.measurement.quiet import Rest
from opjoule.measurement.settling import Left, Settling
from opjoule.measurement.ycsb_core import expected_operations, file_properties
from opjoule.record.definition import ABOVE_IDLE
from opjoule.record.run_record import RunRecord
from opjoule.trace.power_history import PowerHistory

SIGNATURE = "signature"
"""Phase and files of the load signature."""
_POLL_S = 0.05
_SHOWN_POLL_S = 0.5
"""Between looks at the board's clock in an idle phase: each costs the board a little."""
_TAIL_NS = 200_000_000
_HARNESS_OPERATIONS = 2_000_000
_BAD_INPUT_STATUS = 2
_INTERRUPTED = (0, 130)
"""Exit status of a loader that was asked to stop."""


class Watched(Protocol):
    """What the execution asks of the meter's capture."""

    @property
    def ended(self) -> str | None:
        """Why the capture has ended by itself, or None while it goes on."""
        ...

    @property
    def error(self) -> BaseException | None:
        """What kept the capture from writing, or None."""
        ...

    @property
    def period_ns(self) -> int:
        """Mean distance of the samples so far [ns]; 0 before the second."""
        ...

    @property
    def history(self) -> PowerHistory:
        """Power of the board's supply so far."""
        ...


class Execution:
    """One run of a plan on a prepared device."""

    def __init__(
        self, plan: Plan, device: Device, capture: Watched, record: RunRecord, progress: PhaseProgress
    ) -> None:
        self._plan = plan
        self._device = device
        self._capture = capture
        self._record = record
        self._progress = progress
        self._settling = Settling(
            device,
            capture.history,
            plan.settle_limit_s,
            check=self._check_meter,
            show=progress.advance_to,
        )
        self._raw = record.directory / "raw"
        self._workload = ""
        self._unfetched: list[LoaderRun] = []
        self._repeats = plan.repeats
        self.phases: list[Phase] = []
        self.summaries: dict[str, dict[str, Any]] = {}

    def run(self, enough: Callable[[int], bool] = lambda repeats: True) -> None:
        """All repeats and the harness.

        Args:
            enough: asked once the plan's repeats are done, with their number; until it says so, more follow.
        Raises: BadInput, RigFault: the first thing that stops the run; phases so far are in the record.
        """
        self._workload = self._device.copy_in(self._plan.workload)
        try:
            self._all(enough)
        finally:
            with contextlib.suppress(RigFault, OSError):  # what ended the run is the error that counts
                self._fetch()

    def _all(self, enough: Callable[[int], bool]) -> None:
        self._signature(1)
        rest = self._rest()
        repeat = 0
        while repeat < self._plan.repeats or not enough(repeat):
            repeat += 1
            self._repeats = max(self._repeats, repeat)
            self._repeat(repeat, rest)
        if self._plan.harness:
            self._harness()
        self._signature(2)
        self._fetch()
        self._await_board(self.phases[-1].end_board_ns + _TAIL_NS)

    def _repeat(self, repeat: int, rest: Rest | None) -> None:
        name = self._plan.database.name
        path = self._device.database_path(name)
        try:
            self._device.start_database(name, self._raw)
            load, written = self._loader("load", repeat, int(self._plan.properties["recordcount"]))
            self._fetch()
            self._settle(repeat, load, "load-settle", Left(written, 0), rest)
            self._device.before_run()
            before = self._idle(repeat, "idle-before")
            pending = self._device.pending_write_bytes()
            run, written = self._loader("run", repeat, int(self._plan.properties["operationcount"]))
            with self._idling(repeat):
                settle = self._settle(repeat, run, "settle", Left(written, pending), before)
                self._idle_after(settle)
            self._fetch()
        finally:
            self._device.remove_database(path)

    def _loader(self, command: str, repeat: int, total: int) -> tuple[Phase, bool]:
        """The phase, and whether the loader saw to its writes itself."""
        database = self._plan.database.name
        path = self._device.database_path(database)
        arguments = [*self._plan.loader_arguments(command, database, path, self._workload), "--progress"]
        title = f"{command} {self._of_repeats(repeat)}"
        tag = f"{command}-{repeat}"
        timed_s = self._plan.run_s if command == "run" else None
        marks = self._follow(
            arguments, tag, title, 0 if timed_s else total, self._plan.operation_stream(command), timed_s
        )
        self._check_stream(command, tag)
        phase = marks.phase(command, repeat)
        if phase is None:
            raise DeviceFault(
                f"the loader ended without its {command}-start and {command}-end lines; see {self._raw}"
            )
        return self._add(phase), marks.settled

    def _rest(self) -> Rest | None:
        """Power before anything was done on the board; what follows the load is held against it."""
        if self._plan.idle_s <= 0:
            return None
        self._progress.phase("rest", self._plan.idle_s)
        started_s = time.monotonic()
        since_ns = self._capture.history.end_ns
        while (waited_s := time.monotonic() - started_s) < self._plan.idle_s:
            self._check_meter()
            self._progress.advance_to(waited_s)
            time.sleep(_POLL_S)
        history = self._capture.history
        lead_in_ns = round(self._plan.lead_in_s * 1e9)
        return Rest.of(history.blocks_w(since_ns + lead_in_ns, history.end_ns))

    def _idle(self, repeat: int, name: str) -> Rest | None:
        """An idle phase, and the power that the meter has seen in it so far."""
        if self._plan.idle_s <= 0:
            return None
        arguments = ["idle", "--seconds", f"{self._plan.idle_s:g}", "--progress"]
        marks = self._follow(
            arguments, f"{name}-{repeat}", f"idle {self._of_repeats(repeat)}", 0, None, self._plan.idle_s
        )
        phase = marks.phase("idle", repeat, called=name, lead_in_s=self._plan.lead_in_s)
        if phase is None:
            raise DeviceFault("the loader ended its idle phase without marking it")
        self._add(phase)
        self._await_board(phase.end_board_ns)
        end_ns = self._capture.history.end_ns
        steady_ns = round(phase.steady.duration_s * 1e9)
        return Rest.of(self._capture.history.blocks_w(end_ns - steady_ns, end_ns))

    @contextlib.contextmanager
    def _idling(self, repeat: int) -> Iterator[None]:
        """The loader idles on the board as in idle-before, so that both are the same state; no line of it counts."""
        if self._plan.idle_s <= 0:
            yield
            return
        tag = f"idle-after-{repeat}"
        longest_s = 2 * self._plan.settle_limit_s + self._plan.idle_s + 60
        loader = self._device.start_loader(
            self._with_sync(["idle", "--seconds", f"{longest_s:g}"]), self._raw, tag
        )
        self._unfetched.append(loader)
        try:
            yield
        except BaseException:
            loader.interrupt()
            loader.wait()
            raise
        loader.interrupt()
        if (status := loader.wait()) not in _INTERRUPTED:
            why = loader.complaint() or f"it ended with status {status}"
            line = f"repeat {repeat}: the loader that idles did not idle to the end: {why}"
            self._record.add_fault(line, withholds=(ABOVE_IDLE,))

    def _idle_after(self, settle: Phase) -> None:
        """Idle power from the end of settle on; the loader idles already."""
        if self._plan.idle_s <= 0:
            return
        self._progress.phase(f"idle {self._of_repeats(settle.repeat)}", self._plan.idle_s)
        start_ns = settle.end_board_ns
        end_ns = start_ns + round(self._plan.idle_s * 1e9)
        self._await_board(end_ns, shown_from_ns=start_ns)
        self._add(Phase("idle-after", settle.repeat, start_ns, end_ns, lead_in_s=self._plan.lead_in_s))

    def _signature(self, number: int) -> None:
        """Has the board play its load signature, before and after everything else, each time another pattern."""
        wanted = self._plan.signature
        if not (self._device.sync_carrier() is None if wanted is None else wanted):
            return
        length_ms = chip_ms(self._capture.period_ns)
        arguments = ["sync", "--pattern", chips_text(number), "--bit-ms", str(length_ms)]
        marks = self._follow(arguments, f"{SIGNATURE}-{number}", "load signature", 0)
        self._fetch()
        if phase := marks.phase("sync", 1, called=SIGNATURE):
            self._add(phase)

    def _harness(self) -> None:
        operations = max(_HARNESS_OPERATIONS, int(self._plan.properties["operationcount"]))
        path = self._device.database_path("null")
        arguments = self._plan.loader_arguments("run", "null", path, self._workload)
        changes = {"operationcount": str(operations), "maxexecutiontime": "5"}
        arguments += [part for key, value in changes.items() for part in ("-p", f"{key}={value}")]
        stream = self._plan.operation_stream("run", **changes)
        marks = self._follow(
            [*arguments, "--progress"], "harness-1", "harness (no database)", operations, stream
        )
        if phase := marks.phase("run", 1, called="harness"):
            self._add(phase)

    def _check_stream(self, command: str, tag: str) -> None:
        """A stream that ends early looks to the loader like any other end."""
        if self._plan.generator is None:
            return
        properties = {**file_properties(self._plan.workload), **self._plan.properties}
        expected, done = expected_operations(command, properties), self.summaries[tag]["operations"]
        if done < expected:
            raise RigFault(
                f"{self._plan.generator.name} made {done} of {expected} operations in {tag}: see "
                f"{self._raw / tag}.generator.log"
            )

    def _follow(
        self,
        arguments: list[str],
        tag: str,
        title: str,
        total: int,
        stream: list[str] | None = None,
        timed_s: float | None = None,
    ) -> PhaseMarks:
        """Starts a loader, follows its lines to the end, and keeps its summary; `total` operations or `timed_s`."""
        self._progress.phase(title, total or timed_s)
        started_s = time.monotonic()
        marks = PhaseMarks()
        loader = self._device.start_loader(self._with_sync(arguments), self._raw, tag, stream)
        self._unfetched.append(loader)
        try:
            for line in loader.lines():
                self._check_meter()
                marks.add(line)
                if "progress" in line:
                    done = float(line["progress"]["operations"]) if total else time.monotonic() - started_s
                    self._progress.advance_to(done)
                if "summary" in line:
                    self.summaries[tag] = line["summary"]
        except BaseException:
            loader.interrupt()
            loader.wait()
            raise
        self._end(loader, tag)
        return marks

    def _with_sync(self, arguments: list[str]) -> list[str]:
        carrier = self._device.sync_carrier()
        return [*arguments, "--sync", carrier] if carrier else arguments

    def _end(self, loader: LoaderRun, tag: str) -> None:
        status = loader.wait()
        self._record.update(loader=self.summaries)
        if status == _BAD_INPUT_STATUS:
            raise BadInput(loader.complaint())
        if status != 0:
            why = loader.complaint() or f"it ended with status {status}"
            raise DeviceFault(f"the loader failed in {tag}: {why}")

    def _fetch(self) -> None:
        """Brings the files of loaders that have ended to the record."""
        while self._unfetched:
            self._unfetched.pop(0).fetch()

    def _settle(self, repeat: int, after: Phase, name: str, writes: Left, rest: Rest | None) -> Phase:
        """Waits until everything that a loader began is over, or the limit has passed."""
        self._progress.phase(f"settle {self._of_repeats(repeat)}", self._plan.settle_limit_s)
        self._await_board(after.end_board_ns)
        unsettled = self._settling.wait(writes, rest)
        if unsettled:
            line = f"repeat {repeat}, {name}: {unsettled.line}"
            self._record.add_fault(line, withholds=(ABOVE_IDLE,) if unsettled.pollutes_idle else ())
        end_board_ns = max(self._board_ns(), after.end_board_ns + 1)
        return self._add(Phase(name, repeat, after.end_board_ns, end_board_ns))

    def _await_board(self, board_ns: int, shown_from_ns: int | None = None) -> None:
        """Waits until the board's clock, as the host sees it, has passed `board_ns`."""
        while (left_ns := board_ns - self._board_ns()) > 0:
            self._check_meter()
            if shown_from_ns is not None:
                self._progress.advance_to((board_ns - left_ns - shown_from_ns) * 1e-9)
            time.sleep(min(left_ns * 1e-9, _POLL_S if shown_from_ns is None else _SHOWN_POLL_S))

    def _board_ns(self) -> int:
        return self._device.clock_exchange().far_received_ns

    def _check_meter(self) -> None:
        if self._capture.error:
            raise self._capture.error
        if why := self._capture.ended:
            raise MeterFault(
                f"the meter stopped: {why}; the record up to here is in {self._record.directory}"
            )

    def _add(self, phase: Phase) -> Phase:
        self.phases.append(phase)
        self._record.update(phases=[each.to_json() for each in self.phases])
        return phase

    def _of_repeats(self, repeat: int) -> str:
        return f"({repeat} of {self._repeats})" if self._repeats > 1 else ""
