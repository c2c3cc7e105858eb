#!/usr/bin/env python3
"""Sets up everything that a command needs, with only Python's standard library, and skips steps that are done.

A step's stamp lies in the folder that the step makes and goes with it. It names what the step was made from: the state
of its sources, of compilers and system packages, of the clone's folder, and of the product. A step whose stamp differs
runs again, so a second start costs a few stat calls.
"""

from __future__ import annotations

import this_computer

if __name__ == "__main__":
    this_computer.end_if_unable()  # before an old Python, or one without fcntl, loads more

import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from environment import VENV, VENV_PYTHON, fill_environment, filled_state
from loader_build import LOADER, TESTS, build_loader, cmake_build, engines, note_failures
from logged_commands import SetupError, end_running, logged, say
from memory import jobs_at_once
from opjoule.base.errors import Interrupted, of_system
from opjoule.base.scripts import Needs
from plain_folder import ROOT
from system_packages import are_of_system, install_named, install_sections, names, skips_packages
from toolchain import COMPILERS, file_state, firmware_state, made_with, package_versions, replace_text

BUILD = ROOT / "build"
STAMPS = BUILD / "setup"
BUILD_LANES = ("build", "rig")
"""Lanes whose steps run C++ compilers. Where memory is short, they are one lane."""
PROGRESS_S = 20.0
LOG_TAIL_BYTES = 4096
"""End of a step's log that is searched for the last count of Ninja."""
YCSB_PINS = ROOT / "host" / "requirements" / "ycsb"
YCSB_JARS = BUILD / "ycsb"

Failures = Mapping[str, str]
"""Want -> why it is left out."""


@dataclass(frozen=True)
class Step:
    """One step of set-up. It runs again when one of `inputs`, which are files or folders, or `state` has changed."""

    name: str
    title: str
    inputs: tuple[Path, ...]
    run: Callable[[Path, frozenset[str]], Failures]
    """Takes the log and the wants: those of this call and those that earlier calls had."""
    product: Path | None = None
    state: Callable[[], object] = lambda: None
    """What the step depends on besides its inputs, as JSON has it; asked after it has run."""
    wants: Callable[[], Mapping[str, object]] = dict
    """Parts that can be asked for one by one -> what each depends on."""
    wanted: frozenset[str] = frozenset()
    """The parts that this call needs."""
    lane: str = "build"
    """Steps of one lane run one after the other, lanes side by side. All wait for lane "packages", but "wheels" only if
    what makes .venv is missing; "python" waits for "wheels", too."""
    folder: Path = STAMPS
    """Folder of the stamp: the one that the step makes."""
    done: Callable[[], bool] | None = None
    """Whether there is nothing to do, for a step that needs no stamp."""

    @property
    def stamp(self) -> Path:
        """The file that says what the step was made from."""
        return self.folder / f"{self.name}.stamp"


def without_wants(run: Callable[[Path], None]) -> Callable[[Path, frozenset[str]], Failures]:
    """The function of a step that has no parts."""

    def step(log: Path, _: frozenset[str]) -> Failures:
        run(log)
        return {}

    return step


def build_firmware(log: Path, environment: str = "uno") -> None:
    """Builds a firmware ELF for the Arduino Uno with PlatformIO, without its registry."""
    logged([str(VENV_PYTHON), str(ROOT / "firmware/platformio/run.py"), "run", "-e", environment], log)


