"""Suggestion of the most similar known name for an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """ "did you mean '...'? " with the most similar name in `known`, if its difflib ratio is at least `likeness`.

    Capitals do not count.
    """
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), list(by_lower), 1, likeness)
    return f"did you mean '{by_lower[near[0]]}'? " if near else ""


def unknown(thing: str, name: str, known: Iterable[str]) -> str:
    """Error message for a name that is not in `known`: the name, the most similar one, and all known names."""
    names = list(known)
    listed = f"known are {', '.join(names)}" if names else "none is known"
    return f"unknown {thing} '{name}': {suggestion(name, names)}{listed}"
