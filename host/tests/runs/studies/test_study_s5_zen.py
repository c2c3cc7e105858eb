"""Study S5 on Actian Zen: the library's functions, its errors, and the library that stands in for it."""

from __future__ import annotations

import ctypes

import pytest
from study_s5 import SMALL, connections


@pytest.fixture
def zen_job(job, library, tmp_path, monkeypatch):
    """The job on Zen, with another library or variables of the stand-in."""

    def run(*arguments: str, path: object = library, **variables: str) -> tuple[int, str, str]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        given = connections(tmp_path, zen=str(path))
        return job("zen", "--storage", str(tmp_path), *SMALL, *given, *arguments)

    return run


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"STAND_IN_VERSION": "12.10"}, "Zen 12.10 "),
        ({"STAND_IN_FAULT": "BtrieveClientGetVersion=20"}, "BtrieveClientGetVersion: status 20, "),
    ],
)
def test_a_zen_that_is_too_old_or_does_not_answer_is_one_line(zen_job, variables, says):
    status, said, _ = zen_job("--check", **variables)
    assert status == 2 and said.startswith("job.py: ") and says in said and said.count("\n") == 1


def test_a_library_that_is_missing_or_another_is_one_line(zen_job, job, tmp_path):
    status, said, _ = zen_job("--check", path=tmp_path / "none.so")
    assert status == 2 and said.count("\n") == 1
    assert "none.so: cannot open" in said and "install Actian Zen" in said
    status, said, _ = zen_job("--check", path="libm.so.6")
    assert status == 2 and "libm.so.6 " in said and "Btrieve" in said
    status, said, _ = job("zen", "--storage", str(tmp_path), "--check")
    assert status == 2 and "libbtrieveC.so is not in /usr/local/actianzen/lib*" in said


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("BtrieveFileRecordCreate=18@5", "T2"),
        ("BtrieveFileRecordUpdate=18@2", "T4A"),
        ("BtrieveFileRecordRetrieveNext=2", "T2"),  # while the table is looked at after it
        ("BtrieveFileRecordDelete=18@4", "T5B"),
        ("BtrieveClientFileOpen=46", "a new database"),
    ],
)
def test_a_status_that_no_test_expects_ends_it_with_the_functions_name(zen_job, fault, test):
    function, _, status = fault.partition("@")[0].partition("=")
    ended, said, _ = zen_job(STAND_IN_FAULT=fault)
    assert ended == 3 and said.count("\n") == 1
    assert f"zen, {test}: BtrieveFault: {function}: status {status}, " in said


@pytest.fixture
def table(study, library, tmp_path):
    """A table of Zen's with 12 rows, open."""
    made = study("zen").ZenTable(str(tmp_path / "db"), str(library))
    made.create()
    made.open()
    made.insert_all(study("phases").drawn(12, 4, 3, seed=1))
    yield made
    made.close()


def test_a_place_is_kept_and_lost_as_the_stand_in_says(table, study):
    """What zen.py rests on: without it its loops would be right by chance."""
    btrieve, phases = study("zen"), study("phases")
    library, file, buffer = table._library, table._file, table._buffer
    for _ in table._found("zip", phases.ZIP, btrieve.NO_INDEX):
        library.call("BtrieveFileRecordDelete", file)
        break
    assert table._next(file, buffer, len(buffer), 0) < 0 and table._status(file) == 8
    with pytest.raises(btrieve.BtrieveFault, match="BtrieveFileRecordDelete: status 8, Position not set"):
        library.call("BtrieveFileRecordDelete", file)
    assert len(table.everything()) == 11
    next(table._found("state", phases.STATE, btrieve.NO_INDEX))
    with pytest.raises(btrieve.BtrieveFault, match="status 83"):
        table._together(lambda: library.call("BtrieveFileRecordDelete", file))
    assert len(table.everything()) == 11


def test_a_transaction_that_fails_leaves_nothing_and_a_key_that_is_there_is_refused(table, study):
    btrieve, phases = study("zen"), study("phases")
    others = [row._replace(id=row.id + 9) for row in phases.drawn(12, 4, 3, seed=1)]
    with pytest.raises(btrieve.BtrieveFault, match="status 5"):
        table.insert_all(reversed(others))
    assert [row[0] for row in table.everything()] == list(range(1, 13))


def test_a_record_holds_texts_as_long_as_their_columns(table, study):
    phases = study("phases")
    whole = phases.Contact(99, *("x" * width for width in phases.WIDTHS.values()))
    table.insert(whole)
    assert table.row(99) == tuple(whole)
    assert ctypes.sizeof(table._buffer) == 159
