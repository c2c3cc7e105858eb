"""The simulators as processes: the real firmware of a meter behind a pty with drawn errors, and the medium's."""

import hashlib
import json
import os
import queue
import random
import subprocess
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from opjoule.base.errors import RigFault
from opjoule.base.files import ProcessFolder
from opjoule.bench.simulation.medium_work import MediumWork
from opjoule.bench.simulation.power_model import BoardModel, MediumModel, PowerModel, Supply
from opjoule.boards.probe import drained
from opjoule.boards.shell import LineProcess, end_by_input
from opjoule.energy.error_bounds import ROOM_K, SHUNT_K_PER_W, SHUNT_PER_K
from opjoule.energy.shunt_heat import TAU_LEAST_S, TAU_MOST_S

BUS_GAIN_ERROR_MAX: Final = 0.005
SUPPLY_OHM_MAX: Final = 0.8
"""Resistance of a supply with a long or thin cable: a public trace of a Raspberry Pi 3B+ at a desk has 5.046 V - 0.781
ohm x I."""
HEADROOM_V: Final = 0.02
"""Margin for noise and steps of a reading [V]."""
_OF_THE_SUPPLY = ("supply_ohm", "supply_open_v")


@dataclass(frozen=True)
class Imperfections:
    """Errors of one rig: INA219A with its shunt, microcontroller, supply. The estimate must not use them."""

    shunt_ohm: float
    """0.1 ohm, 1 %, at its room's temperature, without current"""
    shunt_ppm: float
    """its temperature coefficient per kelvin"""
    shunt_thermal: str
    """thermal resistance [K/W] and time constant [s] of the shunt"""
    gain_error: float
    """gain error of the current channel without the shunt"""
    offset_uv: float
    """offset of the shunt voltage, in the range of 320 mV"""
    bus_gain_error: float
    noise_uv: float
    """r.m.s. of one conversion of 532 us; chosen, no data sheet states it"""
    clock_error_ppm: float
    """error of the microcontroller's ceramic resonator when it starts"""
    clock_warmup: str
    """change of that error as it warms up [ppm], and time constant [s]"""
    sensor_clock_error_ppm: float
    """error of the oscillator that times the conversions"""
    ripple: str
    """ripple of the supply voltage: amplitude [mV] and frequency [Hz]"""
    supply_ohm: float
    """resistance of supply and cable"""
    supply_open_v: float

    @classmethod
    def draw(cls, seed: int | random.Random) -> Self:
        """One rig from the population.

        Source: SBOS448G (INA219), 7.5: gain 0.5 %, offset 200 uV at PGA /8, bus 0.5 %, 532 us typical and 586 us at
        most, as much assumed the other way. Arduino Uno's CSTCE16M0V53: 0.5 % initial tolerance; -2021 ppm and about
        10 ppm/K are published of one. Supplies: 4.9 to 5.25 V and up to 50 mV of ripple are assumed; the cable is
        within SUPPLY_OHM_MAX. The shunt is of thick film, within 200 ppm/K, in a room within 15 K of 25 degrees C, with
        50 to 100 K/W on its board (energy/error_bounds.py has the sources) and a time constant of 2 to 30 s (assumed).
        """
        chance = seed if isinstance(seed, random.Random) else random.Random(seed)
        ripple_mv = chance.choice([0.0, chance.uniform(1, 50)])
        drawn = cls(
            shunt_ohm=round(0.1 * (1 + chance.uniform(-0.01, 0.01)), 8),
            shunt_ppm=0.0,
            shunt_thermal="0,1",
            gain_error=round(chance.uniform(-0.005, 0.005), 7),
            offset_uv=round(chance.uniform(-200, 200), 3),
            bus_gain_error=round(chance.uniform(-BUS_GAIN_ERROR_MAX, BUS_GAIN_ERROR_MAX), 7),
            noise_uv=round(chance.uniform(5, 40), 2),
            clock_error_ppm=round(chance.uniform(-5000, 5000), 2),
            clock_warmup=f"{chance.uniform(-50, 50):.3f},{chance.uniform(30, 600):.3f}",
            sensor_clock_error_ppm=round(chance.uniform(-91_000, 100_000), 1),
            ripple=f"{ripple_mv:.3f},{50 * 2000 ** chance.random():.6f}",
            supply_ohm=round(chance.choice([0.0, chance.uniform(0.02, SUPPLY_OHM_MAX)]), 4),
            supply_open_v=round(chance.uniform(4.9, 5.25), 4),
        )
        return drawn.heating_up(chance)

    def heating_up(self, chance: random.Random) -> Self:
        """The rig with a shunt that its current heats, in a room that is not at 25 degrees C."""
        ppm, away_k = chance.uniform(-1, 1) * SHUNT_PER_K * 1e6, chance.uniform(-1, 1) * ROOM_K
        k_per_w = chance.uniform(SHUNT_K_PER_W / 2, SHUNT_K_PER_W)
        tau_s = TAU_LEAST_S * (TAU_MOST_S / TAU_LEAST_S) ** chance.random()
        return replace(
            self,
            shunt_ohm=round(self.shunt_ohm * (1 + ppm * 1e-6 * away_k), 8),
            shunt_ppm=round(ppm, 3),
            shunt_thermal=f"{k_per_w:.3f},{tau_s:.3f}",
        )

    @property
    def meter_name(self) -> str:
        """Name of its meter: equal for equal errors, so that common errors of two measurements are recognised. The name
        does not reveal the errors."""
        errors = json.dumps(self._of_meter, sort_keys=True)
        return f"simulated-{hashlib.sha256(errors.encode()).hexdigest()[:12]}"

    @property
    def _of_meter(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name not in _OF_THE_SUPPLY}

    def carrying(self, power_w: float, least_v: float) -> Self:
        """The rig with a supply that keeps the board running: stiffer if the drawn supply would fall below `least_v`.

        At the board's greatest power, its readings with ripple and bus gain error stay above `least_v`.
        """
        held_v = least_v * (1 + BUS_GAIN_ERROR_MAX) + float(self.ripple.partition(",")[0]) * 1e-3 + HEADROOM_V
        open_v = max(self.supply_open_v, round(held_v, 4))
        most_ohm = max(round((open_v - held_v) * held_v / power_w, 4), 0.0)
        return replace(self, supply_open_v=open_v, supply_ohm=min(self.supply_ohm, most_ohm))

    def on(self, supply: Supply) -> Self:
        """The rig with another supply."""
        return replace(self, supply_open_v=supply.open_voltage_v, supply_ohm=supply.resistance_ohm)

    @property
    def supply(self) -> Supply:
        """The supply of the power model."""
        return Supply(self.supply_open_v, self.supply_ohm)

    def options(self) -> list[str]:
        """Sensor, clocks and ripple as options of rig-sim; the power model contains the supply's resistance."""
        return [f"--{name.replace('_', '-')}={value}" for name, value in self._of_meter.items()]

    def write(self, path: Path, seed: int, power: PowerModel | None) -> None:
        """Writes the errors and the drawn board and medium, for use after the measurement."""
        entry = {"schema": {"name": "simulator-imperfections", "version": 1}, "simulated": True, "seed": seed}
        drawn = {"board": asdict(power.board), "medium": asdict(power.medium)} if power else {}
        path.write_text(json.dumps({**entry, **asdict(self), **drawn}, indent=2) + "\n")


