"""Time passed and left of a measurement: by the plan, by earlier phases, by a phase's own pace."""

import pytest
from opjoule.cli import commands
from opjoule.cli.measure.planning import make_plan
from opjoule.runs.measuring.progress import Expected, Pace, TimeLeft, expected_phases, in_words

CYCLE = [Expected("load", "load"), Expected("idle", "idle", 3.0), Expected("run", "run", 10.0)]


class Clock:
    """A clock that the test moves."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pace(clock):
    return Pace(clock)


def phases_of(*argv):
    options = commands.parse(["--db", "leveldb", "--device", "rpi4", "--simulate", *argv]).options
    return [(phase.shown, phase.length_s) for phase in expected_phases(make_plan(options))]


def test_a_plan_has_all_its_repeats_and_its_controls():
    cycle = [("load", None), ("settle", None), ("idle", 3.0), ("run", 16), ("settle", None), ("idle", 3.0)]
    loaded = ("--reset", "load", "--rate", "full", "--workload", "c")
    assert phases_of("--repeats", "2", *loaded) == [("rest", 3.0), *cycle, *cycle, ("harness", None)]


def test_repeats_that_go_on_are_warmed_up_once_and_have_one_idle_phase_between_them():
    settle, idle, run = ("settle", None), ("idle", 3.0), ("run", 16)
    once = [("load", None), ("warm-up", None), settle, idle]
    repeats = [run, settle, idle, run, settle, idle]
    assert phases_of("--repeats", "2") == [("rest", 3.0), *once, *repeats, ("harness", None)]


WRITES = ("-p", "readproportion=0.4", "-p", "updateproportion=0.3")


@pytest.mark.parametrize(
    ("other", "first"),
    [
        ("insertproportion=0.3", [("load", None), ("settle", None), ("idle", 3.0)]),
        ("readmodifywriteproportion=0.3", []),
    ],
)
def test_several_kinds_that_write_have_further_runs_each_prepared_as_a_repeat_is(other, first):
    mix = [*first, ("mix", 16), ("settle", None), ("idle", 3.0)]
    made = phases_of("--repeats", "2", *WRITES, "-p", other)
    assert made[-1 - 2 * len(mix) :] == [*mix, *mix, ("harness", None)]
    without = phases_of("--repeats", "2", *WRITES, "-p", other, "--no-mixes")
    assert without == [*made[: -1 - 2 * len(mix)], ("harness", None)]


def test_a_plan_without_idle_has_no_phase_of_it():
    names = [name for name, _ in phases_of("--idle", "0", "--repeats", "1", "--no-harness", "--workload", "c")]
    assert names == ["load", "warm-up", "settle", "run", "settle"]


def test_a_settle_counts_with_the_quiet_stretch_that_it_waits_for():
    options = commands.parse(["--db", "leveldb", "--device", "rpi4", "--simulate"]).options
    settles = [phase for phase in expected_phases(make_plan(options)) if phase.shown == "settle"]
    assert {phase.least_s for phase in settles} == {5}


def test_an_unknown_length_counts_as_its_least_until_it_is_known(pace, clock):
    pace.expect([*CYCLE, Expected("settle", "settle", least_s=5.0)])
    assert pace.left == TimeLeft(18.0, is_least=True)
    pace.begin("load", None)
    pace.expect([])
    assert pace.left is None


def test_time_left_is_a_lower_bound_until_every_kind_of_phase_was_there(pace, clock):
    pace.expect([*CYCLE, *CYCLE])
    assert pace.left == TimeLeft(26.0, is_least=True)
    pace.begin("load", None)
    clock.now_s += 5.0
    pace.begin("idle", 3.0)
    assert pace.left == TimeLeft(3.0 + 10.0 + 5.0 + 13.0, is_least=False)


def test_a_phase_takes_as_long_as_the_one_of_its_name_before_it(pace, clock):
    pace.expect([*CYCLE, *CYCLE])
    for title, length_s in (("load", 4.0), ("idle", 3.5), ("run", 12.0)):
        pace.begin(title, None)
        clock.now_s += length_s
    pace.begin("load", None)
    clock.now_s += 1.0
    assert pace.left == TimeLeft(3.0 + 3.5 + 12.0, is_least=False)
    clock.now_s += 30.0
    assert pace.left == TimeLeft(15.5, is_least=False)
    assert pace.elapsed_s == pytest.approx(4.0 + 3.5 + 12.0 + 31.0)


def test_a_phase_that_counts_goes_on_as_it_has_begun(pace, clock):
    pace.begin("run", 1000)
    clock.now_s += 30.0
    pace.stand(250)
    assert pace.share == 0.25 and pace.left == TimeLeft(90.0, is_least=False)


def test_a_wait_says_itself_how_long_it_takes_where_no_earlier_one_does(pace, clock):
    pace.expect([Expected("settle", "settle"), Expected("settle", "settle")])
    pace.begin("settle", None)
    assert pace.left is None
    pace.wait(40.0)
    assert pace.left == TimeLeft(40.0, is_least=True)
    clock.now_s += 20.0
    pace.begin("settle", None)
    pace.wait(900.0)
    assert pace.left == TimeLeft(20.0, is_least=False)


def test_a_phase_that_was_not_expected_leaves_those_that_are(pace):
    pace.expect(CYCLE)
    pace.begin("load signature", None)
    assert pace.left is not None and pace.left.remaining_s == 13.0
    pace.begin("run", None)
    assert pace.left == TimeLeft(10.0, is_least=False)
    pace.begin("align, integrate, report", None)
    assert pace.left is None


@pytest.mark.parametrize(
    ("length_s", "words"),
    [(0.4, "0 s"), (89, "89 s"), (100, "2 min"), (7199, "2 h 0 min"), (7800, "2 h 10 min")],
)
def test_lengths_are_rounded(length_s, words):
    assert in_words(length_s) == words
    assert TimeLeft(length_s, is_least=True).words == f"at least {words} left"
