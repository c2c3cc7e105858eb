"""The loader's own mix blocks, with joules that are made of its log and so known by kind. SIMULATED."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from known_meter import RUN_STARTS_S, SLOW, watched  # path set above
from known_work import Known
from opjoule.attribution.attribute import attribute_runs
from opjoule.attribution.windows import block_length_s
from opjoule.bench.simulation.parts import Steady
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.operations.oplog import read_operation_log

ROOT = Path(__file__).resolve().parents[3]
LOADER = ROOT / "build/loader/loader"
METER = replace(SLOW, period_s=0.12, conversion_s=0.12)
"""So slow that a window of ten samples holds thousands of operations."""
SLOWER = 8
"""Times that all of the log is taken to have lasted: a minute of work that does not take a minute."""
RUN_S = 9.0
SEEN_S = 8.5 * SLOWER
"""What is looked at: the same length however late the last operation was."""
JOULES = {"read": 8e-6, "update": 24e-6}
LIMIT_S = 300

pytestmark = pytest.mark.rig


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Operations of the same workload, plain and in blocks that suit the meter; both run at once."""
    folder = tmp_path_factory.mktemp("logs")
    lengths = {"plain": 0.0, "blocks": block_length_s(METER.period_s) / SLOWER}
    line = [
        LOADER,
        "run",
        "--db",
        "null",
        "--threads",
        "2",
        "--workload",
        ROOT / "ycsb-workloads/workloada.properties",
    ]
    given = [
        "recordcount=1000",
        "operationcount=0",
        f"maxexecutiontime={RUN_S:g}",
        "target=50000",
        "fieldlength=10",
    ]
    started = [
        subprocess.Popen(
            [*line, *(part for option in (*given, f"mixblock.length_s={length:g}") for part in ("-p", option)),
             "--op-log", folder / name],
            stdout=subprocess.DEVNULL,
        )
        for name, length in lengths.items()
    ]  # fmt: skip
    assert [process.wait(timeout=LIMIT_S) for process in started] == [0, 0]
    return {name: read_operation_log(folder / name).operations for name in lengths}


def paced(operations: OperationTable) -> OperationTable:
    """One thread's kinds in the order of its log, evenly over the time: a log of a computer that never stalls."""
    of_thread = operations.select(operations.thread == 0)
    each_ns = round(RUN_S * SLOWER * 1e9 / len(of_thread))
    begin_ns = np.arange(len(of_thread), dtype=np.int64) * each_ns
    return replace(of_thread, board_ns=begin_ns, duration_ns=np.full(len(of_thread), each_ns // 2))


def known(operations: OperationTable) -> Known:
    """Every operation draws what its kind does, evenly while it lasts."""
    since_s = (operations.board_ns - operations.board_ns[0] + operations.duration_ns) * 1e-9
    operations = operations.select(since_s < SEEN_S)
    begin_s = (operations.board_ns - operations.board_ns[0]) * 1e-9 + RUN_STARTS_S
    length_s = np.maximum(operations.duration_ns * 1e-9, 1e-9)
    kinds = tuple(JOULES)
    kind = np.select([operations.of_kind(name) for name in kinds], range(len(kinds))).astype(np.uint8)
    energy_j = np.array(list(JOULES.values()))[kind]
    threads = (operations.thread == number for number in np.unique(operations.thread))
    pieces = [Steady(begin_s[of_thread], (begin_s + length_s)[of_thread], energy_j[of_thread]) for of_thread in threads]
    end_s = RUN_STARTS_S + SEEN_S
    true_j = {name: float(energy_j[kind == at].sum()) for at, name in enumerate(kinds)}
    never = (np.array([RUN_STARTS_S, end_s + 60.0]), np.zeros(2))
    return Known(
        RUN_STARTS_S, end_s, end_s + 1.0, kinds, kind, begin_s, length_s, operations.thread, {}, False, never, pieces,
        true_j,
    )  # fmt: skip


def attributed(operations: OperationTable, seed: int = 2):
    made = watched(np.random.default_rng(seed), METER, known(paced(operations)))
    return made.known.true_j, attribute_runs([made.work])[0].operations


def test_kinds_that_a_plain_workload_does_not_separate_are_separated_in_the_loader_s_blocks(logs):
    _, plain = attributed(logs["plain"])
    assert any(share.reason for share in plain.values())
    true_j, shares = attributed(logs["blocks"])
    for name, share in shares.items():
        assert not share.reason
        assert share.value == pytest.approx(true_j[name], rel=0.4)


def test_the_whole_run_keeps_the_workload_s_proportions(logs):
    counts = logs["blocks"].counts()
    assert counts["read"] / sum(counts.values()) == pytest.approx(0.5, abs=0.05)


def test_the_mix_differs_from_block_to_block_in_the_same_way_for_both_threads(logs):
    def shares(name: str, thread: int):
        """Shares of reads in the first stretches that are as long as a block."""
        of_thread = logs[name].select(logs[name].thread == thread)
        length_ns = round(block_length_s(METER.period_s) / SLOWER * 1e9)
        stretch = (of_thread.board_ns - logs[name].board_ns[0]) // length_ns
        count = np.bincount(stretch, minlength=50)[:50]
        return np.bincount(stretch, of_thread.of_kind("read"), minlength=50)[:50] / np.maximum(count, 1)

    assert shares("plain", 0).std() < 0.1
    assert shares("blocks", 0).std() > 0.2
    assert np.corrcoef(shares("blocks", 0), shares("blocks", 1))[0, 1] > 0.5
