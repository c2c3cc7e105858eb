#!/usr/bin/env python3
"""Runs README's commands as a new user would, in fresh minimal Debian roots: `./test fresh`, part of `./test --all`.

    sudo host/fresh_roots.py                                # every computer, one after the other
    sudo host/fresh_roots.py --only trixie-user             # one of them; --list names all
    sudo host/fresh_roots.py --enter trixie-user            # a shell in the root that a failure has left
    host/fresh_roots.py --table                             # writes the results into docs/reference/hosts.md

Each root is unpacked under build/fresh/run, gets a clone of the committed HEAD, and is removed once every command has
succeeded; after a failure it stays. Logs are under build/fresh/NAME. Of this computer, a root sees its network settings
alone. Minimal roots are made by mmdebstrap and kept under build/roots for 14 days. Uses only the standard library.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from fresh_rows import CLONE, GIT, ROWS, Row, Step
from hosts_page import (
    PAGE,
    HostResult,
    hosts_table,
    part_counts,
    read_results,
    renewed,
    set_up_seconds,
    test_counts,
    write_results,
)
from logged_commands import SetupError, logged, say
from minimal_roots import MIRROR, can_run, get_root, inside
from native_compiler import is_lendable, put_lender
from network_settings import NetworkSettings, network_settings
from plain_folder import ROOT
from system_packages import install_sections

FRESH: Final = ROOT / "build" / "fresh"
PROGRESS_S: Final = 60.0
LAST_LINES: Final = 20
NEEDED_BYTES: Final = 8_000_000_000
"""Free space for one row: Debian 13 with everything that ./test needs and builds takes about 6 GB."""
_READY: Final = """set -e
mkdir -p /etc/sudoers.d
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends sudo
useradd --create-home --shell /bin/bash user
echo 'user ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/user
"""


@dataclass
class FreshRun:
    """One row while it runs."""

    row: Row
    commit: str
    network: NetworkSettings
    started_s: float = field(default_factory=time.monotonic)

    @property
    def logs(self) -> Path:
        """Folder of the logs."""
        return FRESH / self.row.name

    @property
    def tree(self) -> Path:
        """The unpacked root."""
        return FRESH / "run" / self.row.name

    @property
    def clone(self) -> Path:
        """The clone, as this computer sees it."""
        return self.tree / self.row.home.lstrip("/") / CLONE

    def inside(self, script: str, user: str, folder: str) -> list[str]:
        """Command that runs a script in the root."""
        variables = self.network.variables
        return inside(self.tree, self.row.root, script, user=user, folder=folder, variables=variables)

    def prepare(self) -> None:
        """Unpacks the root; makes its user and the clone. Raises: SetupError: one of these failed."""
        log = self.logs / "prepare.log"
        self.row.root.unpack(self.tree, log)
        (self.tree / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n127.0.1.1 fresh-root\n")
        (self.tree / "etc/hostname").write_text("fresh-root\n")
        self.network.write(self.tree, "/root")
        if self.row.user != "root":
            logged(self.inside(_READY, "root", "/"), log)
            self.network.write(self.tree, self.row.home)
        if is_lendable(self.row.root):
            put_lender(self.tree, self.row.root, self.network, log)
        self.make_clone()

    def make_clone(self) -> None:
        """Clones this clone, whoever owns it, into the user's home folder. Raises: SetupError: git failed."""
        served = ("--no-local", f"--upload-pack={shlex.join(GIT)} upload-pack")
        logged([*GIT, "clone", "--quiet", *served, str(ROOT), str(self.clone)], self.logs / "prepare.log")
        self.give_to_user()

    def check_out(self, commit: str) -> None:
        """Moves the clone to a commit, as `git pull` would. Raises: SetupError: git failed."""
        logged([*GIT, "-C", str(self.clone), "checkout", "--quiet", commit], self.logs / "prepare.log")
        self.give_to_user()

    def give_to_user(self) -> None:
        """Makes the user the owner of everything in the home folder."""
        home = self.tree / self.row.home.lstrip("/")
        owner = home.stat()
        for folder, folders, files in os.walk(home):
            for name in (*folders, *files):
                os.chown(Path(folder) / name, owner.st_uid, owner.st_gid, follow_symlinks=False)

    def steps(self, until: str) -> HostResult:
        """Runs the steps up to the first that fails, or to the one named `until`."""
        result = HostResult(self.row.about, self.commit[:8], date.today().isoformat(), 0)
        for step in self.row.steps(self.commit):
            if step.commit:
                self.check_out(step.commit)
            status = self.run(step)
            output = (self.logs / f"{step.name}.log").read_text(errors="replace")
            result = noted(result, step, status, output)
            if result.failed or step.name == until:
                break
        return replace(result, seconds=round(time.monotonic() - self.started_s))

    def run(self, step: Step) -> int:
        """Exit status of a step, which writes to a log of its own."""
        log = self.logs / f"{step.name}.log"
        started_s = time.monotonic()
        say(f"{self.row.name}: {step.about} ({log.relative_to(ROOT)})")
        command = self.inside(step.script, self.row.user, f"{self.row.home}/{CLONE}")
        with log.open("wb") as sink:
            status = waited_for(command, sink.fileno(), f"{self.row.name}: {step.name}", log)
        took_s = time.monotonic() - started_s
        say(f"{self.row.name}: {step.name} {'done' if status == 0 else f'exits with {status}'} after {took_s:.0f} s")
        if status and not step.may_fail:
            say("".join(f"    {line}\n" for line in last_lines(log, LAST_LINES)).rstrip("\n"))
        return status


