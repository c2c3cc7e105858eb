"""No code looks into words that the program itself made: a notice's kind and fields tell a program all."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MADE = {"line", "text", "remedy", "sentence", "title", "mark", "words", "detail", "advice", "reason", "problem", "why"}
"""Fields of notices, findings, verdicts and missing values that hold words."""
NAMES = {"fault", "faults", "notice", "warning", "reason", "banner"}
"""Variables that hold such words."""
CUTS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "find", "index"}
SEARCHES = {"search", "match", "fullmatch", "sub", "findall"}
ALLOWED = {
    "host/opjoule/base/notices.py: self.text.partition": "a path at the beginning gets no capital",
    "host/opjoule/meters/serial/ready_flag.py: 'i2c_held' in faults": "counters of the firmware, by name",
}
"""Place -> reason."""


def own_words(of: ast.expr) -> bool:
    """Whether an expression holds words that the program made."""
    if isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute) and of.func.attr in ("lower", "upper", "strip"):
        return own_words(of.func.value)
    if isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id == "str" and of.args:
        return isinstance(of.args[0], ast.Name) and of.args[0].id in ("notice", "warning")
    if isinstance(of, ast.Attribute):
        return of.attr in MADE
    return isinstance(of, ast.Name) and of.id in NAMES


def looks(tree: ast.AST) -> Iterator[str]:
    """Every place of a module at which it tests or cuts such words."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            cuts = node.func.attr in CUTS and own_words(node.func.value)
            if cuts or (node.func.attr in SEARCHES and any(map(own_words, node.args))):
                yield ast.unparse(node.func)
        elif isinstance(node, ast.Compare) and " in " in ast.unparse(node):
            is_text = isinstance(node.left, ast.Constant | ast.JoinedStr) or ast.unparse(node.left).isupper()
            if is_text and own_words(node.comparators[0]):
                yield ast.unparse(node)


def test_no_module_tests_or_cuts_words_that_the_program_made() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {place}"
        for folder in ("host/opjoule", "studies")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for place in looks(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert [place for place in found if place not in ALLOWED] == []
    assert [place for place in ALLOWED if place not in found] == [], "no longer needed"


@pytest.mark.parametrize(
    "code",
    [
        "INTERRUPTED in fault",
        "'too short' in notice.line",
        "warning.text.startswith('busy')",
        "state.words.removeprefix('missing: ')",
        "re.sub('[0-9]', '#', banner.text)",
        "'waited' in line.text.lower()",
    ],
)
def test_such_places_are_found(code: str) -> None:
    assert list(looks(ast.parse(code)))
