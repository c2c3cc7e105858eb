"""`host/view.py`: past runs in a browser; and `--live`: the page of a running measurement.

For --live a separate process serves the page and reads what was flushed to disk. When the measurement ends, for
whatever reason, the process stays as long as a page is open. The page can thus show how the measurement ended, and its
link to the report works.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Final

from opjoule.base.scripts import ROOT, RUNS
from opjoule.cli.failures import ENDING
from opjoule.cli.record_commands import ViewOptions
from opjoule.pages.view.replies import Replies
from opjoule.pages.view.runs_folder import RunsFolder
from opjoule.pages.view.server import ViewServer


def run_view(options: ViewOptions) -> int:
    """Serves the page until Ctrl-C. Raises: BadInput: no such folder, or the address cannot be used."""
    replies = Replies(RunsFolder(options.runs or RUNS))
    with (
        suppress(KeyboardInterrupt),
        ViewServer(replies.known, replies.pages, listen=options.listen, port=options.port) as server,
    ):
        print("open this address in a browser; Ctrl-C ends the server:", file=sys.stderr)
        print(server.address, flush=True)
        server.serve_forever()
    return 0


UNWATCHED_S: Final = 1.0
"""How long a measurement waits at its end for the page's process to exit (it does if nobody opened the page)."""
LAST_ASKED_S: Final = 150.0
"""Time after its last request at which a page counts as closed; browsers let a hidden page ask once a minute."""
LONGEST_S: Final = 86400.0
LOOK_S: Final = 1.0
NICE: Final = 10
"""The page yields to the measurement."""


@contextmanager
def live_page(
    out: IO[str] | int | None = None, last_asked_s: float = LAST_ASKED_S
) -> Iterator[subprocess.Popen[bytes]]:
    """The page's process; it notices by itself when the block or this program ends.

    Args:
        out: where it prints the page's address (default: stderr).
        last_asked_s: time after its last request at which a page counts as closed.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "opjoule.cli.view", str(last_asked_s)],
        stdin=subprocess.PIPE,
        stdout=sys.stderr if out is None else out,
        env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
        start_new_session=True,  # Ctrl-C is meant for the measurement
    )
    assert process.stdin
    try:
        yield process
    finally:
        with suppress(OSError):  # it has ended already
            process.stdin.close()
        try:
            process.wait(UNWATCHED_S)
        except subprocess.TimeoutExpired:
            print(
                "live view: the page now links to the report; its server ends when the page is closed",
                file=sys.stderr,
            )


def show(process: subprocess.Popen[bytes], directory: Path) -> None:
    """Makes the page show this record from now on; does nothing if the page's process has ended."""
    if process.stdin and process.poll() is None:
        with suppress(OSError):
            process.stdin.write(os.fsencode(directory.resolve()) + b"\n")
            process.stdin.flush()


@contextmanager
def live_view(wanted: bool) -> Iterator[Callable[[Path], None]]:
    """A function to call with each record that is begun; it does nothing without --live."""
    if not wanted:
        yield lambda directory: None
        return
    with live_page() as process:
        yield partial(show, process)


def serve(last_asked_s: float) -> int:
    """Serves the page about the records named on stdin, one a line, until stdin ends and no page is open."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICE)
    from opjoule.pages.view.live import LiveReplies  # noqa: PLC0415  # what measures runs on Linux only

    replies = LiveReplies()
    with ViewServer(replies.known, replies.pages) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        print(f"live view: {server.address}", flush=True)
        # A reader of this program's output may wait for end of file, and this process may outlive the measurement.
        nothing = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(nothing, descriptor)
        os.close(nothing)
        for name in _lines():
            replies.watch(Path(os.fsdecode(name)))
        replies.end()
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        ended_s = time.monotonic()
        while server.asked_s and time.monotonic() < min(server.asked_s + last_asked_s, ended_s + LONGEST_S):
            time.sleep(LOOK_S)
        server.shutdown()
        thread.join()
    return 0


def _lines() -> Iterator[bytes]:
    """Lines of stdin until it ends or the parent process ends."""
    starter, waiting = os.getppid(), b""
    while os.getppid() == starter:
        if not select.select([0], [], [], LOOK_S)[0]:
            continue
        read = os.read(0, 1 << 16)
        if not read:
            return
        *whole, waiting = (waiting + read).split(b"\n")
        yield from whole


if __name__ == "__main__":
    sys.exit(serve(float(sys.argv[1])))
