"""Each golden screen is compared by one test, and no test names a screen that is not there."""

import ast
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_each_golden_screen_is_compared_by_one_test() -> None:
    named: Counter[str] = Counter()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "golden":
                named[ast.literal_eval(node.args[0])] += 1
    assert named == Counter(path.stem for path in (TESTS / "golden").iterdir())
