"""Compares how long a fleet of rigs and a single rig take for a campaign of cells that mostly wait. SIMULATED.

    .venv/bin/python host/bench/fleet.py [SECONDS] [RIGS]

The fleet runs on loopback. The campaign has RIGS blocks (default 8) of two cells; each cell waits SECONDS (default 10)
in its own process and leaves a record of 100 kB. Prints the seconds from the start of the first cell to the arrival of
the last record, with one rig and with RIGS rigs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HOST = Path(__file__).parents[1]
sys.path[:0] = [str(HOST), *(str(HOST / "tests" / folder) for folder in ("support", "campaign"))]

from test_campaign import file_of  # noqa: E402  # the path is set above
from test_fleet import LoopbackFleet, until  # noqa: E402


def measured_s(folder: Path, rigs: int, blocks: int, cell_s: float) -> float:
    """Time from the start of a campaign's first cell to the end of the campaign [s]; all rigs are ready before it."""
    argv = [sys.executable, str(HOST / "tests" / "support" / "fleet_rigs.py")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, text=True) as loaded:
        fleet = LoopbackFleet(folder, loaded)
        try:
            (fleet.spool / "wait.txt").write_text(str(cell_s))
            started = fleet.start_rigs(*(f"rig-{number}" for number in range(rigs))).values()
            until(lambda: all(worker.pid and "works for" in worker.log.read_text() for worker in started))
            campaign = fleet.start_campaign(file_of(folder, repeats=blocks))
            until(fleet.begun, campaign)
            begun_s = time.monotonic()
            assert campaign.wait() == 0, fleet.said()
            return time.monotonic() - begun_s
        finally:
            fleet.close()
            assert loaded.stdin is not None
            loaded.stdin.close()


def main(cell_s: float, rigs: int) -> None:
    """Measures one rig and all rigs at the same time, so that both get the same share of the processors."""
    lengths_s: dict[int, float] = {}

    def measure(count: int) -> None:
        with tempfile.TemporaryDirectory(prefix="opjoule-fleet-") as place:
            lengths_s[count] = measured_s(Path(place), count, rigs, cell_s)

    both = [threading.Thread(target=measure, args=(count,)) for count in (1, rigs)]
    for rig in both:
        rig.start()
    for rig in both:
        rig.join()
    ratio = lengths_s[1] / lengths_s[rigs]
    lengths = f"1 rig {lengths_s[1]:.1f} s, {rigs} rigs {lengths_s[rigs]:.1f} s"
    print(f"{2 * rigs} cells of {cell_s:g} s: {lengths}, ratio {ratio:.2f}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0, int(sys.argv[2]) if len(sys.argv) > 2 else 8)
