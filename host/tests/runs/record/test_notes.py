"""Notes and tags beside a record: what the user may write, and that the record stays as it was."""

import json
import re

import pytest
from opjoule.base.errors import BadInput, NewerSchema, RecordFault
from opjoule.runs.record.directory import LONGEST, NOTES, Notes, read_notes, write_notes
from opjoule.runs.record.run_record import RunRecord
from raw_record import finished_record


def test_what_was_written_is_read_again(tmp_path):
    RunRecord.create(tmp_path / "record", {}, simulated=True)
    assert read_notes(tmp_path / "record") == Notes()
    notes = Notes().saying(" Lüfter aus,\n\tTür auf ").tagged(["paper", "b/2"])
    assert notes == Notes("Lüfter aus, Tür auf", ("b/2", "paper"))
    write_notes(tmp_path / "record", notes)
    assert read_notes(tmp_path / "record") == notes


def test_empty_notes_leave_no_file(tmp_path):
    RunRecord.create(tmp_path / "record", {}, simulated=True)
    write_notes(tmp_path / "record", Notes("x"))
    write_notes(tmp_path / "record", Notes())
    assert not (tmp_path / "record" / NOTES).exists()


def test_tags_are_added_and_removed_once():
    assert Notes("x", ("a", "b")).tagged(["c", "a"], ["b", "never"]) == Notes("x", ("a", "c"))


@pytest.mark.parametrize("tag", ["", " ", "a b", "-a", "a\n", "x" * 41, "<b>", "a,b"])
def test_a_tag_of_other_characters_is_refused(tag):
    with pytest.raises(BadInput, match=f"(?s)tag .*{re.escape(tag)}"):
        Notes().tagged([tag])


def test_a_note_that_is_too_long_is_refused():
    assert len(Notes().saying("x" * LONGEST).text) == LONGEST
    with pytest.raises(BadInput, match="at most 2000"):
        Notes().saying("x" * (LONGEST + 1))


def test_a_note_changes_nothing_that_is_sealed(tmp_path):
    finished_record(tmp_path / "record")
    write_notes(tmp_path / "record", Notes("first"))
    record = RunRecord.open(tmp_path / "record")
    assert record.verify() == []
    record.finish("complete")
    write_notes(tmp_path / "record", Notes("second"))
    assert RunRecord.open(tmp_path / "record").verify() == []


def test_notes_of_no_record_and_damaged_ones_are_refused(tmp_path):
    with pytest.raises(RecordFault, match=r"no run\.json"):
        write_notes(tmp_path, Notes("x"))
    (tmp_path / NOTES).write_text("{")
    with pytest.raises(RecordFault, match="is corrupt"):
        read_notes(tmp_path)
    (tmp_path / NOTES).write_text(json.dumps({"schema": {"name": "notes", "version": 2}}))
    with pytest.raises(NewerSchema):
        read_notes(tmp_path)
