"""Maps the board clock to the meter clock from the available evidence, best first, and checks the clocks' rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.errors import AlignmentError
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import unstated
from opjoule.clocks.clock_map import Check, ClockMap, agree, not_comparable
from opjoule.clocks.edges import EdgePairs, fit_edges, match_edges
from opjoule.clocks.exchanges import (
    Exchange,
    OddStretch,
    fit_exchanges,
    odd_stretch,
    odd_stretch_of_map,
)
from opjoule.clocks.signature import SignatureFit
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, ErrorBounds
from opjoule.energy.operations.board_files import BoardEdges
from opjoule.energy.trace.journal import SyncEdges
from opjoule.energy.window import EnergyResult, Window, window_energy_j
from opjoule.runs.record.phases import Phase
from opjoule.runs.record.result import ENERGY, PER_OPERATION
from opjoule.runs.record.run import Run

METER_EDGE_U_NS = 500.0
"""Standard uncertainty of an edge's time stamp on the meter: one tick of 0.5 us."""
INTERRUPT_EDGE_U_NS = 6_000.0
"""The same for an edge stamped by an interrupt (firmware on the Arduino framework): 0 to 20 us late, usually 10 us."""


MOMENTS = 101
"""Number of moments of the run at which the maps' uncertainties are compared."""
UNMATCHED_MAX = 0.1
"""Fraction of the edges of either clock that may be unmatched without a fault."""
UNMATCHED_FEW = 10
"""Number of edges that may always be unmatched."""
AT_ONCE_NS = 1_000_000
"""Distance below which the meter may see only one of two edges, or none."""


@dataclass(frozen=True)
class EdgeCounts:
    """Matched and unmatched edges of the sync line."""

    matched: int
    board_unmatched: int
    """Edges of the board that are missing from the meter's list."""
    board_invisible: int
    """The part of them that no meter can see: the line already had that level, or changed again at once, or the meter
    had not started or had been stopped, before or after the run."""
    meter_unmatched: int
    """Edges of the meter that are missing from the board's list."""
    longest_gap_s: float
    """Longest time between two matched edges, on the board's clock."""
    rate_changes: int
    """Number of sudden changes of one clock's rate, as in a clock that is slewed."""

    @classmethod
    def of(cls, pairs: EdgePairs, board: BoardEdges, over_board_ns: tuple[int, int]) -> EdgeCounts:
        """Counts from a match of the board's edges, in time order; `over_board_ns`: start and end of the run [ns]."""
        gap_s = float(np.diff(pairs.source_ns).max(initial=0)) * 1e-9
        near_ns = np.diff(board.board_ns, prepend=board.board_ns[0] - AT_ONCE_NS, append=2**62)
        at_once = np.minimum(near_ns[:-1], near_ns[1:]) < AT_ONCE_NS
        no_change = np.diff(board.level, prepend=np.int8(-1)) == 0
        beside = (board.board_ns < over_board_ns[0]) | (board.board_ns > over_board_ns[1])
        invisible = at_once | no_change | beside
        invisible[pairs.source_index] = False
        counts = pairs.source_ns.size, pairs.unmatched_source, int(invisible.sum()), pairs.unmatched_target
        return cls(*counts, gap_s, pairs.rate_changes)

    def faults(self) -> list[Notice]:
        """Faults of a line that loses or adds edges, and of a slewed clock."""
        faults = []
        missed = "the meter missed them; check the sync wire and its ground"
        invented = "the board did not make them; look for noise on the sync wire"
        for count, clock, remedy in (
            (self.board_unmatched - self.board_invisible, "board", missed),
            (self.meter_unmatched, "meter", invented),
        ):
            whole = count + self.matched
            # A loader that takes over the line may also move it without recording that.
            if count > max(UNMATCHED_FEW + self.board_invisible, UNMATCHED_MAX * whole):
                line = (
                    f"sync line: {count} of {whole} edges of the {clock} have no partner (limit "
                    f"{100 * UNMATCHED_MAX:.0f} %)"
                )
                faults.append(Notice(NoticeKind.SYNC_LINE, line, remedy))
        if self.rate_changes:
            line = (
                f"sync line: the rate of a clock jumped {self.rate_changes} times by 100 ppm or more, as no "
                "oscillator does"
            )
            remedy = "stop the program that sets the board's clock (chrony, ntpd, systemd-timesyncd) during a run"
            faults.append(Notice(NoticeKind.CLOCKS, line, remedy))
        return faults


@dataclass(frozen=True)
class Alignment:
    """The map that places the windows, and all its checks."""

    board_to_meter: ClockMap
    checks: tuple[Check, ...]
    maps: dict[str, ClockMap] = field(default_factory=dict)
    """All available maps, by evidence."""
    used: str = ""
    """Key in `maps` of the map that places the windows."""
    u_greatest_ns: float | None = None
    """Greatest standard uncertainty of the map during the run [ns]; None: that of its offset is used."""
    edges: EdgeCounts | None = None
    """None without a match of sync edges."""

    @property
    def passed(self) -> bool:
        """Whether all pieces of evidence agree within their stated uncertainties."""
        return all(check.passed for check in self.checks if check.difference_ns is not None)

    def stated(self) -> dict[str, Any]:
        """`alignment` of result.json."""
        u_ns = self.board_to_meter.u_offset_ns if self.u_greatest_ns is None else self.u_greatest_ns
        return {
            "method": self.board_to_meter.method,
            "map": self.used,
            "residual_s": unstated(self.board_to_meter.residual_ns * 1e-9, "s", "itself a measure of spread"),
            "u_s": unstated(COVERAGE_FACTOR * u_ns * 1e-9, "s", "k = 2, greatest during the run"),
            "evidence": self.board_to_meter.n,
            "knots": len(self.board_to_meter.knots),
            "edges": self.edges,
            "checks": self.checks,
        }


