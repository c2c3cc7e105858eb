"""One measurement from an open rig to a finished record."""

import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import opjoule
from opjoule.base.errors import INTERRUPTED, Interrupted, OpJouleError, of_system
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.resources import analysis_resources
from opjoule.base.settings import MEDIUM, MEDIUM_SENSOR
from opjoule.boards.board import Board
from opjoule.boards.state_gate import StateWatch
from opjoule.meters.capture import CaptureSummary
from opjoule.meters.interface import Wishes
from opjoule.meters.registry import open_meters
from opjoule.pages.report.html import write_report
from opjoule.pages.report.timeline import packed_timeline
from opjoule.runs.evaluation.collection import collect, interim_result
from opjoule.runs.evaluation.evidence import Evidence
from opjoule.runs.evaluation.until import Until
from opjoule.runs.evaluation.wording import wording_of
from opjoule.runs.measuring.execution import Execution
from opjoule.runs.measuring.open_meter import Calibrations, OpenMeter, opened_meter
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.measuring.progress import PROGRESS, PhaseProgress, ProgressNotes, expected_phases
from opjoule.runs.measuring.supply_path import SIMULATED_RIG, SupplyPath, stated_in
from opjoule.runs.record.directory import held
from opjoule.runs.record.run_record import RunRecord


