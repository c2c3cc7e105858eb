"""The simulated rig as one object: rig simulator, feed and simulated board."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from opjoule.clocks.exchanges import Exchange
from opjoule.devices.loader_process import LoaderProcess
from opjoule.devices.local import LocalDevice, file_options, loader_files, start_stream
from opjoule.devices.operation_stream import OperationStream
from opjoule.devices.profiles import Profile
from opjoule.errors import RigFault
from opjoule.system_errors import replacing
from opjoule.twin.feed import DELAY_NS, Feed
from opjoule.twin.imperfections import Imperfections
from opjoule.twin.power_model import load_model

COURSE = "simulator-course.csv"
"""File of the record: true energy over time."""
IMPERFECTIONS = "simulator-imperfections.json"
"""File of the record: what was drawn."""
_SYSTEM_PERIOD_MS = 10
_SIGNATURE_PERIOD_MS = 2
"""During a load signature: what the model blurs, the alignment has to bear."""
_START_LIMIT_S = 60.0
_STOP_LIMIT_S = 30.0
"""The simulator runs behind: it needs the delay, and on a busy computer more, to reach the end."""


class TwinDevice(LocalDevice):
    """The simulated board: the loader runs here, its activity feeds the power model.

    The rig runs a fixed delay behind this computer, so the simulated board's clock does too: a board_ns of the
    loader happens, for the meter and for round-trip exchanges, DELAY_NS later on host_ns.
    """

    simulated = True

    def __init__(self, profile: Profile, loader: Path, storage: Path, feed: Feed, *, sync: bool) -> None:
        carrier = f"virtual:{feed.sync.path}" if sync else None
        super().__init__(profile.name, profile.cores, loader, storage, carrier)
        self._feed = feed

    def facts(self) -> dict[str, Any]:
        """The computer's own facts; the board's are its profile's."""
        return {**super().facts(), "connection": "simulated"}

    def start_loader(
        self, arguments: list[str], raw: Path, tag: str, stream: list[str] | None = None
    ) -> LoaderProcess:
        """Starts the loader with its samples going to the feed, which also writes them to the record."""
        files = loader_files(raw, tag)
        self._feed.loader_starts(files["--system"], on_medium=arguments[0] in {"load", "run"})
        files["--system"] = self._feed.system.path
        period_ms = _SIGNATURE_PERIOD_MS if arguments[0] == "sync" else _SYSTEM_PERIOD_MS
        options = [*file_options(arguments[0], files), "--system-period-ms", str(period_ms)]
        options += ["--trace", "-"] if stream else []
        made = start_stream(stream, raw, tag)
        return _FedLoader([str(self._loader), *arguments, *options], self._feed, made)

    def clock_exchange(self) -> Exchange:
        """The simulated board's clock: this computer's, the rig's delay ago."""
        sent_ns = time.monotonic_ns()
        board_ns = time.monotonic_ns() - DELAY_NS
        return Exchange(sent_ns, board_ns, board_ns, time.monotonic_ns())

    def pending_write_bytes(self) -> int:
        """The simulated medium's write queue, as of the simulated board's clock."""
        return self._feed.pending_bytes(time.monotonic_ns() - DELAY_NS)


class _FedLoader(LoaderProcess):
    def __init__(self, command: list[str], feed: Feed, stream: OperationStream | None) -> None:
        self._feed = feed
        super().__init__(command, stream=stream)

    def wait(self) -> int:
        status = super().wait()
        self._feed.loader_ended()
        return status


def drawn_for(profile: Profile, medium: str, seed: int) -> Imperfections:
    """A rig drawn from the population, on a supply that holds this board up, as its user would have chosen."""
    drawn = Imperfections.draw(seed)
    least_v = profile.least_voltage_v
    return drawn if least_v is None else drawn.carrying(load_model(profile.name, medium).greatest_w, least_v)


