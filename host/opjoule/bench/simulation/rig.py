"""The simulated rig: workloads run on this computer, the supply and the meter around them are simulated."""

import os
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from opjoule.base.errors import LinkFault, RigFault
from opjoule.bench.simulation.engine_power import EnginePower
from opjoule.bench.simulation.medium_work import LineFifo
from opjoule.bench.simulation.power_model import BoardModel, LoadModel, Models, PowerModel
from opjoule.bench.simulation.simulators import PROGRAM, Imperfections, MediumSimulator
from opjoule.bench.simulation.supply import DELAY_NS, PERIOD_MS, Feed, SimulatedSupply, drawn_for
from opjoule.boards.binaries import installed_here
from opjoule.boards.board import Board, ProbeOptions
from opjoule.boards.board_state import AS_SIMULATED, StateSettings, read_facts
from opjoule.boards.databases import background_threads
from opjoule.boards.medium import Medium
from opjoule.boards.preparation import Preparation
from opjoule.boards.probe import Probe
from opjoule.boards.profiles import BoardAndMedium, Profile
from opjoule.boards.runner import Disturbance
from opjoule.boards.sessions import new_session
from opjoule.boards.shell import LocalShell
from opjoule.boards.virtual.machine import Machine
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.operations.board_files import COLUMNS, COMPUTER

PERIOD_S: Final = 1.0
_BUSY: Final = (0, 1, 2, 7)
"""Columns of a line of /proc/stat: user, nice, system, steal. Source: proc_stat(5)."""
_KTHREADD: Final = 2
"""Process number of the parent of all kernel threads; in a container it may be any program."""


class ProcessorTimes(NamedTuple):
    """Processor times since the computer's start."""

    processors: int
    busy_s: float
    own_s: float


class ComputerWatch:
    """Thread that appends a sample to the file once a second, from its creation to close()."""

    def __init__(self, path: Path) -> None:
        """Raises: FileExistsError: raw data is never overwritten."""
        self._file = path.open("x", encoding="utf-8", buffering=1)
        self._file.write(",".join(COLUMNS) + "\n")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="computer-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the samples; the file does not change afterwards. May be called twice."""
        self._ended.set()
        self._thread.join()
        self._file.close()

    def _run(self) -> None:
        with suppress(OSError):  # on a full disk, the error of the record's own files is the one to report
            while True:
                times = processor_times(Path("/proc"), os.getpid())
                self._file.write(f"{time.monotonic_ns()},{times.processors},{times.busy_s:.2f},{times.own_s:.2f}\n")
                if self._ended.wait(PERIOD_S):
                    return


def processor_times(proc: Path, root: int) -> ProcessorTimes:
    """Times of all processors, and those of a process with everything that it has started.

    A process has the times of its ended children once it has waited for them. Kernel threads, which write the
    simulated medium's files to the disk, count as own.
    """
    tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
    lines = (proc / "stat").read_text(encoding="ascii").splitlines()
    ticks = [int(column) for column in lines[0].split()[1:]]
    processors = sum(line.startswith("cpu") for line in lines) - 1
    own = {root, _KTHREADD} if _is_kthreadd(proc) else {root}
    children, spent = defaultdict(list), {}
    for stat in proc.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            number = int(stat.parent.name)
            children[int(fields[1])].append(number)
            spent[number] = sum(map(int, fields[11:15]))
    waiting = list(own)
    while waiting:
        begun = children[waiting.pop()]
        own.update(begun)
        waiting.extend(begun)
    busy = sum(ticks[column] for column in _BUSY if column < len(ticks))
    return ProcessorTimes(processors, busy * tick_s, sum(spent.get(number, 0) for number in own) * tick_s)


def _is_kthreadd(proc: Path) -> bool:
    with suppress(OSError):
        return (proc / str(_KTHREADD) / "comm").read_text(encoding="utf-8").strip() == "kthreadd"
    return False


SIMULATED_FILES: Final = "build/simulated-files"
"""Folder below the clone for the files of simulated boards, with one folder per measurement."""


