"""A line through points that are uncertain both ways: its parameters, their covariance, and what it does not hide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.energy.calibration.line_fit import LinePoint, chi_squared_tail, fit_line

READINGS = np.linspace(0.05, 1.5, 6)


def of(readings, values, reading_u=1e-4, value_u=1e-4):
    return [LinePoint(x, reading_u, y, value_u) for x, y in zip(readings, values, strict=True)]


@given(st.floats(0.9, 1.1), st.floats(-0.01, 0.01), st.floats(1e-6, 1e-2), st.floats(1e-6, 1e-2))
def test_points_on_a_line_give_that_line_whatever_their_uncertainties(gain, offset, reading_u, value_u):
    fit = fit_line(of(READINGS, offset + gain * READINGS, reading_u, value_u))
    assert fit.gain == pytest.approx(gain, abs=1e-9) and fit.offset == pytest.approx(offset, abs=1e-9)
    assert fit.chi_squared < 1e-6 and fit.degrees == 4


@given(st.floats(0.9, 1.1), st.floats(-0.1, 0.1))
def test_exchanging_reading_and_reference_gives_the_inverse_line(gain, offset):
    """A fit that is uncertain in one variable alone is flatter than that."""
    rng = np.random.default_rng(3)
    values = offset + gain * READINGS + rng.normal(0, 0.02, READINGS.size)
    there = fit_line(of(READINGS, values, 0.02, 0.02))
    back = fit_line(of(values, READINGS, 0.02, 0.02))
    assert there.gain * back.gain == pytest.approx(1.0, abs=1e-6)
    assert back.offset == pytest.approx(-there.offset / there.gain, abs=1e-6)


def test_without_uncertainty_of_the_readings_it_is_the_weighted_least_squares_line():
    rng = np.random.default_rng(1)
    value_u = rng.uniform(1e-3, 1e-2, READINGS.size)
    values = 0.3 + 1.02 * READINGS + rng.normal(0, value_u)
    fit = fit_line([LinePoint(x, 0.0, y, u) for x, y, u in zip(READINGS, values, value_u, strict=True)])
    design = np.column_stack([READINGS, np.ones(READINGS.size)]) / value_u[:, None]
    covariance = np.linalg.inv(design.T @ design)
    gain, offset = covariance @ design.T @ (values / value_u)
    assert fit.gain == pytest.approx(gain) and fit.offset == pytest.approx(offset)
    np.testing.assert_allclose(fit.covariance[:2, :2], covariance, rtol=1e-9)


def test_the_covariance_is_that_of_repeated_calibrations():
    rng = np.random.default_rng(2)
    fitted = []
    for _ in range(2000):
        readings = READINGS + rng.normal(0, 3e-3, READINGS.size)
        fit = fit_line(of(readings, 0.01 + 1.01 * READINGS + rng.normal(0, 2e-3, READINGS.size), 3e-3, 2e-3))
        fitted.append((fit.gain, fit.offset))
    np.testing.assert_allclose(np.cov(np.array(fitted).T), fit.covariance[:2, :2], rtol=0.12)


def test_a_line_without_a_rise_has_a_variance_of_its_gain_and_none_below_zero():
    """The first guess of the gain must not send the fit away to a line that stands upright."""
    fit = fit_line(of([0.6117, 0.6157, 0.6343], [4.951, 4.950, 4.950], 1e-3, 1e-3))
    assert abs(fit.gain) < 2 * fit.covariance[0, 0] ** 0.5 < 0.2


@pytest.mark.parametrize("seed", range(50))
def test_pure_scatter_gives_no_negative_variance(seed):
    rng = np.random.default_rng(seed)
    fit = fit_line(of(0.6 + rng.normal(0, 1e-3, 5), 5.0 + rng.normal(0, 1e-3, 5), 1e-3, 1e-3))
    assert (np.linalg.eigvalsh(fit.covariance) >= -1e-12 * np.abs(fit.covariance).max()).all()


def test_a_narrow_range_is_known_in_its_middle_and_nowhere_else():
    """Volts of a 5 V supply: gain and offset are hardly known, the voltage is."""
    readings = np.array([5.02, 5.05, 5.08, 5.1])
    fit = fit_line(of(readings, readings * 1.003, 1e-3, 1e-3), gain_prior_u=3e-3)
    at = np.array([5.06, 1.0, 0.0])
    assert np.sqrt(at @ fit.covariance @ at) < 1e-3
    assert np.sqrt(fit.covariance[1, 1]) > 1e-2
    one = fit_line(of([5.05, 5.05, 5.05], [5.06, 5.061, 5.059], 1e-3, 1e-3), gain_prior_u=3e-3)
    assert one.offset + one.gain * 5.05 == pytest.approx(5.06, abs=1e-4)
    assert one.gain == pytest.approx(1.0, abs=1e-4)


def test_points_at_one_reading_determine_no_line():
    with pytest.raises(ValueError, match="determine a line"):
        fit_line(of([0.5, 0.5, 0.5], [0.5, 0.51, 0.49]))


def test_points_that_stray_as_stated_are_as_likely_as_not():
    rng = np.random.default_rng(4)
    chances = [
        fit_line(of(READINGS + rng.normal(0, 1e-3, 6), 1.02 * READINGS + rng.normal(0, 1e-3, 6), 1e-3, 1e-3)).chance
        for _ in range(1000)
    ]
    counts, _ = np.histogram(chances, bins=5, range=(0, 1))
    assert counts.min() > 150 and counts.max() < 250


@pytest.mark.parametrize(
    ("value", "degrees", "chance"), [(9.488, 4, 0.05), (18.467, 4, 0.001), (1.064, 4, 0.9), (3.841, 1, 0.05)]
)
def test_the_tail_of_chi_squared_is_that_of_the_tables(value, degrees, chance):
    assert chi_squared_tail(value, degrees) == pytest.approx(chance, rel=0.12)
