"""Whether a directory holds runs in several conditions, told without loading what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

INDEX: Final = "conditions.json"


def has_index(directory: Path) -> bool:
    """Does it hold runs in several conditions, rather than one record?"""
    return (directory / INDEX).exists()
