"""The index of a folder of records: what is read again, and that it never says what the records do not."""

import shutil
import subprocess
import sys

import pytest
from opjoule.base.errors import RecordFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.results import run_list
from opjoule.results.run_list import INDEX, RunIndex, find_runs
from opjoule.runs.record.directory import Notes, held, write_notes
from opjoule.runs.record.run_record import RunRecord
from raw_record import finished_record
from report_record import make_record


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    top = tmp_path_factory.mktemp("made")
    finished_record(top / "a")
    make_record(top / "deeper" / "b", status="failed")
    (top / "c").mkdir()
    (top / "c" / "run.json").write_text("{")
    return top


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def read(monkeypatch):
    """Names of the records that are read, in order."""
    names, listed = [], run_list.listed
    monkeypatch.setattr(run_list, "listed", lambda path: names.append(path.name) or listed(path))
    return names


def rows(folder):
    return dict(RunIndex(folder).runs())


def test_an_index_says_what_the_records_say_and_reads_none_of_them_again(folder, read):
    first = rows(folder)
    assert sorted(read) == ["a", "b", "c"] and (folder / INDEX).exists()
    assert rows(folder) == first and len(read) == 3
    assert [first[name] for name in ("a", "c", "deeper/b")] == list(find_runs([folder]))


def test_what_changed_alone_is_read_again(folder, read):
    rows(folder)
    read.clear()
    write_notes(folder / "a", Notes("new"))
    assert rows(folder)["a"].notes.text == "new" and read == ["a"]
    record = RunRecord.open(folder / "deeper" / "b")
    record.add_notices(Notice(NoticeKind.FAULT, "another"))
    assert "another" in [notice.line for notice in rows(folder)["deeper/b"].notices] and read == ["a", "b"]


def test_what_is_gone_is_gone_and_what_is_new_is_there(folder, read):
    rows(folder)
    shutil.rmtree(folder / "c")
    shutil.copytree(folder / "a", folder / "d")
    read.clear()
    assert set(rows(folder)) == {"a", "d", "deeper/b"} and read == ["d"]


def test_a_record_that_goes_on_is_looked_at_each_time(folder):
    record = RunRecord.create(folder / "e", {"db": "lmdb"}, simulated=False)
    index = RunIndex(folder)
    with held(record.directory):
        assert [notice.kind for notice in dict(index.runs())["e"].notices] == [NoticeKind.GOING_ON]
    assert [notice.kind for notice in dict(index.runs())["e"].notices] == [NoticeKind.PARTIAL]
    assert [notice.kind for notice in rows(folder)["e"].notices] == [NoticeKind.PARTIAL]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"version":1,"entries":{"a":{"mark":[],"run":{}}}}'])
def test_a_damaged_index_is_made_anew(folder, content):
    first = rows(folder)
    (folder / INDEX).write_bytes(content)
    assert rows(folder) == first and (folder / INDEX).read_bytes() != content


def test_an_index_of_another_version_is_not_used(folder, read, monkeypatch):
    rows(folder)
    read.clear()
    monkeypatch.setattr(run_list, "VERSION", run_list.VERSION + 1)
    rows(folder)
    assert len(read) == 3


def test_a_record_that_is_the_folder_itself_gets_no_index(folder):
    assert list(rows(folder / "a")) == ["a"] and not (folder / "a" / INDEX).exists()


def test_no_folder_is_one_line(tmp_path):
    with pytest.raises(RecordFault, match=f"{tmp_path}/none"):
        rows(tmp_path / "none")


LIST = """
import sys
from pathlib import Path
from opjoule.cli.runs.listing import run_list
from opjoule.cli.runs.options import ListOptions
run_list(ListOptions(places=(Path(sys.argv[1]),)))
print({"numpy", "pyarrow", "opjoule.attribution"} & set(sys.modules))
"""


def test_a_list_of_indexed_records_loads_no_numerical_library(folder):
    (folder / "deeper" / "b" / "run.json").unlink()  # a record that goes on is read each time
    list(RunIndex(folder).runs())
    ran = subprocess.run([sys.executable, "-c", LIST, folder], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "set()"
