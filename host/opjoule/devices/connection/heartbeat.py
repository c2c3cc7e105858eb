"""A sign of life to a program on a board, which ends by itself once it hears nothing more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from opjoule.errors import LinkFault

BEAT_S: Final = 5.0


def beat_until(
    ended: threading.Event, beat: Callable[[], object], name: str, period_s: float = BEAT_S
) -> None:
    """Calls `beat` every few seconds in a thread of its own, until `ended` is set or the program hears no more.

    Args:
        beat: raises OSError, ValueError (a closed pipe) or LinkFault where nobody listens; whoever asks the program
            next is told why.
        period_s: less than half of the silence after which the program ends [s].
    """

    def run() -> None:
        try:
            while not ended.wait(period_s):
                beat()
        except (OSError, ValueError, LinkFault):
            return

    threading.Thread(target=run, name=name, daemon=True).start()
