"""`commission --simulate`: each fault planted in the simulated rig fails its step with its advice. SIMULATED.

Steps without the board's programs run as fast as the computer simulates them, those with them for some seconds.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest
from opjoule.bench.commissioning.certificate import Certificate, Procedure, read_certificate, step_called
from opjoule.bench.commissioning.desk import SIMULATED_PACE, StepOutcome
from opjoule.bench.simulation.rehearsal import PLANTS, DrawnRig, simulated_desk
from opjoule.boards.profiles import find_profile
from opjoule.cli.commands import main

SHORT = replace(
    SIMULATED_PACE,
    zero_s=6.0,
    load_s=2.0,
    hold_s=10.0,
    cool_s=8.0,
    sync_s=6.0,
    quiet_s=2.0,
    patterns=(),
    levels=(0, 8),
    level_s=0.6,
    series_levels=(0, 8),
    written_bytes=16 << 20,
    long_s=6.0,
)
PAST = {
    "swapped-inputs": (("zero", "back-feed"), "resistor", "exchange the wires at VIN+ and VIN"),
    "back-feed": (("zero",), "back-feed", "HDMI"),
    "wrong-shunt": (("zero", "back-feed"), "resistor", "about shunt=0.1"),
    "hot-shunt": (("zero", "resistor"), "additivity", "20 milliohm"),
    "i2c-errors": (("zero",), "errors", "4.7 kohm"),
}
"""Defect -> steps that it passes, the one that finds it, and what that says."""
LIVE = {
    "floating-d8": ((), "sync", "100 kohm from the buffer's input"),
    "dead-sync": ((), "sync", "--pulses 20"),
    "cable": ((), "load-steps", "thicker cable"),
    "second-meter": ((), "second-meter", "exchange the meters' places"),
    "wrong-medium": ((), "medium", "correct the path of sd"),
}
"""The same of steps that the board's programs have a part in."""


def rehearsed(folder, plant, keys):
    """The certificate of some steps on a desk with a fault."""
    drawn = DrawnRig.draw(find_profile("rpi4").with_medium("sd"), 1, plant)
    certificate = Certificate("", "rpi4", "sd", simulated=True)
    open_desk = partial(simulated_desk, drawn, certificate, SHORT)
    Procedure(certificate, open_desk, lambda: None, lambda line: None, folder).run([*map(step_called, keys)])
    return certificate.finished


def assert_found(folder, plant, passed, found_by, advice):
    finished = rehearsed(folder, plant, [*passed, found_by])
    assert {key: step.outcome for key, step in finished.items()} == {
        **dict.fromkeys(passed, StepOutcome.PASSED),
        found_by: StepOutcome.FAILED,
    }, [step.words for step in finished.values()]
    assert advice in finished[found_by].advice


def test_every_fault_that_can_be_planted_is_tried():
    assert {*PAST, *LIVE} == {*PLANTS}


@pytest.mark.rig
@pytest.mark.parametrize("plant", PAST)
def test_a_planted_fault_fails_its_step_with_the_right_advice(tmp_path, plant):
    assert_found(tmp_path, plant, *PAST[plant])


@pytest.mark.end_to_end
@pytest.mark.parametrize("plant", LIVE)
def test_a_fault_planted_around_the_board_fails_its_step_with_the_right_advice(tmp_path, plant):
    assert_found(tmp_path, plant, *LIVE[plant])


@pytest.mark.rig
def test_a_rehearsal_leaves_a_certificate_and_a_page_that_say_simulated_and_goes_on(tmp_path, capfd):
    command_line = ["commission", "--simulate", "--out", str(tmp_path / "one")]
    assert main([*command_line, "--step", "zero", "--step", "back-feed"]) == 0
    out, err = capfd.readouterr()
    assert "SIMULATED: 10 of 12 steps are left" in out and "SIMULATED" in err
    certificate = read_certificate(tmp_path / "one/commissioning.toml")
    assert certificate.simulated and [*certificate.finished] == ["zero", "back-feed"]
    page = (tmp_path / "one/commissioning.html").read_text()
    assert "SIMULATED" in page and '"tracks"' in page
    content = json.loads(page.partition('id="content">')[2].partition("</script>")[0])
    assert [phase["name"] for phase in content["phases"]] == ["zero", "back-feed"]
    assert main([*command_line, "--step", "resistor"]) == 0
    assert [*read_certificate(tmp_path / "one/commissioning.toml").finished] == [
        "zero",
        "back-feed",
        "resistor",
    ]
