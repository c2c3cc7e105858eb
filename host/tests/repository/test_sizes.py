"""Product files and functions stay small enough to be read in one go."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILE_LINES, FUNCTION_LINES = 350, 60
PLACES = (
    "host/*.py",
    "host/opjoule/**/*.py",
    "host/bench/*.py",
    "host/validation/*.py",
    "studies/**/*.py",
    "firmware/**/*.py",
    "loader-cpp/**/*.py",
)
EXCEPTIONS = {
    "host/opjoule/meters/messages.py": "generated from firmware/protocol/messages.toml",
    "loader-cpp/bench/run.py": "a script of its own, which writes one page from top to bottom",
}
"""File, or file and function -> why it may be longer."""
FILES = sorted(
    {path.relative_to(ROOT) for place in PLACES for path in ROOT.glob(place) if ".pio" not in path.parts}
)


def long_ones():
    """Each file and function that is over its limit, with its lines."""
    found = {}
    for file in FILES:
        source = (ROOT / file).read_text(encoding="utf-8")
        if (lines := source.count("\n")) > FILE_LINES:
            found[str(file)] = lines
        for node in ast.walk(ast.parse(source)):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and (lines := node.end_lineno - node.lineno + 1) > FUNCTION_LINES:
                found[f"{file} {node.name}"] = lines
    return found


def test_files_and_functions_are_within_their_limits_or_have_a_reason():
    assert len(FILES) > 200
    found = long_ones()
    assert {name: lines for name, lines in found.items() if name not in EXCEPTIONS} == {}
    assert [name for name in EXCEPTIONS if name not in found] == [], "no longer needed"
