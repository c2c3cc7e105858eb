"""Runs a plan: load, idle, run, settle, idle, for each repeat, while the meter is captured throughout.

Whatever ends it, the record holds everything up to that moment and says so.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

from opjoule.clocks.played_signature import chip_ms, chips_text
from opjoule.devices.interface import Device, LoaderRun
from opjoule.errors import BadInput, DeviceFault, MeterFault, RigFault
from opjoule.measurement.phases import Phase, PhaseMarks
from opjoule.measurement.plan import Plan
from opjoule.measurement.progress import PhaseProgress
from opjoule.measurement.ycsb_core import expected_operations, file_properties
from opjoule.record.run_record import RunRecord

SIGNATURE = "signature"
"""Phase and files of the load signature."""
SETTLED_BYTES = 1 << 20
"""Pending writes below this count as settled: the board's own logging never quite stops."""
_POLL_S = 0.1
_TAIL_NS = 200_000_000
_HARNESS_OPERATIONS = 2_000_000
_BAD_INPUT_STATUS = 2


class Watched(Protocol):
    """What the execution asks of the meter's capture."""

    @property
    def ended(self) -> str | None:
        """Why the capture has ended by itself, or None while it goes on."""
        ...

    @property
    def period_ns(self) -> int:
        """Mean distance of the samples so far [ns]; 0 before the second."""
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
        self._raw = record.directory / "raw"
        self._workload = ""
        self.phases: list[Phase] = []
        self.summaries: dict[str, dict[str, Any]] = {}

    def run(self) -> None:
        """All repeats and the harness.

        Raises: BadInput, RigFault: the first thing that stops the run; phases so far are in the record.
        """
        self._workload = self._device.copy_in(self._plan.workload)
        self._signature(1)
        for repeat in range(1, self._plan.repeats + 1):
            self._repeat(repeat)
        if self._plan.harness:
            self._harness()
        self._signature(2)
        self._await_board(self.phases[-1].end_board_ns + _TAIL_NS)

    def _repeat(self, repeat: int) -> None:
        name = self._plan.database.name
        path = self._device.database_path(name)
        try:
            self._device.start_database(name, self._raw)
            load = self._loader(
                "load", name, path, f"load-{repeat}", repeat, int(self._plan.properties["recordcount"])
            )
            self._settle(repeat, load, "load-settle")
            self._device.before_run()
            self._idle(repeat, "idle-before")
            run = self._loader(
                "run", name, path, f"run-{repeat}", repeat, int(self._plan.properties["operationcount"])
            )
            self._settle(repeat, run, "settle")
            self._idle(repeat, "idle-after")
        finally:
            self._device.remove_database(path)

    def _loader(self, command: str, database: str, path: str, tag: str, repeat: int, total: int) -> Phase:
        arguments = [*self._plan.loader_arguments(command, database, path, self._workload), "--progress"]
        title = f"{command} {self._of_repeats(repeat)}"
        marks = self._follow(arguments, tag, title, total, self._plan.operation_stream(command))
        self._check_stream(command, tag)
        phase = marks.phase(command, repeat, called=tag.rsplit("-", 1)[0])
        if phase is None:
            raise DeviceFault(
                f"the loader ended without its {command}-start and {command}-end lines; see {self._raw}"
            )
        return self._add(phase)

    def _idle(self, repeat: int, name: str) -> None:
        if self._plan.idle_s <= 0:
            return
        arguments = ["idle", "--seconds", f"{self._plan.idle_s:g}", "--progress"]
        marks = self._follow(arguments, f"{name}-{repeat}", f"idle {self._of_repeats(repeat)}", 0)
        phase = marks.phase("idle", repeat, called=name)
        if phase is None:
            raise DeviceFault("the loader ended its idle phase without marking it")
        self._add(phase)

    def _signature(self, number: int) -> None:
        """Has the board play its load signature, before and after everything else, each time another pattern."""
        wanted = self._plan.signature
        if not (self._device.sync_carrier() is None if wanted is None else wanted):
            return
        length_ms = chip_ms(self._capture.period_ns)
        arguments = ["sync", "--pattern", chips_text(number), "--bit-ms", str(length_ms)]
        marks = self._follow(arguments, f"{SIGNATURE}-{number}", "load signature", 0)
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
        self, arguments: list[str], tag: str, title: str, total: int, stream: list[str] | None = None
    ) -> PhaseMarks:
        """Starts a loader, follows its lines to the end, and keeps its summary; `total` operations, 0 for idle."""
        if carrier := self._device.sync_carrier():
            arguments = [*arguments, "--sync", carrier]
        self._progress.phase(title, total or self._plan.idle_s)
        started_s = time.monotonic()
        marks = PhaseMarks()
        loader = self._device.start_loader(arguments, self._raw, tag, stream)
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
            loader.finish()
            raise
        self._end(loader, tag)
        return marks

    def _end(self, loader: LoaderRun, tag: str) -> None:
        status = loader.finish()
        self._record.update(loader=self.summaries)
        if status == _BAD_INPUT_STATUS:
            raise BadInput(loader.complaint())
        if status != 0:
            why = loader.complaint() or f"it ended with status {status}"
            raise DeviceFault(f"the loader failed in {tag}: {why}")

    def _settle(self, repeat: int, after: Phase, name: str) -> None:
        """Waits until the board has nothing left to write, or the limit has passed."""
        self._progress.phase(f"settle {self._of_repeats(repeat)}", self._plan.settle_limit_s)
        started_s = time.monotonic()
        self._await_board(after.end_board_ns)
        while self._device.pending_write_bytes() > SETTLED_BYTES:
            self._check_meter()
            waited_s = time.monotonic() - started_s
            self._progress.advance_to(waited_s)
            if waited_s > self._plan.settle_limit_s:
                self._record.add_fault(
                    f"repeat {repeat}: {self._device.pending_write_bytes()} bytes still to be written after the "
                    f"{name} limit of {self._plan.settle_limit_s:g} s; raise --settle-limit"
                )
                break
            time.sleep(_POLL_S)
        end_board_ns = max(self._board_ns(), after.end_board_ns + 1)
        self._add(Phase(name, repeat, after.end_board_ns, end_board_ns))

    def _await_board(self, board_ns: int) -> None:
        """Waits until the board's clock, as the host sees it, has passed `board_ns`."""
        while self._board_ns() < board_ns:
            self._check_meter()
            time.sleep(_POLL_S / 2)

    def _board_ns(self) -> int:
        return self._device.clock_exchange().far_received_ns

    def _check_meter(self) -> None:
        if why := self._capture.ended:
            raise MeterFault(
                f"the meter stopped: {why}; the record up to here is in {self._record.directory}"
            )

    def _add(self, phase: Phase) -> Phase:
        self.phases.append(phase)
        self._record.update(phases=[each.to_json() for each in self.phases])
        return phase

    def _of_repeats(self, repeat: int) -> str:
        return f"({repeat} of {self._plan.repeats})" if self._plan.repeats > 1 else ""
