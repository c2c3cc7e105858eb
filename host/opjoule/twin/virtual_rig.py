"""The simulated rig around a virtual board: real ssh, a real kernel's GPIO line, a simulated supply and meter.

What the loader on the board reports of its activity comes over the connection and is put on this computer's clock;
the edges of the board's GPIO line are those that the emulator sees, stamped by it. Both go the way of every
simulated measurement from there (feed.py).
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from opjoule.clocks.exchanges import Exchange
from opjoule.devices.board import BoardDevice
from opjoule.devices.board_loader import BoardLoader
from opjoule.devices.medium import Medium
from opjoule.devices.profiles import Profile
from opjoule.devices.ssh import SshConnection
from opjoule.devices.state_settings import StateSettings
from opjoule.devices.virtual.image import get_image
from opjoule.devices.virtual.machine import MEDIA, Image, Machine
from opjoule.twin.feed import DELAY_NS, Feed
from opjoule.twin.rig import TwinRig

_EDGE = re.compile(r"@(\d+)\.(\d{6}):pl061_set_output \S+ setting output 0 to ([01])$")
_POLL_S = 0.02
_SYSTEM_PERIOD_MS = 100
_EXCHANGES = 8


class EdgeWire(threading.Thread):
    """Carries edges of the board's GPIO line 0 from the emulator's trace to the feed's sync line."""

    def __init__(self, trace: Path, sync: Path) -> None:
        super().__init__(name="edge-wire", daemon=True)
        self._trace = trace
        self._sync = sync
        self._ended = threading.Event()
        # The emulator stamps with the wall clock (microseconds); the rig runs on the monotonic one.
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
        """Passes on what the emulator has told so far."""
        with self._lock:
            *lines, self._partial = (self._partial + self._source.read()).split("\n")
            for line in lines:
                if found := _EDGE.search(line):
                    host_ns = (int(found[1]) * 1_000_000 + int(found[2])) * 1000 - self._wall_ahead_ns
                    self._sink.write(f"{host_ns} {found[3]}\n")
            self._sink.flush()

    def close(self) -> None:
        """Ends the thread."""
        self._ended.set()
        self.join()
        self._source.close()
        self._sink.close()


def _wall_ahead_ns() -> int:
    """How far the wall clock is ahead of the monotonic one, from the quickest of a few readings [ns]."""
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(_EXCHANGES)]
    before_ns, wall_ns, after_ns = min(readings, key=lambda reading: reading[2] - reading[0])
    return wall_ns - (before_ns + after_ns) // 2


