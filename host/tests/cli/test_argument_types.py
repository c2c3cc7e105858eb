"""Values of the command line, as people write them."""

import pytest
from opjoule.base.errors import BadInput
from opjoule.base.settings import setting
from opjoule.cli.measure.options import YcsbOptions
from opjoule.cli.options import CommandName, Percent, Positive, Seconds, TimeSpan


@pytest.mark.parametrize(
    ("text", "value"),
    [("1000000", 10**6), ("1e6", 10**6), ("1E6", 10**6), ("2.5e6", 2_500_000), ("10000.0", 10_000)],
)
def test_a_whole_number_may_have_an_exponent(text, value):
    read = setting(text, Positive, texts=True)
    assert read == value and isinstance(read, int)


@pytest.mark.parametrize("text", ["1.5", "1e-6", "1e19", "1e999", "0e6", "-1e6", "nan", "1_000", "\u0661", "9" * 5000])
def test_what_is_no_whole_number_in_the_range_is_refused(text):
    with pytest.raises(ValueError, match="at least 1, not "):
        setting(text, Positive, texts=True)


@pytest.mark.parametrize("kind", [Seconds, Seconds | None])
@pytest.mark.parametrize("text", ["nan", "inf", "-1", "", "null", " 5"])
def test_what_is_no_time_is_refused_also_where_none_is_a_default(kind, text):
    with pytest.raises(ValueError, match="from 0 to 86400, not "):
        setting(text, kind, texts=True)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [(Percent, "3%", 0.03), (Percent | None, "0.5", 0.005), (TimeSpan, "90min", 5400.0), (CommandName, " a b ", "a b")],
)
def test_a_value_may_be_written_in_a_way_of_its_own(kind, text, value):
    assert setting(text, kind, texts=True) == pytest.approx(value) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (Percent, "100%", "3%, not '100%'"),
        (Percent, "x%", "3%, not 'x%'"),
        (TimeSpan, "0h", "3d, not '0h'"),
        (CommandName, "\n", r"1 to 60 .* not '\\n'"),
    ],
)
def test_what_is_not_written_so_is_refused_with_the_text(kind, text, said):
    with pytest.raises(ValueError, match=said):
        setting(text, kind, texts=True)


def test_every_option_of_a_measurement_is_read_by_its_field_as_on_the_command_line():
    given = {"db": "leveldb", "device": "rpi4", "repeats_limit": "7", "idle": "2.5", "until_u": "3%", "rig": "a.toml"}
    options = YcsbOptions.of_settings({**given, "records": 1000, "state": "swap=keep", "design": True}, "the cell x:")
    assert (options.repeats_limit, options.idle, options.until_u) == (7, 2.5, pytest.approx(0.03))
    assert (options.rig.name, options.records, options.state, options.design) == ("a.toml", 1000, ("swap=keep",), True)
    for wrong, said in {
        "repeats_limit": "must be a whole number from 1 to 10000, not 'x'",
        "again": "must be a whole number from 0 to 9, not 'x'",
        "generator": "must be one of loader, ycsb, not 'x'",
        "design": "must be true or false, not 'x'",
    }.items():
        with pytest.raises(BadInput, match=f"^the cell x: {wrong} {said}$"):
            YcsbOptions.of_settings({**given, wrong: "x"}, "the cell x:")
