"""The page on analysis in Python says what its own code prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "how-to" / "analyse-in-python.md"
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def printed(page):
    """(expected, printed) of each block of a page, run one after the other as in a notebook."""
    names = {"__name__": "page"}
    for number, (code, expected) in enumerate(BLOCK.findall(page), 1):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"block {number}", "exec"), names)
        yield expected, out.getvalue()


def test_every_block_prints_what_stands_under_it(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = PAGE.read_text()
    blocks = list(printed(text))
    assert len(blocks) == text.count("```python") >= 7, "each block has its output"
    for expected, said in blocks:
        assert said == expected and said


def test_a_block_that_fails_fails_the_test():
    with pytest.raises(ZeroDivisionError):
        list(printed("```python\n1 / 0\n```\n\n```text\n```"))
