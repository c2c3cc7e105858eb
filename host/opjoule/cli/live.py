"""`--live`: the page of a measurement that goes on, served by a process of its own, which reads what was flushed."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from opjoule.cli.signals import ENDING
from opjoule.view.live import LiveReplies
from opjoule.view.server import ViewServer

END_S: Final = 10.0
NICE: Final = 10
"""The page yields to the measurement."""


class LiveView:
    """The page's process, from the beginning of a `with` block to its end; it ends with this program, too."""

    def __init__(self, out: IO[str] | int | None = None) -> None:
        """Args: out: where it prints the page's address (default: stderr)."""
        self._out = sys.stderr if out is None else out
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Starts it."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "opjoule.cli.live"],
            stdin=subprocess.PIPE,
            stdout=self._out,
            start_new_session=True,  # a Ctrl-C is the measurement's
        )
        return self

    def show(self, directory: Path) -> None:
        """The page is about this record from now on; a page that has ended is none of the measurement's business."""
        if self._process and self._process.stdin and self._process.poll() is None:
            try:
                self._process.stdin.write(os.fsencode(directory.resolve()) + b"\n")
                self._process.stdin.flush()
            except OSError:
                return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        try:
            self._process.communicate(timeout=END_S)
        except (subprocess.TimeoutExpired, OSError, ValueError):
            self._process.kill()
            self._process.wait()


@contextmanager
def live_view(options: argparse.Namespace) -> Iterator[Callable[[Path], None]]:
    """What is to be called with each record that is begun; it does nothing without --live."""
    if not options.live:
        yield lambda directory: None
        return
    with LiveView() as view:
        yield view.show


def serve() -> int:
    """Serves the page about the records that are named on stdin, a line each, until stdin ends."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICE)
    replies = LiveReplies()
    with ViewServer(replies.known) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        print(f"live view: {server.address}", flush=True)
        for line in sys.stdin.buffer:
            replies.watch(Path(os.fsdecode(line.rstrip(b"\n"))))
        server.shutdown()
        thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(serve())
