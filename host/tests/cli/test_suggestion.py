"""A name that is not known is told with the nearest one and all of them."""

import pytest
from opjoule.cli import commands
from opjoule.errors import suggestion, unknown


def test_the_nearest_name_is_suggested():
    assert suggestion("levledb", ["sqlite", "leveldb"]) == "did you mean 'leveldb'? "


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (
            ["--db", "leveldb", "--device", "rpi4", "--repeat", "2"],
            "unrecognized arguments: --repeat 2; did you mean '--repeats'?",
        ),
        (
            ["--db", "leveldb", "--device", "rpi4", "--simulat"],
            "unrecognized arguments: --simulat; did you mean '--simulate'?",
        ),
        (["--db", "leveldb", "--device", "rpi4", "--zzz=2"], "unrecognized arguments: --zzz=2 ("),
        (["--study", "s1", "--db", "leveldb"], "leave out --db, and give --only system=NAME"),
    ],
)
def test_an_unknown_option_is_reported_with_the_nearest_one(capsys, argv, hint):
    with pytest.raises(SystemExit) as ended:
        commands.parse(argv)
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["--db", "levledb", "--device", "rpi4"], "unknown database 'levledb': did you mean 'leveldb'?"),
        (["--db", "leveldb", "--device", "rpi44"], "unknown device 'rpi44': did you mean 'rpi4'?"),
        (
            ["--db", "leveldb", "--device", "rpi4", "--storage", "sd,emmd"],
            "unknown storage for rpi4 'emmd': did you mean 'emmc'?",
        ),
    ],
)
def test_a_misspelt_database_board_or_medium_is_refused_before_set_up(capsys, argv, hint):
    with pytest.raises(SystemExit) as ended:
        commands.parse(argv)
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


def test_nothing_is_suggested_where_nothing_is_like_it():
    assert suggestion("x", ["sqlite", "leveldb"]) == ""
    assert (
        suggestion("lb", ["leveldb"]) == ""
        and suggestion("lb", ["leveldb"], 0.4) == "did you mean 'leveldb'? "
    )


def test_one_line_names_what_it_was_and_all_that_are_known():
    assert unknown("board", "rpi44", iter(["rpi4", "rpi5"])) == (
        "unknown board 'rpi44': did you mean 'rpi4'? known are rpi4, rpi5"
    )
