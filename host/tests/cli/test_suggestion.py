"""A name that is not known is told with the nearest one and all of them."""

import pytest
from opjoule.base.errors import suggestion, unknown
from opjoule.cli import commands


def test_the_nearest_name_is_suggested():
    assert suggestion("levledb", ["sqlite", "leveldb"]) == "did you mean 'leveldb'? "


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (
            ["--db", "leveldb", "--device", "rpi4", "--repeat", "2"],
            "unrecognized arguments: --repeat 2; did you mean '--repeats' or '--repeats-limit'?",
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
        (["--db", "levledb", "--device", "rpi4"], "database 'levledb': did you mean 'leveldb'?"),
        (["--db", "leveldb", "--device", "rpi44"], "unknown device 'rpi44': did you mean 'rpi4'?"),
        (
            ["--db", "leveldb", "--device", "rpi4", "--storage", "sd,emmd"],
            "'emmd': did you mean 'emmc'?",
        ),
        (
            ["--db", "leveldb", "--device", "rpi4", "--storage", "ssd"],
            "'ssd': did you mean 'ssd-usb2' or 'ssd-usb3'?",
        ),
        (["--db", "leveldb", "--device", "rpi6"], "unknown device 'rpi6': known are"),
        (["command", "--device", "rpi44", "--", "ls"], "unknown device 'rpi44': did you mean 'rpi4'?"),
        (["--db", "leveldb", "--device", "rpi4", "--out", "host"], "host is"),
        (["command", "--device", "rpi4", "--out", "host", "--", "ls"], "host is"),
        (["runs", "bundle", "runs/example", "--out", "README.md"], "README.md exists already"),
        (["runs", "bundle", "no-such", "--out", "new.zip"], "no-such is"),
        (["runs", "figures", "runs/example", "--study", "s9"], "unknown study 's9': known are s1"),
        (["command", "--device", "rpi4", "--simulate", "ls"], "after --"),
    ],
)
def test_what_is_misspelt_or_taken_is_refused_before_set_up(capsys, argv, hint):
    with pytest.raises(SystemExit) as ended:
        commands.parse(argv)
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "known"),
    [("gpu", ["cpu", "video", "writer"]), ("ssd-usb4", ["ssd-usb3"]), ("ina229", ["ina219", "ina226"])],
)
def test_another_thing_is_not_suggested(name, known):
    assert suggestion(name, known) == ""


def test_nothing_is_suggested_where_nothing_is_like_it():
    assert suggestion("x", ["sqlite", "leveldb"]) == ""
    assert suggestion("lb", ["leveldb"]) == "" and suggestion("lb", ["leveldb"], 0.4) == "did you mean 'leveldb'? "


def test_one_line_names_what_it_was_and_all_that_are_known():
    assert unknown("board", "rpi44", iter(["rpi4", "rpi5"])) == (
        "unknown board 'rpi44': did you mean 'rpi4'? known are rpi4, rpi5"
    )