@dataclass(frozen=True)
class ClockEvidence:
    """All evidence of a run on the clocks of board and meter."""

    board_edges: BoardEdges
    """one side of the sync line, in order of time"""
    meter_edges: SyncEdges
    board_exchanges: Sequence[Exchange]
    """round trips host-board"""
    meter_exchanges: Sequence[Exchange]
    """round trips host-meter"""
    signature: Callable[[], SignatureFit] | None = None
    """Function that fits the load signature; None if it was not played"""
    meter_edge_u_ns: float = METER_EDGE_U_NS
    """standard uncertainty of the meter's time stamps of edges, both of a single one and common to all"""
    events_damaged: bool = False
    """whether the board's edges are lost because a file of events cannot be read"""


def align(evidence: ClockEvidence, over_board_ns: tuple[int, int]) -> Alignment:
    """The map from board to meter with the least stated uncertainty over the run, cross-checked with all others.

    Usually sync edges are best, then the load signature, then exchanges.
    Raises: AlignmentError: no evidence gives a map.
    """
    maps: dict[str, ClockMap] = {}
    reasons: dict[str, str] = {}
    counts: list[EdgeCounts] = []

    def attempt(name: str, make: Callable[[], ClockMap]) -> None:
        try:
            maps[name] = make()
        except AlignmentError as error:
            reasons[name] = str(error)

    attempt("sync-edges", lambda: _from_edges(evidence, over_board_ns, counts))
    attempt(
        "exchanges",
        lambda: (
            fit_exchanges(evidence.board_exchanges, "host", "board")
            .inverse()
            .then(fit_exchanges(evidence.meter_exchanges, "host", "meter"))
        ),
    )
    if played := evidence.signature:
        wander = maps["exchanges"].wander_per_s if "exchanges" in maps else 0.0
        attempt("signature", lambda: played().map_with(wander))
    if not maps:
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise AlignmentError(f"board and meter clocks cannot be matched: {why}")
    moments_ns = np.linspace(*over_board_ns, MOMENTS).astype(np.int64)
    u_ns = {name: clock_map.u_ns(moments_ns) for name, clock_map in maps.items()}
    best = min(maps, key=lambda name: float(np.mean(u_ns[name] ** 2)))
    checks = [agree(maps[best], other, over_board_ns) for name, other in maps.items() if name != best]
    checks += [not_comparable(f"{name} against {best}", f"{name}: {why}") for name, why in reasons.items()]
    u_greatest_ns, edges = float(u_ns[best].max()), counts[0] if counts else None
    return Alignment(maps[best], tuple(checks), maps, best, u_greatest_ns, edges)


def _from_edges(evidence: ClockEvidence, over_board_ns: tuple[int, int], counts: list[EdgeCounts]) -> ClockMap:
    """The map through the sync line's edges; their counts are appended to `counts`."""
    board, meter = evidence.board_edges, evidence.meter_edges
    if evidence.events_damaged:
        raise AlignmentError("the file with the board's sync edges cannot be read")
    if board.board_ns.size == 0 and meter.meter_ns.size > 0:
        raise AlignmentError("the meter saw sync edges and the board recorded none: check sync in rig.toml")
    if board.board_ns.size == 0:
        raise AlignmentError("the board has no sync line, or recorded no edge of it")
    if meter.meter_ns.size == 0:
        raise AlignmentError("the meter saw no sync edge: check the sync wire (docs/how-to/wire-the-rig.md)")
    pairs = match_edges(board.board_ns, board.level, meter.meter_ns, meter.level)
    counts.append(EdgeCounts.of(pairs, board, over_board_ns))
    u_edge_ns = np.hypot(board.u_ns[pairs.source_index], evidence.meter_edge_u_ns)
    return fit_edges(pairs, "board", "meter", u_edge_ns, evidence.meter_edge_u_ns)


@dataclass(frozen=True)
class AlignedTrace:
    """A trace that can be integrated over phases: its cells, its sensor, and the map from the phases' clock."""

    cells: Cells
    sensor: ErrorBounds
    board_to_meter: ClockMap

    def window(self, first: Phase, last: Phase) -> Window:
        """Window from the start of one phase to the end of another, on the meter clock."""
        return Window.on_meter(self.board_to_meter, first.start_board_ns, last.end_board_ns)

    def energy(self, first: Phase, last: Phase) -> EnergyResult:
        """Energy of that window."""
        return window_energy_j(self.cells, self.window(first, last), self.sensor)


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


def odd_clocks(run: Run, of_meter: Sequence[Exchange], of_board: Sequence[Exchange]) -> list[Notice]:
    """A fault for each pair of clocks beyond its bound; it withholds figures whose seconds depend on it.

    `of_meter`, `of_board`: round trips of the meter's and of the board's clock. None for an imported trace, or a meter
    read by this computer's clock.
    """
    if run.sensor is None:
        return []
    through_host = run.clock_map_used in (None, BY_EXCHANGES)
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