def directory_name(plan: Plan) -> str:
    """Name for the directory of a new record: time, study, board, and medium or conditions."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    suffix = "-simulated" if plan.simulated else ""
    last = f"by-{'-'.join(plan.condition)}" if plan.condition else plan.board.medium
    return f"{stamp}-{plan.study.label}-{plan.board.profile.name}-{last}{suffix}"


def measure(
    plan: Plan,
    board: Board,
    meter_address: str,
    directory: Path,
    progress: PhaseProgress,
    rig_facts: Mapping[str, Any],
    supply: SupplyPath,
    notices: Sequence[Notice] = (),
    calibrations: Calibrations | None = None,
    medium_meter: str | None = None,
) -> RunRecord:
    """Executes the plan and writes the record, no matter how the run ends.

    Args:
        meter_address: as for open_meter(); medium_meter: address of a second one, in the medium's own supply.
        rig_facts: facts of the rig for run.json that are known before the run.
        supply: path between supply and board.
        notices: what is to be shown above the figures.
        calibrations: of the meter's sensors; None: as delivered.
    Returns: the finished record, status "complete" or "failed".
    Raises: OpJouleError, KeyboardInterrupt: the run ended early; its record has the status "partial" and the reason.
    """
    stated = SIMULATED_RIG if plan.simulated else stated_in(plan.asked.get("meter"))
    wishes = Wishes(supply_v=plan.board.profile.supply_voltage_v, stated_in=stated)
    meter = open_meters(meter_address, medium_meter, wishes)
    plan.study.check(board)
    plan.study.check_space(board)
    record: RunRecord | None = None
    with opened_meter(meter, meter_address, calibrations) as opened:
        sensors = opened.sensors.wired(supply.sense_ohm)
        medium_sensor = sensors.of_medium(board.medium)
        try:
            prepared, facts = board.prepare(), board.facts()
            # Again, because the size of a medium that had to be mounted is known only now.
            plan.study.check_space(board)
            record = RunRecord.create(directory, plan.asked, simulated=plan.simulated)
            rig = {
                "device": facts,
                "meter": opened.identity,
                "prepared": prepared,
                MEDIUM: plan.board.medium,
            }
            known: dict[str, Any] = {"cores": board.cores, MEDIUM_SENSOR: medium_sensor}
            known["supply"] = supply.measured(meter.error_bounds().shunt).to_json()
            record.update(found={**rig_facts, **_host_facts(), **rig, **plan.study.facts(board), **known})
            record.update(plan=plan.to_json(), plan_sha256=plan.sha256, **sensors.entries())
            record.add_notices(*notices, *opened.identity.notices, *sensors.notices)
            with held(record.directory):
                try:
                    _run(plan, board, opened, record, progress)
                finally:
                    with suppress(OSError):
                        record.update(found={"ended_utc": datetime.now(UTC).isoformat(timespec="seconds")})
        finally:
            for line in board.restore():
                if record:
                    record.add_notices(Notice(NoticeKind.ON_BOARD, line))
    return record


def _run(plan: Plan, board: Board, opened: OpenMeter, record: RunRecord, progress: PhaseProgress) -> None:
    """Executes the plan while recording; the recorded data are evaluated however it ends."""
    recording = opened.recording(record.directory, board.probe.clock_exchange, record.add_notices)
    progress.watch(recording.capture.history)
    progress.expect(expected_phases(plan))
    execution = Execution(plan, board, recording.capture, record, progress)
    state = board.watch_state()
    if state:
        state.tell_temperature = lambda celsius: progress.write_down(temperature_c=celsius)
    try:
        with ExitStack() as ends:
            ends.callback(board.end_probe, record.directory / "raw")  # last of all
            notes = ProgressNotes(record.path(f"raw/{PROGRESS}"), recording.capture.history)
            ends.enter_context(_watched(state, record))
            ends.enter_context(recording)
            ends.enter_context(progress.noted(notes))
            execution.run(_enough(plan, record))
    except OSError as error:
        raise _unwritten(record, error) from error
    except (OpJouleError, KeyboardInterrupt) as error:
        record.add_notices(_ended_by(error))
        _conclude(record, recording.capture.summary, progress, ended_early=True)
        raise
    _conclude(record, recording.capture.summary, progress, ended_early=False)


@contextmanager
def _watched(state: StateWatch | None, record: RunRecord) -> Iterator[None]:
    """Runs under the state gate; every broken limit becomes a fault of the run."""
    if state is None:
        yield
        return
    state.start()
    try:
        yield
    finally:
        outcome = state.stop()
        record.update(state=outcome)
        record.add_notices(*(Notice(NoticeKind.STATE, f"state of the board: {line}") for line in outcome.broken))


def _conclude(record: RunRecord, captured: CaptureSummary, progress: PhaseProgress, *, ended_early: bool) -> None:
    """Writes result and report of the recorded data; after an interruption, the record says how to make them later."""
    progress.watch(None)
    progress.expect(())
    progress.phase("align, integrate, report", None)
    try:
        record.add_notices(*captured.notices())
        record.update(capture=captured.to_json())
        with analysis_resources():
            timeline = collect(record, Evidence.of(record, ended_early=ended_early), packed_timeline)
            write_report(record, timeline)
    except KeyboardInterrupt as error:
        if record.status == "partial":
            ended = _ended_by(error)
            record.add_notices(replace(ended, line=f"{ended.line} in the analysis{_later(record)}"))
        raise
    except OSError as error:
        raise _unwritten(record, error) from error


def _ended_by(error: OpJouleError | KeyboardInterrupt) -> Notice:
    """The fault of a run that an error or a signal ended."""
    by_user = isinstance(error, KeyboardInterrupt | Interrupted)
    return Notice(NoticeKind.INTERRUPTED if by_user else NoticeKind.FAULT, str(error) or INTERRUPTED)


def _unwritten(record: RunRecord, error: OSError) -> OpJouleError:
    """Error of this computer for the user; it is also added to the record's faults if they can be written."""
    record.add_notices(Notice(NoticeKind.FAULT, of_system(error)))
    return OpJouleError(f"{of_system(error)}{_later(record)}")


def _later(record: RunRecord) -> str:
    """Advice on how to analyse the recorded data, if they still exist."""
    if not record.path("run.json").exists():
        return ""
    return f"; 'host/measure.py report {record.directory}' analyses the recorded data"


def _enough(plan: Plan, record: RunRecord) -> Callable[[int], bool]:
    """Function that decides whether a number of repeats is enough."""
    if plan.until_u is None:
        return lambda repeats: True
    headline = wording_of(record.run).quantities.headline.key
    return Until(record, headline, plan.until_u, plan.repeats_limit, lambda: interim_result(record))


@cache
def program_commit() -> str | None:
    """The checked-out commit, with "+" if files differ from it; None outside a git checkout.

    It is read once per process: the code is that of the process's start, whatever is checked out later.
    """
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD"], capture_output=True, check=False)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+" if changed.returncode else "")


def _host_facts() -> dict[str, Any]:
    return {
        "opjoule": opjoule.__version__,
        "commit": program_commit(),
        "host": {
            "python": platform.python_version(),
            "kernel": platform.release(),
            "machine": platform.machine(),
        },
        "command": ["host/measure.py", *sys.argv[1:]],
        "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "started_host_ns": time.monotonic_ns(),
    }