_START_LIMIT_S: Final = 60.0
_MEMORY: Final = Path("/dev/shm")


def folder_in_memory() -> ProcessFolder:
    """A temporary folder of this process, in memory if possible, so that no disk disturbs a simulated board."""
    return ProcessFolder(f"opjoule-twin-{os.getpid()}-", _MEMORY if os.access(_MEMORY, os.W_OK) else None)


def _end_if_left(process: subprocess.Popen[bytes]) -> None:
    """Kills a simulator that outlives its owner."""
    if process.poll() is None:
        process.kill()
        process.wait()  # else it stays as a zombie where no init process reaps it


def known_load(
    folder: Path, rows: Iterable[tuple[float, float, float]], edges: Iterable[tuple[float, int]] = ()
) -> list[str]:
    """Options for a load that is known beforehand, played as fast as possible; its files are written to `folder`.

    Args:
        rows: time [s] and the current [A] and voltage [V] from then on; the load ends with the last one.
        edges: time [s] and level of the sync line.
    """
    profile, sync = folder / "profile.csv", folder / "edges.csv"
    lines = (f"{time_s:.6f},{current_a:.6f},{voltage_v:.6f}\n" for time_s, current_a, voltage_v in rows)
    profile.write_text("time_s,current_a,voltage_v\n" + "".join(lines))
    sync.write_text("time_s,level\n" + "".join(f"{time_s:.6f},{level}\n" for time_s, level in edges))
    return ["--profile", str(profile), "--sync", str(sync), "--pace", "0"]


