"""Clocks that ran at implausible rates: the effect on the run's energies, in one line for each pair of clocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opjoule.base.notices import Notice, NoticeKind
from opjoule.clocks.exchanges import (
    BOARD_EXCHANGES,
    METER_EXCHANGES,
    Exchange,
    OddStretch,
    odd_stretch,
    odd_stretch_of_map,
    read_exchanges,
)
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, ErrorBounds
from opjoule.runs.record.groups import ENERGY, PER_OPERATION
from opjoule.runs.record.run_record import RunRecord

SLEW_MAX: Final = 500e-6
"""Largest relative rate error of a computer's clock while ntpd or the kernel slews it (RFC 5905, MAXFREQ)."""
COMPUTER_ERROR_MAX: Final = CRYSTAL_ERROR_MAX + SLEW_MAX
BY_EXCHANGES: Final = "exchanges"
"""Key of the clock map that goes through this computer's clock."""
_NAMES: Final = {"host": "this computer's clock", "board": "the board's clock", "meter": "the meter's clock"}
_ADVICE: Final = (
    "one of the two stood still, was set, or is simulated at another pace. Measure again on computers that "
    "are not suspended, paused or overloaded (a virtual machine), with chrony and ntpd stopped; "
    "run rig-sim with --pace 1"
)


def odd_meter_clock(exchanges: Sequence[Exchange], sensor: ErrorBounds) -> str:
    """What is wrong if the meter's clock and this computer's disagree beyond their bounds; empty if they agree."""
    return _odd("meter", exchanges, sensor.clock_error_max + COMPUTER_ERROR_MAX)


def odd_clocks(record: RunRecord) -> list[Notice]:
    """A fault for each pair of clocks beyond its bound; it withholds figures whose seconds depend on it.

    None for an imported trace, or a meter read by this computer's clock. Raises: RecordFault: unreadable exchanges.
    """
    run = record.run
    if run.sensor is None:
        return []
    through_host = run.clock_map_used in (None, BY_EXCHANGES)
    of_meter, of_board = (read_exchanges(record.intact(f"raw/{name}")) for name in (METER_EXCHANGES, BOARD_EXCHANGES))
    pairs = [
        (odd_meter_clock(of_meter, run.sensor), through_host),
        (_odd("board", of_board, 2 * COMPUTER_ERROR_MAX), through_host),
    ]
    used = run.clock_maps.get(run.clock_map_used or "")
    if used and not through_host and run.phases:
        over_ns = run.phases[0].start_board_ns, run.phases[-1].end_board_ns
        error_max = run.sensor.clock_error_max + COMPUTER_ERROR_MAX
        odd = odd_stretch_of_map(used, over_ns, error_max)
        pairs.append((_line("board", "meter", odd, error_max) if odd else "", True))
    return [
        Notice(NoticeKind.CLOCKS, line, withholds=(ENERGY, PER_OPERATION) if withholds else ())
        for line, withholds in pairs
        if line
    ]


def _odd(far: str, exchanges: Sequence[Exchange], error_max: float) -> str:
    odd = odd_stretch(exchanges, error_max)
    return _line("host", far, odd, error_max) if odd else ""


def _line(near: str, far: str, odd: OddStretch, error_max: float) -> str:
    return (
        f"clocks: {_NAMES[near]} ran {odd.rate:.4g} s per second of {_NAMES[far]} from {odd.start_s:.3g} to "
        f"{odd.end_s:.3g} s of the recording, {odd.unexplained_s:.3g} s beyond its bound of "
        f"{100 * error_max:.2g} %; {_ADVICE}"
    )
