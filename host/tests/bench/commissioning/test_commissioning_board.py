"""Verdicts on recordings of a board: sync line, clocks, load steps, full load, medium, errors, idle power."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from commissioned_traces import BOUNDS, recorded, trace
from opjoule.bench.commissioning.desk import StepOutcome
from opjoule.bench.commissioning.load_course import (
    BothEnergies,
    LevelReading,
    judge_errors,
    judge_full,
    judge_idle,
    judge_levels,
    judge_second,
)
from opjoule.bench.commissioning.medium_bytes import FoundMedium, WrittenMedium, judge_medium
from opjoule.bench.commissioning.sync_line import SyncRecorded, judge_rates, judge_sync
from opjoule.boards.profiles import find_profile
from opjoule.clocks.clock_map import Check, ClockMap
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.calibration.means import MeanReading
from opjoule.energy.operations.tables import EVENTS
from opjoule.energy.trace.journal import SyncEdges
from opjoule.meters.capture import CaptureSummary
from opjoule.meters.interface import Losses
from opjoule.runs.evaluation.alignment import Alignment

PASSED, FAILED = StepOutcome.PASSED, StepOutcome.FAILED
RPI4 = find_profile("rpi4")
BOARD_AHEAD_NS = 5_000_000_000
"""Start of the board's clock; host and meter start at 0."""


def exchanges(seconds, ahead_ns, rate=1.0):
    """Round trips of 100 us, five a second."""
    round_trips = []
    for number in range(int(seconds * 5)):
        sent_ns = number * 200_000_000
        far_ns = ahead_ns + round((sent_ns + 50_000) * rate)
        round_trips.append(Exchange(sent_ns, far_ns, far_ns, sent_ns + 100_000))
    return round_trips


def sync_recorded(
    *,
    seconds=90.0,
    played_s=75.0,
    lost=0,
    foreign_hz=0.0,
    rest_edges=0,
    jitter_ns=300,
    inverted=False,
    storms=0,
):
    """A board that toggles its line about once a second until `played_s`, and a meter that hears it."""
    chance = np.random.default_rng(3)
    made_ns = np.rint(np.cumsum(chance.uniform(0.5, 1.5, 200)) * 1e9).astype(np.int64)
    made_ns = made_ns[made_ns < played_s * 1e9]
    level = (np.arange(made_ns.size) % 2 == 0).astype(np.int8)
    heard = np.ones(made_ns.size, bool)
    heard[chance.choice(made_ns.size, lost, replace=False)] = False
    of_board = made_ns[heard] + np.rint(chance.normal(0, jitter_ns, int(heard.sum()))).astype(np.int64)
    levels = 1 - level[heard] if inverted else level[heard]
    if foreign_hz:
        others = np.sort(chance.uniform(0, seconds * 1e9, int(foreign_hz * seconds))).astype(np.int64)
        of_board, levels = (
            np.concatenate([of_board, others]),
            np.concatenate([levels, (others % 2).astype(np.int8)]),
        )
    rest = (played_s + 5 + np.arange(rest_edges)) * 1e9
    of_board = np.concatenate([of_board, rest.astype(np.int64)])
    levels = np.concatenate([levels, np.zeros(rest_edges, np.int8)])
    order = np.argsort(of_board)
    edges = SyncEdges(of_board[order], levels[order].astype(np.int8), np.arange(of_board.size))
    rows = [
        {"board_ns": int(at) + BOARD_AHEAD_NS, "event": "sync-edge", "level": int(up), "u_ns": 100.0}
        for at, up in zip(made_ns, level, strict=True)
    ]
    captured = CaptureSummary(losses=Losses(faults={"sync_oscillates": storms} if storms else {}))
    made = recorded(
        seconds,
        0.5,
        edges=edges,
        events={"pulses": pa.Table.from_pylist(rows, schema=EVENTS)},
        captured=captured,
        meter_exchanges=exchanges(seconds, 0),
        board_exchanges=exchanges(seconds, BOARD_AHEAD_NS),
    )
    return SyncRecorded(made, BOARD_AHEAD_NS + round(played_s * 1e9), has_line=True)


@pytest.mark.parametrize(
    ("case", "outcome", "said", "advice"),
    [
        ({}, PASSED, "not inverted", ""),
        ({"inverted": True}, PASSED, "INVERTED", ""),
        ({"jitter_ns": 15_000}, PASSED, "us (rms)", ""),
        ({"jitter_ns": 30_000}, FAILED, "scatter by", "74AHCT125"),
        ({"lost": 1}, FAILED, "1 of the board's", "loose contact"),
        ({"rest_edges": 1}, FAILED, "1 edges arrive that", "100 kohm"),
        ({"foreign_hz": 1.0}, FAILED, "edges arrive that", "100 kohm"),
        ({"storms": 3}, FAILED, "oscillates (3 pauses)", "100 kohm"),
    ],
)
def test_every_edge_must_arrive_at_its_time_and_no_other(case, outcome, said, advice):
    verdict = judge_sync(sync_recorded(**case))
    assert verdict.outcome is outcome
    assert said in verdict.words and advice in verdict.advice


