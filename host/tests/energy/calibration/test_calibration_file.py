"""A calibration's file: written for people, read back as it was, and refused for any sensor but its own."""

from dataclasses import replace
from datetime import timedelta

import pytest
from calibrated_sensor import SENSOR_ID
from calibration_files import BOUNDS, WHEN, made
from opjoule.base.errors import BadInput
from opjoule.energy.calibration.calibration_file import EARLIER, find_calibration, read_calibration, write_calibration
from opjoule.energy.calibration.fitting import CalibrationFault
from opjoule.energy.error_bounds import Shunt
from opjoule.energy.shunt_heat import Heating

SOON = WHEN + timedelta(days=10)


def test_a_file_is_read_as_it_was_written(tmp_path):
    file = made('a "good" DMM\\ №7 \x7f\n')
    read = read_calibration(write_calibration(tmp_path / "calibration", file))
    assert (read.sensor.id, read.date_utc, read.reference) == (SENSOR_ID, WHEN, file.reference)
    assert read.sensor.current_max_a == pytest.approx(file.sensor.current_max_a, rel=1e-9)
    assert read.temperature_c == 22.5 and not read.simulated and len(read.current) == len(read.voltage) == 6
    assert read.calibration.current.gain == pytest.approx(file.calibration.current.gain, rel=1e-9)
    for drift_c in (22.5, 30.0):
        at = read.at(drift_c)
        assert at.power_u(0.8, 5.0) == pytest.approx(
            replace(file.calibration, gain_drift_u=at.gain_drift_u).power_u(0.8, 5.0), rel=1e-6
        )


def test_its_identity_is_that_of_its_sensor_its_time_and_its_content(tmp_path):
    path = write_calibration(tmp_path, made())
    identity = read_calibration(path).calibration.identity
    assert identity.startswith("bench-1@0x40 2026-05-03T14:05:06Z ")
    path.write_text(path.read_text().replace("gain = 1.0", "gain = 1.1", 1))
    assert read_calibration(path).calibration.identity != identity


def test_a_newer_calibration_leaves_the_former_one_readable(tmp_path):
    write_calibration(tmp_path, made())
    write_calibration(tmp_path, made(date_utc=SOON))
    [former] = (tmp_path / EARLIER).iterdir()
    assert read_calibration(former).date_utc == WHEN
    assert read_calibration(tmp_path / f"{SENSOR_ID}.toml").date_utc == SOON
    assert find_calibration(tmp_path, BOUNDS, simulated=False, now_utc=SOON).file.date_utc == SOON


def test_a_sensor_without_a_name_or_a_file_has_none(tmp_path):
    write_calibration(tmp_path, made())
    assert find_calibration(tmp_path, replace(BOUNDS, sensor_id=""), simulated=False) is None
    assert find_calibration(tmp_path, replace(BOUNDS, sensor_id="bench-2@0x40"), simulated=False) is None
    assert find_calibration(tmp_path / "nowhere", BOUNDS, simulated=False) is None


@pytest.mark.parametrize(
    ("bounds", "simulated", "words"),
    [
        (
            replace(BOUNDS, model="INA226"),
            False,
            "chip INA219, .* INA226",
        ),
        (replace(BOUNDS, shunt=Shunt(0.02)), False, r"shunt=0\.1, .* 0\.02"),
        (
            replace(BOUNDS, current_max_a=0.4),
            False,
            r"3\.2 A, .* 0\.4 A",
        ),
        (BOUNDS, True, "real .* simulated"),
    ],
)
def test_a_calibration_of_another_sensor_or_setting_is_refused_in_one_line(tmp_path, bounds, simulated, words):
    write_calibration(tmp_path, made())
    with pytest.raises(CalibrationFault, match=words) as refused:
        find_calibration(tmp_path, bounds, simulated=simulated)
    assert "; host/calibrate.py" in str(refused.value)