def noted(result: HostResult, step: Step, status: int, output: str) -> HostResult:
    """A result with what one step's exit status and output add to it."""
    if step.may_fail:
        return result
    if step.name == "command-1":
        result = replace(result, first_status=status, set_up_s=set_up_seconds(output))
    if step.name in {"tests", "loader-tests"}:
        result = replace(result, parts=part_counts(output), tests=test_counts(output))
    return replace(result, failed=step.name if status else "")


def waited_for(command: Sequence[str], sink: int, title: str, log: Path) -> int:
    """Exit status of a command; says every minute how long it has run and what its last line is."""
    started_s = time.monotonic()
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True)
    try:
        while True:
            try:
                return running.wait(PROGRESS_S)
            except subprocess.TimeoutExpired:
                line = "".join(last_lines(log, 1))[:100]
                say(f"{title}: {(time.monotonic() - started_s) / 60:.0f} min: {line}")
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def last_lines(log: Path, count: int) -> list[str]:
    """The last lines of a log that say anything."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 20_000))
        text = file.read().decode(errors="replace")
    return [line for line in text.splitlines() if line.strip()][-count:]


def run_row(row: Row, commit: str, network: NetworkSettings, mirror: str, until: str) -> HostResult:
    """Runs a row from nothing, to the step named `until` at most. The root stays if a step failed."""
    running = FreshRun(row, commit, network)
    shutil.rmtree(running.logs, ignore_errors=True)
    running.logs.mkdir(parents=True)
    say(f"{row.name}: {row.about}")
    try:
        get_root(row.root, running.logs / "root.log", network, mirror)
        running.started_s = time.monotonic()
        running.prepare()
        result = running.steps(until)
    except BaseException:
        shutil.rmtree(running.tree, ignore_errors=True)
        raise
    if result.failed:
        say(f"{row.name}: FAILED in {result.failed}; look around with: sudo host/fresh_roots.py --enter {row.name}")
    else:
        shutil.rmtree(running.tree)
        say(f"{row.name}: {f'passed up to {until}' if until else 'passed'} in {result.seconds} s")
    return result


def run_rows(rows: Sequence[Row], mirror: str, until: str = "") -> list[str]:
    """Runs rows one after the other, and stores each result; the names of those that failed.

    Args: until: name of a step after which a row ends, without a result; empty: all steps.
    Raises: SetupError: this computer cannot run them.
    """
    commit = committed_head()
    network, failed = network_settings(), []
    install_sections(["fresh"], [], FRESH / "packages.log")
    for row in rows:
        write_results({name: result for name, result in read_results().items() if name != row.name})
        check_space()
        try:
            result = run_row(row, commit, network, mirror, until)
        except SetupError as error:
            say(f"{row.name}: FAILED before its first command: {error}")
            result = HostResult(row.about, commit[:8], date.today().isoformat(), 0, failed="preparation")
        if result.failed or not until:
            write_results({**read_results(), row.name: result})
        failed += [row.name] if result.failed else []
    return failed


def committed_head() -> str:
    """The commit to try. Says if the working folder differs from it. Raises: SetupError: this is no clone."""
    git = [*GIT, "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode:
        raise SetupError(f"{ROOT} is not a clone, and a fresh root gets a clone of it: {head.stderr.strip()}")
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False)
    if count := len(changed.stdout.splitlines()):
        say(f"{count} changed files are not committed, and are not tried")
    return head.stdout.strip()


def check_space() -> None:
    """Raises: SetupError: the disk has no room for a root."""
    free = shutil.disk_usage(FRESH).free
    if free < NEEDED_BYTES:
        raise SetupError(
            f"{FRESH} has {free / 1e9:.1f} GB free; a root needs {NEEDED_BYTES / 1e9:.0f} GB. Roots that failures left "
            f"are in {FRESH / 'run'}: remove those that you have looked at"
        )


@contextmanager
def alone() -> Iterator[None]:
    """Raises: SetupError: another process runs fresh roots in this folder."""
    FRESH.mkdir(parents=True, exist_ok=True)
    with (FRESH / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SetupError("fresh roots are running in this folder already") from None
        yield


def enter(row: Row) -> NoReturn:
    """A shell of the row's user in the root that a failure has left. Raises: SetupError: there is none."""
    running = FreshRun(row, "", network_settings())
    if not running.tree.is_dir():
        raise SetupError(f"{row.name} has left no root: it passed, or has not run")
    command = running.inside("TERM=linux exec bash -i", row.user, f"{row.home}/{CLONE}")
    os.execvp(command[0], command)


