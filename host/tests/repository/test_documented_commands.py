"""Commands of the pages: every one is found, has a place in the table, and fails the tests when it fails."""

import re
import subprocess
import sys
from pathlib import Path

import documented_commands as documented
import pytest
from documented_commands import Documented, Rule

ROOT = Path(__file__).resolve().parents[3]
PAGE = """
Prose with `host/view.py` in it, which is no command.

    host/runs.py list       # a comment
    host/measure.py --db sqlite --device rpi4
    loader alone    7.9 mJ   of a summary
    [meter]

```sh
$ host/runs.py verify
.venv/bin/python host/validate.py --trials 3
```

```python
host/runs.py no
```
"""


@pytest.fixture
def pages(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(PAGE)
    (tmp_path / "CONTRIBUTING.md").write_text("    ./test\n")
    (tmp_path / "docs" / "a.md").write_text("    host/runs.py list\n")
    return tmp_path


def test_a_command_is_a_line_of_a_block_and_is_run_once(pages):
    assert [command.line for command in documented.documented(pages)] == [
        "host/runs.py list",
        "host/measure.py --db sqlite --device rpi4",
        "host/runs.py verify",
        ".venv/bin/python host/validate.py --trials 3",
        "./test",
    ]


def test_the_pages_here_have_a_hundred_commands_and_every_rule_fits_one():
    rules, extra, _ = documented.read_rules()
    commands = [*documented.documented(), *extra]
    used = {documented.rule_of(command, rules).match for command in commands}
    assert len(commands) > 100
    assert [rule.match for rule in rules if rule.match not in used] == []


def test_no_command_is_skipped_that_says_simulate_but_those_of_minutes():
    rules, _, _ = documented.read_rules()
    skipped = {
        command.line
        for command in documented.documented()
        if "--simulate" in command.line and documented.rule_of(command, rules).skip
    }
    assert skipped == {"host/measure.py --db leveldb --device rpi4 --storage sd --simulate rpi4-sd"}


BENCHMARKS = sorted([*(ROOT / "host/bench").glob("*.py"), *(ROOT / "loader-cpp/bench").glob("*.py")])
LOADED = """
import runpy, sys
before = list(sys.path)
for script in sys.argv[1:]:
    sys.path[:] = [script.rpartition("/")[0], *before]
    runpy.run_path(script, run_name="benchmark")
"""


@pytest.mark.slow
def test_every_benchmark_finds_what_it_imports():
    """Those too that no command runs here, as they take a processor or an hour."""
    command = [sys.executable, "-c", LOADED, *map(str, BENCHMARKS)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr


def test_every_benchmark_is_run_or_built_by_a_command():
    _, extra, _ = documented.read_rules()
    commands = [*documented.documented(), *extra]
    run = " ".join(command.line for command in commands)
    modules = {"targets.py", "tools.py"}  # of run.py
    assert [file.name for file in BENCHMARKS if file.name not in modules and f"bench/{file.name}" not in run] == []
    assert re.search(r'"--target", "loader", "bare-loop"', (ROOT / "loader-cpp/bench/run.py").read_text())
    sources = [file.name for file in (ROOT / "firmware/bench").iterdir()]
    assert sources == ["library_pair.cpp"]
    assert "library_pair.cpp" in (ROOT / "host/bench/pair_cycles.py").read_text()


@pytest.mark.parametrize(
    ("line", "rule", "well"),
    [
        ("true", Rule(""), True),
        ("false", Rule(""), False),
        ("exit 130", Rule(""), False),
        ("false", Rule("", speed=True), True),
        ("exit 2", Rule("", speed=True), False),
        ("no-such-program", Rule("", speed=True), False),
        ("false | true; nothing", Rule(""), False),
        ("false", Rule("", replace=(("false", "true"),)), True),
        ("trap 'exit 3' TERM; echo up; while :; do sleep 0.1; done", Rule("", until="up"), False),
        ("trap 'exit 130' TERM; echo up; while :; do sleep 0.1; done", Rule("", until="up"), True),
    ],
)
def test_a_command_that_fails_is_reported_with_what_it_said(tmp_path, capsys, line, rule, well):
    assert documented.report(Documented("a.md", line), rule, tmp_path) is well
    said = capsys.readouterr().out
    assert ("FAIL" in said) is not well and f"a.md: {line}" in said


def test_the_first_rule_that_fits_counts():
    rules = [Rule("one", skip="no board"), Rule("o", add="--small")]
    assert documented.rule_of(Documented("", "one"), rules).skip == "no board"
    assert documented.rule_of(Documented("", "two"), rules).scaled("two") == "two --small"
    assert documented.rule_of(Documented("", "three"), rules) == Rule("")


def test_commands_run_where_the_repository_is_and_leave_nothing_in_it():
    with documented.scratch() as place:
        assert (place / "host/measure.py").exists() and (place / "runs/example/run.json").exists()
        assert not (place / "runs").is_symlink() and not (place / "rig.toml").exists()
    assert not place.exists()