def fetch_ycsb(log: Path) -> None:
    """Fetches the real YCSB's core into build/ycsb with Maven, and checks each jar's hash.

    Raises: SetupError: Java or Maven is missing, or the jars are not those that host/requirements/ycsb pins.
    """
    for program, package in (("java", "default-jre-headless"), ("mvn", "maven")):
        if not shutil.which(program):
            raise SetupError(
                f"{program} is missing, which the real YCSB of --generator ycsb needs: install {package}, or leave "
                "--generator out"
            )
    BUILD.mkdir(exist_ok=True)
    pinned = dict(reversed(line.split()) for line in (YCSB_PINS / "jars.sha256").read_text().splitlines())
    with (
        (BUILD / "ycsb.lock").open("w") as lock,
        tempfile.TemporaryDirectory(prefix="ycsb-", dir=BUILD) as folder,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second call waits for the first, and uses its jars
        if folder_hashes(YCSB_JARS) == pinned:
            return
        fetch = ["mvn", "-q", "-B", "-f", str(YCSB_PINS / "pom.xml"), "dependency:copy-dependencies"]
        fetched = Path(folder) / "jars"
        logged([*fetch, f"-DoutputDirectory={fetched}"], log)
        jars = folder_hashes(fetched)
        if jars != pinned:
            wrong = sorted({name for name, _ in jars.items() ^ pinned.items()})
            raise SetupError(f"YCSB's jars from Maven Central are not the pinned ones: {', '.join(wrong)}")
        shutil.rmtree(YCSB_JARS, ignore_errors=True)
        fetched.rename(YCSB_JARS)


def folder_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of each file in a folder, by name; empty if there is no folder."""
    files = folder.iterdir() if folder.is_dir() else ()
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _steps(needs: Needs) -> list[Step]:
    steps = [_packages_step(needs), _environment_step(needs.pins)]
    if needs.packages:
        steps.append(_study_packages_step(needs.packages))
    if needs.loader:
        steps.append(_loader_step(needs))
    if needs.board:
        steps.append(_board_step(needs))
    if needs.ycsb:
        core = YCSB_JARS / "core-0.17.0.jar"
        fetch = without_wants(fetch_ycsb)
        steps.append(Step("ycsb", "YCSB's core, from Maven Central", (YCSB_PINS,), fetch, core, lane="ycsb"))
    if needs.simulate:
        steps.append(_rig_step(test=needs.test))
        steps.append(_firmware_step("firmware", "firmware", "uno"))
        if needs.test:
            steps.append(_firmware_step("firmware-nano", "firmware for old Nanos", "nano"))
            steps.append(_firmware_step("firmware-arduino", "firmware on Arduino's framework", "uno-arduino"))
    return steps


def _packages_step(needs: Needs) -> Step:
    """Installs the packages of sections of host/packages.txt; an engine whose packages cannot be had is left out."""
    optional = sorted(needs.engines & set(engines()))

    def install(log: Path, _: frozenset[str]) -> Failures:
        failed = install_sections(needs.sections, optional, log)
        _end_if_no_engine_is_left(failed, needs)  # rather than after minutes of building
        return failed

    wanted = names(*needs.sections, *optional)
    return Step("packages", "system packages", (), install, lane="packages", done=lambda: are_installed(wanted))


def _study_packages_step(wanted: tuple[str, ...]) -> Step:
    return Step(
        "packages-of-study",
        "system packages for the study",
        (),
        without_wants(partial(install_named, wanted)),
        lane="packages",
        done=lambda: are_installed(wanted),
    )


def are_installed(wanted: Iterable[str]) -> bool:
    """Whether all of these packages are installed, the system has them without packages, or the user says so."""
    return skips_packages() or all(package_versions(wanted).values()) or are_of_system(wanted)


def _environment_step(pins: str) -> Step:
    lock = ROOT / "host/requirements" / f"{pins}.txt"
    return Step(
        f"{pins}-environment",  # environment.STAMP_END
        "Python environment .venv",
        (lock,),
        without_wants(lambda log: fill_environment(lock, log)),
        state=filled_state,
        lane="python" if pins == "test" else "wheels",  # tests need a package that is compiled
        folder=VENV,
    )


def _loader_step(needs: Needs) -> Step:
    def wants() -> dict[str, object]:
        return {TESTS: None, **{engine: package_versions(names(engine)) for engine in engines()}}

    return Step(
        "loader",
        "loader and probe",
        (ROOT / "loader-cpp",),
        build_loader,
        LOADER / "loader",
        state=lambda: made_with(COMPILERS, names("loader")),
        wants=wants,
        wanted=frozenset({*(needs.engines & set(engines())), *([TESTS] if needs.test else [])}),
        folder=LOADER,
    )


def _rig_step(*, test: bool) -> Step:
    source, build, packages = ROOT / "firmware" / "sim", BUILD / "rig-sim", names("loader", "rig")

    def run(log: Path, wants: frozenset[str]) -> Failures:
        options = [f"-DOPJOULE_TESTS={'ON' if TESTS in wants else 'OFF'}"]
        cmake_build(source, build, log, ["rig-sim"], options, packages)
        return {}

    return Step(
        "rig-sim",
        "rig simulator",
        (source,),
        run,
        build / "rig-sim",
        state=lambda: made_with(COMPILERS, packages),
        wants=lambda: {TESTS: None},
        wanted=frozenset([TESTS] if test else []),
        lane="rig",
        folder=build,
    )


def _board_step(needs: Needs) -> Step:
    script = ROOT / "loader-cpp" / "board-builds"
    folder = BUILD / "board" / needs.board

    def run(log: Path, wants: frozenset[str]) -> Failures:
        asked = ["--engines", ",".join(sorted(wants))]
        logged([sys.executable, str(script), needs.board, *asked], log)
        return {}

    return Step(
        f"board-{needs.board}",
        f"loader for the board ({needs.board}; minutes the first time)",
        (ROOT / "loader-cpp",),
        run,
        folder / "loader",
        state=lambda: made_with(COMPILERS, names("board")),
        wants=lambda: dict.fromkeys([*engines(), "mongodb"]),
        wanted=needs.engines,
        folder=folder,
    )


def _firmware_step(name: str, title: str, environment: str) -> Step:
    parts = ("platformio.ini", "firmware/lib", "firmware/src", "firmware/platformio")
    folder = ROOT / ".pio/build" / environment
    return Step(
        name,
        title,
        tuple(ROOT / part for part in parts),
        without_wants(lambda log: build_firmware(log, environment)),
        folder / "firmware.elf",
        state=firmware_state,
        lane="python",
        folder=folder,
    )


def set_up(needs: Needs) -> None:
    """Runs every step that is not up to date, and prints its progress on stderr.

    An engine that cannot be built is left out with a line that says why, if another one of those that are needed can.

    Raises: SetupError: a step failed; the text names the packages to install or the log.
    """
    if not _todo(needs):
        return
    if reason := _obstacle(needs):
        raise SetupError(reason)
    STAMPS.mkdir(parents=True, exist_ok=True)
    with _alone():
        if todo := _todo(needs):  # another set-up may have done it meanwhile
            _check_engines(_run(todo), needs)


def set_up_or_end(needs: Needs, program: str) -> None:
    """Does the set-up; if it fails, prints why as `program` does and ends the process."""
    try:
        set_up(needs)
    except SetupError as error:
        print(f"{program}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"{program}: set-up: {of_system(error)}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{program}: interrupted during set-up; start again to continue", file=sys.stderr)
        sys.exit(Interrupted.exit_code)
    else:
        return
    sys.exit(1)


def _obstacle(needs: Needs) -> str:
    """Why this computer or the clone's folder does not allow this set-up, in one line; empty if it does."""
    wanted = [*names(*needs.sections), *needs.packages]
    foreign = "" if skips_packages() or are_of_system(wanted) else this_computer.without_packages()
    return foreign or this_computer.unusable(ROOT) or this_computer.no_temporary_space()


def _check_engines(failed: Failures, needs: Needs) -> None:
    """Says which engines are left out and why. Raises: SetupError: as _end_if_no_engine_is_left()."""
    _end_if_no_engine_is_left(failed, needs)
    for line in _left_out(failed):
        say(f"  NOTE: {line}")


def _end_if_no_engine_is_left(failed: Failures, needs: Needs) -> None:
    """Stores which engines are left out and why: needed ones, and those of an earlier command.

    Raises: SetupError: no needed engine is left, or the tests lack one.
    """
    note_failures(needs.engines | failed.keys(), failed)
    missing = needs.engines & failed.keys()
    if missing and (needs.test or missing == needs.engines):
        raise SetupError("\n".join(_left_out(failed)))


def _left_out(failed: Failures) -> list[str]:
    return [f"{engine} is left out: {why}" for engine, why in failed.items()]


def _todo(needs: Needs) -> list[Step]:
    """The steps that are not up to date."""
    return [step for step in _steps(needs) if not _up_to_date(step)]


def _up_to_date(step: Step) -> bool:
    if step.done:
        return step.done()
    stamp = _stamp(step)
    if stamp.get("inputs") != _fingerprint(step) or stamp.get("product") != _product(step):
        return False
    if stamp.get("state") != step.state():
        return False
    made, known = stamp["wants"], step.wants()
    return all(want in made and made[want] == known[want] for want in step.wanted)


@contextmanager
def _alone() -> Iterator[None]:
    """Holds the lock of this folder's set-up during the block, after waiting for another set-up that holds it."""
    with (BUILD / "setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Set-up: another one is running in this folder; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(todo: list[Step]) -> Failures:
    """Runs steps lane by lane, and prints the progress. Returns: wanted part -> why it is left out."""
    started_s = time.monotonic()
    side_by_side = jobs_at_once(len(BUILD_LANES))
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(side_by_side or jobs_at_once(1)))
    say("Set-up: " + ", ".join(step.title for step in todo))
    lanes: dict[str, list[Step]] = {}
    for step in todo:
        in_turn = step.lane in BUILD_LANES and not side_by_side
        lanes.setdefault(BUILD_LANES[0] if in_turn else step.lane, []).append(step)
    early = are_installed(names("host"))
    with ThreadPoolExecutor() as pool:
        packages = pool.submit(_run_lane, lanes.pop("packages", []))
        wheels = pool.submit(_run_after, [] if early else [packages], lanes.pop("wheels", []))
        begun = [wheels]
        for lane, steps in lanes.items():
            earlier = [packages, wheels] if lane == "python" else [packages]
            begun.append(pool.submit(_run_after, earlier, steps))
        try:
            failed = dict(packages.result())
            for done in as_completed(begun):
                failed = {**done.result(), **failed}
        except BaseException:
            end_running()  # the pool waits for its builds, and they may take minutes; the next start resumes them
            raise
    say(f"Set-up done in {time.monotonic() - started_s:.0f} s; later starts skip it.")
    return failed


def _run_after(earlier: Iterable[Future[Failures]], steps: list[Step]) -> Failures:
    """Runs the steps of a lane once other lanes are done. Raises: what a step of those has raised."""
    for lane in earlier:
        lane.result()
    return _run_lane(steps)


def _run_lane(steps: list[Step]) -> Failures:
    """Runs steps in order, and stores the stamp of each step that has succeeded."""
    failed: dict[str, str] = {}
    for step in steps:
        started_s = time.monotonic()
        say(f"  {step.title} ...")
        STAMPS.mkdir(parents=True, exist_ok=True)
        log = STAMPS / f"{step.name}.log"
        log.unlink(missing_ok=True)
        inputs, known = _fingerprint(step), step.wants()
        wants = step.wanted | (_stamp(step).get("wants", {}).keys() & known.keys())
        with _progress(step.title, log):
            without = step.run(log, frozenset(wants))
        if not step.done:
            _store_stamp(step, inputs, wants - without.keys())
        failed |= without
        say(f"  {step.title}: done in {time.monotonic() - started_s:.1f} s")
    return failed


@contextmanager
def _progress(title: str, log: Path) -> Iterator[None]:
    """Says every PROGRESS_S during the block how much of a step is built, according to the last count in its log."""
    started_s, ended = time.monotonic(), threading.Event()

    def watch() -> None:
        while not ended.wait(PROGRESS_S):
            text = log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace") if log.exists() else ""
            if counts := re.findall(r"^\[(\d+)/(\d+)\]", text, re.MULTILINE):
                done, total = counts[-1]
                say(f"  {title}: {done} of {total} parts built after {time.monotonic() - started_s:.0f} s")

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _stamp(step: Step) -> dict[str, Any]:
    """What a step was made from at its last success; empty if it has none."""
    try:
        stamp = json.loads(step.stamp.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _store_stamp(step: Step, inputs: str, made: Iterable[str]) -> None:
    """Stores what a step was made from, in the folder that it has made."""
    known = step.wants()
    stamp = {
        "inputs": inputs,
        "product": _product(step),
        "state": step.state(),
        "wants": {want: known[want] for want in sorted(made)},
    }
    step.folder.mkdir(parents=True, exist_ok=True)
    replace_text(step.stamp, json.dumps(stamp, indent=1))


def _product(step: Step) -> list[int]:
    """Time and size of the product; empty if it is missing or the step has none."""
    return file_state(step.product) if step.product else []


def _fingerprint(step: Step) -> str:
    digest = hashlib.sha256()
    for path in step.inputs:
        for file in sorted(_files(path)):
            info = os.stat(file)
            digest.update(f"{file} {info.st_mtime_ns} {info.st_size}\n".encode())
    return digest.hexdigest()


def _files(path: Path) -> Iterable[str]:
    if path.is_file():
        yield str(path)
    for folder, _, inside in os.walk(path):
        if "__pycache__" not in folder:
            yield from (os.path.join(folder, name) for name in inside)


def main(arguments: list[str]) -> int:
    """`bootstrap.py [--test]`: sets up everything that ./test needs, or a simulated measurement of any engine."""
    needs = Needs(loader=True, simulate=True, engines=frozenset(engines()), test="--test" in arguments)
    set_up_or_end(needs, "set-up")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
