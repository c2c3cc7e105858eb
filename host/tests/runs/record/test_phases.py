"""Phases of an interrupted measurement."""

from opjoule.runs.record.phases import Cycle, Phase, Role, whole_repeats, worked_repeats
from usual_phases import usual_phase

ONE = ["load", "idle-before", "run", "settle", "idle-after"]


def phases(*names: str) -> list[Phase]:
    repeat, made = 0, []
    for number, name in enumerate(names):
        repeat += name == "load"
        made.append(usual_phase(name, 1 if name == "harness" else repeat, 10 * number, 10 * number + 10))
    return made


def kept(recorded: list[Phase]) -> list[tuple[str, int]]:
    return [(phase.name, phase.repeat) for phase in recorded]


def test_a_repeat_that_ended_is_kept_and_one_that_was_cut_off_is_not():
    recorded = phases(*ONE, "load", "idle-before", "run")
    assert kept(whole_repeats(recorded, 1000)) == [(name, 1) for name in ONE]


def test_what_the_trace_does_not_reach_does_not_count():
    assert whole_repeats(phases(*ONE), 49) == []
    assert len(whole_repeats(phases(*ONE), 50)) == 5


def test_a_cut_off_first_repeat_leaves_nothing():
    assert whole_repeats(phases("load", "idle-before", "run"), 1000) == []
    assert whole_repeats([], 1000) == []


def test_after_the_harness_every_repeat_is_whole():
    assert len(whole_repeats(phases(*ONE, *ONE, "harness"), 1000)) == 11


def test_the_cycle_in_blocks_is_no_repeat():
    blocks = [
        Phase("blocks", 2, 50, 60, role=Role.BLOCKS),
        usual_phase("settle", 2, 60, 70),
        usual_phase("idle-after", 2, 70, 80),
    ]
    recorded = [*phases(*ONE), *blocks]
    assert worked_repeats(recorded) == [1] and worked_repeats(blocks) == []
    cycle = Cycle.of(recorded, 2)
    assert cycle and (cycle.work, cycle.drain) == (blocks[0], blocks[1])
    assert whole_repeats(recorded, 80) == recorded
    assert whole_repeats(recorded, 70) == recorded[:5]


def test_a_run_in_another_mix_is_no_repeat_and_counts_only_if_it_ended():
    mix = [usual_phase("mix", 2, 50, 60), usual_phase("settle", 2, 60, 70), usual_phase("idle-after", 2, 70, 80)]
    recorded = [*phases(*ONE), *mix]
    assert worked_repeats(recorded) == [1] and worked_repeats(recorded, Role.MIX) == [2]
    assert whole_repeats(recorded, 80) == recorded
    assert whole_repeats(recorded, 79) == recorded[:5]
    cycle = Cycle.of(recorded, 2)
    assert cycle and (cycle.work, cycle.drain) == (mix[0], mix[1])
    assert cycle.baselines == (recorded[4], mix[2]), "it began in the idle phase of the repeat before"


def test_repeats_that_go_on_share_the_idle_phase_between_them():
    """Also in a record of a development version, which ran reads on their own."""
    shared = [
        usual_phase("idle-before", 1, 0, 10),
        Phase("reads", 1, 10, 20, role=Role.READS),
        Phase("reads-settle", 1, 20, 30, role=Role.DRAIN),
        usual_phase("run", 1, 30, 40),
        usual_phase("settle", 1, 40, 50),
        usual_phase("idle-after", 1, 50, 60),
        usual_phase("run", 2, 60, 70),
        usual_phase("settle", 2, 70, 80),
        usual_phase("idle-after", 2, 80, 90),
    ]
    first, second = Cycle.of(shared, 1), Cycle.of(shared, 2)
    assert first.work is shared[3] and first.drain is shared[4] and first.baselines == (shared[0], shared[5])
    assert second.work is shared[6] and second.baselines == (shared[5], shared[8])
    assert worked_repeats(shared) == [1, 2]
