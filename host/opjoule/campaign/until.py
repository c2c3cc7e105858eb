"""What `until` of a campaign asks for."""

from dataclasses import dataclass
from typing import Final

BLOCKS_LIMIT: Final = 30
"""Greatest number of blocks of a campaign with `until` that names none."""


@dataclass(frozen=True)
class UntilNarrow:
    """The interval that a campaign's contrasts are to reach, and how many blocks that may take."""

    half_width: float
    """Greatest half-width of every contrast's interval, relative to its ratio."""
    blocks_limit: int = BLOCKS_LIMIT
