"""Supply and meter of every simulated board; the meter is the real firmware in the rig simulator."""

import shutil
import sys
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass
from pathlib import Path
from typing import Any

from opjoule.base.files import replacing
from opjoule.bench.simulation.feed import DELAY_NS, GONE, Feed
from opjoule.bench.simulation.imperfections import Imperfections
from opjoule.bench.simulation.medium_work import MediumWork
from opjoule.bench.simulation.part_course import COURSE, PARTS
from opjoule.bench.simulation.power_model import LoadModel, PowerModel
from opjoule.bench.simulation.rig_simulator import RigSimulator, folder_in_memory
from opjoule.boards.profiles import Profile
from opjoule.meters.serial.options import SIMULATED_SENSOR

IMPERFECTIONS = "simulator-imperfections.json"
"""File of the record: the drawn errors."""
PERIOD_MS = 10
"""Sampling period of the board's activity."""
SIGNATURE_PERIOD_MS = 2
"""Sampling period during a load signature (probe/serve), which limits the precision of the alignment."""
_STOP_LIMIT_S = 30.0
"""Time limit for the simulator's end: it runs late by the delay, and by more on a busy computer."""
_STATUS_LIMIT_S = 5.0


def drawn_for(profile: Profile, greatest_w: float, seed: int) -> Imperfections:
    """A rig drawn at random, with a supply strong enough for a board of `greatest_w`, as a user would choose."""
    drawn = Imperfections.draw(seed)
    least_v = profile.least_voltage_v
    return drawn if least_v is None else drawn.carrying(greatest_w, least_v)


@dataclass(eq=False)
class SimulatedSupply:
    """Runs rig-sim from its creation to close(); it follows the feed, and `meter` is its address."""

    imperfections: Imperfections
    model: LoadModel
    _: KW_ONLY
    root: InitVar[Path]
    truth: Path
    """File for the simulator's truth, in the record's folder; its other secrets go to the same folder."""
    seed: int
    """Seed from which the rig was drawn; also the seed of its noise."""
    course: bool = True
    """Whether to keep the true energy over time, which is on this computer's clock."""
    power: PowerModel | None = None
    """The drawn board and medium, for the record; None if none was drawn."""
    work: InitVar[MediumWork | None] = None
    """The medium's work; None if the model does not use it."""

    def __post_init__(self, root: Path, work: MediumWork | None) -> None:
        self._temporary = folder_in_memory()
        self.folder = Path(self._temporary.name)
        self.model.begin(self.folder)
        self.feed = Feed(self.folder, self.model, work)
        delay = ("--delay-ms", str(DELAY_NS // 1_000_000), "--pace", "1")
        load = ["--live", str(self.feed.live), *delay, "--course", str(self.folder / "course.csv")]
        truth = self.folder / "truth.json"
        self._end_reported = False
        try:
            self.feed.start()
            self._simulator = RigSimulator(root, self.folder, load, self.imperfections, self.seed, truth)
        except BaseException:  # nobody else has a reference to end it
            self.feed.abandon()
            self.model.end()
            self._temporary.cleanup()
            raise
        self.meter = f"serial:{self._simulator.port},{SIMULATED_SENSOR},label={self.imperfections.meter_name}"

    def facts(self) -> dict[str, Any]:
        """Facts about the simulation for run.json; the drawn errors stay hidden, like those of a real rig."""
        return {
            "models": "host/opjoule/bench/simulation/models.toml",
            "drawn": f"again for each measurement, stated afterwards in {IMPERFECTIONS}",
            "rig_delay_s": DELAY_NS * 1e-9,
            "load_step_s": SIGNATURE_PERIOD_MS * 1e-3,
        }

    def faults(self) -> list[str]:
        """One line, reported once, if the simulator or its input ended too early."""
        status, broken = self._simulator.status(), self.feed.broken
        if self._end_reported or (status is None and not broken):
            return []
        self._end_reported = True
        if broken and broken != GONE:
            return [f"the rig simulator's input ended: {broken}"]
        # its pipe breaks a moment before the status is available
        status = self._simulator.status(_STATUS_LIMIT_S)
        return [f"the rig simulator ended by itself with status {status}: {self._simulator.last_words()}"]

    def _tell(self) -> None:
        """Copies the truth into the record after all estimates; never over that of another run."""
        record, estimated = self.truth.parent, self.folder / "truth.json"
        if self.truth.exists() or not ((record / "run.json").exists() and estimated.exists()):
            return
        copied = {"truth.json": self.truth, **({"course.csv": record / COURSE} if self.course else {})}
        if (self.folder / PARTS).exists():
            copied[PARTS] = record / PARTS
        for name, target in copied.items():
            with replacing(target) as temporary:
                shutil.copyfile(self.folder / name, temporary)
        self.imperfections.write(record / IMPERFECTIONS, self.seed, self.power)

    def close(self) -> None:
        """Ends the feed, lets the simulator write its truth, and removes temporary files."""
        for fault in self.faults():  # not reported since it ended
            print(f"rig-sim: {fault}", file=sys.stderr, flush=True)
        self.feed.stop()
        self.model.end()
        self._simulator.end(_STOP_LIMIT_S)
        with suppress(OSError):  # on a full disk, the error that ended the record is the one to report
            self._tell()
        self._temporary.cleanup()
