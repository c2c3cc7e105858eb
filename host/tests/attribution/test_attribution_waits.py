"""Operations that wait are found from the processor time, however many they are."""

from dataclasses import replace

import numpy as np
import pytest
from opjoule.attribution.activities import Intervals
from opjoule.attribution.counters import Counters
from opjoule.attribution.overlap import Waits
from opjoule.attribution.waits import PAGE_BYTES, RARE, long_ones, longest_work
from opjoule.energy.operations.operation_table import OperationTable

SHORT_NS, LONG_NS, TICK_NS = 10_000, 1_100_000, 100_000_000
SECONDS = 10


def run_of(
    part: float, *, reads: float = 0.0, working: bool = False, long_ns: int = LONG_NS
) -> tuple[OperationTable, Counters]:
    """One thread, of whose operations a part is long, in bursts; the processor time of work, and pages read."""
    rng = np.random.default_rng(1)
    count = int(SECONDS * 1e9 / (SHORT_NS + part * (long_ns - SHORT_NS)))
    crowded = np.sin(np.arange(count) / count * 40.0) > 0.0
    long = rng.random(count) < 2 * part * crowded
    duration_ns = np.where(long, long_ns, rng.integers(SHORT_NS // 2, SHORT_NS * 3 // 2, count))
    made = OperationTable.empty(count)
    made.duration_ns[:] = duration_ns
    made.board_ns[1:] = np.cumsum(duration_ns)[:-1]
    works_ns = np.cumsum(duration_ns if working else np.where(long, SHORT_NS, duration_ns))
    stamps = np.arange(0, int(made.board_ns[-1]), TICK_NS)
    done = np.searchsorted(made.board_ns, stamps)
    worked_s = np.append(0, works_ns)[done] * 1e-9
    pages = np.floor(done * reads)
    return made, Counters(stamps, 0.0 * pages, pages * PAGE_BYTES, worked_s)


def limit_ns(made: OperationTable, counters: Counters | None, activities=None) -> int:
    return int(longest_work(made, counters, activities or {}, one_thread=True).longest_ns[0])


@pytest.mark.parametrize("part", [0.02, 0.06, 0.2, 0.4])
def test_an_operation_that_sleeps_is_not_work_however_many_do(part):
    made, counters = run_of(part)
    assert limit_ns(made, counters) < 20 * SHORT_NS


@pytest.mark.parametrize("part", [0.02, 0.06, 0.2])
def test_a_long_operation_that_uses_the_processor_is_work(part):
    made, counters = run_of(part, working=True)
    assert limit_ns(made, counters) >= LONG_NS


def test_operations_that_are_interrupted_for_a_small_part_of_the_time_do_not_wait():
    made, counters = run_of(0.02, long_ns=150_000)
    assert limit_ns(made, counters) >= 150_000
    made, counters = run_of(0.06, long_ns=300_000)
    assert limit_ns(made, counters) < 150_000


def test_operations_much_longer_than_most_are_long_and_no_usual_one_is():
    for part in (0.005, 0.06):
        made, _ = run_of(part)
        long = long_ones(made, Waits.of(made, RARE))
        assert len(long) == pytest.approx(max(part, 0.01) * len(made), rel=0.2)
        assert np.isin(made.board_ns[made.duration_ns == LONG_NS], long.board_ns).all()
    all_of_them = Waits(np.zeros(len(made.kinds), np.int64))
    assert len(long_ones(made, all_of_them)) == len(made)


def test_waits_are_found_beside_a_compaction():
    made, counters = run_of(0.06)
    begin, end = 3 * 10**9, 6 * 10**9
    busy_s = np.clip(counters.board_ns - begin, 0, end - begin) * 1e-9
    beside = replace(counters, cpu_s=counters.cpu_s + busy_s)
    compaction = {"compaction": Intervals(np.array([begin]), np.array([end]))}
    assert limit_ns(made, beside, compaction) < 20 * SHORT_NS


def test_waits_are_found_although_a_running_thread_s_clock_is_late():
    """Linux adds a running thread's time to its clock once a tick, which lasts up to 10 ms."""
    made, counters = run_of(0.06)
    late = replace(counters, cpu_s=np.floor(counters.cpu_s * 100) / 100)
    assert limit_ns(made, late) < 20 * SHORT_NS
    made, counters = run_of(0.06, working=True)
    late = replace(counters, cpu_s=np.floor(counters.cpu_s * 100) / 100)
    assert limit_ns(made, late) >= LONG_NS


@pytest.mark.parametrize("threads", [4, 40])
def test_waits_are_found_among_many_threads(threads):
    made, counters = run_of(0.06)
    several = [replace(made, thread=np.full(len(made), number, np.uint16)) for number in range(threads)]
    all_of_them = replace(counters, cpu_s=threads * counters.cpu_s)
    assert limit_ns(OperationTable.concatenate(several).sorted(), all_of_them) < 20 * SHORT_NS


def test_the_usual_limit_stays_without_evidence():
    made, counters = run_of(0.06)
    usual_ns = int(Waits.of(made, RARE).longest_ns[0])
    still = replace(counters, cpu_s=0.0 * counters.cpu_s)
    few = Counters(**{name: values[:5] for name, values in vars(counters).items()})
    assert limit_ns(made, None) == limit_ns(made, still) == limit_ns(made, few) == usual_ns


def test_operations_may_wait_for_pages_that_the_medium_reads():
    """What the medium draws then is part of their energy."""
    made, counters = run_of(0.06, reads=0.05)
    assert limit_ns(made, counters) >= LONG_NS