class ActivityWire:
    """Carries one loader's system samples to the feed while it runs, with board_ns put on this computer's clock.

    The edges before a sample go first, however busy the computer is.
    """

    def __init__(self, follow: list[str], target: Path, ahead_ns: int, edges: EdgeWire) -> None:
        self._ahead_ns = ahead_ns
        self._edges = edges
        self._passed = 0
        self._sink = target.open("w")
        self._process = subprocess.Popen(
            follow, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._thread = threading.Thread(target=self._run, name="activity-wire", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.endswith("\n"):
                self._pass(line)

    def _pass(self, line: str) -> None:
        self._passed += 1
        board_ns, comma, rest = line.partition(",")
        shifted = str(int(board_ns) - self._ahead_ns) if board_ns.isdigit() else board_ns
        self._edges.carry()
        self._sink.write(shifted + comma + rest)
        self._sink.flush()

    def close(self, fetched: Path) -> None:
        """Ends following, and passes on what had not come yet from the fetched file."""
        self._process.kill()
        self._process.wait()
        self._thread.join(timeout=60)
        if fetched.exists():
            with fetched.open() as rows:
                for line in list(rows)[self._passed :]:
                    if line.endswith("\n"):
                        self._pass(line)
        self._sink.close()


class VirtualLoader(BoardLoader):
    """A loader on the virtual board whose activity feeds the power model."""

    def __init__(
        self,
        device: VirtualDevice,
        command: list[str],
        folder: str,
        raw: Path,
        tag: str,
        feed: Feed,
        ahead_ns: int,
    ) -> None:
        self._fetched = raw / f"{tag}.system.csv"
        self._feed = feed
        feed.loader_starts(raw / f"{tag}.simulator-input.csv")
        follow = ["tail", "-n", "+1", "-s", "0.1", "--retry", "-f", f"{folder}/{tag}.system.csv"]
        command_line = device.shell.command(follow)
        self._activity = ActivityWire(command_line, feed.system.path, ahead_ns, device.edges)
        super().__init__(device.shell, command, folder, raw)

    def wait(self) -> int:
        """As BoardLoader; its files come at once, for the rest of the activity: the power model sees no transfer."""
        try:
            status = super().wait()
            super().fetch()
            return status
        finally:
            self._activity.close(self._fetched)
            self._feed.loader_ended()

    def fetch(self) -> None:
        """They have come already."""


class VirtualDevice(BoardDevice):
    """The virtual board. For the meter it runs DELAY_NS behind, as every simulated board does."""

    simulated = True
    feed: Feed
    edges: EdgeWire
    """Both set by the rig once it is connected."""

    def clock_exchange(self) -> Exchange:
        """The board's clock as the meter is to see it: the rig's delay ago."""
        real = super().clock_exchange()
        return Exchange(
            real.sent_ns, real.far_received_ns - DELAY_NS, real.far_sent_ns - DELAY_NS, real.received_ns
        )

    def pending_write_bytes(self) -> int:
        """What the board's kernel and the simulated medium's queue hold, whichever is more."""
        return max(super().pending_write_bytes(), self.feed.pending_bytes(time.monotonic_ns() - DELAY_NS))

    def _start(self, command: list[str], folder: str, raw: Path, tag: str) -> BoardLoader:
        command = [*command, "--system-period-ms", str(_SYSTEM_PERIOD_MS)]
        return VirtualLoader(self, command, folder, raw, tag, self.feed, self._ahead_ns())

    def _ahead_ns(self) -> int:
        """How far the board's clock is ahead of this computer's, from the fastest of a few exchanges [ns]."""
        best = min(
            (super(VirtualDevice, self).clock_exchange() for _ in range(_EXCHANGES)), key=_round_trip_ns
        )
        return best.far_received_ns - (best.sent_ns + best.received_ns) // 2


def _round_trip_ns(exchange: Exchange) -> int:
    return exchange.round_trip_ns


class VirtualRig(TwinRig):
    """Builds (once) and starts the virtual board, and the simulated supply and meter around it."""

    def __init__(
        self,
        profile: Profile,
        medium: str,
        *,
        root: Path,
        truth: Path,
        seed: int,
        wanted: dict[str, str],
        sync: str | None,
        say: Callable[[str], None],
        user: str = "rig",
    ) -> None:
        self._open = ExitStack()
        image = get_image(root / "build" / "virtual-board", say)
        self._machine_folder = tempfile.TemporaryDirectory(prefix=f"opjoule-board-{os.getpid()}-")
        place = Path(self._machine_folder.name)
        super().__init__(
            profile, medium, root=root, storage=place / "unused", truth=truth, seed=seed, course=False
        )
        try:
            self._connect(image, place, profile, medium, root / "build", wanted, sync, user)
        except BaseException:
            self.close()
            raise

    def _connect(
        self,
        image: Image,
        place: Path,
        profile: Profile,
        medium: str,
        builds: Path,
        wanted: dict[str, str],
        sync: str | None,
        user: str,
    ) -> None:
        machine = Machine(image, place / "machine")
        self._open.callback(machine.close)
        wire = EdgeWire(machine.edges, self._feed.sync.path)
        self._open.callback(wire.close)
        wire.start()
        shell = SshConnection(f"{user}@127.0.0.1", image.ssh_options(machine.port, place / "known_hosts"))
        self._open.callback(shell.close)
        carrier = sync or profile.sync
        device = f"/dev/disk/by-id/virtio-{MEDIA[medium][0]}"
        may_mount = user == "rig"
        self.board = VirtualDevice(
            profile,
            shell,
            builds=builds,
            medium=Medium(f"/mnt/{medium}", device, expendable=True)
            if may_mount
            else Medium(f"/home/{user}/db"),
            sync=None if carrier == "none" else carrier,
            wanted=StateSettings(file_system="new" if may_mount else "keep").changed(wanted, "--state"),
        )
        self._open.callback(self.board.close)
        self.board.feed, self.board.edges = self._feed, wire
        self.machine = machine

    def facts(self) -> dict[str, Any]:
        """As of every simulated rig, and what the board is."""
        return {
            **super().facts(),
            "board": "qemu-system-aarch64 (emulated: no figure of it says anything about speed)",
        }

    def close(self) -> None:
        """Ends board, supply and meter."""
        self._open.close()
        super().close()
        self._machine_folder.cleanup()
