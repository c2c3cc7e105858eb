"""Fresh roots: README's commands are read, not copied, and a result says what was seen."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import fresh_roots
import fresh_rows
import hosts_page
import minimal_roots
import native_compiler
import network_settings
import pytest
import readme_commands
from fresh_rows import ROWS, Step
from hosts_page import Counts, HostResult
from logged_commands import SetupError
from minimal_roots import MinimalRoot
from system_packages import names

ROOT = Path(__file__).resolve().parents[3]
PASSED = HostResult("Debian 12", "0123abcd", "2025-01-02", 1234, "", 0, 48, Counts(7, 0), Counts(4503, 0, 12))
NO_SETTINGS = network_settings.NetworkSettings({}, (), (), ())


# --- README's commands


@pytest.mark.parametrize(
    "page",
    [
        "# T\n\n    one --x 'a # b'   # a comment\n    ./test\n\ntext\n\n    later\n",
        "# T\n\n```sh\none --x 'a # b'   # a comment\n./test\n```\n\n    later\n",
        "# T\n\n```sh\n# a comment\none --x 'a # b'\n\n./test  # every test\n```\n",
    ],
)
def test_the_first_block_is_read_without_its_comments(page):
    page = page.replace("'a # b'", "'a#b'")
    assert readme_commands.first_commands(page) == ["one --x 'a#b'", "./test"]


@pytest.mark.parametrize("page", ["# T\n\ntext\n", "```\n# nothing\n```\n"])
def test_a_page_without_a_command_is_refused(page):
    with pytest.raises(ValueError, match="no code block"):
        readme_commands.first_commands(page)


def test_readme_asks_for_a_measurement_then_the_tests():
    first, *others = readme_commands.first_commands(readme_commands.README.read_text())
    assert first.startswith("host/measure.py --db ") and others == [readme_commands.TESTS]


def test_ci_runs_readmes_commands_in_readmes_order_up_to_the_first_that_fails(tmp_path):
    for path in (".ci/run", "host/readme_commands.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    for commands, printed, status in (
        (["echo one", "echo two"], "one\ntwo\n", 0),
        (["echo one; false", "echo two"], "one\n", 1),
        (["echo one", "echo two; exit 3"], "one\ntwo\n", 3),
    ):
        (tmp_path / "README.md").write_text("\n" + "".join(f"    {line}   # why\n" for line in commands))
        ended = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, check=False)
        assert (ended.stdout, ended.returncode) == (printed, status)


# --- rows


def test_each_debian_is_tried_as_root_with_sudo_on_arm64_and_after_an_earlier_commit():
    names = {row.name for row in ROWS}
    fresh = {f"{suite}-{kind}" for suite in ("bookworm", "trixie") for kind in ("root", "user", "arm64")}
    assert names == fresh | {"bookworm-from-0.1.0", "trixie-from-632d2d2c"}


@pytest.fixture
def readmes(monkeypatch):
    pages = {"new": ["measure new", "./test"], "7fe837f6": ["measure old", "./test"], "632d2d2c": ["measure"]}
    monkeypatch.setattr(fresh_rows, "readme_at", pages.__getitem__)


def test_a_user_runs_what_readme_says_then_installs_the_package(readmes):
    steps = fresh_rows.whole_steps("new")
    assert [(step.name, step.commit) for step in steps] == [
        ("command-1", "new"),
        ("tests", "new"),
        ("boards", ""),
        ("install", ""),
    ]
    assert [step.script for step in steps[:2]] == ["measure new", "./test"]
    assert not any(step.may_fail for step in steps)


def test_an_upgrade_runs_the_earlier_first_command_and_then_all_new_ones(readmes):
    steps = fresh_rows.upgrade_steps("7fe837f6")("new")
    assert [(step.script, step.commit, step.may_fail) for step in steps] == [
        ("measure old", "7fe837f6", True),
        ("measure new", "new", False),
        ("./test", "new", False),
    ]


def test_an_emulated_row_sets_up_what_readmes_first_command_needs(readmes):
    compiler, first, *others = fresh_rows.emulated_steps("new")
    assert compiler.name == "compiler"
    assert ".venv/bin/python - new <<" in first.script and first.name == "command-1"
    assert [step.name for step in others] == ["loader-tests", "record", "report"]


def test_only_a_root_whose_processor_is_emulated_borrows_a_compiler(monkeypatch):
    monkeypatch.setattr(minimal_roots.platform, "machine", lambda: "x86_64")
    assert not native_compiler.is_lendable(MinimalRoot("trixie", "amd64"))
    assert native_compiler.is_lendable(MinimalRoot("trixie", "arm64")) == bool(minimal_roots.emulation("arm64"))
    monkeypatch.setattr(minimal_roots.platform, "machine", lambda: "aarch64")
    assert not native_compiler.is_lendable(MinimalRoot("trixie", "arm64"))


def test_a_root_without_a_lender_keeps_its_own_compiler():
    ended = subprocess.run(["bash", "-c", native_compiler.LEND], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_commit_that_the_clone_lacks_is_named():
    with pytest.raises(ValueError, match="commit 0000000000 "):
        fresh_rows.readme_at("0000000000")


# --- results


OUTPUT = """Set-up: system packages
  loader and probe: done in 31.0 s
