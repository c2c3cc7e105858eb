"""Runs a study's steps by their roles, for each repeat, while the meter records continuously.

From the start of the first baseline to the end of the last, only the phases run on the board: files are fetched
afterwards. However the run ends, the record contains everything up to that moment and states the reason.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from opjoule.base.errors import BadInput, DeviceFault, MeterFault, RigFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.boards.board import Board
from opjoule.boards.runner import WorkloadRun
from opjoule.energy.operations.board_files import MARKS_FILE, PhaseMark
from opjoule.energy.operations.played_signature import chip_ms, chips_text
from opjoule.meters.capture import Capture
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.measuring.progress import PhaseProgress
from opjoule.runs.measuring.settling import Rest, Settling
from opjoule.runs.record.phases import SIGNATURE, WORKED, Phase, Role
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.interface import Step, Study, Workload

_POLL_S = 0.05
_SHOWN_POLL_S = 0.5
"""Interval of reading the board's clock in a baseline: each query costs the board a little."""
_TAIL_NS = 200_000_000
_MARKS_LIMIT_S = 10.0


class Bounds(NamedTuple):
    """Limits of one workload's phase."""

    start_board_ns: int
    end_board_ns: int
    operations: int = 0


class PrintedMarks:
    """Collects the `phase` lines that a workload prints."""

    def __init__(self) -> None:
        self._marks: dict[str, tuple[int, int]] = {}
        self.settled = False
        """Whether the workload itself has waited for its engine's work and its writes to the medium."""

    def add(self, line: Mapping[str, Any]) -> None:
        """Takes one JSON line; lines without a phase are ignored."""
        if "phase" in line and "board_ns" in line:
            self._marks[str(line["phase"])] = (int(line["board_ns"]), int(line.get("operations", 0)))
            self.settled = bool(line.get("settled", self.settled))

    def between(self, start: str, end: str) -> Bounds | None:
        """The interval between two marks; None if either is missing."""
        first, last = self._marks.get(start), self._marks.get(end)
        return Bounds(first[0], last[0], last[1]) if first and last else None


def process_bounds(marks: Iterable[PhaseMark], name: str) -> Bounds | None:
    """The interval from the first begin to the last end of one name; None if either is missing."""
    of_this_name = [mark for mark in marks if mark.name == name]
    begins = [mark.board_ns for mark in of_this_name if mark.begins]
    ends = [mark.board_ns for mark in of_this_name if not mark.begins]
    return Bounds(begins[0], ends[-1]) if begins and ends else None


