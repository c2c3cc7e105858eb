"""The first lines of `host/measure.py` in .venv: from here on a Ctrl-C is one line, while the program still loads."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from opjoule.cli.failures import plain_output, told

HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that host/measure.py blocks before it hands over, so that none comes where Python has no handler yet."""


def main(argv: list[str]) -> int:
    """Runs one command line; SIGTERM and SIGHUP (a closed terminal) end it as Ctrl-C does."""
    plain_output()

    def run() -> int:
        signal.signal(signal.SIGTERM, _on_terminate)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
            signal.signal(signal.SIGHUP, _on_terminate)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
        from opjoule.cli.measure import main as measure  # noqa: PLC0415  # what takes a second to load

        return measure(argv)

    return told("measure.py", run)


def _on_terminate(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
