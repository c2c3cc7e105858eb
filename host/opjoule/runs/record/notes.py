"""notes.json: the user's notes on a run. It may change after the run has ended; no figure depends on it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from opjoule.base.errors import BadInput, RecordFault
from opjoule.runs.record.directory import check_files
from opjoule.runs.record.json_file import Schema, as_value, plain, read_json, write_json

NOTES: Final = "notes.json"
NOTES_SCHEMA: Final = Schema("notes", 1)
LONGEST: Final = 2000
"""Maximum number of characters of a note."""
_TAG: Final = re.compile(r"[^\W_][\w.:/+-]{0,39}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Notes(Struct, frozen=True):
    """A line of text and tags; empty if the user wrote none."""

    text: str = ""
    tags: tuple[str, ...] = ()
    """In alphabetical order, each once."""

    def tagged(self, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Notes:
        """The notes with other tags. Raises: BadInput: a tag has characters that a tag cannot have."""
        added = list(add)
        for tag in added:
            if not _TAG.fullmatch(tag):
                raise BadInput(
                    f"tag '{tag:.60}': a tag begins with a letter or digit, has at most 40 characters, and contains "
                    "only letters, digits and _ . : / + -"
                )
        return Notes(self.text, tuple(sorted({*self.tags, *added} - {*remove})))

    def saying(self, text: str) -> Notes:
        """The notes with another text, on one line and stripped. Raises: BadInput: it is too long."""
        line = _CONTROL.sub(" ", text).strip()
        if len(line) > LONGEST:
            raise BadInput(f"a note has at most {LONGEST} characters, this one has {len(line)}")
        return Notes(line, self.tags)


NO_NOTES: Final = Notes()


def read_notes(directory: Path) -> Notes:
    """The notes of a record; empty notes if there is no file. Raises: RecordFault: the file is corrupt."""
    path = directory / NOTES
    try:
        return as_value(read_json(path, NOTES_SCHEMA), Notes, path)
    except FileNotFoundError:
        return NO_NOTES


def write_notes(directory: Path, notes: Notes) -> None:
    """Replaces the notes of a record; empty notes remove the file.

    Raises: RecordFault: this is no record. OSError: it cannot be written.
    """
    check_files(directory)
    if not (directory / "run.json").is_file():
        raise RecordFault(f"{directory} is not a run record: it has no run.json")
    if notes == NO_NOTES:
        (directory / NOTES).unlink(missing_ok=True)
        return
    write_json(directory / NOTES, {"schema": plain(NOTES_SCHEMA), **plain(notes)})
