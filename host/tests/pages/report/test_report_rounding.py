"""Numbers printed with two digits of their uncertainty."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.base.units import Quantity
from opjoule.results.rounding import MINUS, PREFIXES, percent, quantity_text, rounded, with_limits

NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("value", "u", "unit", "expected"),
    [
        (0.00123456, 0.0000512, "J", "1.235 ± 0.051 mJ"),
        (12345.6, 230, "J", "12.35 ± 0.23 kJ"),
        (0.5, 0.0996, "J", "0.50 ± 0.10 J"),  # u rounds up to the next decade and keeps two digits
        (999.9996, 0.05, "J", "1.000000 ± 0.000050 kJ"),
        (-0.0004, 0.002, "J/operation", f"{MINUS}0.4 ± 2.0 mJ/operation"),  # smaller than its uncertainty
        (0.1, 12, "J", "0 ± 12 J"),
        (-0.1, 12, "J", "0 ± 12 J"),  # no minus zero
        (0, 0, "s", "0 s"),
        (0, 0.003, "W", "0.0 ± 3.0 mW"),
        (100000, 0, "1", "100,000"),  # an exact count
        (12345, None, "1/s", "12,340 /s"),  # no uncertainty known: four digits
        (0.000123, None, "s", "123.0 µs"),
    ],
)
def test_value_ends_where_its_uncertainty_ends(value: float, u: float | None, unit: str, expected: str) -> None:
    assert str(rounded(value, u, unit)).replace(NBSP, " ") == expected


def test_fraction_reads_as_per_cent() -> None:
    assert percent(0.2512).replace(NBSP, " ") == "25.1 %"
    assert percent(1e-9).replace(NBSP, " ") == "< 0.1 %"
    assert percent(0.0).replace(NBSP, " ") == "0 %"


def number_of(text: str, prefix: str) -> float:
    power = {symbol: power for power, symbol in PREFIXES.items()}[prefix]
    return float(text.replace(",", "").replace(MINUS, "-")) * 10.0**power


@given(
    value=st.floats(-1e9, 1e9, allow_nan=False),
    u=st.floats(1e-9, 1e6, allow_nan=False),
)
def test_rounding_never_moves_a_value_by_more_than_half_a_digit_of_u(value: float, u: float) -> None:
    shown = rounded(value, u, "J")
    prefix = shown.unit.removesuffix("J")
    # Two significant digits of u: half a unit of the second one is at most u / 20.
    assert math.isclose(number_of(shown.interval.removeprefix("± "), prefix), u, rel_tol=0.0501)
    assert abs(number_of(shown.value, prefix) - value) <= 0.0501 * u + 1e-12 * abs(value)


@given(value=st.floats(1e-9, 1e9), u=st.floats(1e-9, 1e6))
def test_value_and_uncertainty_share_their_last_place(value: float, u: float) -> None:
    shown = rounded(value, u, "W")
    shown_u = shown.interval.removeprefix("± ")
    assert len(shown.value.partition(".")[2]) == len(shown_u.partition(".")[2])
    significant = shown_u.replace(".", "").replace(",", "").lstrip("0")
    assert len(significant) == 2


@pytest.mark.parametrize(
    ("value", "limits", "expected"),
    [
        (2.9215, (1.6301, 8.42), "2.9 (1.6 to 8.4)"),
        (1.7421, (1.5812, 1.9113), "1.74 (1.58 to 1.91)"),
        (153.2, (140.0, 171.0), "153 (140 to 171)"),
        (2.9215, (1.23, math.inf), "2.9 (1.2 or more)"),
        (1.5, (0.0, math.inf), "1.5 (any)"),
        (2.0, (2.0, 2.0), "2.000000 (2.000000 to 2.000000)"),
    ],
)
def test_a_ratio_stands_with_the_ends_of_its_interval(value, limits, expected):
    assert with_limits(value, limits) == expected


def test_the_interval_of_a_positive_quantity_stays_positive():
    quantities = (
        *(Quantity(0.0005, 0.0018, "J"), Quantity(2.0, 3.0, "1/s"), Quantity(0.5, 0.4, "J")),
        *(Quantity(-0.5, 0.8, "J"), Quantity(0.0, 0.3, "J")),
    )
    assert [quantity_text(of).replace("\N{NO-BREAK SPACE}", " ") for of in quantities] == [
        "0.5 (0 to 2.3) mJ",
        "2.0 (0 to 5.0) /s",
        "0.50 ± 0.40 J",
        f"{MINUS}0.50 ± 0.80 J",
        "0 (0 to 300) mJ",
    ]


def test_a_mean_of_counts_is_printed_as_a_whole_number_and_a_count_in_full():
    assert str(rounded(71_973 + 1 / 3, 0.0, "1")) == "71,973"
    assert str(rounded(71_973.0, 0.0, "1")) == "71,973"
    assert str(rounded(0.125, 0.0, "1")) == "0.125"
