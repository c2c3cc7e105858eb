"""Measures how fast operation logs are decoded: host/validation/operation_log_speed.py [--operations N]."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from operation_log_writer import block, byte_size, file_header, operation, sealed
from opjoule.energy.operations.oplog import read_operation_log

RECORDS_A_BLOCK = 11_000


def write_log(path: Path, operations: int) -> int:
    """Writes a log of one thread with reads and updates of some microseconds; returns its number of operations."""
    rng = np.random.default_rng(1)
    kinds, gaps_ns = rng.integers(0, 2, RECORDS_A_BLOCK), rng.integers(80, 400, RECORDS_A_BLOCK)
    durations_ns = rng.lognormal(8, 1, RECORDS_A_BLOCK).astype(int)
    records = [byte_size(0, 1000), byte_size(1, 1000)]
    records += [operation(*row) for row in zip(kinds.tolist(), gaps_ns.tolist(), durations_ns.tolist(), strict=True)]
    step_ns = int(gaps_ns.sum() + durations_ns.sum())
    sample = bytearray(block(0, 0, records))
    blocks = -(-operations // RECORDS_A_BLOCK)
    with path.open("wb") as file:
        file.write(file_header())
        for number in range(blocks):
            sample[16:24] = (number * step_ns).to_bytes(8, "little")
            sample[28:40] = bytes(4) + number.to_bytes(8, "little")
            file.write(sealed(bytes(sample[:40])) + sample[40:])
    return blocks * RECORDS_A_BLOCK


def main() -> None:
    """Decodes a log three times and prints the best rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=10_000_000)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "operations.oplog"
        count = write_log(path, parser.parse_args().operations)
        size = path.stat().st_size
        best_s = min(_seconds(path) for _ in range(3))
    print(f"{count} operations of {size / count:.2f} bytes: {count / best_s / 1e6:.1f} million a second")


def _seconds(path: Path) -> float:
    start_s = time.perf_counter()
    read_operation_log(path)
    return time.perf_counter() - start_s


if __name__ == "__main__":
    main()
