"""The documentation's links lead somewhere, and its commands are ones that the program takes."""

import os
import re
import shlex
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from opjoule.cli import options as cli_options
from opjoule.cli.commands import parse
from opjoule.cli.measure.options import PlanningOptions
from opjoule.cli.measure.planning import make_plan

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s+([^#\s]*)(#\S*)?\s*$", re.MULTILINE)
EXTERNAL = re.compile(r"(?<![\w`'\"=(])https?://[^\s<>`)\"']+|(?<=\]\()[a-z]+:[^)\s]+")
CONFLICT = re.compile(r"^(?:<{7}|>{7}|[|]{7}) ", re.MULTILINE)
FILE = re.compile(
    r"(?<![\w/.-])((?:host|loader-cpp|firmware|fuzz|docs|studies|ycsb-workloads|calibration)/[\w./-]+)(?![\w/*{\[-])"
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
    for inline, inline_anchor, defined, defined_anchor in LINK.findall(without_code(page.read_text())):
        target, anchor = inline or defined, inline_anchor or defined_anchor
        if re.match(r"[a-z]+:", target):
            continue
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), target + anchor


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_addresses_outside_are_well_formed(page):
    """Whether anybody answers there depends on the network, and is not asked."""
    for address in EXTERNAL.findall(without_code(page.read_text())):
        parts = urlsplit(address.rstrip(".,;:"))
        assert parts.scheme in ("https", "http", "mailto"), address
        assert parts.scheme == "mailto" or re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.hostname or ""), address


def without_code(text):
    """A page without its fenced blocks and inline code, where brackets mean something else."""
    return re.sub(r"```.*?```|``[^`]+``|`[^`\n]+`", "``", text, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("[a](b.md)", [("b.md", "")]),
        ("[a](#here)", [("", "#here")]),
        ('[a](b.md#there "a title")', [("b.md", "#there")]),
        ("[a]: b.md#there", [("b.md", "#there")]),
        ("`x[1](2)`", []),
    ],
)
def test_every_form_of_link_is_found(text, links):
    targets = [(one or three, two or four) for one, two, three, four in LINK.findall(without_code(text))]
    assert targets == links


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a clone")
    files = [ROOT / path for path in listed.stdout.decode().split("\0") if path]
    assert len(files) > 500
    return [file for file in files if file.is_file()]


def test_no_tracked_file_holds_the_marks_of_a_merge_that_was_not_settled():
    texts = {file: file.read_bytes().decode("utf-8", "replace") for file in tracked()}
    assert [str(file) for file, text in texts.items() if CONFLICT.search(text)] == []


@pytest.mark.parametrize("mark", ["<" * 7, ">" * 7, "|" * 7])
def test_such_marks_are_seen(mark):
    assert CONFLICT.search(f"text\n{mark} main\n") and not CONFLICT.search(f"a line with {mark} in it\n")


def test_a_file_that_names_its_interpreter_can_be_started():
    programs = [file for file in tracked() if file.read_bytes()[:2] == b"#!"]
    assert len(programs) > 10
    assert [name(file) for file in programs if not os.access(file, os.X_OK)] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_are_named_exist(page):
    for path in FILE.findall(page.read_text()):
        candidates = ROOT / path.rstrip("."), ROOT / "host/opjoule" / path.rstrip(".")
        assert any(place.exists() for place in candidates[: 2 if page.name == "glossary.md" else 1]), path


def commands():
    for page in PAGES:
        for line in COMMAND.findall(page.read_text()):
            if "..." not in line and not re.search(r"\b[A-Z]{4,}\b|\[|\|", line):
                yield pytest.param(line, id=f"{name(page)}: {line}")


@pytest.mark.parametrize("line", list(commands()))
def test_documented_commands_are_taken(line, tmp_path, monkeypatch):
    (tmp_path / "rpi4-sd.toml").touch()  # the twin profile that the commands before it would have written
    monkeypatch.setattr(cli_options, "TWINS", tmp_path)
    command = parse(shlex.split(line, comments=True))
    if isinstance(command.options, PlanningOptions) and "," not in (command.options.storage or ""):
        make_plan(command.options)


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
