"""The picture of a calibration's residuals shows every point where it is, its band, and SIMULATED where it is."""

from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from calibration_files import made
from opjoule.energy.calibration.calibration_file import read_calibration, write_calibration
from opjoule.pages.report.calibration_figure import write_residuals

SVG = "{http://www.w3.org/2000/svg}"


def drawn(tmp_path, file):
    path = write_calibration(tmp_path, file)
    return ElementTree.fromstring(write_residuals(path, read_calibration(path)).read_text())


def test_each_point_is_drawn_once_in_each_panel_and_the_residuals_keep_their_order(tmp_path):
    file = made("<DMM> & co")
    shifted = tuple(replace(p, residual=0.1e-3 * n) for n, p in enumerate(file.current))
    picture = drawn(tmp_path, replace(file, current=shifted))
    circles = picture.findall(f"{SVG}circle")
    assert len(circles) == 12 and len(picture.findall(f"{SVG}polygon")) == 2
    heights = [float(circle.get("cy")) for circle in circles[:6]]
    assert heights == sorted(heights, reverse=True) and heights[0] - heights[5] > 15
    steps = [above - below for above, below in pairwise(heights)]
    assert max(steps) == pytest.approx(min(steps), abs=0.3)
    assert "<DMM> & co" in picture.findtext(f"{SVG}title")


def test_a_simulated_one_says_so_and_one_without_voltage_has_one_panel(tmp_path):
    file = made(simulated=True)
    file = replace(file, calibration=replace(file.calibration, voltage=None), voltage=())
    picture = drawn(tmp_path, file)
    assert "SIMULATED" in picture.findtext(f"{SVG}title")
    assert len(picture.findall(f"{SVG}polygon")) == 1
