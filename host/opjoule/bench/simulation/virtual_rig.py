"""The simulated rig around a virtual board: real ssh, a real kernel's GPIO line, a simulated supply and meter.

The samples of the board's activity from the probe arrive over the connection and are converted to this computer's
clock. The emulator records the edges of the board's GPIO line with its own time stamps. From there both are handled as
in every simulated measurement (feed.py).
"""

import contextlib
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from opjoule.base.errors import LinkFault
from opjoule.bench.simulation.power_model import CountedPower, Models
from opjoule.bench.simulation.rig import DelayedProbe, RigSetup, SimulatedRig
from opjoule.bench.simulation.simulators import Imperfections
from opjoule.bench.simulation.supply import SimulatedSupply, drawn_for
from opjoule.boards.board import ProbeOptions
from opjoule.boards.board_state import StateSettings
from opjoule.boards.medium import Medium
from opjoule.boards.probe import Probe
from opjoule.boards.profiles import BoardAndMedium
from opjoule.boards.rig_board import board_on
from opjoule.boards.ssh import SshConnection
from opjoule.boards.virtual.image import get_image
from opjoule.boards.virtual.machine import MEDIA, Machine

_EDGE = re.compile(r"@(\d+)\.(\d{6}):pl061_set_output \S+ setting output 0 to ([01])$")
_POLL_S = 0.02
_LIVE_PERIOD_MS = 100
_DRAIN_LIMIT_S = 60.0
_MAKE_FIFO = 'f=$(mktemp -u /dev/shm/opjoule-live.XXXXXX) && mkfifo -m 600 "$f" && echo "$f"'
_EXCHANGES = 8
_ASKED_EVERY_NS = 5_000_000_000


class EdgeWire(threading.Thread):
    """Passes edges of the board's GPIO line 0 from the emulator's trace to the feed's sync line."""

    def __init__(self, trace: Path, sync: Path) -> None:
        super().__init__(name="edge-wire", daemon=True)
        self._ended = threading.Event()
        # The emulator's stamps are wall-clock time (microseconds); the rig uses the monotonic clock.
        self._wall_ahead_ns = _wall_ahead_ns()
        self._lock = threading.Lock()
        self._partial = ""
        self._source = trace.open()
        self._source.seek(0, os.SEEK_END)
        self._sink = sync.open("w")

    def run(self) -> None:
        """Follows the trace until close()."""
        while not self._ended.wait(_POLL_S):
            self.carry()

    def carry(self) -> None:
        """Passes on the edges that the emulator has reported so far."""
        with self._lock:
            *lines, self._partial = (self._partial + self._source.read()).split("\n")
            for line in lines:
                if edge := _EDGE.search(line):
                    host_ns = (int(edge[1]) * 1_000_000 + int(edge[2])) * 1000 - self._wall_ahead_ns
                    self._sink.write(f"{host_ns} {edge[3]}\n")
            self._sink.flush()

    def close(self) -> None:
        """Ends the thread."""
        self._ended.set()
        self.join()
        self._source.close()
        self._sink.close()


def _wall_ahead_ns() -> int:
    """Wall clock minus monotonic clock, from the quickest of a few readings [ns]."""
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(_EXCHANGES)]
    before_ns, wall_ns, after_ns = min(readings, key=lambda reading: reading[2] - reading[0])
    return wall_ns - (before_ns + after_ns) // 2


