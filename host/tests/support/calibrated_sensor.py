"""A sensor and a reference with known errors, and calibration points of both."""

from dataclasses import dataclass, field, replace

import numpy as np
from opjoule.energy.calibration.fitting import ReferencePoint
from opjoule.energy.calibration.reference import Accuracy, over_resistor
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.sensor_calibration import SensorCalibration

CURRENTS_A = (0.05, 0.3, 0.6, 0.9, 1.2, 1.5)
OPEN_V, SUPPLY_OHM = 5.15, 0.15
SENSOR_ID = "bench-1@0x40"
DIGIT = 1e-4


def known(bounds: ErrorBounds) -> ErrorBounds:
    """The same sensor with gain and offset known exactly."""
    return replace(bounds, calibration=SensorCalibration("exact"))


@dataclass(frozen=True)
class TrueSensor:
    """reading = (true - offset) / gain."""

    gain: float = 1.0
    offset_a: float = 0.0
    voltage_gain: float = 1.0
    voltage_offset_v: float = 0.0

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "TrueSensor":
        return cls(
            1 + rng.uniform(-0.012, 0.012),
            rng.uniform(-2e-3, 2e-3),
            1 + rng.uniform(-0.005, 0.005),
            0.0,
        )

    def current(self, true_a):
        return (true_a - self.offset_a) / self.gain

    def voltage(self, true_v):
        return (true_v - self.voltage_offset_v) / self.voltage_gain


def bench_reference(name="DMM 7"):
    """A good handheld voltmeter over a 0.1 ohm resistor."""
    return over_resistor(
        name,
        ohm=0.1,
        resistor=Accuracy.of("0.1%", "ohm"),
        voltage=Accuracy.of("0.03%+0.02mV", "V"),
        stated="0.03 % + 0.02 mV, 0.1 ohm 0.1 %",
    )


@dataclass
class TrueReference:
    """The real errors of a reference: for each of its sources, a number of standard uncertainties."""

    reference: object
    errors: dict = field(default_factory=dict)

    @classmethod
    def draw(cls, reference, rng):
        return cls(reference, {source.name: rng.normal() for source in reference.common})

    def current(self, true_a):
        return true_a + sum(
            self.errors.get(e.name, 0.0) * (e.current_share * true_a + e.current_a) for e in self.reference.common
        )

    def voltage(self, true_v):
        return true_v + sum(
            self.errors.get(e.name, 0.0) * (e.voltage_share * true_v + e.voltage_v) for e in self.reference.common
        )


def points(sensor, reference, rng=None, currents_a=CURRENTS_A, noise_a=2e-5):
    """Points as the procedure takes them, with a supply that sags; without `rng` nothing is random."""

    def noise(u):
        return rng.normal(0, u) if rng else 0.0

    def rounded(value, step):
        return round(value / step) * step if rng else value

    read_points = []
    for true_a in currents_a:
        true_v = OPEN_V - SUPPLY_OHM * true_a
        read_points.append(
            ReferencePoint(
                current_a=sensor.current(true_a) + noise(noise_a),
                current_u_a=noise_a,
                reference_a=rounded(reference.current(true_a), DIGIT),
                reference_u_a=DIGIT / 12**0.5,
                voltage_v=rounded(sensor.voltage(true_v), 4e-3),
                voltage_u_v=4e-3 / 12**0.5,
                reference_v=rounded(reference.voltage(true_v), DIGIT),
                reference_u_v=DIGIT / 12**0.5,
            )
        )
    return read_points
