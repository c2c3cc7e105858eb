"""Assignment of cells to rigs: a block stays on one rig, so that differences between rigs do not affect any axis.

If no rig has all equipment of a block (boards of two kinds), the rigs that can measure most of it share the block.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from opjoule.campaign.campaign import Campaign, Cell

Names = frozenset[str]
"""Names of boards, media and meters, as in job.py."""


class Blocks:
    """The missing cells of a campaign, and the rig of each."""

    def __init__(self, campaign: Campaign, needs: Sequence[Names]) -> None:
        """`needs`: equipment that a rig must have for each cell of the campaign."""
        self._campaign = campaign
        self._needs = dict(zip(campaign.cells, needs, strict=True))
        self._owner: dict[Cell, str] = {}
        """Rig that measures a cell, or is to measure it."""
        self._under_way: dict[str, Cell] = {}

    def next(self, rig: str, present: Mapping[str, Names]) -> Cell | None:
        """The cell that a rig measures next; None if there is none for it now.

        Args:
            present: equipment of each rig that could measure at this time.
        """
        free = [cell for cell in self._campaign.missing if cell not in self._under_way.values()]
        free = [cell for cell in free if self._owner.get(cell, rig) == rig]
        cells = [cell for cell in free if self._needs[cell] <= present[rig]]
        mine = next((cell for cell in cells if self._owner.get(cell) == rig), None)
        if mine is None:
            mine = next((cell for cell in cells if self._may_begin(cell.block, rig, present)), None)
            begun = [cell for cell in cells if mine is not None and cell.block == mine.block]
            self._owner |= dict.fromkeys(begun, rig)
        if mine is not None:
            self._under_way[rig] = mine
        return mine

    def reserve(self, rig: str, cell: Cell) -> None:
        """Records that a rig is already measuring a cell."""
        self._under_way[rig] = cell
        self._owner[cell] = rig

    def under_way(self, rig: str) -> Cell | None:
        """The cell that a rig is measuring."""
        return self._under_way.get(rig)

    def ended(self, rig: str) -> None:
        """Marks a rig as idle; the rest of its block stays assigned to it."""
        self._under_way.pop(rig, None)

    def give_back(self, rig: str) -> None:
        """Marks a rig as gone: its unmeasured cells become free."""
        self.ended(rig)
        self._owner = {cell: owner for cell, owner in self._owner.items() if owner != rig}

    def nobody_s(self, present: Mapping[str, Names]) -> list[tuple[Names, int]]:
        """Equipment that no rig has, and the number of cells that need it."""
        counts = Counter(
            self._needs[cell]
            for cell in self._campaign.missing
            if not any(self._needs[cell] <= has for has in present.values())
        )
        return sorted(counts.items(), key=lambda item: sorted(item[0]))

    def share(self, rigs: int) -> float:
        """Greatest number of cells that one rig measures sequentially."""
        missing = self._campaign.missing
        sizes = Counter(cell.block for cell in missing)
        return max(*sizes.values(), len(missing) / max(rigs, 1)) if len(sizes) > 1 else float(len(missing))

    def _may_begin(self, block: int, rig: str, present: Mapping[str, Names]) -> bool:
        """Whether no other rig can measure these cells of a block and more."""
        cells = [cell for cell in self._campaign.missing if cell.block == block]
        by_rig = {name: {cell for cell in cells if self._needs[cell] <= has} for name, has in present.items()}
        return not any(by_rig[rig] < measurable for measurable in by_rig.values())
