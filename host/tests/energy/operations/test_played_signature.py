"""The load signature as the board logs it gives a map, says what disturbed it, and is one evidence among others."""

import numpy as np
import pytest
from opjoule.base.errors import AlignmentError
from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.exchanges import Exchange
from opjoule.clocks.signature import LoadPattern, signature_chips
from opjoule.energy.operations.board_files import BoardEdges
from opjoule.energy.operations.played_signature import chip_ms, chips_text, fit_played
from opjoule.energy.trace.journal import SyncEdges
from opjoule.runs.evaluation.alignment import INTERRUPT_EDGE_U_NS, METER_EDGE_U_NS, ClockEvidence, align

CHIP_NS = 20_000_000
NO_BOARD_EDGES = BoardEdges(np.array([], np.int64), np.array([], np.int8), np.array([]))
NO_METER_EDGES = SyncEdges(np.array([], np.int64), np.array([], np.int8), np.array([], np.int64))
OFFSET_NS = 5_000_000_000


def played(number, start_ns, u_ns=1000.0):
    changes = LoadPattern.of_chips(signature_chips(number), CHIP_NS, start_ns).change_ns
    return BoardEdges(changes, (np.arange(changes.size) + 1) % 2, np.full(changes.size, u_ns))


def recorded(patterns, noise_w=0.02, period_ns=200_000):
    """Trace of a meter whose clock is OFFSET_NS behind the board's."""
    last_ns = int(patterns[-1].board_ns[-1]) + 2_000_000_000
    meter_ns = np.arange(period_ns // 2, last_ns - OFFSET_NS, period_ns)
    power_w = np.random.default_rng(4).normal(3.0, noise_w, meter_ns.size)
    for pattern in patterns:
        state = np.searchsorted(pattern.board_ns, meter_ns + OFFSET_NS, side="right") % 2
        power_w += 1.5 * state
    return meter_ns, power_w


def fitted(patterns, **kwargs):
    meter_ns, power_w = recorded(patterns)
    return fit_played(meter_ns, power_w, patterns, 200_000, **kwargs)


BEFORE, AFTER = played(1, 6_000_000_000), played(2, 20_000_000_000)


def test_the_map_is_found_and_its_uncertainty_covers_the_error():
    clock_map = fitted([BEFORE, AFTER]).clock_map
    for board_ns in (6_000_000_000, 15_000_000_000, 25_000_000_000):
        error_ns = float(clock_map.to_target(board_ns)) - (board_ns - OFFSET_NS)
        assert abs(error_ns) < min(60_000, 2 * clock_map.u_ns(board_ns))


def test_a_disturbed_board_widens_the_uncertainty_by_what_it_logged():
    calm, disturbed = fitted([BEFORE, AFTER]), fitted([played(1, 6_000_000_000, 3e6), AFTER])
    assert calm.clock_map.u_ns(10**10) < 100_000
    assert disturbed.clock_map.u_ns(10**10) > 3e6


def test_one_late_change_does_not_shorten_the_chip():
    late = BEFORE.board_ns.copy()
    late[10] = late[11] - 300_000
    fit = fitted([BoardEdges(late, BEFORE.level, BEFORE.u_ns), AFTER])
    assert fit.rival < 0.5


@pytest.mark.parametrize("damage", ["torn", "repeated", "reversed", "empty"])
def test_a_torn_log_is_refused(damage):
    change_ns, level, u_ns = BEFORE.board_ns, BEFORE.level, BEFORE.u_ns
    keep = {
        "torn": slice(0, 11),
        "repeated": [0, 1, 1, 2],
        "reversed": slice(None, None, -1),
        "empty": slice(0, 0),
    }[damage]
    with pytest.raises(AlignmentError, match="load signature"):
        fitted([BoardEdges(change_ns[keep], level[keep], u_ns[keep]), AFTER])


def test_a_slow_meter_gets_longer_chips_and_too_slow_a_one_none():
    assert chip_ms(1_064_000) == 20
    assert chip_ms(10_000_000) == 40
    with pytest.raises(AlignmentError, match="too slow"):
        chip_ms(1_000_000_000)


def test_the_two_patterns_of_a_run_differ_and_are_what_the_loader_takes():
    assert set(chips_text(1)) == {"0", "1"}
    assert len(chips_text(1)) == 255
    assert chips_text(1) != chips_text(2)


def exchanges(offset_ns, trip_ns=1_000_000):
    """Host clock = board clock; the meter is `offset_ns` behind."""
    at = range(5_000_000_000, 26_000_000_000, 200_000_000)
    board = [Exchange(t - trip_ns // 2, t, t, t + trip_ns // 2) for t in at]
    meter = [Exchange(t - trip_ns // 2, t - offset_ns, t - offset_ns, t + trip_ns // 2) for t in at]
    return board, meter


def aligned(offset_ns=OFFSET_NS, signature=lambda: fitted([BEFORE, AFTER])):
    evidence = ClockEvidence(NO_BOARD_EDGES, NO_METER_EDGES, *exchanges(offset_ns), signature)
    return align(evidence, (6_000_000_000, 25_000_000_000))


def test_without_a_wire_the_signature_is_the_map_and_exchanges_check_it():
    alignment = aligned()
    assert alignment.board_to_meter.method == "signature"
    assert alignment.passed
    assert [check.name for check in alignment.checks if check.difference_ns is not None] == [
        "signature against exchanges+exchanges"
    ]


def test_a_signature_that_contradicts_the_exchanges_fails_the_run():
    assert not aligned(OFFSET_NS + 5_000_000).passed


def test_the_evidence_with_the_least_uncertainty_is_used():
    disturbed = aligned(signature=lambda: fitted([played(1, 6_000_000_000, 30e6), AFTER]))
    assert disturbed.board_to_meter.method == "exchanges+exchanges"
    assert disturbed.passed


def test_a_signature_that_is_not_found_is_reported_and_does_not_end_the_run():
    def nothing():
        raise AlignmentError("load signature not found in the power trace")

    alignment = aligned(signature=nothing)
    assert isinstance(alignment.board_to_meter, ClockMap)
    assert any("not found" in check.detail for check in alignment.checks)


def on_the_line(meter_edge_u_ns, late_ns=0):
    """Sync edges of the whole run, all of them `late_ns` late on the meter, and exchanges."""
    steps_ns = np.random.default_rng(1).integers(500_000_000, 1_500_000_000, 18)
    board_ns = 6_000_000_000 + np.cumsum(steps_ns)
    level = (np.arange(board_ns.size) % 2 == 0).astype(np.int8)
    board = BoardEdges(board_ns, level, np.full(board_ns.size, 1e3))
    meter = SyncEdges(board_ns - OFFSET_NS + late_ns, level, np.arange(board_ns.size))
    evidence = ClockEvidence(board, meter, *exchanges(OFFSET_NS), meter_edge_u_ns=meter_edge_u_ns)
    return align(evidence, (6_000_000_000, 25_000_000_000))


def test_edges_that_an_interrupt_stamps_make_a_map_that_says_how_late_they_may_be():
    at_ns, late_ns = 15_000_000_000, 8_000
    true_ns = at_ns - OFFSET_NS
    captured, interrupt = on_the_line(METER_EDGE_U_NS), on_the_line(INTERRUPT_EDGE_U_NS, late_ns)
    assert captured.board_to_meter.method == interrupt.board_to_meter.method == "sync-edges"
    assert captured.board_to_meter.u_ns(at_ns) < 1_000
    off_ns = abs(int(interrupt.board_to_meter.to_target(at_ns)) - true_ns)
    assert off_ns == pytest.approx(late_ns, abs=100)
    assert off_ns < 2 * interrupt.board_to_meter.u_ns(at_ns)
