"""One samples message taken apart: its conversions and their place."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from opjoule.meters.messages import Pairs, Shunts, Wide
from opjoule.trace.power_trace import Int64Array

SamplesMessage = Pairs | Shunts | Wide


def signed_difference(later: int, earlier: int, bits: int) -> int:
    """`later - earlier` of counters that wrap at 2^bits, the nearest; negative if `later` is older."""
    span = 1 << bits
    return (later - earlier + span // 2) % span - span // 2


@dataclass(frozen=True)
class SamplesFrame:
    """A samples message and its conversions; arrays of shape (n,)."""

    message: SamplesMessage
    end_ticks: Int64Array
    shunt: Int64Array
    bus: Int64Array

    @classmethod
    def of(cls, message: SamplesMessage, first_end_ticks: int) -> Self:
        """A message taken apart; `first_end_ticks`: its stamp, unwrapped."""
        items = message.items
        after_first = np.cumsum(items["delta_ticks"].astype(np.int64))
        after_first -= after_first[0]
        bus = np.full(len(items), message.bus) if isinstance(message, Shunts) else items["bus"]
        shunt = items["shunt"].astype(np.int64)
        return cls(message, first_end_ticks + after_first, shunt, bus.astype(np.int64))
