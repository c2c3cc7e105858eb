"""The documentation's links lead somewhere, and its commands are ones that the program takes."""

import re
import shlex
from pathlib import Path

import pytest
from opjoule.cli import twin_profiles
from opjoule.cli.arguments import parse
from opjoule.cli.planning import make_plan

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
FILE = re.compile(
    r"(?<![\w/.-])((?:host|loader-cpp|firmware|docs|ycsb-workloads|calibration)/[\w./-]+)(?![\w/*{\[-])"
)
COMMAND = re.compile(r"^\s+(?:sudo )?host/measure\.py (.+?)(?:\s{2,}#.*)?$", re.MULTILINE)


def name(value):
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else None


def anchors(page: Path) -> set[str]:
    """GitHub's anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall(page.read_text()):
        if "://" in target:
            continue
        place = (page.parent / target).resolve()
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), target + anchor


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_are_named_exist(page):
    for path in FILE.findall(page.read_text()):
        assert (ROOT / path.rstrip(".")).exists(), path


def commands():
    for page in PAGES:
        for line in COMMAND.findall(page.read_text()):
            if "..." not in line and not re.search(r"\b[A-Z]{4,}\b|\[|\|", line):
                yield pytest.param(line, id=f"{name(page)}: {line}")


@pytest.mark.parametrize("line", list(commands()))
def test_documented_commands_are_taken(line, tmp_path, monkeypatch):
    (tmp_path / "rpi4-sd.toml").touch()  # the twin profile that the commands before it would have written
    monkeypatch.setattr(twin_profiles, "FOLDER", tmp_path)
    asked = parse(shlex.split(line, comments=True))
    if asked.command == "measure" and "," not in (asked.options.storage or ""):
        make_plan(asked.options)


def test_there_are_commands_to_check():
    assert len(list(commands())) > 20


@pytest.mark.parametrize(
    "part", ["INA219", "20 mΩ", "fuse 3 A", "74AHCT125", "4.7 kΩ", "1 kΩ", "100 kΩ", "5.2 V", "D8", "A4, A5"]
)
def test_readme_drawing_and_instructions_name_the_same_parts(part):
    """The drawing names the two I2C pins one by one."""
    for page in ("README.md", "docs/how-to/wire-the-rig.md"):
        assert part in (ROOT / page).read_text(), page
    drawing = (ROOT / "docs/images/wiring.svg").read_text()
    assert all(word in drawing for word in part.split(", ")), part


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/wire-the-rig.md"])
def test_nobody_is_told_to_feed_the_board_twice(page):
    assert re.search(r"[Nn]ever (connect )?the board's own supply while", (ROOT / page).read_text())
