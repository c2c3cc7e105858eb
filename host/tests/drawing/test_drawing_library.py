"""Colours of drawings: every text and line stands out from every ground that it can lie on, in light and dark."""

import re

import pytest
from opjoule.drawing.library import library_script, library_style
from opjoule.drawing.svg import KINDS

PHASES = ("load", "idle", "run", "settle", "harness", "other")
GROUNDS = ("--sheet", *(f"--phase-{phase}" for phase in PHASES))


def palettes():
    """Name -> colour, of the light page and of the dark one."""
    light, dark = re.findall(r":root \{(.*?)\}", library_style(), re.S)[:2]
    found = [dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", part)) for part in (light, dark)]
    return {"light": found[0], "dark": found[0] | found[1]}


def contrast(one, other):
    """Source: WCAG 2.2, relative luminance and contrast ratio."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_in_canvas_have_a_contrast_of_at_least_4_5(theme):
    """Names of phases lie on the phases' colours; numbers of axes and names of lanes beside them, on the sheet."""
    palette = palettes()[theme]
    for ground in GROUNDS:
        assert contrast(palette["--text"], palette[ground]) >= 4.5, ground
    assert contrast(palette["--text-muted"], palette["--sheet"]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_in_canvas_have_a_contrast_of_at_least_3(theme):
    palette = palettes()[theme]
    lines = ["power", "operations", "cpu", "written", "read", "dirty", "gap"]
    for name in (*lines, *(f"kind-{number}" for number in range(KINDS)), *(f"lane-{n}" for n in range(4))):
        for ground in GROUNDS:
            assert contrast(palette[f"--{name}"], palette[ground]) >= 3.0, (name, ground)


def test_contrast_is_that_of_the_standards_examples():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_the_script_makes_one_name_alone():
    own = library_script().split("const drawing = ")[1]
    assert own.startswith("(() => {") and own.rstrip().endswith("})();")
