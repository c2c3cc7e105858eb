"""Sets up everything that a command needs, with only Python's standard library, and skips steps that are done.

Each step has a fingerprint of its inputs. A step runs when its fingerprint differs from the one
stored under build/setup/ at its last success, so a second start costs a few stat calls.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import this_computer
from logged_commands import SetupError, end_running, logged, say
from opjoule.cli.command import Needs
from plain_folder import ROOT, plain
from system_packages import install_named, install_packages, packages

BUILD = ROOT / "build"
STAMPS = BUILD / "setup"
VENV_PYTHON = ROOT / ".venv" / "bin" / "python"
PATH_FILE = "opjoule.pth"
OLDEST_PYTHON = (3, 11)
PROGRESS_S = 20.0
LOG_TAIL_BYTES = 4096
"""End of a step's log that is searched for the last count of Ninja."""
UV_PIN = ROOT / "host" / "requirements" / "uv.txt"
YCSB_PINS = ROOT / "host" / "requirements" / "ycsb"
YCSB_JARS = BUILD / "ycsb"


@dataclass(frozen=True)
class Step:
    """One step of set-up. It runs again when one of `inputs`, which are files or folders, has changed."""

    name: str
    title: str
    inputs: tuple[Path, ...]
    run: Callable[[Path], None]
    product: Path | None = None
    salt: str = ""
    lane: str = "build"
    """Steps of one lane run one after the other. Lane "packages" runs first, then the other lanes run in parallel."""


