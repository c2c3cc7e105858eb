"""Records of a trace without a board."""

from __future__ import annotations

import numpy as np
from opjoule.clocks.exchanges import Exchange, ExchangeFile
from opjoule.energy.trace.journal import TraceJournal
from opjoule.meters.chips import ina219_breakout
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.record.seals import SealWatch

S = 1_000_000_000
SLOW = 1.004
"""Factor by which the meter's seconds are too short: its resonator is 4000 ppm fast."""


def recorded(
    directory, *, exchanges: bool, sensor: bool = True, rate: float = SLOW, samples: int = 10_000
) -> RunRecord:
    """A record of 1 ms a sample on the meter's clock, 0.5 A at 5 V; exchanges tie it to a host clock 0.4 % slower.

    `rate`: of the meter's clock in the host's seconds.
    """
    record = RunRecord.create(directory, {"meter": "serial:/dev/ttyACM0"}, simulated=False)
    if sensor:
        record.update(sensor=ina219_breakout())
    journal, seals = TraceJournal(directory), SealWatch(directory)
    meter_ns = S + np.arange(samples, dtype=np.int64) * 1_000_000
    noise = np.random.default_rng(1).normal(0, 2e-3, meter_ns.size)
    journal.append_samples(meter_ns, np.round(0.5 + noise, 4), np.full(meter_ns.size, 5.0))
    journal.close()
    if exchanges:
        file = ExchangeFile(directory / "raw/meter-exchanges.csv")
        for number in range(60):
            far_ns = number * S // 5
            host_ns = 70 * S + round(far_ns / rate)
            file.append(Exchange(host_ns - 150_000, far_ns, far_ns, host_ns + 150_000))
        file.close()
    seals.stop()
    return record
