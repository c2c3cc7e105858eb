"""Power of the simulated board follows the activity of its cores and the work of its medium."""

import pytest
from opjoule.bench.simulation.medium_work import MediumMode, MediumStretch
from opjoule.bench.simulation.power_model import Activity, CountedPower, Supply
from opjoule.boards.profiles import find_profile
from stated_models import load_model

SIMULATED_BOARDS = ("rpi3", "rpi4", "rpi5", "odroid-c2")
SECOND_NS = 1_000_000_000


def activity(start_s=0.0, end_s=1.0, cpu_s=0.0, read_bytes=0, written_bytes=0):
    return Activity(round(start_s * SECOND_NS), round(end_s * SECOND_NS), cpu_s, read_bytes, written_bytes)


def busy(start_s, end_s, mode=MediumMode.WRITING):
    return MediumStretch(round(start_s * SECOND_NS), round(end_s * SECOND_NS), mode)


def powers(model, of, *work):
    """(moment [s], power [W]) of each row of one interval."""
    return [(at / SECOND_NS, a * v) for at, a, v in model.rows(of, [], work)]


@pytest.mark.parametrize("board", SIMULATED_BOARDS)
def test_every_simulated_board_has_a_model_for_each_of_its_media(board):
    for medium in find_profile(board).media:
        ((_, current_a, voltage_v),) = load_model(board, medium).rows(activity(), [], [])
        assert current_a > 0
        assert voltage_v > 0


def test_power_at_the_board_is_the_model_s_whatever_the_supply_s_resistance():
    for resistance_ohm in (0.0, 0.05, 0.5):
        current_a, voltage_v = Supply(5.1, resistance_ohm).at_power(4.2)
        assert current_a * voltage_v == pytest.approx(4.2)


def test_more_busy_cores_draw_more_and_the_last_core_is_the_limit():
    drawn_w = [
        powers(load_model("rpi4", "sd"), activity(cpu_s=cpu_s))[0][1] for cpu_s in (0.0, 0.5, 1.0, 2.0, 4.0, 9.0)
    ]
    assert drawn_w[:5] == sorted(drawn_w[:5])
    assert drawn_w[5] == drawn_w[4]


def test_power_steps_where_the_medium_begins_and_ends_to_work():
    """To the nanosecond, with a tail behind each stretch and none between two that touch."""
    model = load_model("rpi4", "sd", Supply(5.1, 0.0))
    work = [busy(0.1234567, 0.2), busy(0.2, 0.21, MediumMode.FLUSHING), busy(0.3, 0.4)]
    course = powers(model, activity(cpu_s=1.0), *work)
    assert course == [
        (at_s, pytest.approx(3.30 + above_w))
        for at_s, above_w in (
            (0, 0),
            (0.1234567, 0.33),
            (0.2, 0.33),
            (0.21, 0.066),
            (0.3, 0.33),
            (0.4, 0.066),
            (0.65, 0),
        )
    ]


def test_work_and_tail_go_on_from_one_interval_to_the_next():
    model = load_model("rpi4", "sd", Supply(5.1, 0.0))
    assert powers(model, activity(0, 1), busy(0.9, 1.0)) == [
        (0, pytest.approx(3.04)),
        (0.9, pytest.approx(3.37)),
    ]
    second = powers(model, activity(1, 1.1), busy(1.0, 1.05))
    assert second == [(1, pytest.approx(3.37)), (1.05, pytest.approx(3.106))]
    third = powers(model, activity(1.1, 2))
    assert third == [(1.1, pytest.approx(3.106)), (1.3, pytest.approx(3.04))]


def test_a_virtual_board_s_medium_works_as_long_as_its_counters_say():
    stated = load_model("virtual", "sd", Supply(5.1, 0.0))
    model = CountedPower(stated.board, stated.medium, stated.supply)
    course = powers(model, activity(written_bytes=1_410_000, read_bytes=4_130_000))
    assert [at_s for at_s, _ in course] == pytest.approx([0, 0.1, 0.2, 0.45])
    assert [power_w for _, power_w in course] == pytest.approx([2.81, 2.81, 2.546, 2.48])
    assert powers(model, activity(1, 2)) == [(1, pytest.approx(2.48))]


def test_the_page_cache_is_a_part_of_the_board_s_memory_as_in_linux():
    board = load_model("rpi3", "sd").board
    assert board.dirty_limit_bytes == 2 * board.dirty_background_bytes == 160_000_000


@pytest.mark.slow
def test_each_measurement_draws_a_medium_of_its_own_within_the_stated_bounds():
    stated = load_model("rpi4", "sd").medium
    drawn = [load_model("rpi4", "sd", seed=seed).medium for seed in range(300)]
    for name, part in stated.spread.items():
        usual, values = getattr(stated, name), [getattr(medium, name) for medium in drawn]
        assert usual * (1 - part) <= min(values) < usual * (1 - 0.9 * part), name
        assert usual * (1 + 0.9 * part) < max(values) <= usual * (1 + part), name
    assert drawn[3] == load_model("rpi4", "sd", seed=3).medium
    assert {medium.idle_w for medium in drawn} == {stated.idle_w}


def test_a_simulated_board_is_drawn_between_the_units_and_sessions_that_were_told():
    stated, drawn = load_model("rpi3", "sd").board, [load_model("rpi3", "sd", seed=seed).board for seed in range(300)]
    idle_w = [board.busy_cores_w[0] for board in drawn]
    one_w = [board.busy_cores_w[1] - board.busy_cores_w[0] for board in drawn]
    assert 1.91 <= min(idle_w) < 1.95 and 2.62 < max(idle_w) <= 2.66
    assert 0.12 <= min(one_w) < 0.15 and 0.87 < max(one_w) <= 0.9
    further_w = stated.busy_cores_w[4] - stated.busy_cores_w[1]
    assert all(board.busy_cores_w[4] - board.busy_cores_w[1] == pytest.approx(further_w) for board in drawn)
    assert drawn[3] == load_model("rpi3", "emmc", seed=3).board
    assert load_model("rpi4", "sd", seed=3).board == load_model("rpi4", "sd").board


def test_every_ordinary_tail_is_short_enough_for_a_quick_measurement():
    for board in SIMULATED_BOARDS:
        for medium in find_profile(board).media:
            model = load_model(board, medium)
            powers(model, activity(), busy(0, 1))
            assert powers(model, activity(1, 3))[-1][0] <= 2
            assert powers(model, activity(3, 4)) == powers(load_model(board, medium), activity(3, 4))
