"""Measures how long the table of runs takes with many records, without its index and with it. SIMULATED records.

    .venv/bin/python host/bench/run_table.py [--records N] [--like RECORD]

Copies run.json and result.json of one record N times. Serves the folder twice, each time with a new server, and shows
the table in Debian's chromium without a window. Prints the time from opening the page's address to its first rows and
to all rows, the duration of the slowest of some filters and sorts, and the server's memory.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report_browser import Browser
from view_zoom import SERVER, cpu_s, peak_gb

EXAMPLE = Path(__file__).resolve().parents[2] / "runs" / "example"
STEPS = (
    "viewer.table.sort('headline_value')",
    "viewer.table.sort('name')",
    "viewer.table.sort('started_utc')",
    "(() => { const field = document.querySelector('[data-filter=words]'); field.value = '77';"
    " field.dispatchEvent(new Event('input', { bubbles: true })); })()",
)


def shown(folder: Path, records: int) -> None:
    """Serves the folder, shows its table and prints the times."""
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        address = server.stdout.readline().strip()
        with Browser(1280, 1200) as browser:
            begun_s = time.monotonic()
            browser.visit(address, "!!window.viewer && viewer.table.rows.length > 0")
            first_s = time.monotonic() - begun_s
            browser.wait_for(f"viewer.table.rows.length === {records} && viewer.table.whole")
            all_s = time.monotonic() - begun_s
            script = "(() => {{ const begun = performance.now(); {}; return performance.now() - begun; }})()"
            steps_ms = [browser.run(script.format(step)) for step in STEPS]
        print(
            f"first rows after {first_s:.2f} s, all {records} after {all_s:.2f} s, {cpu_s(server.pid):.2f} s of the "
            f"server's processor time; a step takes {max(steps_ms):.0f} ms at most; {peak_gb(server.pid):.2f} GB"
        )
    finally:
        server.kill()
        server.wait()


def main() -> None:
    """Makes the records and shows their table twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--like", type=Path, default=EXAMPLE)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for number in range(options.records):
            place = folder / f"{number:05d}"
            place.mkdir()
            for name in ("run.json", "result.json"):
                shutil.copyfile(options.like / name, place / name)
        for words in ("without an index", "with the index"):
            print(f"{words}: ", end="", flush=True)
            shown(folder, options.records)


if __name__ == "__main__":
    main()
