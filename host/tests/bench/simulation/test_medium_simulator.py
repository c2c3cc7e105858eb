"""The program that slows workloads: started, listened to, ended; what it says reaches the run. Played by a stand-in."""

import sys
import time
from contextlib import closing

import pytest
from opjoule.base.errors import RigFault
from opjoule.bench.simulation.simulators import MediumSimulator
from stated_models import load_model

GREETING = '{"medium_sim": "1", "board_ns": 1, "slows": true, "why": ""}'
FORBIDDEN = '{"medium_sim": "1", "board_ns": 1, "slows": false, "why": "seccomp is forbidden"}'
FAULT = '{"fault": "something went wrong"}'


@pytest.fixture
def started(tmp_path):
    """Starts a simulator whose program says given lines, then waits for the end of its input, or ends at once."""
    opened = []

    def start(*lines, ends=False, dropped="", files=None):
        program = tmp_path / "medium-sim"
        body = "".join(f"print({line!r}, flush=True)\n" for line in lines)
        answers = f"for line in sys.stdin:\n assert line == 'drop\\n' and {dropped!r}\n print({dropped!r}, flush=True)"
        arguments = f"open({str(tmp_path / 'arguments')!r}, 'w').write(' '.join(sys.argv))"
        program.write_text(f"#!{sys.executable}\nimport sys\n{arguments}\n{body}{'' if ends else answers}\n")
        program.chmod(0o700)
        model = load_model("rpi3", "sd")
        opened.append(MediumSimulator(program, model.board, model.medium, files))
        return opened[-1]

    yield start
    for simulator in opened:
        simulator.close()


def faults_of(simulator):
    """The first faults that come."""
    deadline_s = time.monotonic() + 60
    while not (faults := simulator.faults()):
        assert time.monotonic() < deadline_s, "no fault came"
        time.sleep(0.01)
    return faults


def test_commands_are_started_through_it(started):
    simulator = started(GREETING)
    program, verb, option, socket, end = simulator.under
    assert program.endswith("medium-sim") and (verb, option, end) == ("run", "--socket", "--")
    assert socket.startswith(str(simulator.work.fifo.path.parent))
    assert simulator.why_not == "" and simulator.faults() == []


def test_a_fault_of_it_is_one_of_the_run(started):
    assert faults_of(started(GREETING, FAULT)) == ["simulated medium: something went wrong"]


def disk(slower, excess_ns):
    return f'{{"disk": {{"syncs": 200, "slower": {slower}, "model_ns": 1000000, "excess_ns": {excess_ns}}}}}'


def test_a_disk_that_lengthens_syncs_is_a_warning_of_the_run_while_its_record_is_open(started):
    simulator = started(GREETING, disk(1, 100), disk(50, 250_000), FAULT)
    faults_of(simulator)
    (said,) = simulator.warnings()
    assert "in 50 of 200 syncs" in said and "25% longer" in said


def test_a_disk_that_is_hardly_slower_is_no_warning(started):
    simulator = started(GREETING, disk(50, 90_000), FAULT)
    faults_of(simulator)
    assert simulator.warnings() == []


def test_the_page_cache_of_its_files_is_bounded_by_the_boards_memory_and_dropped(started, tmp_path):
    said = '{"dropped": {"cached_bytes": 5000000, "left_bytes": 4096}}'
    started(GREETING, files=tmp_path / "files", dropped=said).drop_cache()
    words = (tmp_path / "arguments").read_text().split()
    bound = int(words[words.index("--cache-bytes") + 1])
    assert words[words.index("--files") + 1] == str(tmp_path / "files")
    assert bound == int(0.8 * load_model("rpi3", "sd").board.memory_bytes)


def test_files_that_stay_in_memory_are_a_fault_of_the_rig(started, tmp_path):
    said = '{"dropped": {"cached_bytes": 5000000, "left_bytes": 5000000}}'
    with pytest.raises(RigFault, match=r"5 MB .*page_cache=keep"):
        started(GREETING, files=tmp_path, dropped=said).drop_cache()


def test_a_page_cache_cannot_be_dropped_after_its_end(started, tmp_path):
    simulator = started(GREETING, ends=True, files=tmp_path)
    faults_of(simulator)
    with pytest.raises(RigFault, match="has ended"):
        simulator.drop_cache()


def test_a_page_cache_beyond_the_boards_memory_is_a_warning_of_the_run(started, tmp_path):
    simulator = started(GREETING, '{"cache": {"beyond_bytes": 7000000}}', FAULT, files=tmp_path)
    faults_of(simulator)
    (said,) = simulator.warnings()
    assert " 7 MB " in said and "memory" in said


def test_if_it_ends_by_itself_that_is_a_fault_and_the_medium_works_no_more(started):
    simulator = started(GREETING, ends=True)
    assert "has ended" in faults_of(simulator)[0]
    simulator._reader.join(60)
    assert simulator.work.ended and simulator.work.known_ns > time.monotonic_ns()


def test_where_the_kernel_forbids_it_the_reason_is_known_and_nothing_is_a_fault(started):
    simulator = started(FORBIDDEN, FAULT)
    assert simulator.why_not == "seccomp is forbidden"
    simulator.close()
    assert simulator.faults() == []


def test_one_that_does_not_start_says_why(started):
    with pytest.raises(RigFault, match="no such option"):
        started("no such option", ends=True)


def test_a_missing_program_is_a_fault_of_the_rig(tmp_path):
    model = load_model("rpi3", "sd")
    with (
        pytest.raises(RigFault, match="doctor --simulate"),
        closing(MediumSimulator(tmp_path / "medium-sim", model.board, model.medium)),
    ):
        pass
