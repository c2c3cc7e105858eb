"""The medium's key in commands and files, `storage`, is spelt in base/settings.py; all other code says medium."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "opjoule"
OPTIONS = {"storage", "storage_meter"}
"""Options of commands, whose fields in cli/ have their names."""


def spelt(source: str, allowed: set[str]) -> Iterator[str]:
    """Names and keys that hold the word; a sentence or an example is neither."""
    for node in ast.walk(ast.parse(source)):
        known = ""
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                known = "" if name in allowed else name
            case ast.ClassDef(name=name):
                known = name
            case ast.Constant(value=str(text)) if text.replace(".", "_").isidentifier():
                known = text
        if "storage" in known.lower():
            yield known


@pytest.mark.parametrize("source", ['run["storage"]', "found.storage_sensor", "def _storage(): ...", '"found.storage"'])
def test_a_spelt_key_is_found(source):
    """The check sees keys, paths of keys and names."""
    assert [*spelt(source, OPTIONS)]


def test_the_mediums_key_is_spelt_in_one_module():
    """Users' files keep their key, and a reader of the code meets one word."""
    modules = {path.relative_to(SOURCES).as_posix(): path.read_text() for path in sorted(SOURCES.rglob("*.py"))}
    found = {name: [*spelt(text, OPTIONS if name.startswith("cli/") else set())] for name, text in modules.items()}
    assert {name: words for name, words in found.items() if words} == {"base/settings.py": ["storage"]}
