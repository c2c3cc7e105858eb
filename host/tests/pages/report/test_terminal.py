"""What is printed to a terminal: colours only where they are wanted."""

import io

import pytest
from opjoule.base.terminal import terminal


@pytest.mark.parametrize(("no_color", "has_codes"), [("1", False), ("", True)])
def test_no_color_leaves_no_escape_codes(monkeypatch, no_color, has_codes):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    out = io.StringIO()
    terminal(file=out).print("sum", style="bold red")
    assert ("\x1b" in out.getvalue()) == has_codes
