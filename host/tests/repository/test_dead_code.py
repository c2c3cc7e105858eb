"""Nothing is left in the repository that nothing calls. Fields are not looked at: files hold them for other readers."""

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
import vulture

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = tuple(str(path.relative_to(ROOT)) for path in ROOT.glob("host/*.py"))
PRODUCT = (
    "host/opjoule",
    "host/bench",
    "host/validation",
    *SCRIPTS,
    "studies",
    "firmware",
    "loader-cpp",
    "fuzz",
    "docs",
)
KINDS = {"function", "method", "property", "class", "import", "unreachable_code"}
ALLOWED = {
    "host/opjoule/cli/* run_*": "cli/commands.py calls it by the command's name",
    "host/opjoule/__init__.py __getattr__": "Python calls it",
    "* __init_subclass__": "Python calls it",
    "* _missing_": "enum calls it",
    "studies/s4/* q[12]*": "studies/s4/job.py calls it by the query's name",
    "* do_GET": "http.server calls it",
    "* do_POST": "http.server calls it",
    "* log_message": "http.server calls it",
    "* server_bind": "socketserver calls it",
    "* handle_*": "html.parser calls it",
    "host/tests/*conftest.py *": "pytest calls it",
    "host/validation/monsoon_backend.py *": "pyusb calls the methods of a backend",
    "host/tests/support/software_usb.py *": "pyusb calls the methods of a backend",
    "host/tests/support/made_mongod.py _*": "called by the command's name",
}
"""File and name, with the reason why a search for calls does not find them."""
FIXTURES = ["@pytest.fixture", "@CASES.*"]
"""Whose functions pytest and the table of cases call."""


@cache
def unused():
    """`FILE NAME` of everything that nothing calls: first without the tests, then with them."""
    search = vulture.Vulture(ignore_decorators=FIXTURES)
    return names_left(search, PRODUCT), names_left(search, ("host/tests",))


def names_left(search, paths):
    """Adds these paths to what is searched."""
    search.scavenge([str(ROOT / path) for path in paths], exclude=["*/platformio/libraries/*"])
    return [
        f"{Path(item.filename).relative_to(ROOT)} {item.name}"
        for item in search.get_unused_code(min_confidence=60)
        if item.typ in KINDS
    ]


@pytest.mark.slow
@pytest.mark.parametrize("with_tests", [False, True], ids=["product", "all"])
def test_everything_has_a_caller(with_tests):
    """A test alone is no caller of the product."""
    left = unused()[with_tests]
    assert [name for name in left if not any(fnmatchcase(name, pattern) for pattern in ALLOWED)] == []


def test_every_exception_is_one():
    names = {name for left in unused() for name in left}
    assert [pattern for pattern in ALLOWED if not any(fnmatchcase(name, pattern) for name in names)] == []


def test_a_function_without_a_caller_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "a.py").write_text("def called():\n    pass\n\n\ndef left():\n    pass\n\n\ncalled()\n")
    assert names_left(vulture.Vulture(), ("a.py",)) == ["a.py left"]
