"""Colours of drawings: every text and line stands out from every ground that it can lie on, in light and dark."""

import re
from itertools import combinations
from pathlib import Path

import opjoule
import pytest
from opjoule.pages.drawing.page import library_script, library_style
from opjoule.pages.drawing.shown import KINDS
from opjoule.pages.report import html

PHASES = ("load", "idle", "run", "settle", "harness", "other")
GROUNDS = ("--sheet", *(f"--phase-{phase}" for phase in PHASES))
LANES = 4
SERIES = ("--power", "--operations", "--cpu", "--written", "--read", "--dirty")
KIND_LINES = tuple(f"--kind-{number}" for number in range(KINDS))
LINES = (*SERIES, *KIND_LINES, *(f"--lane-{n}" for n in range(LANES)), "--gap", "--text", "--text-muted")
TEXTS = ("--text", "--text-muted")
FAINT_ON_PURPOSE = ("--grid", "--chosen", "--gap-faint")
"""Nothing is known by them alone: numbers stand at the grid's lines, a line at both ends of the selection, and a
mark of --gap above a lost stretch."""
ASSETS = [Path(opjoule.__file__).parent / folder / "assets" for folder in ("pages/drawing", "pages/view")]


def read(colour):
    """(red, green, blue, opacity) of a colour as the style sheet has it."""
    if colour.startswith("#"):
        return (*(int(colour[at : at + 2], 16) for at in (1, 3, 5)), 1.0)
    return tuple(float(part) for part in re.findall(r"[\d.]+", colour))


def palettes():
    """Name -> colour, of the light page and of the dark one."""
    light, dark = re.findall(r":root \{(.*?)\}", library_style(), re.S)[:2]
    colours = [
        {name: read(colour) for name, colour in re.findall(r"(--[\w-]+): (#[0-9a-f]{6}|rgba\(.*?\))", part)}
        for part in (light, dark)
    ]
    return {"light": colours[0], "dark": colours[0] | colours[1]}


def over(colour, ground, opacity=None):
    """What is seen where a colour lies on an opaque ground."""
    share = colour[3] if opacity is None else opacity
    return (
        *(share * top + (1 - share) * below for top, below in zip(colour[:3], ground[:3], strict=True)),
        1.0,
    )


def contrast(one, other):
    """Source: WCAG 2.2, relative luminance and contrast ratio."""

    def luminance(colour):
        parts = [part / 255 for part in colour[:3]]
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def grounds(palette):
    """Name -> colour of all that a chart's lines lie on: the sheet and every phase, selected or not."""
    plain = {name: palette[name] for name in GROUNDS}
    return plain | {f"{name}, selected": over(palette["--chosen"], ground) for name, ground in plain.items()}


def scripts():
    """Those that draw on a canvas."""
    return "".join(path.read_text() for folder in ASSETS for path in sorted(folder.glob("*.js")))


def in_list(script, name):
    """The colours that a list of the scripts names."""
    return re.findall(r"--[\w-]+", re.search(rf"const {name} = \[(.*?)\]", script, re.S)[1])


THEMES = pytest.mark.parametrize("theme", ["light", "dark"])


@THEMES
def test_texts_in_canvas_have_a_contrast_of_at_least_4_5(theme):
    """Names of phases lie on the phases' colours; numbers of axes and names of lanes beside them, on the sheet."""
    palette = palettes()[theme]
    for name, ground in grounds(palette).items():
        assert contrast(palette["--text"], ground) >= 4.5, name
    assert contrast(palette["--text-muted"], palette["--sheet"]) >= 4.5


@THEMES
def test_lines_in_canvas_have_a_contrast_of_at_least_3(theme):
    """Series, ends of phases and of the selection, levels, lanes and lost stretches."""
    palette = palettes()[theme]
    for name in LINES:
        for about, ground in grounds(palette).items():
            assert contrast(palette[name], ground) >= 3.0, (name, about)


@THEMES
def test_lines_stand_out_from_bands_and_bands_from_their_ground_by_edges_of_at_least_3(theme):
    """A band's edges have the colour of its series' line, which is one of LINES. Bands of all runs that a page
    overlays may lie on top of each other: the more there are, the fainter each is."""
    palette, script = palettes()[theme], scripts()
    assert "Math.round((255 * TINT) / envelopes.length)" in script and "`${label}, lowest`, name, 1" in script
    tint, runs = float(re.search(r"const TINT = ([\d.]+);", script)[1]), in_list(script, "COLOURS_OF_RUNS")
    assert set(runs) <= set(LINES)
    for several in (mix for count in range(1, len(runs) + 1) for mix in combinations(runs, count)):
        for about, ground in grounds(palette).items():
            seen = ground
            for name in several:
                seen = over(palette[name], seen, tint / len(several))
            for line in several:
                assert contrast(palette[line], seen) >= 3.0, (line, several, about)


def test_every_colour_that_a_canvas_has_is_among_those_that_are_looked_at():
    """A new name in a script, or in a panel of a report, belongs into one of the lists here."""
    script = scripts()
    drawn = set(re.findall(r"colour\(\"(--[\w-]+)\"\)", script)) | set(in_list(script, "COLOURS_OF_RUNS"))
    drawn |= set(re.findall(r"\"(--[\w-]+)\"", Path(html.__file__).read_text()))
    assert drawn <= {*LINES, *GROUNDS, *TEXTS, *FAINT_ON_PURPOSE}
    assert {f"--phase-{phase}" for phase in re.findall(r"--phase-(\w+)\"", script)} <= set(GROUNDS)


def test_contrast_is_that_of_the_standards_examples():
    assert contrast(read("#000000"), read("#ffffff")) == pytest.approx(21.0)
    assert contrast(read("#777777"), read("#ffffff")) == pytest.approx(4.48, abs=0.01)


def test_the_script_makes_one_name_alone():
    script = library_script().split("const drawing = ")[1]
    assert script.startswith("(() => {") and script.rstrip().endswith("})();")