class Execution:
    """One run of a plan on a prepared board."""

    def __init__(self, plan: Plan, board: Board, capture: Capture, record: RunRecord, progress: PhaseProgress) -> None:
        self._plan = plan
        self._study = plan.study
        self._board = board
        self._capture = capture
        self._record = record
        self._progress = progress
        self._settling = Settling(
            board.probe.pending_write_bytes,
            capture.history,
            plan.settle_limit_s,
            check=self._check,
            show=progress.wait_on,
        )
        self._raw = record.directory / "raw"
        self._unfetched: list[WorkloadRun] = []
        self._probe_files: list[str] = []
        self._board_faults: list[str] = []
        self._repeats = 1
        """Number of repeats, and then with the runs in other mixes; 1 before and after them."""
        self._rest: Rest | None = None
        """Power of the last baseline; of the rest before all work, while a repeat is prepared."""
        self._rest_before: Rest | None = None
        self._written, self._before_bytes = False, 0
        self.phases: list[Phase] = []
        self.summaries: dict[str, dict[str, Any]] = {}

    def run(self, enough: Callable[[int], bool] = lambda repeats: True) -> None:
        """Runs all repeats and the controls.

        Args:
            enough: called with the number of repeats once the plan's are done; more follow until it returns True.
        Raises: BadInput, RigFault: the first error that stops the run; the phases so far are in the record.
        """
        try:
            self._all(enough)
        finally:
            with contextlib.suppress(RigFault, OSError):  # the error that ended the run is the one to report
                self._fetch()

    def _all(self, enough: Callable[[int], bool]) -> None:
        self._board.probe.keep_marks(self._raw / MARKS_FILE)
        self._signature(1)
        self._begin_files("rest")
        self._rest = self._rest_before = self._await_rest()
        self._study = self._plan.study.under(self._capture.period_ns * 1e-9)
        with self._study.repeats(self._board, self._raw) as steps:
            for step in steps:
                self._do(step, 1)
            self._study = self._study.after(self.summaries)
            repeat = 0
            while repeat < self._plan.repeats or not enough(repeat):
                repeat += 1
                self._repeats = max(self._plan.repeats, repeat)
                self._repeat(self._study, repeat)
            mixes = self._study.mixes()
            self._repeats = repeat + len(mixes)
            for number, study in enumerate(mixes, repeat + 1):
                self._repeat(study, number)
        self._repeats = 1
        self._begin_files("controls")
        for step in self._study.controls(self._board):
            self._do(step, 1)
        self._signature(2)
        self._fetch()
        self._await_board(self.phases[-1].end_board_ns + _TAIL_NS)
        self._record.add_notices(*(Notice(NoticeKind.NOTE, line) for line in self._board.probe.warnings()))

    def _repeat(self, study: Study, repeat: int) -> None:
        self._begin_files(f"repeat-{repeat}")
        with study.repeat(self._board, repeat, self._raw) as steps:
            for step in steps:
                self._do(step, repeat)
            self._begin_files(f"after-{repeat}")
            self._fetch()

    def _do(self, step: Step, repeat: int) -> None:
        if step.role is Role.BASELINE:
            self._baseline(step, repeat)
        elif step.role is Role.DRAIN:
            self._drain(step, repeat)
        else:
            self._work(step, repeat)

    def _work(self, step: Step, repeat: int) -> None:
        if step.role is Role.PREPARE:
            self._rest = self._rest_before
        last = self.phases[-1] if self.phases else None
        if step.role in WORKED and last and (last.role, last.repeat) != (Role.BASELINE, repeat):
            self._board.preparation.before_run()  # otherwise it was called before the repeat's own idle phase
        pending = self._board.probe.pending_write_bytes() if step.role in WORKED else 0
        tag, workload = f"{step.name}-{repeat}", step.runs
        self._progress.phase(step.name, workload.operations or workload.lasts_s, repeat, self._repeats)
        printed = self._follow(step, tag)
        if workload.check and tag in self.summaries:
            workload.check(self.summaries[tag], tag)
        bounds = self._bounds(step, printed)
        if bounds is None:
            raise DeviceFault(f"{step.name} ended without marking its start and end; see {self._raw}")
        self._written, self._before_bytes = printed.settled, pending
        self._add(Phase(step.name, repeat, *bounds, role=step.role))
        if step.role not in WORKED:
            self._fetch_runs()

    def _bounds(self, step: Step, printed: PrintedMarks) -> Bounds | None:
        seen = self._board.probe.marks()
        if marks := step.runs.marks:
            return printed.between(*marks)
        limit_s = time.monotonic() + _MARKS_LIMIT_S
        while process_bounds(seen, step.name) is None and time.monotonic() < limit_s:
            seen += self._board.probe.marks()
            time.sleep(_POLL_S)
        return process_bounds(seen, step.name)

    def _follow(self, step: Step, tag: str) -> PrintedMarks:
        """Starts a workload, follows its lines to the end, and keeps its summary."""
        workload = step.runs
        started_s = time.monotonic()
        printed = PrintedMarks()
        run = self._board.runner.start(
            list(workload.command),
            tag,
            self._raw,
            files=workload.files,
            phase="" if workload.marks else step.name,
            stream=list(workload.stream),
        )
        self._unfetched.append(run)
        try:
            for line in run.lines():
                self._check()
                printed.add(line)
                if workload.marks and line.get("phase") in workload.marks:
                    self._progress.write_down(board_ns=int(line["board_ns"]))
                if "progress" in line:
                    said = line["progress"]
                    self._progress.write_down(operations=float(said["operations"]))
                    if workload.operations:
                        self._progress.advance_to(float(said.get("done", said["operations"])))
                if workload.lasts_s:
                    self._progress.advance_to(time.monotonic() - started_s)
                if workload.marks and "summary" in line:
                    self.summaries[tag] = line["summary"]
        except BaseException:
            run.interrupt()
            run.wait()
            raise
        self._end(run, tag, workload)
        return printed

    def _end(self, run: WorkloadRun, tag: str, workload: Workload) -> None:
        status = run.wait()
        self._record.update(loader=self.summaries)
        if status == workload.bad_input_status and run.complaint():
            raise BadInput(run.complaint())
        if status != 0:
            why = run.complaint() or f"it ended with status {status}"
            raise DeviceFault(f"{tag} failed on the board: {why}")

    def _await_rest(self) -> Rest | None:
        """Power before anything was done on the board; the power after the preparation is compared with it."""
        if self._plan.idle_s <= 0:
            return None
        self._progress.phase("rest", self._plan.idle_s)
        started_s, history = time.monotonic(), self._capture.history
        since_ns = history.end_ns
        while (waited_s := time.monotonic() - started_s) < self._plan.idle_s:
            self._check()
            self._progress.advance_to(waited_s)
            time.sleep(_POLL_S)
        return Rest.of(history, since_ns + round(self._plan.lead_in_s * 1e9), history.end_ns)

    def _baseline(self, step: Step, repeat: int) -> None:
        """Measures idle power; after the work, it begins with the end of the drain."""
        worked = any(phase.repeat == repeat and phase.role in WORKED for phase in self.phases)
        if not worked:
            self._board.preparation.before_run()
        if self._plan.idle_s <= 0:
            return
        self._progress.phase("idle", self._plan.idle_s, repeat, self._repeats)
        start_ns = self.phases[-1].end_board_ns if worked else self._board_ns()
        self._progress.write_down(board_ns=start_ns)
        end_ns = start_ns + round(self._plan.idle_s * 1e9)
        self._await_board(end_ns, shown_from_ns=start_ns)
        phase = Phase(step.name, repeat, start_ns, end_ns, lead_in_s=self._plan.lead_in_s, role=step.role)
        self._add(phase)
        seen_ns = self._capture.history.end_ns
        steady_ns = round(phase.steady.duration_s * 1e9)
        self._rest = Rest.of(self._capture.history, seen_ns - steady_ns, seen_ns)

    def _drain(self, step: Step, repeat: int) -> None:
        """Waits until all effects of a workload are over, or until the limit has passed."""
        after = self.phases[-1]
        self._progress.phase("settle", None, repeat, self._repeats)
        self._progress.write_down(board_ns=after.end_board_ns)
        self._await_board(after.end_board_ns)
        unsettled = self._settling.wait(self._rest, self._before_bytes, synced=self._written)
        if unsettled:
            self._record.add_notices(replace(unsettled, line=f"repeat {repeat}, {step.name}: {unsettled.line}"))
        end_board_ns = max(self._board_ns(), after.end_board_ns + 1)
        self._add(Phase(step.name, repeat, after.end_board_ns, end_board_ns, role=step.role))

    def _signature(self, number: int) -> None:
        """Has the board play its load signature, before and after everything else, each time another pattern."""
        wanted = self._plan.signature
        if self._board.has_sync_line if wanted is None else not wanted:
            return
        self._begin_files(f"{SIGNATURE}-{number}")
        bits, bit_ms = chips_text(number), chip_ms(self._capture.period_ns)
        self._progress.phase("load signature", None)
        start_ns, end_ns = self._board.probe.play_signature(bits, bit_ms)
        self._begin_files(f"after-{SIGNATURE}-{number}")
        self._fetch()
        self._add(Phase(SIGNATURE, 1, start_ns, end_ns, role=Role.CONTROL))
        self._await_board(end_ns)  # the newest samples may still belong to the pattern, and not to rest

    def _begin_files(self, name: str) -> None:
        self._board.probe.begin_files(name)
        self._probe_files.append(name)

    def _fetch(self) -> None:
        """Fetches the files of finished workloads, and the probe's complete files, to the record."""
        self._fetch_runs()
        while len(self._probe_files) > 1:
            self._board.runner.fetch_probe_files(self._probe_files[0], self._raw)
            del self._probe_files[0]

    def _fetch_runs(self) -> None:
        while self._unfetched:
            self._unfetched.pop(0).fetch()

    def _await_board(self, board_ns: int, shown_from_ns: int | None = None) -> None:
        """Waits until the board's clock, as estimated by the host, has passed `board_ns`."""
        while (left_ns := board_ns - self._board_ns()) > 0:
            self._check()
            if shown_from_ns is not None:
                self._progress.advance_to((board_ns - left_ns - shown_from_ns) * 1e-9)
            time.sleep(min(left_ns * 1e-9, _POLL_S if shown_from_ns is None else _SHOWN_POLL_S))

    def _board_ns(self) -> int:
        return self._board.probe.clock_exchange().far_received_ns

    def _check(self) -> None:
        """Records the probe's messages; a stopped meter ends the run."""
        for line in self._board.probe.faults():
            self._board_faults.append(f"on the board: {line}")
            self._record.add_notices(Notice(NoticeKind.ON_BOARD, self._board_faults[-1]))
        if self._capture.error:
            raise self._capture.error
        if ended := self._capture.summary.ended:
            reasons = "; ".join([ended, *self._board_faults])
            place = self._record.directory
            raise MeterFault(f"the meter stopped: {reasons}; the record up to here is in {place}")

    def _add(self, phase: Phase) -> None:
        self.phases.append(phase)
        self._record.update(phases=self.phases)