class DelayedProbe(Probe):
    """The probe of a simulated board: answers with the board's clock, and with the dirty pages at that clock's time.

    Meter and round trips see a board with a fixed delay behind its computer.
    """

    def __init__(
        self,
        *started: Any,
        feed: Feed,
        ended: Callable[[], None],
        faults: Callable[[], list[str]] = lambda: [],
        warnings: Callable[[], list[str]] = lambda: [],
        watches: bool = False,
    ) -> None:
        """Starts a probe.

        Args:
            faults: gives the simulation's faults since its last call; `warnings` likewise.
            watches: whether to sample the load of this computer, whose clock is then the board's.
        """
        self._watches = watches
        self._watch: ComputerWatch | None = None
        self._feed, self._call_ended = feed, ended
        self._simulation_faults, self._simulation_warnings = faults, warnings
        super().__init__(*started)
        feed.probe_began()

    def clock_exchange(self) -> Exchange:
        """The board's clock as the meter sees it: late by the rig's delay.

        A probe that does not answer has ended. From then on the simulated board is idle and its meter continues to
        sample, as a real one would.
        """
        try:
            real = super().clock_exchange()
        except LinkFault:
            self._call_ended()
            raise
        return Exchange(real.sent_ns, real.far_received_ns - DELAY_NS, real.far_sent_ns - DELAY_NS, real.received_ns)

    def pending_write_bytes(self) -> int:
        """Dirty pages of the simulated board, as of its clock."""
        return self._feed.pending_bytes(time.monotonic_ns() - DELAY_NS)

    def keep_marks(self, path: Path) -> None:
        """Begins the files of the run: the marks, and beside them the load of this computer."""
        super().keep_marks(path)
        if self._watches:
            self._watch = ComputerWatch(path.with_name(COMPUTER))

    def faults(self) -> list[str]:
        """Faults of the probe and of the simulation."""
        return super().faults() + self._simulation_faults()

    def warnings(self) -> list[str]:
        """Warnings of the probe and of the simulation; the load of this computer is no longer sampled."""
        self._unwatch()
        return super().warnings() + self._simulation_warnings()

    def close(self) -> None:
        """Ends the probe; from then on the simulated board is idle."""
        self._unwatch()
        super().close()
        self._call_ended()

    def _unwatch(self) -> None:
        if self._watch:
            self._watch.close()


@dataclass(frozen=True, kw_only=True)
class RigSetup:
    """What a simulated rig is opened for, and where its files are."""

    root: Path
    truth: Path
    seed: int
    """Seed of the random errors of this rig."""
    files: Path | None = None
    """Folder for the simulated board's databases; created here, and removed at the end. None: a virtual board, which
    has its own disks."""
    kept: Path | None = None
    """Folder for loaded databases that is not removed, on the file system of `files`; None: below `files`."""
    database: str = ""
    """The database to be measured; empty if no engine is needed."""
    sync: str | None = None
    """Carrier of the sync line or "none", instead of the rig's own."""
    disturbance: Disturbance | None = None


@dataclass(eq=False)
class SimulatedPreparation(Preparation):
    """Preparation of a simulated board: the directory on its medium, and its page cache."""

    simulator: MediumSimulator
    drops: bool
    """Whether the page cache is dropped before each run."""

    def prepare(self) -> list[str]:
        """Creates the directory; returns a line for each action."""
        return [*super().prepare(), *(["page cache dropped before each run"] if self.drops else [])]

    def before_run(self) -> None:
        """Drops the page cache. Raises: RigFault: the medium's files stay in memory."""
        if self.drops:
            self.simulator.drop_cache()


@dataclass(frozen=True)
class SimulatedRig:
    """A simulated board and the meter on its supply, whose load follows the board's activity.

    The board consists of the processes under its probe, not of the rest of this computer, or it is a virtual board. The
    rig runs a fixed delay behind this computer, so the simulated board's clock does too: for the meter and for
    round-trip exchanges, a board_ns happens DELAY_NS later on host_ns.
    """

    board: Board
    supply: SimulatedSupply
    meter: str
    """The meter's address."""
    facts: dict[str, Any]
    """Facts about the simulation for run.json."""
    machine: Machine | None = None
    """The emulated computer of a virtual board."""