class ActivityWire:
    """Passes the probe's samples to the feed, with board_ns converted to this computer's clock.

    The edges before a sample are passed on first, however busy the computer is.
    """

    def __init__(self, follow: list[str], target: Path, ahead_ns: Callable[[], int | None], edges: EdgeWire) -> None:
        """Follows a command's output; `ahead_ns` gives the board's clock minus this computer's, None if unknown."""
        self._ask_ahead_ns = ahead_ns
        self._ahead_ns: int | None = None
        self._asked_ns = 0
        self._edges = edges
        self._sink = target.open("w")
        self._process = subprocess.Popen(
            follow, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._thread = threading.Thread(target=self._run, name="activity-wire", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        assert self._process.stdout
        with self._process.stdout as samples:
            for line in samples:
                if line.endswith("\n"):
                    self._pass(line)

    def _pass(self, line: str) -> None:
        board_ns, comma, rest = line.partition(",")
        shifted = self._on_this_clock(int(board_ns)) if board_ns.isdigit() else board_ns
        if shifted is None:
            return  # the probe has not reported its clock yet
        self._edges.carry()
        self._sink.write(f"{shifted}{comma}{rest}")
        self._sink.flush()

    def _on_this_clock(self, board_ns: int) -> int | None:
        """Converts board_ns; the offset is renewed every few seconds while the probe answers: clocks are slewed."""
        if self._ahead_ns is None or board_ns - self._asked_ns > _ASKED_EVERY_NS:
            self._asked_ns = board_ns
            with contextlib.suppress(LinkFault):
                self._ahead_ns = self._ask_ahead_ns()
        return None if self._ahead_ns is None else board_ns - self._ahead_ns

    def close(self) -> None:
        """Waits until all output of the probe has been passed on; may be called twice."""
        if self._sink.closed:
            return
        self._thread.join(timeout=_DRAIN_LIMIT_S)
        self._process.kill()
        self._process.wait()
        self._thread.join()
        self._sink.close()


def _ahead_ns(probe: Probe) -> int:
    """The board's clock minus this computer's, from the quickest of a few exchanges [ns]."""
    exchanges = (Probe.clock_exchange(probe) for _ in range(_EXCHANGES))  # not delayed
    best = min(exchanges, key=lambda exchange: exchange.round_trip_ns)
    return best.far_received_ns - (best.sent_ns + best.received_ns) // 2


@contextmanager
def virtual_rig(
    board: BoardAndMedium,
    options: RigSetup,
    *,
    wanted: dict[str, str],
    say: Callable[[str], None],
    user: str = "rig",
) -> Iterator[SimulatedRig]:
    """Builds (once) and starts the virtual board, and the simulated supply and meter around it.

    For the meter, the board runs DELAY_NS late, as every simulated board does.

    Args:
        wanted: settings of the board's state, in addition to this rig's own.
        say: called with a progress line at each step.
    """
    image = get_image(options.root / "build" / "virtual-board", say)
    drawn, model = _drawn_power(board, options.seed)
    carrier = options.sync or board.profile.sync
    line = None if carrier == "none" else carrier
    settings = {"file_system": "new" if user == "rig" else "keep", **wanted}
    with ExitStack() as opened:
        supply = SimulatedSupply(drawn, model, root=options.root, truth=options.truth, seed=options.seed, course=False)
        opened.callback(supply.close)
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix=f"opjoule-board-{os.getpid()}-"))
        machine = Machine(image, Path(folder, "machine"))
        opened.callback(machine.close)
        edges = EdgeWire(machine.edges, supply.feed.sync.path)
        opened.callback(edges.close)
        edges.start()
        shell = SshConnection(f"{user}@127.0.0.1", image.ssh_options(machine.port, Path(folder, "known_hosts")))
        opened.callback(shell.close)
        fifo = shell.run(["sh", "-c", _MAKE_FIFO]).text().strip()
        probes: list[Probe] = []
        # At its start, the probe waits for a reader of its FIFO.
        wire = ActivityWire(
            shell.command(["cat", fifo]),
            supply.feed.system.path,
            lambda: _ahead_ns(probes[0]) if probes else None,
            edges,
        )
        opened.callback(wire.close)

        def ended() -> None:
            wire.close()
            supply.feed.probe_ended()

        def start(*started: Any) -> Probe:
            probes.append(DelayedProbe(*started, feed=supply.feed, ended=ended, faults=supply.faults))
            return probes[-1]

        live = ("--live", fifo, "--live-period-ms", str(_LIVE_PERIOD_MS))
        made = board_on(
            *(shell, board.profile, _medium(board.medium, user)),
            builds=options.root / "build",
            probe=ProbeOptions(line, extra=live, start=start),
            wanted=StateSettings().changed(settings, "--state"),
            disturbance=options.disturbance,
        )
        opened.callback(made.close)
        emulated = "qemu-system-aarch64 (emulated: no figure of it says anything about speed)"
        yield SimulatedRig(made, supply, supply.meter, {**supply.facts(), "board": emulated}, machine)


def _medium(name: str, user: str) -> Medium:
    """A whole disk for the user who may mount it; for another user a folder."""
    if user != "rig":
        return Medium(f"/home/{user}/db")
    return Medium(f"/mnt/{name}", f"/dev/disk/by-id/virtio-{MEDIA[name][0]}", expendable=True)


def _drawn_power(board: BoardAndMedium, seed: int) -> tuple[Imperfections, CountedPower]:
    """The rig's errors, and the power model of its board, whose medium has the rate of the emulator's disk."""
    stated = Models.stated().load(board)
    drawn = drawn_for(board.profile, stated.greatest_w, seed)
    rate = float(MEDIA[board.medium][1])
    medium = replace(stated.medium, write_bytes_per_s=rate, read_bytes_per_s=rate)
    return drawn, CountedPower(stated.board, medium, drawn.supply)
