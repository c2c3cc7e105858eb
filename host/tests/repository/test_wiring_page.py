"""The wiring page: one way for every ground, sums that are right, and parts that stand the volts they get."""

import re
from pathlib import Path

from opjoule.runs.measuring.supply_path import ADVISED_SHUNT_OHM

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/how-to/wire-the-rig.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Cells of the table rows below a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]


def test_the_meters_grounds_meet_in_one_point_and_one_wire_leaves_it_to_the_board():
    wires = rows("Connections") + rows("A second sensor for the storage")
    ends = {row[0]: row[1] for row in wires if "GND" in row[0]}
    assert ends["breakout GND"] == "board GND (pin 6)"
    others = {name: end for name, end in ends.items() if name not in ("supply GND", "breakout GND")}
    assert set(others) == {"Uno GND, buffer GND", "second breakout VCC, GND, SDA, SCL", "second breakout GND"}
    for end in others.values():
        assert "breakout" in end or "first" in end
        assert "SSD" not in end and "pin 6" not in end


def test_the_shunt_of_page_and_picture_is_the_one_that_doctor_advises():
    assert f"{ADVISED_SHUNT_OHM * 1e3:g} mΩ" in rows("Parts")[3][0]


def test_the_pages_sum_is_right():
    supply_v, limit_v, shunt_ohm, cable_ohm, most_a = map(
        float,
        re.search(r"\(([\d.]+) V . ([\d.]+) V\) / \(([\d.]+) Ω \+ ([\d.]+) Ω\) = ([\d.]+) A", PAGE).groups(),
    )
    assert shunt_ohm == ADVISED_SHUNT_OHM
    assert round((supply_v - limit_v) / (shunt_ohm + cable_ohm), 1) == most_a


def test_a_controller_of_3_3_v_gets_no_5_v_and_an_uno_r4_is_not_taken_for_an_atmega328p():
    section = PAGE.split("## Controllers with 3.3 V\n")[1].split("\n## ")[0]
    for word in ("ESP32", "RP2040", "SAMD21", "**3.3 V**", "**no 5 V buffer**", "Uno R4"):
        assert word in section
    assert "an Uno **R4** is no ATmega328P" in PAGE
