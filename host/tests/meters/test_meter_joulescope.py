"""A Joulescope's two streams become power in time; numbers that jump and NaN are lost samples."""

import numpy as np
import pytest
from opjoule.base.errors import MeterFault
from opjoule.meters import joulescope
from opjoule.meters.interface import GapEvent, MeterGone, Samples
from opjoule.meters.joulescope import JoulescopeMeter

RATE_HZ = 1_000_000
SETTINGS = {
    "js110/000456/s/i/range/mode": {"off", "mean", "interp", "nan"},
    "js110/000456/s/i/range/select": {"auto", "10 A", "2 A", "off"},
    "js110/000456/s/v/range/select": {"15 V", "5 V"},
    "js220/000123/s/i/range/mode": {"off", "auto", "manual"},
    "js220/000123/s/i/range/min": set(range(6)),
    "js220/000123/s/i/range/max": set(range(6)),
    "js220/000123/s/v/range/mode": {"auto", "manual"},
}
"""Topic of a device's range -> its values (joulescope_driver, js110_usb.c, js220.txt and record.py)."""


class SoftwareDriver:
    """pyjoulescope_driver.Driver's calls; plays pieces when the current stream is switched on."""

    def __init__(self, amperes, volts, *, piece=20_000, skew=300, decimate=2, paths=("u/js220/000123",)):
        self._data = {"i": np.asarray(amperes, np.float32), "v": np.asarray(volts, np.float32)}
        self._piece, self._skew, self._decimate, self._paths = piece, skew, decimate, list(paths)
        self.skip = set()
        self.log, self._takers, self.ended = [], {}, False

    def device_paths(self):
        return self._paths

    def open(self, device_prefix, mode=None):
        self.log.append(("open", device_prefix, mode))

    def close(self, device_prefix):
        self.log.append(("close", device_prefix))

    def finalize(self):
        self.ended = True

    def subscribe(self, topic, flags, fn):
        self._takers[topic.split("/")[-2]] = (topic, fn)

    def publish(self, topic, value):
        known = SETTINGS.get(topic.removeprefix("u/"))
        if "/range/" in topic and (known is None or value not in known):
            raise RuntimeError(f"publish failed: {topic} = {value}")
        self.log.append((topic, value))
        if topic.endswith("v/ctrl") and value == 1:
            self._play()

    def _play(self):
        first = {"i": 0, "v": self._skew}  # the streams do not begin together
        for number, at in enumerate(range(0, self._data["i"].size, self._piece)):
            for signal, (topic, fn) in self._takers.items():
                start = max(at, first[signal])
                data = self._data[signal][start : at + self._piece]
                if number not in self.skip and data.size:
                    sample_id = (10**9 + start) * self._decimate
                    rate = RATE_HZ * self._decimate
                    fn(
                        topic,
                        {
                            "sample_id": sample_id,
                            "sample_rate": rate,
                            "decimate_factor": self._decimate,
                            "data": data,
                        },
                    )


def recorded(driver):
    meter = JoulescopeMeter(make_driver=lambda: driver)
    meter.open()
    meter.configure()
    meter.start()
    events = meter.read(1.0)
    events += meter.stop()
    meter.close()
    return meter, events


def energy_j(events):
    return sum(float(np.sum(e.current_a * e.voltage_v)) * 200e-6 for e in events if isinstance(e, Samples))


