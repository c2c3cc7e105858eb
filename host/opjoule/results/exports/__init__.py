"""Formats of other programs, each a module of this folder.

Its name is the option of `runs.py export`, the first line of its docstring the option's help, and its
`write(run, path)` yields a line on each thing that it wrote or lacked.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path


def formats() -> dict[str, str]:
    """Name of each format -> its help. No module is loaded."""
    modules = sorted(Path(__file__).parent.glob("[!_]*.py"))
    firsts = {path.stem: path.read_text(encoding="utf-8").split('"""')[1].splitlines()[0] for path in modules}
    return {name: f"write {first[:1].lower()}{first[1:].rstrip('.')}" for name, first in firsts.items()}


def writer(name: str) -> Callable[..., Iterable[str]]:
    """The `write` of a format."""
    written: Callable[..., Iterable[str]] = import_module(f"{__name__}.{name}").write
    return written
