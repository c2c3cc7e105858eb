"""Whether a directory holds runs in several conditions, told without loading what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

INDEX: Final = "conditions.json"
MEDIA_INDEX: Final = "media.json"
"""Before conditions could differ in more than their medium; versions 1 and 2."""


def has_index(directory: Path) -> bool:
    """Does it hold runs in several conditions, rather than one record?"""
    return any((directory / name).exists() for name in (INDEX, MEDIA_INDEX))