class TwinRig:
    """Starts rig-sim on the real firmware and gives the meter's address and the board."""

    def __init__(
        self,
        profile: Profile,
        medium: str,
        *,
        root: Path,
        storage: Path,
        truth: Path,
        seed: int,
        sync: bool = True,
        course: bool = True,
        imperfections: Imperfections | None = None,
    ) -> None:
        """Starts everything; close() ends it.

        Args:
            truth: where the simulator's truth goes, in the record's folder, with the rest that it alone knows.
            seed: of what is drawn of this rig.
            course: keep the true energy over time, which is on this computer's clock.
            imperfections: in place of those drawn.
        """
        self._folder = tempfile.TemporaryDirectory(prefix=f"opjoule-twin-{os.getpid()}-")
        folder = Path(self._folder.name)
        self._truth = truth
        try:
            storage.mkdir(parents=True)  # close() removes it: it must be nobody else's
        except FileExistsError as error:
            raise RigFault(
                f"{storage} is there already: simulated storage is made and removed by one run"
            ) from error
        self._storage = storage
        self._course = course
        self._seed, self._imperfections = seed, imperfections or drawn_for(profile, medium, seed)
        self._feed = Feed(folder, load_model(profile.name, medium, self._imperfections.supply))
        self._link = folder / "meter"
        self._log = (folder / "rig-sim.log").open("w+")
        command = [
            str(root / "build/rig-sim/rig-sim"),
            *("--elf", str(root / ".pio/build/uno/firmware.elf")),
            *("--live", str(self._feed.live), "--delay-ms", str(DELAY_NS // 1_000_000)),
            *(
                "--pty",
                str(self._link),
                "--pace",
                "1",
                "--truth",
                str(folder / "truth.json"),
                "--seed",
                str(seed),
            ),
            *("--course", str(folder / "course.csv")),
            *self._imperfections.options(),
        ]
        self._simulator = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._feed.start()
        self._await_link()
        self.meter = f"serial:{self._link}"
        self.device = TwinDevice(profile, root / "build/loader/loader", storage, self._feed, sync=sync)

    def facts(self) -> dict[str, Any]:
        """What run.json says of the simulation: never what was drawn, which nobody knows of a real rig."""
        return {
            "models": "host/opjoule/twin/models.toml",
            "drawn": f"anew for each measurement, told afterwards in {IMPERFECTIONS}",
            "rig_delay_s": DELAY_NS * 1e-9,
            "load_step_s": _SIGNATURE_PERIOD_MS * 1e-3,
        }

    def _await_link(self) -> None:
        deadline_s = time.monotonic() + _START_LIMIT_S
        while not self._link.exists():
            if self._simulator.poll() is not None or time.monotonic() > deadline_s:
                raise RigFault(
                    f"the rig simulator did not start: {self._last_words()}; run host/measure.py doctor --simulate"
                )
            time.sleep(0.01)

    def _last_words(self) -> str:
        self._log.seek(0)
        return (self._log.read().strip().splitlines() or ["it said nothing"])[-1]

    def _tell(self) -> None:
        """Puts the truth into the record, once nothing more is estimated."""
        written, record = Path(self._folder.name), self._truth.parent
        if not record.is_dir() or not (written / "truth.json").exists():
            return
        for name, target in {
            "truth.json": self._truth,
            **({"course.csv": record / COURSE} if self._course else {}),
        }.items():
            with replacing(target) as temporary:
                shutil.copyfile(written / name, temporary)
        self._imperfections.write(record / IMPERFECTIONS, self._seed)

    def close(self) -> None:
        """Ends the feed, lets the simulator write its truth, and removes what was temporary."""
        self._feed.stop()
        try:
            self._simulator.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._simulator.terminate()
            self._simulator.wait()
        self._log.close()
        with suppress(OSError):  # a full disk: what kept the record from its end is the error that counts
            self._tell()
        shutil.rmtree(self._storage, ignore_errors=True)
        self._folder.cleanup()
