"""Shell scripts that run on a board."""

from pathlib import Path


def script(name: str) -> str:
    """The text of a script, by its file name."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
