"""Steps of the sync line and the clocks, from one recording: pulses between two load signatures, then rest."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.base.errors import AlignmentError
from opjoule.bench.commissioning.desk import (
    CheckedFigure,
    Defects,
    DeskRecording,
    OpenDesk,
    Picture,
    Running,
    Setup,
    Verdict,
)
from opjoule.boards.board import Board
from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.edges import EdgePairs, fit_edges, match_edges
from opjoule.clocks.exchanges import fit_exchanges
from opjoule.clocks.signature import SignatureFit
from opjoule.energy.error_bounds import RESONATOR_ERROR_MAX
from opjoule.energy.operations.played_signature import chip_ms, chips_text, fit_played
from opjoule.meters.capture import OSCILLATES
from opjoule.runs.evaluation.alignment import Alignment, ClockEvidence, align

RMS_MAX_NS: Final = 20_000.0
"""An interrupt stamps an edge 0 to 20 us late (firmware on the Arduino framework), a capture unit 0.5 us late."""
BOARD_RATE_MAX: Final = 200e-6
"""Limit of board against host: two undisciplined crystals of at most 100 ppm each."""
RELEASED_NS: Final = 2_000_000_000
"""Time after the probe's end in which the board may release the line, which makes an edge."""
SETTLED_S: Final = 1.0
"""Time until the meter's sample period is known."""
BEGUN_NS: Final = 50_000_000
"""An edge this close to the beginning may or may not be in the recording."""
_LOOK: Final = (
    "check along the wire with an LED or a multimeter (host/measure.py doctor --pulses 20): the board's pin, 1 kohm, "
    "the buffer's input (pin 2), its supply (14), enable (pin 1 to GND), output (pin 3), D8"
)


@dataclass(frozen=True)
class SyncRecorded:
    """The recording, and the time from which the line should be at rest."""

    recorded: DeskRecording
    ended_board_ns: int
    """Time of the probe's end [board_ns]; the board makes no edge after it."""
    has_line: bool


def take_sync(desk: OpenDesk) -> SyncRecorded:
    """Records pulses between two load signatures, then some time without the probe."""
    desk.set_up(Setup.BOARD)
    pace = desk.pace
    with desk.prepared() as board, desk.recording("sync", board) as running:
        running.wait(SETTLED_S)
        running.begin_files("pulses")
        for number in pace.patterns[:1]:
            _play(board, running, number)
        running.wait(pace.sync_s)
        for number in pace.patterns[1:]:
            _play(board, running, number)
        ended_board_ns = board.probe.clock_exchange().far_received_ns
        running.catch_up_to(ended_board_ns + 1)
        running.end_probe()
        running.wait(pace.quiet_s)
        has_line = board.has_sync_line
    return SyncRecorded(running.recorded(), ended_board_ns, has_line)


def _play(board: Board, running: Running, number: int) -> None:
    """Plays a load signature; its changes go to separate files."""
    try:
        bit_ms = chip_ms(running.capture.period_ns)
    except AlignmentError:
        return  # the meter is too slow for any pattern
    running.begin_files(f"signature-{number}")
    board.probe.play_signature(chips_text(number), bit_ms)
    running.begin_files(f"pulses-{number}")


def judge_sync(taken: SyncRecorded) -> Verdict:
    """Judges whether every edge of the board arrives at the meter at the right time, and no other edge."""
    if not taken.has_line:
        return Verdict.skipped("rig.toml has no sync line")
    recorded = taken.recorded
    board, meter = recorded.edges_made, recorded.edges
    board_to_meter = by_exchanges(recorded)
    start_ns = board_to_meter.inverse().to_target(int(recorded.trace.meter_ns[0]))
    of_recording = board.board_ns > start_ns + BEGUN_NS
    played = int(of_recording.sum())
    rest_ns = board_to_meter.to_target(taken.ended_board_ns) + RELEASED_NS
    resting = int((meter.meter_ns > rest_ns).sum())
    during = meter.meter_ns <= rest_ns
    try:
        edges = board.board_ns[of_recording], board.level[of_recording]
        pairs: EdgePairs | None = match_edges(*edges, meter.meter_ns[during], meter.level[during])
    except AlignmentError:
        pairs = None
    arrived = pairs.source_ns.size if pairs else 0
    foreign = int(during.sum()) - arrived
    figures = {
        "arrived": CheckedFigure(arrived, "edges", f"{played} of {played}"),
        "foreign": CheckedFigure(foreign, "edges", "at most 2 (the board takes and releases the line)"),
        "at_rest": CheckedFigure(resting, "edges", "none"),
    }
    faults = _lost_and_foreign(played, arrived, foreign, resting, recorded)
    words = f"{arrived} of {played} edges arrive, {max(foreign, 0) + resting} others"
    if pairs is None:
        return Verdict.of(words, faults, figures)
    fitted = fit_edges(pairs, "board", "meter")
    away_ns = np.asarray(pairs.target_ns - fitted.to_target(pairs.source_ns), np.float64)
    rms_ns = math.sqrt(float(np.mean(away_ns**2)))
    figures["rms_s"] = CheckedFigure(rms_ns * 1e-9, "s", f"below {RMS_MAX_NS / 1e3:g} us")
    if rms_ns > RMS_MAX_NS:
        faults.add(
            f"the edges scatter by {rms_ns / 1e3:.0f} us (rms)",
            "use a 74AHCT125 instead of a MOSFET level shifter, whose pull-up slows the edge; stop programs that set "
            "the board's clock (chrony, ntpd)",
        )
    same = bool(np.mean(board.level[of_recording][pairs.source_index] == meter.level[during][pairs.target_index]) > 0.5)
    said = f"{words}, {rms_ns / 1e3:.2f} us (rms), {'not inverted' if same else 'INVERTED on the way'}"
    board_s = (pairs.source_ns - pairs.source_ns[0]) * 1e-9
    picture = Picture(board_s.tolist(), (away_ns * 1e-3).tolist(), "s", "edge minus clock map, us")
    return Verdict.of(said, faults, figures, picture)


