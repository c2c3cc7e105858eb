"""The terminal that a program prints to."""

import os
from typing import Any

from rich.console import Console


def terminal(**more: Any) -> Console:
    """Console on stdout; text is printed as it is. With NO_COLOR it gets no escape codes. Source: no-color.org."""
    plain = False if os.environ.get("NO_COLOR") else None
    return Console(highlight=False, markup=False, force_terminal=plain, **more)
