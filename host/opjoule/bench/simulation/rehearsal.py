"""The rehearsal of commissioning: a rig drawn at random, its faults, and a desk that rewires itself. SIMULATED."""

import contextlib
import json
import math
import os
import random
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from opjoule.base.errors import BadInput, unknown
from opjoule.base.scripts import ROOT
from opjoule.base.terminal import say
from opjoule.bench.commissioning.certificate import Certificate, DeskStep
from opjoule.bench.commissioning.desk import DeskPace, DeskRecording, OpenDesk, Parts, Running, Setup, meter_words
from opjoule.bench.commissioning.known_loads import ZERO_A
from opjoule.bench.simulation.medium_work import LineFifo, MediumStretch
from opjoule.bench.simulation.power_model import Activity, LoadModel, Models, PowerModel, Rows, Supply
from opjoule.bench.simulation.rig import SIMULATED_FILES, DelayedProbe, RigSetup, SimulatedRig, simulated_rig
from opjoule.bench.simulation.simulators import Imperfections, RigSimulator, known_load
from opjoule.bench.simulation.supply import DELAY_NS
from opjoule.boards.profiles import BoardAndMedium, Profile
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.error_bounds import CURRENT, VOLTAGE, ErrorBounds
from opjoule.meters.interface import Losses, Meter, MeterEvent, MeterIdentity, Samples
from opjoule.meters.registry import open_meter
from opjoule.runs.measuring.open_meter import opened_meter

SHUNT_OHM: Final = 0.02
"""Shunt of the simulated rig.toml, as docs/how-to/wire-the-rig.md recommends."""
USUAL_OHM: Final = 0.1
"""R100, as on most breakouts; the sensor's random errors are drawn for it."""
ADVISED_TOLERANCE: Final = 0.5
"""The recommended part's tolerance, relative to that of R100."""
ADVISED_OFFSET: Final = 125 / 200
"""Bound of the offset in the range of 80 mV, relative to that in 320 mV (SBOS448G, 7.5)."""
CABLE_OHM: Final = 0.06
BETWEEN_OHM: Final = 0.05
"""Resistance between the second meter's voltage terminals and the rig's, without the shunt."""
FED_V: Final = 4.3
"""Voltage of a back-feed: 5 V of HDMI or a hub through a diode."""
HOT_PER_A2: Final = 1.7e-3
"""Relative change of a shunt at 1 A: 0.1 ohm x 85 K/W x 200 ppm/K."""
HOT_TAU_S: Final = 4.0
"""Thermal time constant, shorter than a real shunt's 10 to 20 s, as everything in the rehearsal is shorter."""
HOT_STEP_S: Final = 0.2
SPARE_S: Final = 2.0
"""Time for which a heating shunt is simulated after the recording [s]."""
LATE_S: Final = 30.0
"""Extra length of the load [s]: a busy computer ends a recording late, and the simulator must still run then."""
PLANTS: Final = {
    "swapped-inputs": "VIN+ and VIN- are exchanged",
    "back-feed": "HDMI feeds the board while its fuse is out",
    "wrong-shunt": "R100 is soldered in, and rig.toml says shunt=0.02",
    "floating-d8": "the sync wire is off at the board, and the buffer's input picks up the mains",
    "dead-sync": "the sync wire is off at the meter",
    "cable": "the cable has 0.4 ohm",
    "wrong-medium": "the path lies on another device than the medium",
    "hot-shunt": "R100 of 200 ppm/K and 85 K/W is soldered in, which heats itself; rig.toml says so",
    "second-meter": "the second meter reads 2 % too much",
    "i2c-errors": "SDA is held down for a while",
}
"""Name of a fault for `commission --simulate --plant` -> description."""


