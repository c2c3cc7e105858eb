"""Part of the budget that comes from the position of a window's edges."""

import math
from dataclasses import dataclass

import numpy as np

from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import SQRT3
from opjoule.energy.step_integral import NS


def alignment_u_j(
    cells: Cells, start_ns: int, end_ns: int, u_ns: float, u_duration_ns: float, seen_fraction: float = 1.0
) -> float:
    """Standard uncertainty [J] from the window's uncertain position.

    Position: half of the greater change of the energy if the window moves by k = 2 times its uncertainty, either way.
    Length: difference between the power at the edges and the mean, times the uncertainty of the length. The seconds of
    the window do not come from the meter, so that a window placed too long changes its mean power alone.
    Resolution: the position of a load step within the sample that an edge cuts is unknown.

    Args:
        u_ns, u_duration_ns: standard uncertainties of the window's position and length on the meter's clock.
        seen_fraction: part of a sample's period in which it is converted.
    """
    shift_ns = np.array([-1, 1], np.int64) * max(round(2 * u_ns), 1 if u_ns > 0 else 0)
    energy_j = cells.power.between(start_ns, end_ns)
    moved_j = cells.power.between(start_ns + shift_ns, end_ns + shift_ns)
    place_u_j = float(np.max(np.abs(moved_j - energy_j))) / 2
    edges = cells.power.cell_at([start_ns, end_ns])
    mean_w = energy_j / ((end_ns - start_ns) * NS)
    edge_w = float(np.max(np.abs(cells.power.values(edges) - mean_w)))
    cut_u_j = _cut_samples_u_j(cells, start_ns, end_ns, 2 * u_ns * NS, seen_fraction)
    return math.hypot(place_u_j, edge_w * u_duration_ns * NS, cut_u_j)


@dataclass(frozen=True)
class _CutSample:
    """The sample that an edge of the window cuts, and its neighbours."""

    outside_w: float
    own_w: float
    inside_w: float
    length_s: float
    inside_s: float
    """The part of it inside the window."""

    place_s: float
    """Expanded uncertainty of the edge's time (k = 2)."""

    @property
    def missing_j(self) -> float:
        """Energy missing from the window if the sample contains a single step of the load; negative: excess. The
        sample's mean determines the position of the step. An even split of the sample gives the window too little, most
        of all if the step is at the edge.
        """
        above_w, below_w = self.own_w - self.outside_w, self.inside_w - self.own_w
        if above_w * below_w <= 0:  # a single step cannot make such a sample
            of_outside_j, of_inside_j = above_w * (self.length_s - self.inside_s), below_w * self.inside_s
            return max(of_outside_j, of_inside_j, key=abs)
        step_s = self.length_s * above_w / (above_w + below_w)
        inside_s = min(max(step_s, self.inside_s - self.place_s), self.inside_s + self.place_s)
        return float(min(above_w * (self.length_s - inside_s), below_w * inside_s, key=abs))

    @property
    def unseen_j(self) -> float:
        """Missing energy if the step may have been outside the conversion: at most a quarter of it, in the middle."""
        return (self.inside_w - self.outside_w) * self.length_s / 4


def _cut_samples_u_j(cells: Cells, start_ns: int, end_ns: int, place_s: float, seen_fraction: float) -> float:
    """Standard uncertainty [J] from the samples at both edges, rectangular.

    A window that draws more than its surroundings misses energy at both ends, and one that draws less has excess at
    both: the two errors add up. If one end has excess and the other misses energy, the larger counts.
    """
    first, last = cells.power.cell_at([start_ns, end_ns]).tolist()
    bounds_ns = cells.bounds_ns[[first, first + 1, last, last + 1]].tolist()

    def power_w(cell: int) -> float:
        return float(cells.power.values(np.array([min(max(cell, 0), cells.current_a.size - 1)]))[0])

    if last <= first + 1:  # no whole sample shows the power inside the window
        whole_s, inside_s = (bounds_ns[3] - bounds_ns[0]) * NS, (end_ns - start_ns) * NS
        own_w = float(cells.power.between(bounds_ns[0], bounds_ns[3])) / whole_s
        around_w = (power_w(first - 1) + power_w(last + 1)) / 2
        return float(abs(own_w - around_w) * (whole_s - inside_s) / SQRT3)

    def cut(cell: int, inwards: int, length_ns: int, inside_ns: int) -> _CutSample:
        outside_w, own_w, inside_w = (power_w(cell + offset) for offset in (-inwards, 0, inwards))
        return _CutSample(outside_w, own_w, inside_w, length_ns * NS, inside_ns * NS, place_s)

    both = (
        cut(first, 1, bounds_ns[1] - bounds_ns[0], bounds_ns[1] - start_ns),
        cut(last, -1, bounds_ns[3] - bounds_ns[2], end_ns - bounds_ns[2]),
    )
    edges_j = [edge.missing_j if seen_fraction >= 1.0 else edge.unseen_j for edge in both]
    lacking_j = sum(energy_j for energy_j in edges_j if energy_j > 0)
    too_much_j = -sum(energy_j for energy_j in edges_j if energy_j < 0)
    return max(lacking_j, too_much_j) / SQRT3
