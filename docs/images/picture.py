"""Makes docs/images/report.png: the upper part of a record's report, as Chromium shows it.

    .venv/bin/python docs/images/picture.py runs/RECORD

The record in README.md is an ordinary simulated run:

    host/measure.py --db leveldb --device rpi4 --simulate
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "host"), str(ROOT / "host" / "tests" / "support")]

from opjoule.pages.report.html import write_report  # noqa: E402
from report_browser import Browser  # noqa: E402

WIDTH = 1180


def main() -> None:
    """Renders the record named on the command line."""
    page = write_report(Path(sys.argv[1]))
    with Browser(WIDTH, 1000) as browser:
        browser.open(page)
        below_chart = browser.run("document.querySelector('.in-view').getBoundingClientRect().bottom")
        browser.send(
            "Emulation.setDeviceMetricsOverride",
            width=WIDTH,
            height=int(below_chart) + 4,
            deviceScaleFactor=1.5,
            mobile=False,
        )
        browser.run("new Promise((done) => setTimeout(done, 300))")
        browser.screenshot(ROOT / "docs" / "images" / "report.png")


if __name__ == "__main__":
    main()
