"""How long the page of runs takes from one zoom step to its picture, on a SYNTHETIC trace of an hour at 5 kHz.

    .venv/bin/python host/bench/view_zoom.py [SAMPLES]

Drives Debian's chromium without a window; prints the time to open the run, the slowest and the median step.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

import numpy as np  # noqa: E402  # the path is set above
from opjoule.record.run_record import RunRecord  # noqa: E402
from opjoule.trace.journal import TraceJournal, to_parquet  # noqa: E402
from report_browser import Browser  # noqa: E402
from view_client import served  # noqa: E402

PERIOD_NS = 200_000
PART = 1_000_000
STEPS = 50
DONE = "!!window.viewer && viewer.asking === 0 && viewer.runs.length > 0"


def make_trace(directory: Path, samples: int) -> None:
    """A trace on its own: two levels, a ripple and noise."""
    asked = {"meter": "made up", "seconds": samples * PERIOD_NS * 1e-9}
    record = RunRecord.create(directory, asked, simulated=True)
    rng, journal = np.random.default_rng(1), TraceJournal(directory)
    for first in range(0, samples, PART):
        number = np.arange(first, min(first + PART, samples), dtype=np.int64)
        time_s = number * PERIOD_NS * 1e-9
        current_a = 0.6 + 0.3 * (time_s % 60 > 20) + 0.05 * np.sin(7 * time_s)
        noisy_a = np.round(current_a + rng.normal(0, 0.01, number.size), 5)
        journal.append_samples(number * PERIOD_NS, noisy_a, np.full(number.size, 5.1))
    journal.close()
    to_parquet(directory)
    record.finish("complete")


def main(samples: int) -> None:
    """Makes the trace, opens it, zooms in to one sample and out again."""
    with tempfile.TemporaryDirectory() as folder:
        make_trace(Path(folder) / "hour", samples)
        with served(Path(folder)) as server, Browser(1280, 1200) as browser:
            begun_s = time.monotonic()
            browser.visit(server.address, DONE)
            print(f"opened {samples} samples in {time.monotonic() - begun_s:.1f} s")
            steps_ms = []
            for factor in [1 / 1.5] * STEPS + [1.5] * STEPS:
                browser.run(f"viewer.chart.zoom({factor}, viewer.chart.whole[1] / 3)")
                browser.wait_for(DONE)
                steps_ms.append(browser.run("viewer.stepMs"))
            print(
                f"{len(steps_ms)} steps: {max(steps_ms):.0f} ms at most, median {statistics.median(steps_ms):.0f} ms"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 18_000_000)
