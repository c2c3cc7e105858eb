"""Functions of the product stay small enough to be read in one go; run as a script, it lists the longest, and files."""

import ast
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).resolve().parents[3]
TYPICAL_FUNCTION = range(5, 15)
"""Lines of the median one."""
LONG_FUNCTION = 30
"""Lines that nine of ten do not exceed."""
LONGEST_FUNCTION = 70
PLACES = (
    "host/*.py",
    "host/opjoule/**/*.py",
    "host/bench/*.py",
    "host/validation/*.py",
    "studies/**/*.py",
    "firmware/**/*.py",
    "loader-cpp/**/*.py",
)
FILES = sorted(
    path for place in PLACES for path in ROOT.glob(place) if ".pio" not in path.parts and path.name != "__init__.py"
)


def file_lines():
    """File -> its lines."""
    return {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in FILES}


def function_lines():
    """File and function -> its lines."""
    return {
        f"{path.relative_to(ROOT)} {node.name}": node.end_lineno - node.lineno + 1
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def longest(lines, count=10):
    """The longest, one a line."""
    return "\n".join(f"{lines[name]:5} {name}" for name in sorted(lines, key=lines.get, reverse=True)[:count])


@pytest.mark.slow
def test_a_typical_function_does_one_thing_and_nine_of_ten_are_not_long():
    lines = function_lines()
    assert round(median(lines.values())) in TYPICAL_FUNCTION
    assert quantiles(lines.values(), n=10)[-1] <= LONG_FUNCTION, f"the longest are\n{longest(lines)}"


@pytest.mark.slow
def test_no_function_is_longer_than_a_page():
    assert {name: lines for name, lines in function_lines().items() if lines > LONGEST_FUNCTION} == {}


if __name__ == "__main__":
    files = file_lines()
    print(
        f"{len(files)} files, median {median(files.values()):.0f} lines",
        longest(files),
        longest(function_lines()),
        sep="\n\n",
    )
