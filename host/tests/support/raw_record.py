"""A small run record as a measurement leaves it, made without a rig: SYNTHETIC, from formulas.

It has two repeats of idle, run, settle and idle at 500 samples a second. Logs, events, samples and exchanges are as the
loader and the meter write them, and are sealed meanwhile, as in a measurement. The real analysis computes the results.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from operation_log_writer import byte_size, log, operation
from opjoule.clocks.exchanges import BOARD_EXCHANGES, METER_EXCHANGES, Exchange, ExchangeFile
from opjoule.energy.operations.tables import SYSTEM
from opjoule.energy.trace.journal import TraceJournal
from opjoule.energy.trace.power_trace import Gap
from opjoule.meters.chips import ina219_breakout
from opjoule.runs.evaluation.collection import collect
from opjoule.runs.evaluation.evidence import Evidence
from opjoule.runs.record.json_file import as_value
from opjoule.runs.record.run import Run
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.record.seals import SealWatch
from usual_phases import ROLES

PERIOD_NS = 2_000_000
BOARD_NS = 50_000_000_000
METER_NS = 3_000_000_000
HOST_NS = 900_000_000_000
S = 1_000_000_000
REPEAT_S = 4.0
PHASES = (("idle-before", 0.2, 1.2), ("run", 1.3, 2.3), ("settle", 2.3, 2.6), ("idle-after", 2.7, 3.7))
OPERATIONS = 400
REPEATS = 2


def run_json(**entries: object) -> Run:
    """A run.json with these entries, as a value."""
    head = {"schema": {"name": "run", "version": 4}, "status": "complete", "simulated": False}
    return as_value({**head, **entries}, Run, Path("run.json"))


def running_record(directory: Path, lost_s: tuple[float, float] | None = None) -> RunRecord:
    """The record as it is when its program is killed just before the end: raw files and seals, no result.

    `lost_s`: stretch of the first repeat, inside one second, whose samples were lost [s].
    """
    record = RunRecord.create(directory, {"db": "leveldb", "device": "rpi4", "workload": "a"}, simulated=True)
    record.update(
        found={"cores": 4, "storage": "sd"},
        sensor=ina219_breakout(),
        phases=[phase for repeat in range(1, REPEATS + 1) for phase in _phases(repeat)],
        loader={f"run-{repeat}": _summary() for repeat in range(1, REPEATS + 1)},
    )
    seals = SealWatch(directory)
    raw = directory / "raw"
    _trace(directory, seals, lost_s)
    for name, start_ns in ((BOARD_EXCHANGES, BOARD_NS), (METER_EXCHANGES, METER_NS)):
        _exchanges(raw / name, start_ns)
    for repeat in range(1, REPEATS + 1):
        (raw / f"run-{repeat}.oplog").write_bytes(b"".join(_log(repeat)))
        (raw / f"run-{repeat}.events.jsonl").write_text(_events(repeat))
        (raw / f"repeat-{repeat}.system.csv").write_text(_system(repeat))
    seals.stop()
    return RunRecord.open(directory)


def finished_record(directory: Path) -> RunRecord:
    """The same record after a normal end: analysed and complete."""
    record = running_record(directory)
    collect(record, Evidence.of(record, ended_early=False))
    return RunRecord.open(directory)


def _phases(repeat: int) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "role": ROLES[name],
            "repeat": repeat,
            "start_board_ns": _board_ns(repeat, start_s),
            "end_board_ns": _board_ns(repeat, end_s),
            "operations": OPERATIONS if name == "run" else 0,
        }
        for name, start_s, end_s in PHASES
    ]


def _board_ns(repeat: int, time_s: float) -> int:
    return BOARD_NS + round(((repeat - 1) * REPEAT_S + time_s) * S)


def _summary() -> dict[str, object]:
    kinds = {name: {"count": OPERATIONS // 2, "bytes": OPERATIONS // 2 * 100} for name in ("read", "update")}
    return {"operations": OPERATIONS, "by_kind": kinds, "bytes": OPERATIONS * 100, "duration_s": 1.0}


def _log(repeat: int) -> list[bytes]:
    """Four blocks of one thread; an operation every 2.4 ms lasts 0.4 ms."""
    at_ns, blocks = _board_ns(repeat, 1.3), []
    for number in range(4):
        done = [operation(kind % 2, 2_000_000, 400_000) for kind in range(OPERATIONS // 4)]
        blocks.append((0, at_ns + number * 240_000_000, [byte_size(0, 100), byte_size(1, 100), *done]))
    return log(blocks)


def _events(repeat: int) -> str:
    rows = [
        {"event": "sync-edge", "board_ns": _board_ns(repeat, time_s), "level": level, "u_ns": 500.0}
        for time_s, level in ((1.3, 1), (2.3, 0))
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def _system(repeat: int) -> str:
    lines = [",".join(SYSTEM.names)]
    for number in range(30):
        row = {
            "board_ns": _board_ns(repeat, 1.2 + number / 20),
            "cpu_busy_s": number / 20,
            "rss_bytes": 1 << 20,
        }
        lines.append(",".join(str(row.get(name, 0)) for name in SYSTEM.names))
    return "\n".join(lines) + "\n"


def _exchanges(path: Path, far_start_ns: int) -> None:
    file, rng = ExchangeFile(path), np.random.default_rng(far_start_ns % 97)
    for number in range(round(REPEATS * REPEAT_S * 5)):
        sent_ns, width_ns = HOST_NS + number * S // 5, int(rng.integers(200_000, 400_000))
        far_ns = far_start_ns + number * S // 5 + width_ns // 2
        file.append(Exchange(sent_ns, far_ns, far_ns, sent_ns + width_ns))
    file.close()


def _trace(directory: Path, seals: SealWatch, lost_s: tuple[float, float] | None) -> None:
    rng = np.random.default_rng(5)
    journal = TraceJournal(directory)
    second = S // PERIOD_NS
    for number in range(round(REPEATS * REPEAT_S)):
        meter_ns = METER_NS + (number * second + np.arange(second, dtype=np.int64)) * PERIOD_NS
        trace_s = (meter_ns - METER_NS) * 1e-9
        busy = (trace_s % REPEAT_S >= 1.3) & (trace_s % REPEAT_S < 2.3)
        current_a = np.round(0.6 + 0.3 * busy + rng.normal(0, 0.01, trace_s.size), 4)
        first, last = np.searchsorted(trace_s, lost_s or (-1.0, -1.0))
        for part in (slice(first), slice(last, None)) if last > first else (slice(None),):
            if part.start:
                ends_ns = int(meter_ns[first - 1]), int(meter_ns[last])
                journal.append_gap(Gap.between(*ends_ns, int(last - first), "packet lost"))
            journal.append_samples(meter_ns[part], current_a[part], np.full(current_a[part].size, 5.1))
        journal.flush()
        seals.seal()
    journal.close()
