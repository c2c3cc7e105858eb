"""One table of meter kinds: errors, help, imports and the docs follow from it."""

from pathlib import Path

import meters_page
import pytest
from opjoule.base.errors import BadInput
from opjoule.cli.commands import parse
from opjoule.meters.registry import KINDS, address_of, import_sensors, known_kinds, open_meter
from opjoule.runs.measuring.supply_path import local_meter_warning

ROOT = Path(__file__).resolve().parents[3]


def test_the_docs_hold_the_table_as_it_is():
    page = meters_page.PAGE.read_text(encoding="utf-8")
    assert page == meters_page.renewed(page), "run .venv/bin/python host/meters_page.py"


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_in_the_error_for_an_unknown_one_and_in_the_help(name, capsys):
    with pytest.raises(BadInput, match="unknown kind 'nope'") as caught:
        address_of("nope:1")
    assert KINDS[name].written in str(caught.value)
    with pytest.raises(SystemExit):
        parse(["record", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert KINDS[name].written.split()[0].rstrip(",") in said


@pytest.mark.parametrize("name", KINDS)
def test_an_option_that_nobody_knows_is_refused_with_how_the_kind_is_written(name):
    with pytest.raises(BadInput, match=r"colour|does not measure"):
        open_meter(f"{name}:place,colour=red")


def test_each_sensor_of_import_has_bounds():
    assert {"ina219", "monsoon-hvpm", "ppk2", "joulescope", "km003c", "fnirsi"} <= import_sensors().keys()
    assert all(make().current_max_a > 0 for make in import_sensors().values())


@pytest.mark.parametrize("name", KINDS)
def test_a_meter_on_a_cable_is_warned_of_where_the_board_reads_it_itself(name):
    kind = KINDS[name]
    warned = local_meter_warning("local", f"{name}:place")
    assert bool(warned) is (kind.draw is not None) and (not warned or kind.draw in warned)


def test_what_a_kind_needs_is_there():
    for kind in KINDS.values():
        for word in kind.needs.replace("(", "`").split("`"):
            if word.startswith("host/requirements/"):
                assert (ROOT / word).exists()
    assert "km003c" in known_kinds()


def test_every_usb_tester_has_a_line_in_the_udev_rules():
    from opjoule.meters import fnirsi, km003c

    rules = (ROOT / "docs/how-to/60-usb-meters.rules").read_text()
    for vendor, product in [*fnirsi.MODELS, *km003c.MODELS]:
        assert f'ATTR{{idVendor}}=="{vendor:04x}", ATTR{{idProduct}}=="{product:04x}"' in rules


@pytest.mark.parametrize("name", KINDS)
def test_the_page_says_where_the_range_of_a_kind_ends(name):
    section = meters_page.PAGE.read_text(encoding="utf-8").partition("\n## The end of the range\n")[2]
    said = f"docs/reference/meters.md: say of `{name}` where its range ends; see CONTRIBUTING.md, 'A meter'"
    assert f"`{name}`" in section.partition("\n## ")[0], said
