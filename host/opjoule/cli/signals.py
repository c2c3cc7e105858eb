"""Ctrl-C, a termination and a closed terminal: held back until someone can answer them, then all three alike."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

from opjoule.errors import Interrupted
from opjoule.scripts import script_name

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def hold_back() -> None:
    """Blocks them; one that comes waits, through exec too, until answer_with()."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def answer_with(handler: Callable[[int, FrameType | None], None]) -> None:
    """From now on `handler` answers, also one that waits; what is ignored (nohup, a background job) stays so."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, as Python itself does for Ctrl-C."""
    raise KeyboardInterrupt


def leave(number: int, frame: FrameType | None) -> None:
    """Ends the program at once, while modules load: an exception there may be swallowed, or become another one."""
    os.write(2, f"{script_name()}: interrupted before anything was done\n".encode())
    os._exit(Interrupted.exit_code)
