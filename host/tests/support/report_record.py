"""A run record made up for the tests of the report. SYNTHETIC: nothing here was measured or simulated.

The trace is a formula: idle power, a load and a run phase with a ripple, one spike of a single sample, lost samples.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from opjoule.base.notices import Notice, NoticeKind
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.operations.tables import EVENTS, SYSTEM, write_operations
from opjoule.energy.trace.journal import TraceJournal, to_parquet
from opjoule.energy.trace.parquet_file import write_parquet
from opjoule.energy.trace.power_trace import Gap
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.run_record import RunRecord
from usual_phases import ROLES

PERIOD_NS = 1_064_000
METER_START_NS = 5_000_000_000
BOARD_START_NS = 77_000_000_000_000
SPIKE_S, SPIKE_A = 17.5, 2.0
GAPS_S = ((9.0, 40), (21.0, 3), (26.0, 900))
"""Start [s] and number of lost samples."""
PHASES_S = (
    ("load", 0.5, 4.0),
    ("load-settle", 4.0, 5.5),
    ("idle-before", 6.0, 11.0),
    ("run", 12.0, 22.0),
    ("settle", 22.0, 25.0),
    ("idle-after", 25.5, 30.5),
)
DURATION_S = 31.0
RATE_PER_S = 2000


def make_record(
    directory: Path, *, status: str = "complete", simulated: bool = True, seed: int = 1, **options: Any
) -> RunRecord:
    """A complete SYNTHETIC record with every file, its faults and result depending on `status`."""
    record = RunRecord.create(directory, {**ASKED, **options}, simulated=simulated)
    rng = np.random.default_rng(seed)
    _write_trace(directory, rng)
    to_meter = ClockMap(
        "board", "meter", BOARD_START_NS, METER_START_NS, 1 + 12e-6, 900.0, 2e-9, "sync-edges", 700.0, 31
    )
    record.update(
        found=FOUND,
        phases=[_phase(*phase) for phase in PHASES_S],
        clock_maps={"board_to_meter": to_meter},
        clock_map_used="board_to_meter",
        loader={"run-1": {"seed": 1}},
    )
    write_operations(directory / "operations.parquet", _operations(rng))
    _write_system(directory, rng)
    _write_events(directory)
    if status == "complete":
        write_json(directory / "result.json", RESULT)
    else:
        record.add_notices(Notice(NoticeKind.FAULT, "the meter stopped: cable pulled after 31.0 s"))
    record.finish(status)  # type: ignore[arg-type]
    return record


def put_result(directory: Path, result: dict[str, Any]) -> None:
    """Replaces the result.json of a record, and its checksum."""
    write_json(directory / "result.json", result)
    record = RunRecord.open(directory)
    record.finish(record.status)


def make_trace(directory: Path) -> RunRecord:
    """A SYNTHETIC power trace on its own, as `measure.py record` leaves it."""
    record = RunRecord.create(directory, {"meter": "serial:/dev/ttyACM0", "seconds": 31.0}, simulated=False)
    _write_trace(directory, np.random.default_rng(1))
    record.finish("complete")
    return record


def current_a(time_s: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """The made-up current [A] at some times [s]."""
    current = np.full(time_s.size, 0.61)
    for name, start_s, end_s in PHASES_S:
        inside = (time_s >= start_s) & (time_s < end_s)
        extra = {"load": 0.35, "run": 0.28, "settle": 0.07, "load-settle": 0.07}.get(name, 0.0)
        current[inside] += extra * (1 + 0.25 * np.sin(2 * np.pi * 1.3 * time_s[inside]))
    current += rng.normal(0, 0.012, time_s.size)
    current[np.argmin(np.abs(time_s - SPIKE_S))] = SPIKE_A
    return np.round(current, 4)


def _write_trace(directory: Path, rng: np.random.Generator) -> None:
    count = int(DURATION_S * 1e9 / PERIOD_NS)
    centre_ns = METER_START_NS + np.arange(count, dtype=np.int64) * PERIOD_NS
    amperes = current_a((centre_ns - METER_START_NS) * 1e-9, rng)
    volts = np.round((5.1 - 0.05 * amperes) / 0.004) * 0.004
    journal = TraceJournal(directory)
    begin = 0
    for start_s, lost in GAPS_S:
        last = int(start_s * 1e9 / PERIOD_NS)
        good = slice(begin, last + 1)
        journal.append_samples(centre_ns[good], amperes[good], volts[good])
        begin = last + 1 + lost
        mean_a = float(amperes[last + 1 : begin].mean())
        journal.append_gap(
            Gap.between(int(centre_ns[last]), int(centre_ns[begin]), lost, "frames lost on the serial link", mean_a)
        )
    journal.append_samples(centre_ns[begin:], amperes[begin:], volts[begin:])
    journal.close()
    to_parquet(directory)


def _operations(rng: np.random.Generator) -> OperationTable:
    start_s, end_s = next((start, end) for name, start, end in PHASES_S if name == "run")
    count = int((end_s - start_s) * RATE_PER_S)
    starts_s = np.sort(rng.uniform(start_s, end_s - 0.01, count))
    return OperationTable(
        BOARD_START_NS + (starts_s * 1e9).astype(np.int64),
        (rng.lognormal(-9.5, 0.9, count) * 1e9).astype(np.int64),
        rng.integers(0, 2, count).astype(np.uint8),
        np.zeros(count, np.uint16),
        np.full(count, 1000, np.int64),
        np.ones(count, np.bool_),
    )


def _write_system(directory: Path, rng: np.random.Generator) -> None:
    time_s = np.arange(0.2, DURATION_S, 0.05)
    busy = np.zeros(time_s.size)
    written_bytes, dirty = np.zeros(time_s.size), np.zeros(time_s.size)
    for name, start_s, end_s in PHASES_S:
        inside = (time_s >= start_s) & (time_s < end_s)
        busy[inside] += {"load": 1.3, "run": 1.1}.get(name, 0.05)
        written_bytes[inside] += {"load": 9e6, "load-settle": 13e6, "run": 5e6, "settle": 12e6}.get(name, 0)
        dirty[inside] = {"load": 30e6, "run": 45e6}.get(name, 1e6) * np.linspace(0.1, 1, inside.sum())
    steps = {
        "board_ns": BOARD_START_NS + (time_s * 1e9).astype(np.int64),
        "cpu_busy_s": np.cumsum((busy + rng.uniform(0, 0.1, time_s.size)) * 0.05),
        "process_cpu_s": np.cumsum(busy * 0.05),
        "device_written_bytes": np.cumsum(written_bytes * 0.05).astype(np.int64),
        "device_read_bytes": np.cumsum(rng.integers(0, 9000, time_s.size)),
        "dirty_bytes": dirty.astype(np.int64),
    }
    columns = {name: steps.get(name, np.zeros(time_s.size)) for name in SYSTEM.names}
    arrays = [
        pa.array(columns[field.name], field.type)
        if columns[field.name].dtype != np.float64 or field.type == pa.float64()
        else pa.array(columns[field.name].astype(np.int64))
        for field in SYSTEM
    ]
    write_parquet(directory / "system.parquet", SYSTEM, [pa.table(arrays, schema=SYSTEM)])


def _write_events(directory: Path) -> None:
    rows = [_event("flush", 12.5 + 2 * k, 12.9 + 2 * k) for k in range(5)]
    rows += [_event("compaction", 13.0 + 3 * k, 14.6 + 3 * k) for k in range(4)]
    rows += [_event("sync", 22.0, 23.8)]
    write_parquet(directory / "events.parquet", EVENTS, [pa.Table.from_pylist(rows, schema=EVENTS)])


def _event(name: str, start_s: float, end_s: float) -> dict[str, Any]:
    return {
        "event": name,
        "board_ns": _board_ns(start_s),
        "end_board_ns": _board_ns(end_s),
        "detail": "synthetic",
    }


def _phase(name: str, start_s: float, end_s: float) -> dict[str, Any]:
    count = int((end_s - start_s) * RATE_PER_S) if name == "run" else 0
    return {
        "name": name,
        "role": ROLES[name],
        "repeat": 1,
        "start_board_ns": _board_ns(start_s),
        "end_board_ns": _board_ns(end_s),
        "operations": count,
    }


def _board_ns(time_s: float) -> int:
    return BOARD_START_NS + int(time_s * 1e9)


def _m(value: float, u: float | None, unit: str, reason: str | None = None) -> dict[str, Any]:
    return {"value": value, "u": u, "unit": unit} | ({"reason": reason} if reason else {})


def _none(reason: str, unit: str = "J") -> dict[str, Any]:
    return {"value": None, "u": None, "unit": unit, "reason": reason}


ASKED: dict[str, Any] = {
    "command": "measure", "db": "leveldb", "device": "rpi4", "storage": "sd", "workload": "a",
    "distribution": "zipfian", "records": 7000, "operations": 20000, "threads": 1, "seed": 1, "simulate": True,
}  # fmt: skip
FOUND: dict[str, Any] = {
    "opjoule": "0.1.0",
    "command": [
        "host/measure.py",
        "--db",
        "leveldb",
        "--device",
        "rpi4",
        "--simulate",
        "-p",
        "note=a b</script><b>",
    ],
    "started_utc": "2026-01-02T03:04:05+00:00",
    "meter": {
        "kind": "serial",
        "place": "/tmp/synthetic",
        "firmware_version": "0.1.0",
        "sensors": [{"model": "INA219", "address": 64}],
    },
    "sensor_model": {"shunt_ohm": 0.1, "shunt_tolerance": 0.01, "calibration": None},
    "simulation": {"models": "none: this record is synthetic"},
}
_LATER = "collinear: needs more than one run"
RESULT: dict[str, Any] = {
    "schema": {"name": "result", "version": 3},
    "repeats": 1,
    "notices": [],
    "energy_per_operation_j": _m(0.002874, 0.000043, "J"),
    "marginal_energy_per_operation_j": _m(0.000861, 0.000052, "J"),
    "run_energy_j": _m(44.215, 0.66, "J"),
    "write_back_energy_j": _m(1.04, 0.05, "J"),
    "energy_j": _m(57.48, 0.86, "J"),
    "marginal_energy_j": _m(17.2, 1.04, "J"),
    "power_w": _m(4.4215, 0.066, "W"),
    "idle_power_w": _m(3.0934, 0.046, "W"),
    "duration_s": _m(10.0, 0.000002, "s"),
    "settle_s": _m(3.0, 0.000002, "s"),
    "harness_energy_j": _none("not measured: --no-harness"),
    "operations": _m(20000, 0, "1"),
    "throughput_per_s": _m(2000.0, 0.0004, "1/s"),
    "bandwidth_bytes_per_s": _m(2.0e6, 0.4, "B/s"),
    "latency_s": {
        "mean": _m(0.000112, None, "s", "the board's clock, no uncertainty stated"),
        "p50": _m(0.0000751, None, "s", "the board's clock, no uncertainty stated"),
        "p95": _m(0.000329, None, "s", "the board's clock, no uncertainty stated"),
        "p99": _m(0.000607, None, "s", "the board's clock, no uncertainty stated"),
        "max": _m(0.00263, None, "s", "the board's clock, no uncertainty stated"),
    },
    "cpu_fraction": _m(0.281, None, "1", "from /proc/stat, in steps of 10 ms"),
    "disk_read_bytes": _m(912_000, 0, "B"),
    "disk_written_bytes": _m(86_000_000, 0, "B"),
    "peak_memory_bytes": _m(31_400_000, 0, "B"),
    "alignment": {
        "method": "sync-edges",
        "residual_s": _m(7e-7, None, "s", "itself a measure of spread"),
        "checks": [
            {
                "name": "sync-edges against exchanges",
                "passed": True,
                "difference_ns": 21000.0,
                "limit_ns": 60000.0,
                "detail": "sync-edges and exchanges agree: 21.0 us apart, limit 60.0 us",
            },
        ],
    },
    "lost_samples": _m(943, 0, "1"),
    "by_operation": {
        "read": {"count": 10021, "energy_per_operation_j": _none(_LATER), "identifiable": False},
        "update": {"count": 9979, "energy_per_operation_j": _none(_LATER), "identifiable": False},
    },
    "by_activity": {
        name: _none(_LATER)
        for name in (
            *("idle", "harness", "foreground", "flush", "compaction", "checkpoint", "sync"),
            *("write_back", "tail", "unseparated"),
        )
    },
    "by_component": {"storage": _none(_LATER), "rest": _none(_LATER)},
    "write_amplification": _m(4.1, None, "1", "counters of the board"),
    "read_amplification": _m(0.09, None, "1", "counters of the board"),
    "energy_per_byte_j": _m(8.6e-7, 5.2e-8, "J/B"),
    "budget": {
        "gain": {**_m(0.81, None, "J", "itself an expanded uncertainty (k = 2)"), "share": 0.887},
        "offset": {**_m(0.26, None, "J", "itself an expanded uncertainty (k = 2)"), "share": 0.091},
        "heating": {**_m(0.05, None, "J", "itself an expanded uncertainty (k = 2)"), "share": 0.003},
        "wire": {**_m(0.0, None, "J", "itself an expanded uncertainty (k = 2)"), "share": 0.0},
        "quantisation": {**_m(0.02, None, "J", "itself an expanded uncertainty (k = 2)"), "share": 0.0005},
        "voltage": {**_m(0.01, None, "J", "itself an expanded uncertainty (k = 2)"), "share": 0.0001},
        "timebase": {**_m(0.01, None, "J", "itself an expanded uncertainty (k = 2)"), "share": 0.0001},
        "alignment": {**_m(0.00001, None, "J", "itself an expanded uncertainty (k = 2)"), "share": 0.0},
        "loss": {**_m(0.09, None, "J", "itself an expanded uncertainty (k = 2)"), "share": 0.011},
        "baseline": {**_m(0.0, None, "J", "itself an expanded uncertainty (k = 2)"), "share": 0.0},
        "repeats": _none("one run: --repeats gives the spread between runs"),
    },
}
