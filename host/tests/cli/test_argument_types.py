"""Values of the command line, as people write them."""

import argparse

import pytest
from opjoule.cli.argument_types import positive


@pytest.mark.parametrize(
    ("text", "value"),
    [("1000000", 10**6), ("1e6", 10**6), ("1E6", 10**6), ("2.5e6", 2_500_000), ("10000.0", 10_000)],
)
def test_a_whole_number_may_have_an_exponent(text, value):
    read = positive(text)
    assert read == value and isinstance(read, int)


@pytest.mark.parametrize("text", ["1.5", "1e-6", "1e19", "1e999", "0e6", "-1e6", "nan", "1_000", "\u0661", "9" * 5000])
def test_what_is_no_whole_number_in_the_range_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number of at least 1"):
        positive(text)
