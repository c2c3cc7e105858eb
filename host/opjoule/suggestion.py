"""The nearest of the known names, for a name that is not among them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """ "did you mean '...'? " with the nearest of `known`, if its likeness (difflib's ratio) is no less."""
    near = difflib.get_close_matches(name, list(known), 1, likeness)
    return f"did you mean '{near[0]}'? " if near else ""


def unknown(thing: str, name: str, known: Iterable[str]) -> str:
    """One line for a name that is not in `known`: what it was, the nearest, and all."""
    names = list(known)
    listed = f"known are {', '.join(names)}" if names else "none is known"
    return f"unknown {thing} '{name}': {suggestion(name, names)}{listed}"
