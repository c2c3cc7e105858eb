"""What holds for every test."""

import fcntl
import os
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import settings

# What test files share.
sys.path.append(str(Path(__file__).parent / "support"))
# A shell that runs the tests in the background has them ignore Ctrl-C, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup has them ignore a closed terminal.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Property tests draw the same examples each time; `pytest --hypothesis-profile=explore` draws new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, print_blob=True, deadline=None)
settings.load_profile("same")


def pytest_configure(config):
    """Measurements of a test process have their lock and their temporary files in a folder of their own: one that
    runs elsewhere on this computer is no concern of theirs. Folders of tests stay where pytest has them."""
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    config.own_temporary = tempfile.mkdtemp(prefix="opjoule-tests-", dir=os.environ["PYTEST_DEBUG_TEMPROOT"])
    Path(config.own_temporary).chmod(0o755)  # servers have accounts of their own
    tempfile.tempdir = os.environ["TMPDIR"] = config.own_temporary


def pytest_unconfigure(config):
    shutil.rmtree(config.own_temporary, ignore_errors=True)


def pytest_addoption(parser):
    parser.addoption(
        "--again", action="store_true", help="what has failed runs once more: end-to-end tests alone"
    )


THREAD_END_S = 10.0
LONG_FIRST = [
    f"test_{name}.py"
    for name in ("devices_virtual_board", "end_to_end", "devices_measurement", "study_s3", "settle_end_to_end",
                 "devices_virtual_measurement", "study_s4", "study_s5", "generator_ycsb", "calibrate_command",
                 "advice_end_to_end", "medium_full", "against_ycsb", "simulated_medium", "fleet",
                 "commissioning_rehearsal", "rig_calibrated", "command", "attribution_known", "rig_accuracy",
                 "devices_virtual_clock_and_pins", "meter_storage", "study_s2", "study_s1")
]  # fmt: skip
"""A file is one process's work: a long one that begins last is waited for by all others. Those with an emulated board,
which takes two processors, lie apart, so that they do not run side by side."""

FURTHER_CASES = [
    line
    for line in Path(__file__).with_name("thorough.txt").read_text().splitlines()
    if line and line[0] != "#"
]
"""Parts of the ids of tests that only `./test --all` runs; they get the mark `thorough`."""

REAL_TIME = {"sshd", "fleet", "browser", "bench_runs"}
"""Fixtures whose tests are end to end, as those are that run the rig simulator: a board behind a real sshd, a
scheduler with its rigs, a real browser, loads that are set while the simulated sensor runs."""


@pytest.fixture
def studies_postgresql():
    """The port of the studies' PostgreSQL, which one test at a time may have."""
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
    """Long files first; refuses a second run of what does not depend on how busy the computer is."""
    long = {name: place for place, name in enumerate(LONG_FIRST)}
    items.sort(key=lambda item: long.get(item.path.name, len(long)))
    steady = [item.nodeid for item in items if not item.get_closest_marker("end_to_end")]
    if config.getoption("--again") and steady:
        raise pytest.UsageError("failed, and only end-to-end tests run again: " + ", ".join(steady[:20]))


@pytest.fixture(autouse=True)
def leaves_no_thread():
    """Python waits at its end for every thread that is no daemon, for ever if need be."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon:
            thread.join(THREAD_END_S)
            assert not thread.is_alive(), f"left a thread behind: {thread.name}"