class RigSimulator:
    """One running rig-sim: a drawn sensor on a load; end() ends it."""

    def __init__(
        self, root: Path, folder: Path, load: Sequence[str], drawn: Imperfections, seed: int, truth: Path
    ) -> None:
        """Starts rig-sim and waits for its pty.

        Args:
            folder: temporary folder for its pty and log.
            load: options of the load: known_load(), or a feed that is followed.
            drawn: the sensor's errors; `seed` is that of its noise.
            truth: file for the true energies.
        Raises: RigFault: it does not start.
        """
        self.port = folder / "meter"
        """The pty."""
        self._log = (folder / "rig-sim.log").open("w+")
        firmware = ("--elf", str(root / ".pio/build/uno/firmware.elf"), "--pty", str(self.port))
        known = ("--truth", str(truth), "--seed", str(seed), *drawn.options())
        self._process = subprocess.Popen(
            [str(root / "build/rig-sim/rig-sim"), *firmware, *load, *known],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        # On a Ctrl-C before it has an owner, it would wait for its input for ever.
        weakref.finalize(self, _end_if_left, self._process)
        try:
            self._await()
        except BaseException:  # nobody else has a reference to end it
            self.end()
            raise

    def _await(self) -> None:
        limit_s = time.monotonic() + _START_LIMIT_S
        while not self.port.exists():
            if self._process.poll() is not None or time.monotonic() > limit_s:
                raise RigFault(
                    f"the rig simulator did not start: {self.last_words()}; run host/measure.py doctor --simulate"
                )
            time.sleep(0.01)

    def status(self, wait_s: float = 0.0) -> int | None:
        """Exit status of the simulator; None if it still runs after `wait_s`."""
        try:
            return self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return None

    def last_words(self) -> str:
        """The last line of its output."""
        self._log.seek(0)
        return (self._log.read().strip().splitlines() or ["it said nothing"])[-1]

    def end(self, limit_s: float = 0.0) -> None:
        """Ends the process unless it ends by itself within `limit_s`; may be called twice."""
        if self.status(limit_s) is None:
            self._process.terminate()
            self._process.wait()
        self._log.close()


PROGRAM = "medium-sim"
_MEDIUM_LIMIT_S = 30.0
_STOP_LIMIT_S = 30.0
_DROP_LIMIT_S = 300.0
LARGEST_EXCESS = 0.1
"""Greatest relative increase of the mean sync time by this computer's disk without a warning."""


class MediumSimulator(LineProcess):
    """Runs `medium-sim serve` from its creation to close()."""

    def __init__(self, program: Path, board: BoardModel, medium: MediumModel, files: Path | None = None) -> None:
        """Starts it.

        Args:
            board: its page cache is in front of the medium.
            files: folder of the medium's files, of which the page cache holds no more than the board's memory and
                which drop_cache() drops; None: all files that this computer's page cache holds stay in it.
        Raises: RigFault: it does not start.
        """
        if not program.exists():
            raise RigFault(f"{program} is missing: run host/measure.py doctor --simulate")
        self._temporary = folder_in_memory()
        folder = Path(self._temporary.name)
        self.kernel_files = str(folder / "kernel")
        (folder / "kernel").mkdir()
        self.work = MediumWork(folder / "work.fifo")
        socket = str(folder / "socket")
        self.under = (str(program), "run", "--socket", socket, "--")
        """Prefix of a command line under which the command is slowed."""
        self._faults: queue.Queue[str] = queue.Queue()
        self._disk: dict[str, int] = {}
        self._beyond_bytes = 0
        self._dropped: queue.SimpleQueue[dict[str, int]] = queue.SimpleQueue()
        self._closing = False
        self._hello: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        values = {
            "socket": socket,
            "state": self.kernel_files,
            "live": str(self.work.fifo.path),
            "write-bytes-per-s": f"{medium.write_bytes_per_s:.9g}",
            "read-bytes-per-s": f"{medium.read_bytes_per_s:.9g}",
            "flush-s": f"{medium.flush_s:.9g}",
            "dirty-limit-bytes": str(board.dirty_limit_bytes),
            "dirty-background-bytes": str(board.dirty_background_bytes),
        }
        if files:
            values |= {"files": str(files), "cache-bytes": str(board.page_cache_bytes)}
        options = [word for name, value in values.items() for word in (f"--{name}", value)]
        super().__init__([str(program), "serve", *options])
        self._reader = threading.Thread(target=self._follow, name=PROGRAM, daemon=True)
        self._reader.start()
        try:
            hello = self._hello.get(timeout=_MEDIUM_LIMIT_S)
        except queue.Empty:
            hello = {}
        if "medium_sim" not in hello:
            self.close()
            raise RigFault(f"{PROGRAM} does not start: {hello.get('said', 'it says nothing')}")
        self.why_not = "" if hello["slows"] else str(hello["why"] or "it does not say why")
        """Reason why nothing is slowed; empty if commands are slowed."""

    def drop_cache(self) -> None:
        """Drops the page cache of the medium's files. Raises: RigFault: it does not answer, or they stay in memory."""
        assert self._process.stdin
        try:
            self._process.stdin.write("drop\n")
            self._process.stdin.flush()
            dropped = self._dropped.get(timeout=_DROP_LIMIT_S)
        except (OSError, ValueError, queue.Empty):
            raise RigFault("the simulated medium does not drop the page cache: it has ended") from None
        if 2 * dropped["left_bytes"] > dropped["cached_bytes"]:
            left_mb = dropped["left_bytes"] / 1e6
            raise RigFault(
                f"page_cache=drop: {left_mb:.0f} MB of the simulated medium's files stay in memory: "
                "put the clone on a disk, or leave them with --state page_cache=keep"
            )

    def faults(self) -> list[str]:
        """Faults since the last call, one line each."""
        faults = drained(self._faults)
        return [] if self.why_not else faults

    def warnings(self) -> list[str]:
        """Lines on a page cache beyond the board's memory, and on a disk that made syncs slower than the medium's."""
        beyond = (
            f"up to {self._beyond_bytes / 1e6:.0f} MB more than the simulated board's memory stayed in the page cache, "
            "because programs had mapped them: fewer reads than a board's reached the medium"
        )
        return [*([beyond] if self._beyond_bytes else []), *self._slower_disk()]

    def _slower_disk(self) -> list[str]:
        if not self._disk or self._disk["excess_ns"] <= LARGEST_EXCESS * self._disk["model_ns"]:
            return []
        slower = f"{self._disk['slower']} of {self._disk['syncs']} syncs"
        longer = self._disk["excess_ns"] / self._disk["model_ns"]
        return [
            f"this computer's disk was slower than the simulated medium in {slower}: a sync took {longer:.0%} longer "
            "on average than on the medium; measure when nothing else writes to this disk"
        ]

    def _follow(self) -> None:
        """Processes its output: first a greeting, then faults."""
        greeted = False
        for entry in self.lines():
            if "medium_sim" in entry:
                self._hello.put(entry)
                greeted = True
            elif "disk" in entry:
                self._disk = entry["disk"]
            elif "dropped" in entry:
                self._dropped.put(entry["dropped"])
            elif "cache" in entry:
                self._beyond_bytes = int(entry["cache"]["beyond_bytes"])
            elif "fault" in entry:
                self._faults.put(f"simulated medium: {entry['fault']}")
        said = self.complaint() or f"it ended with status {self.wait()}"
        if not greeted:
            self._hello.put({"said": said})
        elif not self._closing:
            self._faults.put(f"the simulated medium has ended and no longer slows anything: {said}")
        self.work.ended = True

    def close(self) -> None:
        """Ends it, which releases all blocked commands, and removes its files; may be called twice."""
        if self._closing:
            return
        self._closing = True
        end_by_input(self._process, _STOP_LIMIT_S)
        self._reader.join()
        self.work.fifo.close()
        self._temporary.cleanup()
