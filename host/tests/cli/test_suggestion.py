"""A name that is not known is told with the nearest one and all of them."""

from opjoule.suggestion import suggestion, unknown


def test_the_nearest_name_is_suggested():
    assert suggestion("levledb", ["sqlite", "leveldb"]) == "did you mean 'leveldb'? "


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
