"""`measure.py databases`: which engines are built, which can be, and why one cannot."""

import pytest
from opjoule.boards.databases import find_database
from opjoule.cli import databases


@pytest.mark.parametrize(
    ("built", "failed", "there", "words"),
    [
        ({"rocksdb": "9.10.0"}, {}, True, "built in, version 9.10.0"),
        ({"leveldb": "1.23"}, {}, True, "not built yet"),
        ({}, {}, True, "not built yet"),
        (
            {"leveldb": "1.23"},
            {"rocksdb": "librocksdb.a is missing"},
            False,
            "librocksdb.a is missing; ",
        ),
        ({"rocksdb": "9.10.0"}, {"lmdb": "liblmdb.a is missing"}, True, "built in, version 9.10.0"),
    ],
)
def test_an_engine_is_built_or_can_be_or_says_why_not(monkeypatch, built, failed, there, words):
    monkeypatch.setattr(databases, "built_in", lambda: built)
    monkeypatch.setattr(databases, "failed_engines", lambda build: failed)
    state = databases.availability(find_database("rocksdb"))
    assert state.there is there and words in state.words