@dataclass(frozen=True)
class DrawnRig:
    """One simulated rig: sensor, supply, board and medium, drawn from a seed."""

    profile: Profile
    seed: int
    plant: str
    """A fault of PLANTS; empty for none."""
    supply: Supply
    sensor: Imperfections
    power: PowerModel

    @classmethod
    def draw(cls, board: BoardAndMedium, seed: int, plant: str | None = None) -> Self:
        """Draws a rig. Raises: BadInput: unknown fault, or no model of the board or medium."""
        if plant and plant not in PLANTS:
            raise BadInput(unknown("fault to plant", plant, PLANTS))
        profile = board.profile
        cable_ohm = 0.4 if plant == "cable" else CABLE_OHM
        true_ohm = USUAL_OHM if plant in ("wrong-shunt", "hot-shunt") else SHUNT_OHM
        supply = Supply((profile.nominal_voltage_v or 5.1) + 0.1, true_ohm + cable_ohm)
        sensor = _with_shunt(Imperfections.draw(seed), true_ohm).on(supply)
        stated = Models.stated().load(board, seed)
        power = PowerModel(stated.board, stated.medium, supply)
        return cls(profile, seed, plant or "", supply, sensor, power)

    @property
    def load_a_ohm(self) -> float:
        """The known resistor: about half an ampere."""
        return round(2 * self.supply.open_voltage_v)

    @property
    def load_b_ohm(self) -> float:
        """The second load: about an ampere and a half."""
        return 0.65 * self.supply.open_voltage_v

    @property
    def sign(self) -> int:
        """-1 if the sensor's inputs are exchanged."""
        return -1 if self.plant == "swapped-inputs" else 1

    def meter(self, port: str) -> str:
        """The meter's name on a port, as in the simulated rig.toml."""
        stated = f"shunt={SHUNT_OHM:g},shunt_tolerance=0.5%,shunt_ppm=50,kelvin=yes,genuine=yes,range=80"
        if self.plant == "hot-shunt":
            stated = f"shunt={USUAL_OHM:g}"
        return f"serial:{port},{stated},label=simulated-{self.seed}"


def _with_shunt(sensor: Imperfections, ohm: float) -> Imperfections:
    """The sensor on a given shunt: the usual one as drawn, the recommended one with proportionally smaller errors."""
    if ohm == USUAL_OHM:
        return sensor
    shunt_ohm = round(ohm * (1 + ADVISED_TOLERANCE * (sensor.shunt_ohm / USUAL_OHM - 1)), 8)
    return replace(sensor, shunt_ohm=shunt_ohm, offset_uv=round(sensor.offset_uv * ADVISED_OFFSET, 3))


class LoadBench:
    """A simulated sensor with a steady load, and its recordings."""

    def __init__(self, rig: DrawnRig, root: Path) -> None:
        """Starts with the board connected, idle."""
        self._rig, self._root = rig, root
        self._hot = 0.0
        self.connect(None)

    def connect(self, conductance: float | None) -> None:
        """Connects a load [1/ohm] instead of the board, 0 for none; None: the board, idle."""
        supply, board = self._rig.supply, self._rig.power
        if conductance is None:
            self._current_a, self._voltage_v = supply.at_power(board.rest_w)
        else:
            self._voltage_v = supply.open_voltage_v / (1 + conductance * supply.resistance_ohm)
            self._current_a = conductance * self._voltage_v

    def pull_fuse(self) -> None:
        """Cuts off the supply; everything else stays connected."""
        self._current_a = 0.0
        self._voltage_v = FED_V if self._rig.plant == "back-feed" else 0.02

    @contextmanager
    def running(self, seconds: float) -> Iterator[str]:
        """A meter's name, for one recording of this length. Raises: RigFault: the simulator does not start."""
        with tempfile.TemporaryDirectory(prefix="opjoule-rig-") as made:
            folder = Path(made)
            held = ["--hold-sda=1,30"] if self._rig.plant == "i2c-errors" else []
            load = [*known_load(folder, self._rows(seconds)), *held]
            drawn = (self._rig.sensor, self._rig.seed)
            simulator = RigSimulator(self._root, folder, load, *drawn, folder / "truth.json")
            try:
                yield self._rig.meter(str(simulator.port))
            finally:
                simulator.end()

    def _rows(self, seconds: float) -> list[tuple[float, float, float]]:
        """The steady load as the sensor sees it; a heating shunt continues from the end of the last recording."""
        length_s = seconds + SPARE_S
        rows: list[tuple[float, float, float]] = []
        if self._rig.plant != "hot-shunt":
            rows.append((0.0, self._rig.sign * self._current_a, self._voltage_v))
        else:
            aim = HOT_PER_A2 * self._current_a**2
            for step in range(round(length_s / HOT_STEP_S)):
                self._hot += (aim - self._hot) * -math.expm1(-HOT_STEP_S / HOT_TAU_S)
                rows.append((step * HOT_STEP_S, self._current_a * (1 + self._hot), self._voltage_v))
        return [*rows, (length_s + LATE_S, 0.0, self._voltage_v)]


