"""Settings, hooks and fixtures of all tests."""

import fcntl
import os
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path

# Several test processes share the processors: OpenBLAS's own threads would only wait for each other there (an eighth of
# the processor time of the attribution's tests). It reads this when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# Modules that several test files use.
sys.path.append(str(Path(__file__).parent / "support"))
# A shell that runs the tests in the background makes them ignore Ctrl-C, and their programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup makes them ignore a closed terminal.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Property tests draw the same examples each time; `pytest --hypothesis-profile=explore` draws new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, print_blob=True, deadline=None)
settings.load_profile("same")


def pytest_configure(config):
    """Gives each test process its own folder for the lock and the temporary files of its measurements, so that other
    measurements on this computer do not matter. The tests' own folders stay where pytest puts them."""
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    config.own_temporary = tempfile.mkdtemp(prefix="opjoule-tests-", dir=os.environ["PYTEST_DEBUG_TEMPROOT"])
    Path(config.own_temporary).chmod(0o755)  # servers run under other accounts
    tempfile.tempdir = os.environ["TMPDIR"] = config.own_temporary


def pytest_unconfigure(config):
    shutil.rmtree(config.own_temporary, ignore_errors=True)


def pytest_addoption(parser):
    parser.addoption("--again", action="store_true", help="run failed tests once more; only end-to-end tests")
    parser.addoption("--update-golden", action="store_true", help="write the golden screens instead of comparing them")


THREAD_END_S = 10.0
LONG_FIRST = [
    f"test_{name}.py"
    for name in ("devices_virtual_board", "end_to_end", "devices_measurement", "study_s3_rig", "settle_end_to_end",
                 "devices_virtual_measurement", "study_s4", "study_s5_rig", "generator_ycsb", "calibrate_command",
                 "study_s3", "advice_end_to_end", "medium_full", "against_ycsb", "simulated_medium", "fleet",
                 "commissioning_rehearsal", "rig_calibrated", "command", "attribution_known", "rig_accuracy",
                 "devices_virtual_clock_and_pins", "meter_storage", "study_s2", "study_s1", "study_s3_data",
                 "study_s5")
]  # fmt: skip
"""Test files that start first, because they take long: a file is run by one process, and all others would wait for a
long one that began last. Files with an emulated board, which takes two processors, are apart in this list, so that they
do not run at the same time."""

FURTHER_CASES = [
    line for line in Path(__file__).with_name("thorough.txt").read_text().splitlines() if line and line[0] != "#"
]
"""Parts of the ids of tests that only `./test --all` runs; they get the mark `thorough`."""

REAL_TIME = {"sshd", "fleet", "browser", "bench_runs"}
"""Fixtures whose tests are end to end, like the tests that run the rig simulator: a board behind a real sshd, a
scheduler with its rigs, a real browser, loads that are set while the simulated sensor runs."""


GOLDEN = Path(__file__).with_name("golden")


@pytest.fixture
def golden(request):
    """Compares a whole screen with golden/NAME.txt. `hidden`: what differs from run to run -> its stand-in."""

    def compare(name, screen, hidden=None):
        for changing, stand_in in (hidden or {}).items():
            screen = screen.replace(str(changing), stand_in)
        lines = screen.replace("\N{NO-BREAK SPACE}", " ").splitlines()
        shown = "".join(f"{line.rstrip()}\n" for line in lines)
        if request.config.getoption("--update-golden"):
            (GOLDEN / f"{name}.txt").write_text(shown)
        assert shown == (GOLDEN / f"{name}.txt").read_text(), "a reworded screen: pytest -n 0 --update-golden writes it"

    return compare


@pytest.fixture
def studies_postgresql():
    """Holds the port of the studies' PostgreSQL, which one test at a time may use."""
    with Path(os.environ["PYTEST_DEBUG_TEMPROOT"], "opjoule-tests-postgresql").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item):
    """Sets the marks end_to_end and thorough here, because pytest selects by `-m` before the hook below."""
    if item.get_closest_marker("rig") or REAL_TIME & set(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.end_to_end)
    if any(case in item.nodeid for case in FURTHER_CASES):
        item.add_marker(pytest.mark.thorough)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Sorts long files first. With --again, refuses tests that do not depend on how busy the computer is."""
    long = {name: place for place, name in enumerate(LONG_FIRST)}
    items.sort(key=lambda item: long.get(item.path.name, len(long)))
    steady = [item.nodeid for item in items if not item.get_closest_marker("end_to_end")]
    if config.getoption("--again") and steady:
        raise pytest.UsageError("failed, and only end-to-end tests run again: " + ", ".join(steady[:20]))


@pytest.fixture(autouse=True)
def leaves_no_thread():
    """Fails a test that leaves a thread, because Python waits at its end for every thread that is no daemon."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon:
            thread.join(THREAD_END_S)
            assert not thread.is_alive(), f"left a thread behind: {thread.name}"
