"""The fault matrix loads what it needs from the tests, and the reliability page has a row for each of its faults."""

from pathlib import Path

from fault_matrix import EVERY

PAGE = Path(__file__).resolve().parents[3] / "docs/method/reliability.md"


def test_every_fault_has_a_row_on_the_reliability_page():
    rows = {line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| ")}
    assert set(EVERY) <= rows