@contextmanager
def twin_rig(
    board: BoardAndMedium,
    options: RigSetup,
    *,
    imperfections: Imperfections | None = None,
    twin_profile: Path | None = None,
    wanted: StateSettings = AS_SIMULATED,
) -> Iterator[SimulatedRig]:
    """A simulated rig whose errors and medium are drawn at random.

    Args:
        imperfections: the rig's errors, instead of drawn ones.
        twin_profile: output of `measure.py twin --fit`; its board, medium and supply replace the stated ones.
        wanted: state of the board, of which it takes the keys in SIMULATED.
    """
    models, seed = Models.with_profile(twin_profile), options.seed
    stated = models.load(board, seed)
    drawn = imperfections or drawn_for(board.profile, stated.greatest_w, seed)
    drawn = drawn.on(models.supply) if models.own_supply else drawn
    power = PowerModel(_with_memory(stated.board, wanted.memory_mb), stated.medium, drawn.supply)
    model = EnginePower(power, seed, one_thread=background_threads(options.database) == 1)
    drops = wanted.page_cache == "drop"
    with simulated_rig(board.profile, drawn, power, model, options, drops=drops) as rig:
        yield replace(rig, facts={**rig.facts, **models.facts()})


@contextmanager
def simulated_rig(
    profile: Profile,
    drawn: Imperfections,
    power: PowerModel,
    model: LoadModel,
    options: RigSetup,
    *,
    course: bool = True,
    wired: bool = True,
    slowed: bool = True,
    drops: bool = False,
    probe: Callable[..., DelayedProbe] = DelayedProbe,
) -> Iterator[SimulatedRig]:
    """A simulated board; its medium slows processes under its probe, and they feed the model.

    Args:
        power: models of board and medium; `model` turns the board's activity into current.
        course: whether to keep the true energy over time.
        wired: False: the edges of the sync line do not reach the meter.
        slowed: False: the files are not on the board's medium.
        drops: whether the page cache is dropped before each run, and bounded by the board's memory.
        probe: the probe's class, or a function that starts one.
    Raises: RigFault: the folder exists already, or a simulator does not start.
    """
    files = options.files
    assert files, "a board of this computer's processes needs a folder for its files"
    try:
        files.mkdir(parents=True)  # it is removed at the end, so it must not exist yet
    except FileExistsError as error:
        raise RigFault(
            f"{files} is there already: the folder of a simulated board is made and removed by one run"
        ) from error
    with ExitStack() as opened:
        opened.callback(shutil.rmtree, files, ignore_errors=True)
        program = options.root / "build" / "loader" / PROGRAM
        simulator = MediumSimulator(program, power.board, power.medium, files if drops else None)
        opened.callback(simulator.close)
        supply = SimulatedSupply(
            drawn,
            model,
            root=options.root,
            truth=options.truth,
            seed=options.seed,
            course=course,
            power=power,
            work=simulator.work,
        )
        opened.callback(supply.close)
        line = supply.feed.sync
        if not wired:
            line = opened.enter_context(closing(LineFifo(supply.folder / "unheard.fifo")))
        start = partial(
            probe,
            feed=supply.feed,
            ended=supply.feed.probe_ended,
            faults=lambda: simulator.faults() + supply.faults(),
            warnings=simulator.warnings,
            watches=True,
        )
        watched = ("--scope", "processes", "--kernel-files", simulator.kernel_files)
        live = ("--live", str(supply.feed.system.path), "--live-period-ms", str(PERIOD_MS))
        under = simulator.under if slowed else ()
        sync = f"virtual:{line.path}" if options.sync != "none" else None
        watching = ProbeOptions(sync, extra=(*watched, *live), under=under, start=start)
        preparation = SimulatedPreparation(LocalShell(), Medium(str(files)), simulator, drops)
        board = _board(profile, supply.folder / new_session(), preparation, watching, options)
        opened.callback(board.close)
        why_not = simulator.why_not
        notes = [f"this computer cannot slow the simulated medium's writes: {why_not}"] if why_not else []
        yield SimulatedRig(board, supply, supply.meter, {**supply.facts(), "notes": notes})


def _with_memory(board: BoardModel, memory_mb: int) -> BoardModel:
    """The board with at most so much memory; 0 for all of its own."""
    return replace(board, memory_bytes=min(board.memory_bytes, memory_mb << 20)) if memory_mb else board


def _board(profile: Profile, folder: Path, preparation: Preparation, probe: ProbeOptions, options: RigSetup) -> Board:
    folder.mkdir()
    shell = preparation.shell
    return Board(
        profile.name,
        profile.cores,
        shell,
        installed_here(options.root / "build", options.database),
        facts={**read_facts(shell).values, "connection": "simulated"},
        session=str(folder),
        kept=str(options.kept or ""),
        preparation=preparation,
        probe=probe,
        disturbance=options.disturbance,
    )