def test_power_is_the_mean_of_the_products():
    """Current and voltage that move against each other inside one mean."""
    n = np.arange(200_300)
    amperes, volts = 0.6 + 0.5 * (n // 50 % 2), 5.2 - 0.4 * (n // 50 % 2)
    driver = SoftwareDriver(amperes, volts)
    meter, events = recorded(driver)
    assert energy_j(events) == pytest.approx(float(np.sum((amperes * volts)[300:])) * 1e-6, rel=1e-6)
    assert meter.losses.lost_samples == 0
    assert driver.ended and driver.log[-1] == ("close", "u/js220/000123")


def test_a_js220_s_ranges_are_automatic_whatever_another_program_has_set():
    """It is opened as it is: a range of 2 V would stay, and 5.1 V would be read as 2.2 V."""
    driver = SoftwareDriver(np.full(100_300, 0.6), np.full(100_300, 5.0))
    recorded(driver)
    ranges = {topic.rpartition("/s/")[2]: value for topic, value, *_ in driver.log if "/range/" in topic}
    assert ranges == {"i/range/min": 0, "i/range/max": 5, "i/range/mode": "auto", "v/range/mode": "auto"}


@pytest.mark.parametrize(("amperes", "volts"), [(10.0, 5.0), (0.6, 15.0), (0.6, -15.0)])
def test_a_mean_with_a_reading_at_the_end_of_a_range_is_clipped(amperes, volts):
    driver = SoftwareDriver(np.full(100_300, 0.6), np.full(100_300, 5.0))
    driver._data["i"][50_000], driver._data["v"][50_000] = amperes, volts
    _, events = recorded(driver)
    assert sum(int(event.clipped.sum()) for event in events if isinstance(event, Samples)) == 1


def test_a_js110_s_automatic_range_is_a_selection():
    """Its mode says what becomes of samples while the range changes, and it has two ranges of voltage."""
    amperes = np.full(100_300, 0.6)
    driver = SoftwareDriver(amperes, np.full(100_300, 5.0), paths=("u/js110/000456",))
    _, events = recorded(driver)
    assert energy_j(events) == pytest.approx(0.6 * 5.0 * 0.1, rel=1e-6)
    assert ("u/js110/000456/s/i/range/select", "auto") in driver.log
    assert ("u/js110/000456/s/v/range/select", "15 V") in driver.log


def test_samples_lie_at_the_centre_of_their_mean():
    amperes = np.where(np.arange(100_300) < 50_300, 0.5, 1.0)
    _, events = recorded(SoftwareDriver(amperes, np.full(100_300, 5.0)))
    meter_ns = np.concatenate([e.meter_ns for e in events if isinstance(e, Samples)])
    current_a = np.concatenate([e.current_a for e in events if isinstance(e, Samples)])
    assert meter_ns[int(np.argmax(current_a > 0.75))] == 50_000_000 + 100_000


@pytest.mark.parametrize("kind", ["numbers jump", "NaN"])
def test_lost_samples_are_a_gap(kind):
    amperes = np.full(200_300, 0.6)
    driver = SoftwareDriver(amperes, np.full(200_300, 5.0))
    if kind == "NaN":
        driver._data["i"][60_000:80_000] = np.nan
    else:
        driver.skip = {3}
    meter, events = recorded(driver)
    (gap,) = [event.gap for event in events if isinstance(event, GapEvent)]
    assert gap.lost_samples == meter.losses.lost_samples == 101  # 20,000 samples that touch 101 means
    assert gap.charge_c is None
    assert gap.start_meter_ns == pytest.approx(59_600_000, abs=200_000)


def test_which_device_must_be_clear():
    with pytest.raises(MeterFault, match="0 devices"):
        JoulescopeMeter(make_driver=lambda: SoftwareDriver([], [], paths=())).open()
    two = ("u/js220/000123", "u/js110/000456")
    with pytest.raises(MeterFault, match="joulescope:SERIAL"):
        JoulescopeMeter(make_driver=lambda: SoftwareDriver([], [], paths=two)).open()
    assert JoulescopeMeter("000456", lambda: SoftwareDriver([], [], paths=two)).open().board == "JS110"


def test_a_device_that_falls_silent_ends_the_run(monkeypatch):
    monkeypatch.setattr(joulescope, "SILENCE_S", 0.1)
    meter = JoulescopeMeter(make_driver=lambda: SoftwareDriver([], []))
    meter.open()
    meter.start()
    with pytest.raises(MeterGone, match="sent nothing"):
        meter.read(0.2)
    meter.close()