Set-up done in 48 s; later starts skip it.
   style | 4,600 tests collected in 3.20s
    host | 3 failed, 4503 passed, 12 skipped, 40 deselected, 1 warning, 2 errors in 600.12s (0:10:00)
1 failed, 2 passed in 3.0s
-- host FAILED after 611 s: pytest
parts failed: host
6 passed, 1 failed
"""


def test_seconds_parts_and_tests_are_read_from_an_output():
    assert hosts_page.set_up_seconds(OUTPUT) == 48
    assert hosts_page.part_counts(OUTPUT) == Counts(6, 1)
    assert hosts_page.test_counts(OUTPUT) == Counts(4503, 5, 12)


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("4503 passed in 600.12s (0:10:00)", Counts(4503, 0)),
        ("======= 1 failed, 2 passed, 3 xfailed in 0.12s =======", Counts(2, 1)),
        ("[doctest] test cases:  310 |  308 passed | 2 failed | 40 skipped", Counts(308, 2, 40)),
        ("no tests ran in 0.01s", None),
        ("7 passed, 0 failed", None),
    ],
)
def test_the_closing_lines_of_pytest_and_doctest_are_understood(line, counts):
    assert hosts_page.test_counts(f"something\n{line}\nmore\n") == counts


def test_an_output_that_broke_off_has_no_figures():
    cut = OUTPUT.split("Set-up done", maxsplit=1)[0]
    assert hosts_page.set_up_seconds(cut) is None
    assert hosts_page.part_counts(cut) is None and hosts_page.test_counts(cut) is None


def test_a_step_adds_its_figures_and_a_failure_its_name():
    begun = HostResult("h", "c", "d", 0)
    after = fresh_roots.noted(begun, Step("command-1", "", ""), 0, OUTPUT)
    assert (after.first_status, after.set_up_s, after.failed) == (0, 48, "")
    after = fresh_roots.noted(after, Step("tests", "", ""), 1, OUTPUT)
    assert (after.parts, after.tests, after.failed) == (Counts(6, 1), Counts(4503, 5, 12), "tests")
    assert fresh_roots.noted(begun, Step("earlier", "", "", may_fail=True), 1, OUTPUT) == begun


def cells(table, name):
    [line] = [line for line in table.splitlines() if line.startswith(f"| `{name}` |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_has_every_row_and_one_without_a_result_is_not_run():
    rows = [("a", "Debian 12"), ("b", "Debian 13"), ("c", "Debian 13 arm64")]
    failed = replace(PASSED, failed="command-1", first_status=1, set_up_s=None, parts=None, tests=None)
    table = hosts_page.hosts_table(rows, {"a": PASSED, "c": failed, "gone": PASSED})
    assert {line.count("|") for line in table.splitlines()} == {11}
    figures = ["passed", "48", "0", "7 / 0", "4,503 / 0 / 12", "1,234", "2025-01-02", "`0123abcd`"]
    assert cells(table, "a") == ["`a`", "Debian 12", *figures]
    assert cells(table, "b")[2:] == ["not run", *[""] * 7]
    assert cells(table, "c")[2:7] == ["failed: command-1", "-", "1", "-", "-"]
    assert "gone" not in table


def test_the_page_has_a_line_for_each_row_and_is_written_between_its_marks():
    page = hosts_page.PAGE.read_text()
    named = re.findall(r"^\| `([\w.-]+)` \|", page, re.MULTILINE)
    assert named == [row.name for row in ROWS]
    changed = hosts_page.renewed(page, "| new |\n")
    assert changed.split(hosts_page.START)[0] == page.split(hosts_page.START)[0]
    assert f"{hosts_page.START}\n| new |\n{hosts_page.END}" in changed
    with pytest.raises(ValueError, match=re.escape("hosts.md has no")):
        hosts_page.renewed("# no marks\n", "")


def test_results_are_kept_as_they_were(tmp_path):
    file = tmp_path / "fresh/table.json"
    results = {"a": PASSED, "b": HostResult("h", "c", "d", 3, failed="preparation")}
    hosts_page.write_results(results, file)
    assert hosts_page.read_results(file) == results
    assert [path.name for path in file.parent.iterdir()] == ["table.json"]
    assert hosts_page.read_results(tmp_path / "none.json") == {}


# --- running


@pytest.fixture
def results(tmp_path, monkeypatch):
    """No root is made: a row's result comes from the test."""
    file = tmp_path / "table.json"
    monkeypatch.setattr(fresh_roots, "FRESH", tmp_path)
    monkeypatch.setattr(fresh_roots, "committed_head", lambda: "0123abcd" * 5)
    monkeypatch.setattr(fresh_roots, "install_sections", lambda required, optional, log: {})
    monkeypatch.setattr(fresh_roots, "check_space", lambda: None)
    monkeypatch.setattr(fresh_roots, "read_results", lambda: hosts_page.read_results(file))
    monkeypatch.setattr(fresh_roots, "write_results", lambda found: hosts_page.write_results(found, file))
    return file


