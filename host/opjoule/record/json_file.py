"""JSON files that are read as the record's own, and replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opjoule.errors import RecordFault
from opjoule.files import write_whole


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises: FileNotFoundError. RecordFault: it cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as fault:
        raise RecordFault(f"{path} cannot be read: {fault.strerror}") from None
    except (ValueError, RecursionError) as fault:
        raise RecordFault(f"{path} is corrupt: {str(fault).splitlines()[0]}") from None


def write_json(path: Path, contents: Mapping[str, Any]) -> None:
    """Replaces a JSON file as a whole: temporary file, fsync, rename, fsync of the directory."""
    # A name that is no UTF-8 becomes an escape, which JSON reads back.
    text = json.dumps(contents, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, text.encode("utf-8", errors="backslashreplace"))
