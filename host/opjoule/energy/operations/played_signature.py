"""Playing of the board's load signature, and its log."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from opjoule.base.errors import AlignmentError
from opjoule.clocks.clock_map import Float64Array, Int64Array
from opjoule.clocks.signature import DELAY_U_NS, STEPS_A_CHIP, LoadPattern, SignatureFit, fit_signature, signature_chips
from opjoule.energy.operations.board_files import BoardEdges

CHIP_MS: Final = 20
"""Length of a chip for a meter that samples at least every 5 ms; 255 chips are 5.1 s."""
CHIP_MS_MAX: Final = 400


def chip_ms(period_ns: int) -> int:
    """Length of a chip [ms] for a meter with this sampling period (0: unknown); a chip has at least four samples.

    Raises: AlignmentError: the meter is too slow for any pattern.
    """
    needed_ms = max(CHIP_MS, math.ceil(STEPS_A_CHIP * period_ns * 1e-6))
    if needed_ms > CHIP_MS_MAX:
        raise AlignmentError(
            f"load signature: the meter is too slow: it samples every {period_ns * 1e-6:.0f} ms, and at most "
            f"{CHIP_MS_MAX / STEPS_A_CHIP:.0f} ms is needed"
        )
    return needed_ms


def chips_text(number: int) -> str:
    """Chips of pattern `number` as zeros and ones, as the loader plays them."""
    return "".join(str(chip) for chip in signature_chips(number))


def _pattern(played: BoardEdges) -> LoadPattern:
    """The pattern that the board logged. Raises: AlignmentError: the log is torn or out of order."""
    changes = played.level.size
    alternating = np.arange(changes) % 2 == 0
    if changes < 2 or changes % 2 or not np.array_equal(played.level == 1, alternating):
        raise AlignmentError(f"load signature: the board's log of it is torn ({changes} changes)")
    try:
        return LoadPattern(played.board_ns)
    except ValueError as error:
        raise AlignmentError(f"load signature: {error}") from None


def fit_played(
    meter_ns: Int64Array,
    power_w: Float64Array,
    played: Sequence[BoardEdges],
    conversion_ns: int,
    load_u_ns: float = DELAY_U_NS,
) -> SignatureFit:
    """Map from the board's clock to the meter's; see fit_signature.

    `played`: the changes of each pattern.
    `load_u_ns`: standard uncertainty of the time from a logged change to the load, without the log's own.
    Raises: AlignmentError: see fit_signature; or a torn log.
    """
    patterns = [_pattern(one) for one in played]
    # All changes share the same delay, so averaging does not reduce its uncertainty.
    logged_u_ns = max((float(np.mean(one.u_ns)) for one in played), default=0.0)
    return fit_signature(meter_ns, power_w, patterns, conversion_ns, math.hypot(load_u_ns, logged_u_ns))
