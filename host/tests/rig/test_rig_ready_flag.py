"""doctor on a sensor whose ready flag is not as the data sheet says, through the real firmware; SIMULATED."""

import pytest
from opjoule.base.notices import NoticeKind
from opjoule.cli.doctor import examine
from opjoule.meters.serial.ready_flag import FlagTrial, try_ready_flag
from rig_session import ARDUINO_FIRMWARE, rig_sim, write_profile

pytestmark = pytest.mark.rig


def inputs(folder):
    """A constant 0.5 A at 5 V, from the processor's start: of a flag that is never set nothing is ever read."""
    write_profile(folder / "profile.csv", [(0, 0.5)], 5.0, 60.0)
    return ["--profile", str(folder / "profile.csv"), "--start", "boot"]


def trial_of(folder, *options):
    with rig_sim(folder, *inputs(folder), *options) as rig:
        return try_ready_flag(str(rig.port), 0, rig.clock)


@pytest.mark.parametrize("ppm", [0, -95_000, 95_000])
def test_a_flag_as_stated_is_well_at_any_pace_that_the_data_sheet_allows(tmp_path, ppm):
    trial = trial_of(tmp_path, "--sensor-clock-error-ppm", str(ppm), "--clock-error-ppm", "5000")
    assert trial.trouble == ""
    assert trial.period_us == pytest.approx(532 * 1.005 / (1 + ppm * 1e-6), rel=2e-3)


@pytest.mark.parametrize("flag", ["kept-by-read", "never-cleared"])
def test_a_flag_that_is_not_cleared_is_reported_with_what_follows(tmp_path, flag):
    trial = trial_of(tmp_path, "--ready-flag", flag)
    assert "not cleared" in trial.trouble and "read twice" in trial.trouble


def test_a_flag_that_is_never_set_is_reported_with_what_follows(tmp_path):
    trial = trial_of(tmp_path, "--ready-flag", "never-set")
    assert trial.samples == 0 and "never set" in trial.trouble and "recorded" in trial.trouble


def test_firmware_that_reads_by_time_is_not_tried(tmp_path):
    with rig_sim(tmp_path, *inputs(tmp_path), "--ready-flag", "never-set", firmware=ARDUINO_FIRMWARE) as rig:
        assert try_ready_flag(str(rig.port), 0, rig.clock) is None


def test_a_flag_that_comes_late_or_irregularly_is_trouble():
    assert "overwritten unread" in FlagTrial(3000, 600, 532, 0, False).trouble
    assert "irregularly" in FlagTrial(3000, 532, 532, 40, False).trouble


@pytest.mark.parametrize(("options", "well"), [((), True), (("--ready-flag", "never-cleared"), False)])
def test_doctor_says_it_in_one_line_with_the_remedy(tmp_path, options, well):
    rig = tmp_path / "rig.toml"
    rig.write_text(f'[meter]\nport = "serial:{tmp_path / "meter"}"\n')
    with rig_sim(tmp_path, *inputs(tmp_path), *options, "--hold-sda", "boot,5", pace="0"):
        said = list(examine(rig, simulate=False))
    (flag_check,) = (check for check in said if check.about == "ready flag")
    if well:
        (kinds,) = (check for check in said if check.about == "kinds of operation")
        assert " every 0.53" in kinds.text and " every 0.02 s" in kinds.text
    assert (flag_check.kind is NoticeKind.SOUND) is well
    assert "conversions" in flag_check.text and "\n" not in flag_check.text
    assert "SDA was held low" in flag_check.text
    assert ("not cleared" in flag_check.text) is not well
    assert ("uno-arduino" in flag_check.remedy) is not well