def write_page() -> None:
    """Writes the results into the page of docs."""
    table = hosts_table([(row.name, row.about) for row in ROWS], read_results())
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
    say(f"{PAGE.relative_to(ROOT)} is written")


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The options; a mistake ends the program with status 2 and one line."""
    about, _, more = (__doc__ or "").partition("\n\n")
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(
        prog="fresh_roots.py",
        description=about,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", action="extend", nargs="+", choices=names, metavar="NAME", help="run these computers only"
    )
    parser.add_argument("--list", action="store_true", help="name every computer, and how it did last time")
    parser.add_argument("--table", action="store_true", help="write the results into docs/reference/hosts.md")
    parser.add_argument(
        "--enter", choices=names, metavar="NAME", help="open a shell in the root that a failure has left"
    )
    parser.add_argument(
        "--until",
        default="",
        metavar="STEP",
        help="end after this step (the name of its log), and store no result",
    )
    parser.add_argument("--mirror", default=MIRROR, metavar="URL", help="Debian's archive (default: %(default)s)")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> int:
    """What the options ask for. Raises: SetupError: this computer cannot do it."""
    if options.list:
        results = read_results()
        for row in ROWS:
            result = results.get(row.name)
            outcome = "not run" if result is None else f"failed: {result.failed}" if result.failed else "passed"
            print(f"{row.name:<30} {row.about:<50} {outcome}")
        return 0
    if options.table:
        write_page()
        return 0
    if os.geteuid() != 0:
        raise SetupError("only root can make and enter roots: start it with sudo")
    if options.enter:
        enter(next(row for row in ROWS if row.name == options.enter))
    chosen = [row for row in ROWS if not options.only or row.name in options.only]
    if unable := [row.name for row in chosen if not can_run(row.root.architecture)]:
        raise SetupError(f"this computer does not run amd64 programs; leave out {', '.join(unable)}")
    with alone():
        failed = run_rows(chosen, options.mirror, options.until)
    say(f"failed: {', '.join(failed)}" if failed else "none failed" if options.until else "every computer passed")
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    """Exit status 0 only if every computer passed."""
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        return run(parsed(arguments))
    except (SetupError, ValueError) as error:
        print(f"fresh_roots.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fresh_roots.py: interrupted; the roots are removed", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
