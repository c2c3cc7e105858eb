"""`./test`: sets up what the tests need, runs every part, and says which failed.

Uses the standard library alone; each part is an ordinary command that can be run by hand.
"""

from __future__ import annotations

import argparse
import codecs
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import bootstrap
from bootstrap import BUILD, ROOT

VENV = ROOT / ".venv" / "bin"
BOARD_BUILDS = str(ROOT / "loader-cpp/board-builds")
VIRTUAL_BOARD = (f"{VENV}/python", "-m", "opjoule.cli.start", "virtual-board", "build")
AS_ROOT = ("sudo", "--preserve-env") if os.geteuid() != 0 and shutil.which("sudo") else ()
LAST_LINES, LAST_LETTERS = 40, 20_000
SHELL_SCRIPTS = ("test", ".ci/run", "firmware/sim/rig-sim", "host/enter_root.sh")
AT_ONCE = 2
"""Parts that run side by side: one of them always waits for a download, a linker or its only test process."""
WITHOUT_THOROUGH = "not thorough"
"""The host tests without --all."""
NEEDS_NOTHING_LONG = f"not rig and not end_to_end and not board_builds and not slow and {WITHOUT_THOROUGH}"
"""The host tests of --quick."""
SILENCE_LIMIT_S = 1500.0
"""A command that says nothing for so long hangs, and is ended: no test and no compiler run takes half of it."""
_RUNNING: set[subprocess.Popen[bytes]] = set()


@dataclass(frozen=True)
class Part:
    """One part of the test suite: its commands run in order, the first failure ends the part.

    `again`: what runs when the last command failed. Only measurements of real engines in real time may fail where
    others take the processors; one that passes by itself is reported as unsteady.
    `alone`: it measures in real time, so it begins when all other parts have ended.
    `on_demand`: it runs with --all or by its name, and sets up by itself what it needs.
    """

    name: str
    about: str
    commands: tuple[tuple[str, ...], ...]
    again: tuple[str, ...] = ()
    alone: bool = False
    on_demand: bool = False


@dataclass(frozen=True)
class Outcome:
    """How one part ended. `failure`: the last lines of what failed, also where it passed the second time."""

    passed: bool
    failure: list[str]
    failed: tuple[str, ...] = ()
    """The last command that did."""


def cpp_sources() -> list[str]:
    """Every C++ file of the loader, the firmware and the fuzzers but the generated one."""
    sources = [path for top in ("loader-cpp", "firmware", "fuzz") for path in (ROOT / top).rglob("*")]
    wanted = (path for path in sources if path.suffix in {".cc", ".cpp", ".h"} and path.name != "messages.h")
    return sorted(str(path.relative_to(ROOT)) for path in wanted)