def _lost_and_foreign(played: int, arrived: int, foreign: int, resting: int, recorded: DeskRecording) -> Defects:
    storms = recorded.captured.losses.faults.get(OSCILLATES, 0)
    others, faults = foreign + resting, Defects()
    if played == 0:
        faults.add("the board made no edge", "check 'sync' of the board in rig.toml, and run host/measure.py doctor")
    elif arrived == 0 and (others > played or storms):
        faults.add(
            f"none of the board's {played} edges arrives, {others} foreign ones do: the buffer's input floats",
            "put 100 kohm from the buffer's input (pin 2) to GND; the wire to the board's pin is not connected: "
            f"{_LOOK}",
        )
    elif arrived == 0:
        faults.add(f"none of the board's {played} edges arrives: the wire is dead", _LOOK)
    if faults:
        return faults
    if arrived < played:
        faults.add(
            f"{played - arrived} of the board's {played} edges are lost",
            "a loose contact, or a level that is not reached: connect the grounds with a separate wire, and use the "
            "buffer",
        )
    if foreign > 2 or resting or storms:
        faults.add(
            f"{others} edges arrive that the board did not make"
            + (f", and it oscillates ({storms} pauses)" if storms else ""),
            "put 100 kohm from the buffer's input (pin 2) to GND, keep the sync wire short and away from the supply's, "
            "and connect the board's ground to the buffer's",
        )
    return faults


def by_exchanges(recorded: DeskRecording) -> ClockMap:
    """Clock map board -> meter from round trips only."""
    board_to_host = fit_exchanges(recorded.board_exchanges, "host", "board").inverse()
    return board_to_host.then(fit_exchanges(recorded.meter_exchanges, "host", "meter"))


def clock_evidence(recorded: DeskRecording) -> ClockEvidence:
    """Evidence in a recording on the clocks of board and meter."""
    played = recorded.load_changes()
    trace, good = recorded.trace, recorded.trace.good

    def fit() -> SignatureFit:
        conversion_ns = round(recorded.bounds.seen_fraction * trace.period_ns)
        return fit_played(trace.meter_ns[good], trace.power_w[good], played, conversion_ns)

    exchanges = recorded.board_exchanges, recorded.meter_exchanges
    return ClockEvidence(recorded.edges_made, recorded.edges, *exchanges, fit if played else None)


def judge_clocks(taken: SyncRecorded) -> Verdict:
    """Judges whether the clocks' rates are within their oscillators' limits, and the ways to align them agree."""
    recorded = taken.recorded
    to_board = fit_exchanges(recorded.board_exchanges, "host", "board")
    stamps = recorded.board_exchanges
    over = stamps[0].far_received_ns, stamps[-1].far_received_ns
    alignment = align(clock_evidence(recorded), over)
    return judge_rates(to_board, alignment, played=bool(recorded.load_changes()))


def judge_rates(to_board: ClockMap, alignment: Alignment, *, played: bool = True) -> Verdict:
    """Verdict on the clock map host -> board and on the alignment of board and meter.

    Args:
        played: whether the board played a load signature; it does not if the meter is too slow.
    """
    best = alignment.board_to_meter
    resonator, board = to_board.rate * best.rate - 1, to_board.rate - 1
    figures = {
        "meter_to_host": CheckedFigure(resonator, "", f"within {1e6 * RESONATOR_ERROR_MAX:,.0f} ppm"),
        "board_to_host": CheckedFigure(board, "", f"within {1e6 * BOARD_RATE_MAX:g} ppm"),
    }
    faults = Defects()
    if abs(resonator) > RESONATOR_ERROR_MAX + 2 * best.u_rate:
        faults.add(
            f"the meter's clock is {1e6 * resonator:+,.0f} ppm off this computer's",
            "an internal RC oscillator instead of the resonator, or a program on this computer that delays the "
            "meter's answers: check the fuses of the ATmega328P, and end other programs",
        )
    if abs(board) > BOARD_RATE_MAX + 2 * to_board.u_rate:
        faults.add(
            f"the board's clock is {1e6 * board:+,.0f} ppm off this computer's",
            "let time synchronisation (chrony, ntpd, systemd-timesyncd) settle on both, or stop it for the measurement",
        )
    for check in alignment.checks:
        if check.difference_ns is not None and not check.passed:
            faults.add(
                check.detail,
                "one of two ways to align the clocks is wrong: repeat without other programs on board and computer; "
                "then check the step of the sync line",
            )
    if played and "signature" not in alignment.maps:
        why = next((check.detail for check in alignment.checks if check.name.startswith("signature")), "")
        faults.add(
            f"the load signature was not found in the trace{f' ({why})' if why else ''}",
            "see that the meter measures the current of this board, and end other programs on it",
        )
    ways = "; ".join(check.detail for check in alignment.checks if check.passed)
    words = f"meter {1e6 * resonator:+,.0f} ppm, board {1e6 * board:+.1f} ppm of this computer; {ways}"
    return Verdict.of(words, faults, figures)