def without_the_boards(taken, foreign):
    count = foreign
    edges = SyncEdges(
        np.arange(count, dtype=np.int64) * 10_000_000,
        (np.arange(count) % 2).astype(np.int8),
        np.arange(count),
    )
    return replace(taken, recorded=replace(taken.recorded, edges=edges))


def test_a_dead_wire_and_a_floating_input_are_told_apart():
    dead = judge_sync(without_the_boards(sync_recorded(), 0))
    floating = judge_sync(without_the_boards(sync_recorded(), 9000))
    assert "dead" in dead.words and "--pulses 20" in dead.advice
    assert "floats" in floating.words and "100 kohm" in floating.advice


def test_a_rig_without_a_sync_line_leaves_its_step_out():
    assert judge_sync(replace(sync_recorded(), has_line=False)).outcome is StepOutcome.SKIPPED


def clock_map(rate, source="host", target="meter"):
    return ClockMap(source, target, 0, 0, rate, 1e3, 1e-9, "exchanges", 1e3, 100)


@pytest.mark.parametrize(
    ("meter_ppm", "board_ppm", "agree", "outcome", "advice"),
    [
        (4900, 50, True, PASSED, ""),
        (-7990, -199, True, PASSED, ""),
        (8100, 0, True, FAILED, "RC oscillator"),
        (0, 210, True, FAILED, "chrony"),
        (0, 0, False, FAILED, "align the clocks"),
    ],
)
def test_clocks_are_held_against_their_oscillators_and_against_each_other(meter_ppm, board_ppm, agree, outcome, advice):
    both = clock_map((1 + meter_ppm * 1e-6) / (1 + board_ppm * 1e-6), "board")
    check = Check("sync-edges against signature", agree, 5e3, 1e4, "sync-edges and signature agree or not")
    alignment = Alignment(both, (check,), {"sync-edges": both, "signature": both}, "sync-edges")
    verdict = judge_rates(clock_map(1 + board_ppm * 1e-6, target="board"), alignment)
    assert verdict.outcome is outcome and advice in verdict.advice


def test_a_signature_that_is_not_found_fails_the_clocks():
    both = clock_map(1.0, "board")
    verdict = judge_rates(clock_map(1.0, target="board"), Alignment(both, (), {"sync-edges": both}))
    assert verdict.outcome is FAILED and "signature" in verdict.words


def test_a_meter_too_slow_for_a_signature_is_not_blamed_for_it():
    both = clock_map(1.0, "board")
    alignment = Alignment(both, (), {"sync-edges": both})
    assert judge_rates(clock_map(1.0, target="board"), alignment, played=False).outcome is PASSED


def levels(*, ohm=0.15, back=1.0, powers=(3.0, 3.4, 4.5, 5.6, 6.4), sign=1):
    """Up and back on a supply of 5.2 V behind this resistance, the shunt's 0.1 ohm in it."""
    readings = []
    course = [
        *enumerate(powers),
        *[(place, power * back) for place, power in reversed(list(enumerate(powers)))][1:],
    ]
    for place, power_w in course:
        current_a = (5.2 - np.sqrt(5.2**2 - 4 * ohm * power_w)) / (2 * ohm)
        read = MeanReading(sign * current_a, 1e-5, 5.2 - ohm * current_a, 1e-4)
        readings.append(LevelReading(2 * place, read))
    return readings


@pytest.mark.parametrize(
    ("case", "outcome", "advice"),
    [
        ({}, PASSED, ""),
        ({"ohm": 0.29}, PASSED, ""),
        ({"ohm": 0.31}, FAILED, "thicker cable"),
        ({"ohm": 0.5}, FAILED, "thicker cable"),
        ({"back": 1.004}, PASSED, ""),
        ({"back": 0.994}, FAILED, "clock frequency"),
        ({"powers": (3.0, 3.4, 3.3, 5.6, 6.4)}, FAILED, "throttled"),
        ({"sign": -1}, FAILED, "VIN+ and VIN"),
        ({"powers": (3.0, 3.05, 3.1, 3.15, 3.2)}, FAILED, "measures this board"),
    ],
)
def test_load_steps_tell_the_cable_and_what_does_not_repeat(case, outcome, advice):
    verdict = judge_levels(levels(**case), BOUNDS)
    assert verdict.outcome is outcome and advice in verdict.advice
    if "sign" not in case:
        assert verdict.figures["cable_ohm"].value == pytest.approx(case.get("ohm", 0.15) - 0.1, abs=5e-3)


def test_a_load_that_does_not_change_tells_no_cable():
    verdict = judge_levels(levels(powers=(3.0, 3.0, 3.0)), BOUNDS)
    assert verdict.outcome is FAILED and "cable" in verdict.words and "cable_ohm" not in verdict.figures


