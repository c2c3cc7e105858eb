"""One samples message taken apart: its conversions and their place."""

from dataclasses import dataclass

import numpy as np

from opjoule.meters.messages import Pairs, Shunts, Wide
from opjoule.trace.power_trace import Int64Array

SamplesMessage = Pairs | Shunts | Wide


def signed_difference(later: int, earlier: int, bits: int) -> int:
    """`later - earlier` of counters that wrap at 2^bits, the nearest; negative if `later` is older."""
    span = 1 << bits
    return (later - earlier + span // 2) % span - span // 2


@dataclass(frozen=True)
class Block:
    """Conversions of one message; arrays of shape (n,)."""

    end_ticks: Int64Array
    shunt: Int64Array
    bus: Int64Array


@dataclass(frozen=True)
class SamplesFrame:
    """A samples message and what it holds."""

    message: SamplesMessage
    block: Block


def take_apart(message: SamplesMessage, first_end_ticks: int) -> Block:
    """Conversions of a message; `first_end_ticks`: its stamp, unwrapped."""
    items = message.items
    count = len(items)
    shunt = items["shunt"].astype(np.int64)
    after_first = np.cumsum(items["delta_ticks"].astype(np.int64))
    after_first -= after_first[0]
    bus = np.full(count, message.bus) if isinstance(message, Shunts) else items["bus"]
    return Block(first_end_ticks + after_first, shunt, bus.astype(np.int64))
