"""What the terminal shows while a measurement runs."""

from __future__ import annotations

import numpy as np
from opjoule.measurement.progress import PowerColumn
from opjoule.trace.power_history import PowerHistory


def test_the_power_is_the_mean_of_the_last_second() -> None:
    """Two seconds of 9 W, then two of 3 W at 1 kHz; the newest block is not complete and not shown."""
    column, task = PowerColumn(), None
    assert column.render(task).plain == ""  # type: ignore[arg-type]
    column.history = PowerHistory()
    assert column.render(task).plain == ""  # type: ignore[arg-type]
    meter_ns = np.arange(4001, dtype=np.int64) * 1_000_000
    column.history.add(meter_ns, np.where(meter_ns < 2_000_000_000, 9.0, 3.0))
    assert column.render(task).plain == "3.00 W"  # type: ignore[arg-type]