@pytest.mark.parametrize(
    ("least_v", "flags", "clipped", "outcome", "advice"),
    [
        (4.75, (), 0, PASSED, ""),
        (4.70, (), 0, FAILED, "20 milliohm"),
        (4.9, ("firmware reports under-voltage",), 0, FAILED, "too weak"),
        (4.9, (), 2, FAILED, "range="),
    ],
)
def test_full_load_leaves_the_board_its_voltage_and_the_sensor_its_range(least_v, flags, clipped, outcome, advice):
    dip = recorded(
        5.0,
        1.5,
        lambda time_s: np.where(abs(time_s - 2.0) < 0.1, least_v, 5.0),
        captured=CaptureSummary(clipped_samples=clipped),
    )
    verdict = judge_full(dip, flags, RPI4)
    assert verdict.outcome is outcome and advice in verdict.advice


def written_medium(share=1.0, storage_trace=None, sensor=0, **medium):
    """256 MiB asked for, of which the kernel counts a share."""
    size = 256 << 20
    spans = {"rest": (0, 2), "processors": (2, 4), "written": (4, 8)}
    system = {
        name: pa.table(
            {
                "board_ns": np.array([start, end]) * 1_000_000_000 + BOARD_AHEAD_NS,
                "device_written_bytes": np.array([1000, 1000 + int(size * share)]),
            }
        )
        for name, (start, end) in spans.items()
    }
    made = recorded(
        9.0,
        0.6,
        system=system,
        meter_exchanges=exchanges(9.0, 0),
        board_exchanges=exchanges(9.0, BOARD_AHEAD_NS),
        other_sensors={1: storage_trace} if storage_trace is not None else {},
    )
    seen = {"path_number": "179:2", "path_device": "mmcblk0p2", **medium}
    return WrittenMedium(made, FoundMedium("sd", "/mnt/sd", **seen), size, sensor)


@pytest.mark.parametrize(
    ("case", "outcome", "advice"),
    [
        ({}, PASSED, ""),
        ({"share": 1.019}, PASSED, ""),
        ({"share": 1.03}, FAILED, "end other writers"),
        ({"share": 0.97}, FAILED, "end other writers"),
        ({"share": 0.0}, FAILED, "path of sd"),
        ({"path_device": "sda1"}, FAILED, "mount the sd"),
        ({"path_number": ""}, FAILED, "path on the medium"),
        ({"stated": "/dev/mmcblk1", "stated_number": "179:8"}, FAILED, "path or device"),
        ({"stated": "/dev/mmcblk0p2", "stated_number": "179:2"}, PASSED, ""),
    ],
)
def test_the_kernels_bytes_and_its_device_tell_a_wrong_medium(case, outcome, advice):
    verdict = judge_medium(written_medium(**case))
    assert verdict.outcome is outcome and advice in verdict.advice


@pytest.mark.parametrize(("with_processors_a", "outcome"), [(0.0, PASSED), (0.1, FAILED)])
def test_a_storage_sensor_moves_with_the_medium_alone(with_processors_a, outcome):
    def current_a(time_s):
        busy = (time_s > 2) & (time_s < 4)
        return 0.1 + with_processors_a * busy + 0.15 * ((time_s > 4) & (time_s < 8))

    verdict = judge_medium(written_medium(storage_trace=trace(9.0, current_a), sensor=1))
    assert verdict.outcome is outcome
    assert ("medium's own VBUS" in verdict.advice) == (outcome is FAILED)


@pytest.mark.parametrize(("off", "outcome"), [(0.0, PASSED), (0.013, PASSED), (0.02, FAILED), (-0.02, FAILED)])
def test_two_meters_agree_within_both_intervals_once_the_loss_is_counted(off, outcome):
    energies = [
        BothEnergies(level, 30.0 + level, 0.014 * (30 + level), (30.0 + level) * (1 + off) + 0.4, 0.05, 0.4, 0.02)
        for level in (0, 4, 8)
    ]
    verdict = judge_second(energies)
    assert verdict.outcome is outcome
    assert verdict.figures["apart"].value == pytest.approx(off, abs=1e-3)
    assert ("exchange" in verdict.advice) == (outcome is FAILED)


@pytest.mark.parametrize(
    ("losses", "advice"),
    [
        (Losses(), ""),
        (Losses(faults={"i2c_nack": 3}), "4.7 kohm"),
        (Losses(faults={"sensor_reset": 1}), "4.7 kohm"),
        (Losses(faults={"conversion_missed": 1}), "4.7 kohm"),
        (Losses(lost_samples=5, link={"lost_frames": 2}), "USB cable"),
        (Losses(link={"bad_crc": 1}), "USB cable"),
    ],
)
def test_any_error_of_the_chain_fails_the_long_run(losses, advice):
    verdict = judge_errors(recorded(5.0, 0.6, captured=CaptureSummary(samples=4000, losses=losses)))
    assert verdict.outcome is (FAILED if advice else PASSED) and advice in verdict.advice


@pytest.mark.parametrize(
    ("current_a", "outcome"), [(0.6, PASSED), (0.2, StepOutcome.WARNING), (1.5, StepOutcome.WARNING)]
)
def test_an_implausible_idle_power_is_a_warning_only(current_a, outcome):
    assert judge_idle(recorded(5.0, current_a), RPI4).outcome is outcome


def test_a_board_of_which_nothing_is_known_has_any_idle_power():
    assert judge_idle(recorded(5.0, 9.0), find_profile("generic-linux")).outcome is PASSED
