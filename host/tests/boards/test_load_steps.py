"""A board's load step by step: patterns as busy as they say, stretches inside what was played, nothing left behind."""

import time
from pathlib import Path

import pytest
from loopback_sshd import Sshd
from opjoule.base.errors import DeviceFault
from opjoule.boards.rig import RigDevice
from opjoule.boards.rig_board import CHIPS, LEVELS, PERIOD_NS, load_steps, pattern

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.end_to_end


@pytest.mark.parametrize("level", LEVELS)
def test_a_pattern_is_busy_in_so_many_chips_of_each_period_and_spreads_them(level):
    chips = pattern(level, 3.2)
    assert len(chips) == CHIPS * 20
    for start in range(0, len(chips), CHIPS):
        assert chips[start : start + CHIPS].count("1") == level
    longest = max((len(part) for part in chips.split("0")), default=0)
    assert longest <= 1 or level > CHIPS // 2


@pytest.fixture(params=["local", "ssh"])
def described(request, tmp_path):
    """This computer as the board, at once and through a real sshd."""
    if request.param == "local":
        yield RigDevice()
        return
    server = Sshd(tmp_path)
    yield RigDevice(connection=f"ssh:{server.target}", ssh_options=tuple(server.options()))
    server.close()


def test_a_step_is_whole_periods_within_the_time_that_the_board_played_it(described, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    begun_ns = time.monotonic_ns()
    with load_steps(described, ROOT / "build") as steps:
        start_ns, end_ns = steps(2, 0.32)
        ended_ns = time.monotonic_ns()
    assert begun_ns < start_ns < end_ns < ended_ns
    assert end_ns - start_ns == 2 * PERIOD_NS
    assert {path.name for path in tmp_path.rglob("opjoule-*/*")} <= {"lock"}, "nothing else stays on the board"


def test_a_board_that_is_measured_is_no_load(described, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with (
        load_steps(described, ROOT / "build"),
        pytest.raises(DeviceFault, match="another measurement"),
        load_steps(described, ROOT / "build"),
    ):
        pass
    with load_steps(described, ROOT / "build"):
        pass