def test_a_row_that_is_interrupted_is_not_run_even_if_it_passed_before(results, monkeypatch):
    first, second, *_ = ROWS
    hosts_page.write_results({first.name: PASSED, second.name: PASSED}, results)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fresh_roots, "run_row", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fresh_roots.run_rows([first], "mirror")
    assert set(hosts_page.read_results(results)) == {second.name}


def test_a_row_that_cannot_begin_fails_and_the_others_go_on(results, monkeypatch):
    def run_row(row, *_):
        if row is ROWS[0]:
            raise SetupError("no packages")
        return PASSED

    monkeypatch.setattr(fresh_roots, "run_row", run_row)
    assert fresh_roots.run_rows(ROWS[:2], "mirror") == [ROWS[0].name]
    stored = hosts_page.read_results(results)
    assert [stored[row.name].failed for row in ROWS[:2]] == ["preparation", ""]


def test_a_run_that_was_to_end_early_is_no_result(results, monkeypatch):
    monkeypatch.setattr(fresh_roots, "run_row", lambda *_: PASSED)
    assert fresh_roots.run_rows(ROWS[:1], "mirror", "command-1") == []
    assert hosts_page.read_results(results) == {}


def test_a_command_that_is_interrupted_leaves_no_process(tmp_path, monkeypatch):
    """Its child, which prints its number, belongs to its group."""
    monkeypatch.setattr(fresh_roots, "PROGRESS_S", 0.05)
    log = tmp_path / "log"

    def interrupt_once_it_runs(line):
        if log.read_text().strip():
            raise KeyboardInterrupt

    monkeypatch.setattr(fresh_roots, "say", interrupt_once_it_runs)
    with log.open("wb") as sink, pytest.raises(KeyboardInterrupt):
        fresh_roots.waited_for(["sh", "-c", "sleep 3600 & echo $!; wait"], sink.fileno(), "title", log)
    child = int(log.read_text())
    deadline_s = time.monotonic() + 30
    while Path(f"/proc/{child}").exists() and state_of(child) != "Z":
        assert time.monotonic() < deadline_s


def state_of(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_only_root_can_run_it_and_one_line_says_so(monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert fresh_roots.main(["--only", ROWS[0].name]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("fresh_roots.py: ") and "sudo" in line


def test_a_disk_that_is_too_full_is_named_with_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(fresh_roots, "FRESH", tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10**10, 9 * 10**9, 10**9))
    with pytest.raises(SetupError, match=r"1\.0 GB free; .* 8 GB"):
        fresh_roots.check_space()


def test_list_names_every_row_without_root(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(fresh_roots, "read_results", lambda: {ROWS[1].name: replace(PASSED, failed="tests")})
    assert fresh_roots.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [row.name for row in ROWS]
    assert lines[0].endswith("not run") and lines[1].endswith("failed: tests")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a clone to another user")
def test_a_root_gets_a_clone_of_one_that_belongs_to_a_user_and_its_own_user_owns_it(tmp_path, monkeypatch):
    mine, clone = tmp_path / "mine", tmp_path / "fresh/run/bookworm-user/home/user/OpJoule"
    commit = ["git", "-c", "user.name=N", "-c", "user.email=E", "commit", "-qm", "first", "--allow-empty"]
    subprocess.run(["git", "init", "-q", mine], check=True)
    subprocess.run(commit, cwd=mine, check=True)
    subprocess.run(["chown", "-R", "1234:1234", mine], check=True)
    clone.parent.mkdir(parents=True)
    os.chown(clone.parent, 2345, 3456)
    monkeypatch.setattr(fresh_roots, "ROOT", mine)
    monkeypatch.setattr(fresh_roots, "FRESH", tmp_path / "fresh")
    [row] = [row for row in ROWS if row.name == "bookworm-user"]
    running = fresh_roots.FreshRun(row, fresh_roots.committed_head(), NO_SETTINGS)
    running.logs.mkdir()
    running.make_clone()
    running.check_out(running.commit)
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in (clone, *clone.rglob("*"))}
    assert owners == {(2345, 3456)}


# --- documentation


def test_contributing_lists_it_and_its_programs_are_listed_packages():
    assert "| `./test fresh` |" in (ROOT / "CONTRIBUTING.md").read_text()
    listed = set(names("fresh"))
    assert {"mmdebstrap", "debian-archive-keyring", "qemu-user-static", "zstd"} <= listed


def test_help_teaches_each_option():
    ended = subprocess.run(
        [sys.executable, ROOT / "host/fresh_roots.py", "--help"], capture_output=True, text=True, check=True
    )
    for word in ("--only", "--list", "--table", "--enter", "--until", "build/fresh", "14 days"):
        assert word in ended.stdout