def board_scripts() -> list[str]:
    """The shell scripts that run on a board."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "host/opjoule").rglob("*.sh"))


def other_core_check() -> tuple[str, ...]:
    """Compiles the firmware on the Arduino framework as for another processor, against declarations alone."""
    firmware = ROOT / "firmware"
    folders = [
        firmware / "test/other_core",
        firmware / "platformio/libraries/adafruit_ina219/src",
        *firmware.glob("lib/*/src"),
    ]
    options = [*(f"-I{folder}" for folder in folders), "-DARDUINO=10819", "-DARDUINO_ARCH_ESP32"]
    sources = [*firmware.glob("src/arduino/*.cpp"), *firmware.glob("lib/*/src/*.cpp")]
    strict = ["-std=gnu++14", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    return ("g++", *strict, *options, *map(str, sorted(sources)))


def cpp_tests(source: str, name: str, target: str, sanitized: bool) -> tuple[tuple[str, ...], ...]:
    """Builds and runs one CMake project's tests.

    Args: sanitized: under address and undefined-behaviour sanitizers, in a build folder of its own; else in set-up's.
    """
    build = str(BUILD / (f"{name}-sanitize" if sanitized else name))
    options = ("-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DOPJOULE_SANITIZE=ON")
    configure = (("cmake", "-S", source, "-B", build, "-G", "Ninja", *options),) if sanitized else ()
    return (*configure, ("cmake", "--build", build, "--target", target), (f"{build}/{target}",))


def parts(everything: bool = False) -> list[Part]:
    """All parts, quick ones first; `everything`: also sanitizers, every board, and tests marked `thorough`."""
    boards = ((BOARD_BUILDS, "aarch64"),)
    tests, documents = ("-m", WITHOUT_THOROUGH), ()
    if everything:
        boards, tests, documents = (VIRTUAL_BOARD, (BOARD_BUILDS,)), (), ("--all",)
    return [
        Part(
            "style",
            "formatting, lint, types, layers, spelling, shell scripts, and that every test can be loaded",
            (
                (f"{VENV}/ruff", "format", "--check", "host", "firmware", "studies", "fuzz"),
                (f"{VENV}/ruff", "check", "host", "firmware", "studies", "fuzz"),
                (f"{VENV}/mypy",),
                (f"{VENV}/lint-imports",),
                (f"{VENV}/codespell",),
                (f"{VENV}/clang-format", "--dry-run", "--Werror", *cpp_sources()),
                ("shellcheck", "-S", "warning", *SHELL_SCRIPTS, *board_scripts()),
                # pytest stores the modules it has rewritten: else each of the four processes below rewrites all of them
                host_tests("--collect-only", "-q", "--no-summary"),
            ),
        ),
        Part(
            "loader",
            "the loader's and the probe's unit tests; with --all under sanitizers",
            cpp_tests("loader-cpp", "loader", "loader-tests", everything),
        ),
        Part(
            "boards",
            "the loader's builds for boards",
            boards,
        ),
        Part(
            "rig-sim",
            "the rig simulator's unit tests; with --all under sanitizers",
            cpp_tests("firmware/sim", "rig-sim", "rig-sim-tests", everything),
        ),
        Part(
            "firmware",
            "firmware logic on this computer, and what the firmware of each board takes",
            (
                (sys.executable, "firmware/platformio/run.py", "test", "-e", "native"),
                other_core_check(),
                (sys.executable, "firmware/platformio/sizes.py"),
            ),
        ),
        Part("documents", "documented commands", ((sys.executable, "host/documented_commands.py", *documents),)),
        Part(
            "host",
            "the host package, end to end through the simulated rig",
            (host_tests("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder", "--durations=30", *tests),),
            alone=True,
            again=host_tests(
                *("-n", "0", "--last-failed", "--last-failed-no-failures", "none", "-x", "--again", *tests),
            ),
        ),
        Part(
            "fresh",
            "README's commands in fresh Debian roots, as a new user runs them; only with --all or by name (hours)",
            ((*AS_ROOT, sys.executable, "host/fresh_roots.py"),),
            alone=True,
            on_demand=True,
        ),
    ]


def host_tests(*options: str) -> tuple[str, ...]:
    """A run of the host's tests. Four at a time on two cores: much of it waits for simulated hardware."""
    return (f"{VENV}/pytest", *options)


def quick_parts() -> list[Part]:
    """The parts of --quick: what needs no simulated rig, no real time and no build but those of set-up."""
    style, *_ = parts()
    host = Part(
        "host",
        "the host package, without rigs and boards",
        (host_tests("-n", "4", "--durations=10", "-m", NEEDS_NOTHING_LONG),),
    )
    return [style, host]


class Lines:
    """Shows output of parts that run side by side: whole lines, each with the name of its part."""

    _turn = threading.Lock()

    def __init__(self, name: str) -> None:
        self._name, self._rest = name, ""

    def show(self, text: str) -> None:
        """Takes the next piece of the output; an empty one is its end."""
        *lines, self._rest = (self._rest + text).split("\n")
        if not text and self._rest:
            lines, self._rest = [self._rest], ""
        with self._turn:
            print(*(f"{self._name:>8} | {line}\n" for line in lines), sep="", end="", flush=True)


def show_at_once(text: str) -> None:
    """Shows output of a part that runs by itself."""
    print(text, end="", flush=True)


def shown_while_running(
    command: tuple[str, ...], environment: dict[str, str], show: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Exit status of a command whose output is shown as it comes, and the last lines of that output.

    What a command has left behind is not waited for, though it may hold that output open.
    """
    decoder, said, heard_s = codecs.getincrementaldecoder("utf-8")("replace"), "", time.monotonic()
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as running:
        assert running.stdout
        _RUNNING.add(running)
        try:
            while True:
                ended = running.poll() is not None
                if select.select([running.stdout], [], [], 0 if ended else 0.5)[0]:
                    piece = os.read(running.stdout.fileno(), 1 << 16)
                    text, heard_s = decoder.decode(piece), time.monotonic()
                    show(text)
                    said = (said + text)[-LAST_LETTERS:]
                    if not piece:
                        break
                elif ended:
                    break
                elif time.monotonic() - heard_s > SILENCE_LIMIT_S:
                    said += f"\nit said nothing for {SILENCE_LIMIT_S:g} s, and was ended\n"
                    os.killpg(running.pid, signal.SIGKILL)
                    break
        except KeyboardInterrupt:
            os.killpg(running.pid, signal.SIGINT)
            running.wait(60)
            raise
        finally:
            _RUNNING.discard(running)
            show("")
    return running.returncode, said.splitlines(keepends=True)[-LAST_LINES:]


def run_part(part: Part, show: Callable[[str], None] = show_at_once) -> Outcome:
    """Runs one part's commands up to the first that fails."""
    started_s = time.monotonic()
    print(f"== {part.name}: {part.about}", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "host"), "PATH": f"{VENV}:{os.environ['PATH']}"}
    outcome = run_commands(part, environment, show)
    took = f"{time.monotonic() - started_s:.0f} s"
    if not outcome.passed:
        shown = f"FAILED after {took}: {' '.join(outcome.failed)[:300]}"
    else:
        shown = f"passed in {took}{', but UNSTEADY: not at once' if outcome.failure else ''}"
    print(f"-- {part.name} {shown}", flush=True)
    return outcome


