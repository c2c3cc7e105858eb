"""The fault matrix loads what it needs from the tests, its measurement can be planned, and the reliability page has a
row for each of its faults."""

import subprocess
from pathlib import Path

from fault_matrix import EVERY
from faults.measurement import COMMAND, SHORT

PAGE = Path(__file__).resolve().parents[3] / "docs/method/reliability.md"


def test_every_fault_has_a_row_on_the_reliability_page():
    rows = {line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| ")}
    assert set(EVERY) <= rows


def test_the_measurement_that_its_faults_hit_can_be_planned():
    planned = subprocess.run([*COMMAND, *SHORT, "--dry-run"], capture_output=True, text=True, timeout=300, check=False)
    assert planned.returncode == 0, planned.stderr