def make_environment(lock: Path, log: Path) -> None:
    """Makes .venv if it does not exist, and installs the versions that `lock` pins, with their hashes.

    uv is several times as fast as pip. pip is used if uv fails: uv has no wheel for some computers, and does not
    know an index that only pip's configuration names.
    """
    if not VENV_PYTHON.exists():
        logged([sys.executable, "-m", "venv", str(ROOT / ".venv")], log)
    pip = [str(VENV_PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--require-hashes"]
    uv = [str(VENV_PYTHON.with_name("uv")), "pip", "install", "--require-hashes"]
    try:
        logged([*pip, "--only-binary=:all:", "-r", str(UV_PIN)], log)
        logged([*uv, "--python", str(VENV_PYTHON), "-r", str(lock)], log)
    except SetupError:
        logged([*pip, "-r", str(lock)], log)


def _package_paths() -> str:
    return f"{ROOT / 'host'}\n{ROOT / 'host/tests/support'}\n"


def find_package(log: Path) -> None:
    """Makes the environment's Python find opjoule and the tests' stand-ins from every folder."""
    command = [str(VENV_PYTHON), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    place = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    (place / PATH_FILE).write_text(_package_paths())


def cmake_build(source: Path, build: Path, log: Path, *targets: str) -> None:
    """Configures a CMake project with Ninja, and builds some of its targets."""
    source, build = plain(source), plain(build)
    remove_copied(build)
    configure = ["cmake", "-S", str(source), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    if not all((build / name).exists() for name in ("build.ninja", "CMakeCache.txt")):
        logged(configure, log)
    logged(["cmake", "--build", str(build), "--target", *targets], log)


def remove_copied(build: Path) -> None:
    """Removes a CMake build folder that was made in another place, as in a copy of a clone: CMake refuses to use it."""
    cache = build / "CMakeCache.txt"
    text = cache.read_text(errors="replace") if cache.is_file() else ""
    made = re.search(r"^CMAKE_CACHEFILE_DIR:INTERNAL=(.+)$", text, re.MULTILINE)
    if made and not (os.path.exists(made[1]) and os.path.samefile(made[1], build)):
        shutil.rmtree(build)


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
    pins = "test" if needs.test else "figures" if needs.figures else "fleet" if needs.fleet else "measure"
    lock = ROOT / "host/requirements" / f"{pins}.txt"
    steps = [_packages_step(section) for section in needs.sections]
    if needs.packages:
        install = partial(
            install_named, needs.packages, "The study needs these packages; --only leaves out their systems:"
        )
        steps.append(
            Step(
                "packages-of-study",
                "system packages for the study",
                (),
                install,
                salt=repr(needs.packages),
                lane="packages",
            )
        )
    steps.append(
        Step(
            lock.stem + "-environment",
            "Python environment .venv",
            (lock,),
            lambda log: make_environment(lock, log),
            VENV_PYTHON,
            salt=sys.version,
            lane="python",
        )
    )
    paths = _package_paths()
    steps.append(
        Step("package-path", "path of opjoule", (), find_package, VENV_PYTHON, salt=paths, lane="python")
    )
    if needs.loader:
        programs = ("loader", "probe", "medium-sim")
        steps.append(_cmake_step("loader", "loader and probe", ROOT / "loader-cpp", *programs))
    if needs.board:
        steps.append(_board_step(needs.board))
    if needs.ycsb:
        core = YCSB_JARS / "core-0.17.0.jar"
        steps.append(
            Step("ycsb", "YCSB's core, from Maven Central", (YCSB_PINS,), fetch_ycsb, core, lane="ycsb")
        )
    if needs.simulate:
        steps.append(_cmake_step("rig-sim", "rig simulator", ROOT / "firmware" / "sim", "rig-sim"))
        steps.append(_firmware_step("firmware", "firmware", "uno"))
        if needs.test:
            steps.append(_firmware_step("firmware-nano", "firmware for old Nanos", "nano"))
            steps.append(_firmware_step("firmware-arduino", "firmware on Arduino's framework", "uno-arduino"))
    return steps


_FOR = {"measure": "", "test": " for the tests", "virtual": " for the virtual board", "ycsb": " for YCSB"}


def _packages_step(section: str) -> Step:
    title = "system packages" + _FOR[section]
    listed = repr(packages(section))
    run = partial(install_packages, section)
    return Step(f"packages-{section}", title, (), run, salt=listed, lane="packages")


def _cmake_step(name: str, title: str, source: Path, *targets: str) -> Step:
    build = BUILD / name
    return Step(
        name, title, (source,), lambda log: cmake_build(source, build, log, *targets), build / targets[-1]
    )


def _board_step(architecture: str) -> Step:
    script = ROOT / "loader-cpp" / "board-builds"
    return Step(
        f"board-{architecture}",
        f"loader for the board ({architecture}; minutes the first time)",
        (ROOT / "loader-cpp",),
        lambda log: logged([sys.executable, str(script), architecture], log),
        BUILD / "board" / architecture / "loader",
    )


def _firmware_step(name: str, title: str, environment: str) -> Step:
    parts = ("platformio.ini", "firmware/lib", "firmware/src", "firmware/platformio")
    return Step(
        name,
        title,
        tuple(ROOT / part for part in parts),
        lambda log: build_firmware(log, environment),
        ROOT / ".pio/build" / environment / "firmware.elf",
        lane="python",
    )


def set_up(needs: Needs) -> None:
    """Runs every step that is not up to date, and prints its progress on stderr.

    Raises: SetupError: a step failed; the text names the packages to install or the log.
    """
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError("OpJoule needs Python 3.11 or later; this is " + sys.version.split()[0] + ".")
    if not _todo(needs):
        return
    if reason := this_computer.unusable(ROOT):
        raise SetupError(reason)
    STAMPS.mkdir(parents=True, exist_ok=True)
    with _alone():
        if todo := _todo(needs):  # another set-up may have done it meanwhile
            _run(todo)


def _todo(needs: Needs) -> list[tuple[Step, str]]:
    """The steps that are not up to date, each with the fingerprint of its inputs."""
    return [(step, mark) for step in _steps(needs) if (mark := _fingerprint(step)) != _stamp(step)]


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


def _run(todo: list[tuple[Step, str]]) -> None:
    """Runs steps lane by lane, and prints the progress."""
    started_s = time.monotonic()
    say("Set-up: " + ", ".join(step.title for step, _ in todo))
    lanes: dict[str, list[tuple[Step, str]]] = {}
    for step, mark in todo:
        lanes.setdefault(step.lane, []).append((step, mark))
    _run_lane(lanes.pop("packages", []))
    with ThreadPoolExecutor() as pool:
        try:
            for lane in [pool.submit(_run_lane, steps) for steps in lanes.values()]:
                lane.result()
        except KeyboardInterrupt:
            end_running()  # the pool waits for its builds, and they may take minutes
            raise
    say(f"Set-up done in {time.monotonic() - started_s:.0f} s; later starts skip it.")


def _run_lane(steps: list[tuple[Step, str]]) -> None:
    """Runs steps in order, and stores the fingerprint of each step that has succeeded."""
    for step, mark in steps:
        started_s = time.monotonic()
        say(f"  {step.title} ...")
        log = STAMPS / f"{step.name}.log"
        log.unlink(missing_ok=True)
        with _progress(step.title, log):
            step.run(log)
        (STAMPS / step.name).write_text(mark)
        say(f"  {step.title}: done in {time.monotonic() - started_s:.1f} s")


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


def _stamp(step: Step) -> str:
    stamp = STAMPS / step.name
    if not stamp.exists() or (step.product is not None and not step.product.exists()):
        return ""
    return stamp.read_text()


def _fingerprint(step: Step) -> str:
    digest = hashlib.sha256(step.salt.encode())
    for path in step.inputs:
        for file in sorted(_files(path)):
            info = os.stat(file)
            digest.update(f"{file} {info.st_mtime_ns} {info.st_size}\n".encode())
    return digest.hexdigest()


def _files(path: Path) -> Iterable[str]:
    if path.is_file():
        yield str(path)
    for folder, _, names in os.walk(path):
        if "__pycache__" not in folder:
            yield from (os.path.join(folder, name) for name in names)


def main(arguments: list[str]) -> int:
    """`bootstrap.py [--test]`: sets up everything that ./test needs, or everything for a simulated measurement."""
    try:
        set_up(Needs(loader=True, simulate=True, test="--test" in arguments))
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("set-up: interrupted; start again to continue", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
