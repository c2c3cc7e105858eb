"""A firmware that hangs starts anew, behind every boot loader it is flashed with; SIMULATED."""

import pytest
from opjoule.base.errors import MeterFault
from rig_session import FIRMWARE, NANO_FIRMWARE, rig_sim, write_profile

pytestmark = pytest.mark.rig


def hanging(folder):
    write_profile(folder / "profile.csv", [(0, 0.5)], 5.0, 1.0)
    return ["--profile", str(folder / "profile.csv"), "--hang-at", "0.5", "--tail-s", "30"]


def restarted(rig):
    """Why the meter's capture ended, and what a second session finds."""
    ended = rig.capture().ended
    meter = rig.meter()
    try:
        identity = meter.open()
    finally:
        meter.close()
    rig.terminate()
    return ended, identity


@pytest.mark.parametrize(
    ("firmware", "loader", "resets"),
    [(FIRMWARE, "none", 1), (NANO_FIRMWARE, "none", 0), (NANO_FIRMWARE, "old", 0)],
    ids=["uno", "nano", "nano, old boot loader"],
)
def test_a_firmware_that_hangs_starts_anew_and_says_so(tmp_path, firmware, loader, resets):
    with rig_sim(tmp_path, *hanging(tmp_path), "--boot-loader", loader, firmware=firmware) as rig:
        ended, identity = restarted(rig)
        assert rig.truth()["mcu"]["resets"] == resets
    assert "watchdog" in ended and "its firmware hung" in ended and "supply" not in ended
    assert identity.reset_cause == "watchdog"
    assert [sensor.model for sensor in identity.sensors] == ["ina219"]


def test_behind_the_old_boot_loader_a_watchdog_reset_never_ends(tmp_path):
    """Why the Nano's firmware restarts itself: the watchdog stays on, and the boot loader waits longer than it does."""
    options = (*hanging(tmp_path), "--boot-loader", "old")
    with rig_sim(tmp_path, *options, firmware=FIRMWARE) as rig, pytest.raises(MeterFault):
        rig.capture()
        rig.meter().open()
