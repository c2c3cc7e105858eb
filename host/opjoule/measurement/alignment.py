"""Brings the board clock onto the meter clock from whatever evidence a run has, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.cross_check import Check, agree, not_comparable
from opjoule.clocks.edges import fit_edges, match_edges
from opjoule.clocks.exchanges import Exchange, fit_exchanges
from opjoule.clocks.signature import SignatureFit
from opjoule.errors import AlignmentError
from opjoule.operations.loader_files import BoardEdges
from opjoule.trace.journal import SyncEdges
from opjoule.units import COVERAGE_FACTOR, Unstated

METER_EDGE_U_NS = 500.0
"""Standard uncertainty of an edge's stamp on the meter: one tick of 0.5 us."""
INTERRUPT_EDGE_U_NS = 6_000.0
"""The same where an interrupt stamps it (firmware on the Arduino framework): late by 0 to 20 us, 10 us as a rule."""


@dataclass(frozen=True)
class Alignment:
    """The map that the windows are placed with, and every check of it."""

    board_to_meter: ClockMap
    checks: tuple[Check, ...]
    maps: dict[str, ClockMap] = field(default_factory=dict)
    """Every map that could be made, by its evidence."""
    used: str = ""
    """Key in `maps` of the map that the windows are placed with."""

    @property
    def passed(self) -> bool:
        """True unless two pieces of evidence disagree beyond their stated uncertainty."""
        return all(check.passed for check in self.checks if np.isfinite(check.difference_ns))

    def to_json(self) -> dict[str, Any]:
        """`alignment` of result.json."""
        return {
            "method": self.board_to_meter.method,
            "map": self.used,
            "residual_s": Unstated(
                self.board_to_meter.residual_ns * 1e-9, "s", "itself a measure of spread"
            ).to_json(),
            "u_s": Unstated(COVERAGE_FACTOR * self.board_to_meter.u_offset_ns * 1e-9, "s", "k = 2").to_json(),
            "evidence": self.board_to_meter.n,
            "checks": [_check_json(check) for check in self.checks],
        }


def _check_json(check: Check) -> dict[str, Any]:
    entry = check.to_json()
    if not np.isfinite(check.difference_ns):
        entry["difference_ns"] = None
    return entry


@dataclass(frozen=True)
class ClockEvidence:
    """Everything a run has on the clocks of board and meter."""

    board_edges: BoardEdges
    """one side of the sync line, in order of time"""
    meter_edges: SyncEdges
    board_exchanges: Sequence[Exchange]
    """round trips host-board"""
    meter_exchanges: Sequence[Exchange]
    """round trips host-meter"""
    signature: Callable[[], SignatureFit] | None = None
    """fits the load signature; None if it was not played"""
    meter_edge_u_ns: float = METER_EDGE_U_NS
    """standard uncertainty of the meter's stamps of edges, of each alone and of all together"""


def align(evidence: ClockEvidence, over_board_ns: tuple[int, int]) -> Alignment:
    """The map board -> meter with the least stated uncertainty, cross-checked with every other.

    That is sync edges before the load signature before exchanges, unless something disturbed the better kind.

    Args:
        over_board_ns: start and end of the run on the board clock [ns].
    Raises: AlignmentError: no evidence gives a map.
    """
    sources: dict[str, Callable[[], ClockMap]] = {
        "sync-edges": lambda: _from_edges(evidence),
        "exchanges": lambda: _from_exchanges(evidence),
    }
    if played := evidence.signature:
        after_edges = {"signature": lambda: played().clock_map, "exchanges": sources.pop("exchanges")}
        sources |= after_edges
    maps: dict[str, ClockMap] = {}
    reasons: dict[str, str] = {}
    for name, make in sources.items():
        try:
            maps[name] = make()
        except AlignmentError as error:
            reasons[name] = str(error)
    if not maps:
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise AlignmentError(f"board and meter clocks cannot be matched: {why}")
    middle_ns = (over_board_ns[0] + over_board_ns[1]) // 2
    best = min(maps, key=lambda name: float(maps[name].u_ns(middle_ns)))
    checks = [agree(maps[best], other, over_board_ns) for name, other in maps.items() if name != best]
    checks += [not_comparable(f"{name} against {best}", f"{name}: {why}") for name, why in reasons.items()]
    return Alignment(maps[best], tuple(checks), maps, best)


def _from_exchanges(evidence: ClockEvidence) -> ClockMap:
    board_to_host = fit_exchanges(evidence.board_exchanges, "host", "board").inverse()
    return board_to_host.then(fit_exchanges(evidence.meter_exchanges, "host", "meter"))


def _from_edges(evidence: ClockEvidence) -> ClockMap:
    board, meter = evidence.board_edges, evidence.meter_edges
    if board.board_ns.size == 0:
        raise AlignmentError("the board has no sync line")
    if meter.meter_ns.size == 0:
        raise AlignmentError("the meter saw no edge: check the sync wire (docs/how-to/wire-the-rig.md)")
    pairs = match_edges(board.board_ns, board.level, meter.meter_ns, meter.level)
    u_edge_ns = np.hypot(board.u_ns[pairs.source_index], evidence.meter_edge_u_ns)
    return fit_edges(pairs, "board", "meter", u_edge_ns, evidence.meter_edge_u_ns)