class Witness(Meter):
    """A second meter in series, on the supply side of the shunt: 1,000 readings a second, 0.1 %."""

    PERIOD_NS: Final = 1_000_000
    LATE_NS: Final = 1_500_000_000
    """Delay of its readings, longer than that of any row of the feed; its clock lags by the rig's delay."""

    def __init__(self, gain: float, before_ohm: float) -> None:
        """`gain`: read over true current; `before_ohm`: resistance between its voltage terminals and the board's."""
        self._gain, self._before_ohm = gain, before_ohm
        self._rows: deque[tuple[int, float, float]] = deque(maxlen=200_000)
        self._lock = threading.Lock()
        self._read_ns = 0
        self._exchange: Exchange | None = None

    def tell(self, rows: Sequence[tuple[int, float, float]]) -> None:
        """Adds rows of current and voltage at the board, each from its time on [board_ns]."""
        with self._lock:
            self._rows.extend(rows)

    def open(self) -> MeterIdentity:
        """Identity of the simulated meter."""
        return MeterIdentity("witness", "simulated", "second meter", 0, protocol_version=1, simulated=True)

    def start(self) -> None:
        """Starts sampling."""
        self._read_ns = (self._now_ns() // self.PERIOD_NS) * self.PERIOD_NS

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Samples since the last call."""
        time.sleep(min(timeout_s, 0.05))
        events: list[MeterEvent] = []
        if self._exchange:
            events.append(self._exchange)
            self._exchange = None
        count = (self._now_ns() - self._read_ns) // self.PERIOD_NS
        if count <= 0:
            return events
        at_ns = self._read_ns + self.PERIOD_NS * np.arange(1, count + 1, dtype=np.int64)
        with self._lock:
            known = list(self._rows)
        if not known or known[0][0] > at_ns[0]:
            return events
        self._read_ns = int(at_ns[-1])
        stamps, current_a, voltage_v = (np.array(column) for column in zip(*known, strict=True))
        place = np.searchsorted(stamps, at_ns, side="right") - 1
        source_v = voltage_v[place] + self._before_ohm * current_a[place]
        return [*events, Samples(0, at_ns, current_a[place] * self._gain, source_v)]

    def clock_exchange(self) -> None:
        """Answers immediately."""
        now_ns = time.monotonic_ns()
        at_ns = now_ns - DELAY_NS
        self._exchange = Exchange(now_ns, at_ns, at_ns, now_ns)

    def stop(self) -> list[MeterEvent]:
        """Remaining samples."""
        return self.read(0.0)

    def error_bounds(self) -> ErrorBounds:
        """0.1 % each, and a crystal's clock error."""
        return ErrorBounds(
            gain_errors_max={CURRENT: 0.001, VOLTAGE: 0.001},
            current_offset_max_a=1e-4,
            current_step_a=1e-5,
            voltage_step_v=1e-4,
            current_max_a=6.0,
            seen_fraction=1.0,
            clock_error_max=1e-4,
        )

    @property
    def losses(self) -> Losses:
        """None."""
        return Losses()

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self.LATE_NS


MARGIN_NS: Final = 300_000_000
"""Idle time before and after a pattern; longer than the model waits for events."""


class PlayedLoad(LoadModel):
    """The board's power model with added patterns; a second meter sees the same current."""

    def __init__(self, model: PowerModel, witness: Witness, sign: int = 1) -> None:
        """`sign`: -1 for a sensor with exchanged inputs."""
        self._model, self._witness, self._sign = model, witness, sign
        self._lock = threading.Lock()
        self._changes: list[tuple[int, int]] = []
        """Times [board_ns] and the level from each on."""
        self._level = self._played = 0

    def play(self, changes: Sequence[tuple[int, int]]) -> None:
        """Schedules a future pattern: times [board_ns] and the levels from then on, 1 for busy."""
        with self._lock:
            self._changes += changes

    def play_signature(self, bits: str, bit_ms: int, folder: Path) -> tuple[int, int]:
        """Plays a pattern from now on, and writes its changes to `folder`; returns its start and end [board_ns]."""
        start_ns = time.monotonic_ns() + MARGIN_NS
        end_ns = start_ns + len(bits) * bit_ms * 1_000_000
        steps = np.diff([int(bit) for bit in bits], prepend=0, append=0)
        places = np.flatnonzero(steps)
        changes = [(start_ns + int(at) * bit_ms * 1_000_000, int(steps[at] > 0)) for at in places]
        self.play(changes)
        self._played += 1
        with (folder / f"played-{self._played}.events.jsonl").open("w") as file:
            for at_ns, level in changes:
                entry = {"event": "load-change", "board_ns": at_ns, "u_ns": 0.0, "level": level}
                file.write(f"{json.dumps(entry)}\n")
        time.sleep(max(end_ns + MARGIN_NS - time.monotonic_ns(), 0) * 1e-9)
        return start_ns, end_ns

    def rows(self, activity: Activity, later: Sequence[Activity], busy: Sequence[MediumStretch]) -> Rows:
        """One row at each change of the medium's mode, and of the pattern."""
        model, rows = self._model, []
        busy_cores = activity.cpu_s / activity.span_s
        for stretch in model.stretches(activity, busy):
            for at_ns, level in self._levels(stretch.start_ns, stretch.end_ns):
                cores = busy_cores + level * (len(model.board.busy_cores_w) - 1)
                power_w = model.board.power_w(cores) + model.medium.idle_w + model.medium_w(stretch.mode)
                rows.append((at_ns, *model.supply.at_power(power_w)))
        self._witness.tell(rows)
        return [(at_ns, self._sign * current_a, volts) for at_ns, current_a, volts in rows]

    def _levels(self, start_ns: int, end_ns: int) -> list[tuple[int, int]]:
        """Levels within a stretch, each from its time on; successive calls have adjacent stretches."""
        with self._lock:
            while self._changes and self._changes[0][0] <= start_ns:
                self._level = self._changes.pop(0)[1]
            levels = [(start_ns, self._level)]
            while self._changes and self._changes[0][0] < end_ns:
                levels.append(self._changes.pop(0))
                self._level = levels[-1][1]
        return levels


class PlayingProbe(DelayedProbe):
    """A probe that sends its load patterns to the power model; otherwise a normal probe."""

    def __init__(self, load: PlayedLoad, *started: Any, **simulated: Any) -> None:
        """Starts a probe; the other arguments are DelayedProbe's."""
        super().__init__(*started, **simulated)
        self._load, self._folder = load, Path(started[2])

    def play_signature(self, bits: str, bit_ms: int) -> tuple[int, int]:
        """Has the model play the pattern; returns its start and end [board_ns]."""
        return self._load.play_signature(bits, bit_ms, self._folder)


HUM_HZ: Final = 100
"""Edges per second that a floating input picks up from the mains: two per period of 50 Hz."""


@contextmanager
def _hum(line: LineFifo) -> Iterator[None]:
    """Mains edges on a floating sync line during the block."""
    ended = threading.Event()

    def run() -> None:
        level, chance = 0, random.Random(1)
        with contextlib.suppress(OSError), line.path.open("w", buffering=1) as sink:
            while not ended.wait(chance.uniform(0.5, 1.5) / HUM_HZ):
                level = 1 - level
                sink.write(f"{time.monotonic_ns()} {level}\n")

    thread = threading.Thread(target=run, name="twin-hum", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def second_meter(rig: DrawnRig) -> Witness:
    """The second meter of a drawn rig."""
    return Witness(1.02 if rig.plant == "second-meter" else 1.0, SHUNT_OHM + BETWEEN_OHM)


@contextmanager
def rehearsal_rig(rig: DrawnRig, witness: Witness, *, root: Path, files: Path) -> Iterator[SimulatedRig]:
    """The drawn rig, which tells the witness its current.

    Args:
        files: folder for the simulated board's files, created here and removed at the end.
    """
    load = PlayedLoad(rig.power, witness, rig.sign)
    options = RigSetup(root=root, files=files, truth=files / "truth.json", seed=rig.seed)
    with simulated_rig(
        *(rig.profile, rig.sensor, rig.power, load, options),
        course=False,
        wired=rig.plant not in ("dead-sync", "floating-d8"),
        slowed=rig.plant != "wrong-medium",
        probe=partial(PlayingProbe, load),
    ) as simulated:
        port = simulated.meter.removeprefix("serial:").partition(",")[0]
        with _hum(simulated.supply.feed.sync) if rig.plant == "floating-d8" else nullcontext():
            yield replace(simulated, meter=rig.meter(port))


def _connected(simulated: LoadBench, drawn: DrawnRig, setup: Setup) -> None:
    say(f"      {setup.value} (SIMULATED: done)")
    one, other = 1 / drawn.load_a_ohm, 1 / drawn.load_b_ohm
    loads = {
        Setup.UNPLUGGED: 0.0,
        **dict.fromkeys((Setup.LOAD_A, Setup.A_HOT), one),
        **dict.fromkeys((Setup.LOAD_B, Setup.B_HOT), other),
        **dict.fromkeys((Setup.BOTH, Setup.BOTH_HOT), one + other),
    }
    if setup is Setup.FUSE_PULLED:
        simulated.pull_fuse()
    else:
        simulated.connect(loads.get(setup))


def _taken(simulated: LoadBench, folder: Path, seconds: float) -> DeskRecording:
    """A recording without the board's programs, as fast as this computer can simulate it."""
    with simulated.running(seconds) as name, opened_meter(open_meter(name), name) as meter:
        with Running(meter, folder) as running:
            running.wait(seconds)
        return running.recorded()


@contextmanager
def simulated_desk(
    drawn: DrawnRig, certificate: Certificate, pace: DeskPace, step: DeskStep, folder: Path
) -> Iterator[OpenDesk]:
    """The equipment that one step needs, on a simulated desk that is the same for all steps."""
    parts = Parts(
        supply="simulated",
        sensor="simulated",
        resistor=f"{drawn.load_a_ohm:g},0.1%",
        second_meter="simulated",
        between_ohm=f"{BETWEEN_OHM:g}",
    )
    certificate.parts = parts
    simulated = LoadBench(drawn, ROOT)
    set_up, zero_a = partial(_connected, simulated, drawn), certificate.figure("zero", ZERO_A)
    desk = OpenDesk(set_up, folder, pace, parts, drawn.profile, zero_a)
    if not step.board:
        yield replace(desk, record=partial(_taken, simulated))
        return
    files = ROOT / SIMULATED_FILES / f"commissioning-{os.getpid()}-{step.key}"
    witness = second_meter(drawn)
    with rehearsal_rig(drawn, witness, root=ROOT, files=files) as rig, ExitStack() as opened:
        meter = opened.enter_context(opened_meter(open_meter(rig.meter), rig.meter))
        second = opened.enter_context(opened_meter(witness, "")) if step.second else None
        certificate.meter = meter_words(meter)
        yield replace(desk, rig=meter, open_board=lambda: nullcontext(rig.board), second=second)