def test_a_file_under_another_sensors_name_is_refused(tmp_path):
    write_calibration(tmp_path, made()).rename(tmp_path / "bench-2@0x40.toml")
    with pytest.raises(CalibrationFault, match=r"bench-1@0x40, .* bench-2@0x40"):
        find_calibration(tmp_path, replace(BOUNDS, sensor_id="bench-2@0x40"), simulated=False)


@pytest.mark.parametrize(
    ("now_utc", "temperature_c", "words"),
    [
        (SOON, None, []),
        (SOON, 25.0, []),
        (WHEN + timedelta(days=400), 23.0, ["is 400 days old: 'host/calibrate.py check'"]),
        (SOON, 35.0, [" 0.26 %"]),
        (WHEN - timedelta(days=9), None, ["is dated 2026-05-03, in the future"]),
    ],
)
def test_an_old_or_hot_calibration_is_used_and_warned_of(tmp_path, now_utc, temperature_c, words):
    write_calibration(tmp_path, made())
    calibration = find_calibration(tmp_path, BOUNDS, simulated=False, temperature_c=temperature_c, now_utc=now_utc)
    assert len(calibration.notices) == len(words)
    assert all(word in notice.text for word, notice in zip(words, calibration.notices, strict=True))


def test_the_interval_grows_with_the_distance_from_the_calibrations_temperature(tmp_path):
    write_calibration(tmp_path, made())
    calibration = find_calibration(tmp_path, BOUNDS, simulated=False, now_utc=SOON)
    drifts = [calibration.of(BOUNDS, c).calibration.gain_drift_u for c in (22.5, 24.0, None, 35.0)]
    assert drifts[0] == 0.0 and drifts == sorted(drifts)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema = 2", "schema = 9", "schema 9, this program reads 2"),
        ("[uncertainty]", "[doubt]", "unknown key .doubt."),
        ("gain = ", "gain = nan  # ", "current.gain must be between 0.5 and 2.0, not nan"),
        ("gain = 1.0", "gain = 9.0", "current.gain must be between 0.5 and 2.0, not 9"),
        ("least = ", "least = 99.0 # ", "current.most must be"),
        ("covariance = [", "covariance = [[1.0], ", "not of shape 5 x 5"),
        ('id = "bench-1@0x40"', 'id = "../../etc"', "sensor.id must be"),
        ("date_utc = 2026-05-03T14:05:06Z", 'date_utc = "May"', "date_utc must be"),
        ("simulated = false", "simulated = false\nsimulated = true", "valid TOML"),
    ],
)
def test_a_file_that_holds_something_else_is_one_line_that_names_it(tmp_path, old, new, words):
    path = write_calibration(tmp_path, made())
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(BadInput, match=words) as refused:
        read_calibration(path)
    assert str(refused.value).startswith(str(path)) and "\n" not in str(refused.value)


def test_a_covariance_that_none_can_be_is_refused(tmp_path):
    path = write_calibration(tmp_path, made())
    lines = path.read_text().splitlines()
    at = lines.index(next(line for line in lines if line.startswith("covariance"))) + 1
    lines[at] = "  [1e-6, 0.0, 9.0, 0.0],"
    lines[at + 2] = "  [9.0, 0.0, 1e-6, 0.0],"
    path.write_text("\n".join(lines))
    with pytest.raises(BadInput, match="covariance"):
        read_calibration(path)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 5000, b"x = " + b"9" * 5000])
def test_anything_at_all_is_one_line(tmp_path, content):
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"x\.toml"):
        read_calibration(path)
    path.unlink()
    with pytest.raises(BadInput, match=r"x\.toml.* No such file"):
        read_calibration(path)


def heated(tmp_path):
    """A file of this form, with a bow."""
    file = made()
    heating = Heating(1.7e-3, 6.5, 0.1)
    return write_calibration(tmp_path, replace(file, calibration=replace(file.calibration, heating=heating)))


def test_a_shunts_heating_is_read_as_it_was_written(tmp_path):
    assert read_calibration(heated(tmp_path)).calibration.heating == Heating(1.7e-3, 6.5, 0.1)