def run_commands(part: Part, environment: dict[str, str], show: Callable[[str], None]) -> Outcome:
    """Runs one part's commands up to the first that fails."""
    outcome = Outcome(True, [])
    for command in part.commands:
        status, last = shown_while_running(command, environment, show)
        if status != 0:
            failed = command
            if part.again and command == part.commands[-1]:
                print(f"-- {part.name}: what failed runs once more, alone", flush=True)
                failed = part.again
                status, _ = shown_while_running(part.again, environment, show)
            outcome = Outcome(status == 0, last, failed)
        if not outcome.passed:
            return outcome
    return outcome


def run_parts(chosen: list[Part]) -> dict[str, Outcome]:
    """Runs what measures nothing side by side, then each of the others by itself; outcomes in the order of `chosen`."""
    together = [part for part in chosen if not part.alone]
    shows = [Lines(part.name).show if len(together) > 1 else show_at_once for part in together]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            outcomes = list(pool.map(run_part, together, shows))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            end_running()
            raise
    results = {part.name: outcome for part, outcome in zip(together, outcomes, strict=True)}
    results |= {part.name: run_part(part) for part in chosen if part.alone}
    return {part.name: results[part.name] for part in chosen}


def end_running() -> None:
    """Interrupts the commands of parts that run side by side."""
    for running in list(_RUNNING):
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGINT)


def is_chosen(part: Part, named: list[str], everything: bool) -> bool:
    """Whether a part runs. `named`: the parts of the command line; empty: all but those on demand."""
    return part.name in named if named else everything or not part.on_demand


def main() -> int:
    """Exit status 0 only when every part passed."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else hundreds of processes compile every module anew
    known = parts()
    parser = argparse.ArgumentParser(
        prog="./test",
        description="Runs every test after setting up what they need.",
        epilog="parts:\n" + "\n".join(f"  {part.name:<14} {part.about}" for part in known),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", nargs="*", help="run these parts only")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="style, and the host's tests that are quick: no rig, no real time, no build for boards",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="hours more: C++ under sanitizers, builds for every board, a virtual board, benchmarks and validations "
        "of the documentation, tests marked `thorough`, and fresh roots",
    )
    options = parser.parse_args()
    if options.quick and (options.part or options.all):
        parser.error("--quick has its own parts: leave out " + " ".join(options.part or ["--all"]))
    if unknown := set(options.part) - {part.name for part in known}:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; the parts are {', '.join(p.name for p in known)}")
    chosen = [part for part in parts(options.all) if is_chosen(part, options.part, options.all)]
    try:
        if options.quick or not all(part.on_demand for part in chosen):
            engines = frozenset(bootstrap.engines())
            bootstrap.set_up(bootstrap.Needs(loader=True, engines=engines, simulate=True, test=True))
    except bootstrap.SetupError as error:
        print(f"./test: {error}", file=sys.stderr)
        return 1
    outcomes = run_parts(quick_parts() if options.quick else chosen)
    failed = [name for name, outcome in outcomes.items() if not outcome.passed]
    unsteady = [name for name, outcome in outcomes.items() if outcome.passed and outcome.failure]
    for name in (*unsteady, *failed):
        print(f"== the last lines of {name}, which {'failed' if name in failed else 'is UNSTEADY'}:")
        print(*outcomes[name].failure, sep="", end="", flush=True)
    if unsteady:
        print(f"parts with tests that passed the second time only: {', '.join(unsteady)}; mend them")
    print(f"parts failed: {', '.join(failed)}" if failed else "every part passed")
    print(f"{len(outcomes) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("./test: interrupted", file=sys.stderr)
        sys.exit(130)
