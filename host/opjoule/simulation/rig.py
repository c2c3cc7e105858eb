"""The simulated rig: workloads run on this computer, the supply and the meter around them are simulated."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from opjoule.databases.registry import background_threads
from opjoule.devices.board import Board, ProbeOptions
from opjoule.devices.connection.sessions import new_session
from opjoule.devices.connection.shell import LocalShell
from opjoule.devices.media.medium import Medium
from opjoule.devices.preparation.preparation import Preparation
from opjoule.devices.profiles import BoardAndMedium, Profile
from opjoule.devices.programs.binaries import Programs, installed_here
from opjoule.devices.programs.disturbance import Disturbance
from opjoule.devices.state.board_state import read_facts
from opjoule.errors import RigFault
from opjoule.simulation.delayed_probe import DelayedProbe
from opjoule.simulation.engine_power import EnginePower
from opjoule.simulation.imperfections import Imperfections, medium_chance
from opjoule.simulation.line_fifo import LineFifo
from opjoule.simulation.medium_simulator import PROGRAM, MediumSimulator
from opjoule.simulation.models import Models
from opjoule.simulation.power_model import PowerModel
from opjoule.simulation.supply import PERIOD_MS, SimulatedSupply, drawn_for


class TwinRig:
    """Provides the meter's address and a board; close() ends both.

    The board consists only of the processes under its probe, not of the rest of this computer. The rig runs a fixed
    delay behind this computer, so the simulated board's clock does too: for the meter and for round-trip exchanges, a
    board_ns happens DELAY_NS later on host_ns.
    """

    def __init__(
        self,
        board: BoardAndMedium,
        *,
        root: Path,
        storage: Path,
        truth: Path,
        seed: int,
        kept: Path | None = None,
        database: str = "",
        sync: bool = True,
        imperfections: Imperfections | None = None,
        disturbance: Disturbance | None = None,
        twin_profile: Path | None = None,
    ) -> None:
        """Starts everything.

        Args:
            storage: folder for the simulated board's databases; created here, and removed at the end.
            seed: for the random errors of this rig.
            kept: folder for loaded databases that is not removed, on the file system of `storage`; None: below
            `storage`.
            database: the database to be measured; empty if no engine is needed.
            twin_profile: output of `measure.py twin --fit`; its board, medium and supply replace the stated ones.
        """
        try:
            storage.mkdir(parents=True)  # close() removes it, so it must not exist yet
        except FileExistsError as error:
            raise RigFault(
                f"{storage} is there already: simulated storage is made and removed by one run"
            ) from error
        with ExitStack() as opened:
            opened.callback(shutil.rmtree, storage, ignore_errors=True)
            models = Models.with_profile(twin_profile)
            profile, chance = board.profile, medium_chance(board.medium, seed)
            stated = models.load(board, chance)
            drawn = imperfections or drawn_for(profile, stated.greatest_w, seed)
            drawn = drawn.on(models.supply) if models.own_supply else drawn
            power = PowerModel(stated.board, stated.medium, drawn.supply)
            model = EnginePower(power, seed, one_thread=background_threads(database) == 1)
            simulator = MediumSimulator(root / "build" / "loader" / PROGRAM, power.board, power.medium)
            opened.callback(simulator.close)
            supply = SimulatedSupply(
                drawn, model, root=root, truth=truth, seed=seed, medium=power.medium, work=simulator.work
            )
            opened.callback(supply.close)
            programs = installed_here(root / "build", database)
            self.board = simulated_board(
                profile, supply, simulator, programs, storage, disturbance, sync=sync, kept=kept
            )
            opened.callback(self.board.close)
            self._open = opened.pop_all()
        self._supply, self._simulator, self._models = supply, simulator, models
        self.meter = supply.meter

    def facts(self) -> dict[str, Any]:
        """Facts about the simulation for run.json."""
        why_not = self._simulator.why_not
        notes = [f"this computer cannot slow the simulated medium's writes: {why_not}"] if why_not else []
        return {**self._supply.facts(), **self._models.facts(), "notes": notes}

    def close(self) -> None:
        """Ends board, meter and supply, and removes temporary files."""
        self._open.close()


def simulated_board(
    profile: Profile,
    supply: SimulatedSupply,
    simulator: MediumSimulator,
    programs: Programs,
    storage: Path,
    disturbance: Disturbance | None,
    *,
    sync: bool,
    kept: Path | None,
    line: LineFifo | None = None,
    slowed: bool = True,
    probe: Callable[..., DelayedProbe] = DelayedProbe,
) -> Board:
    """The simulated board; its medium slows processes under its probe, and they feed the power model.

    Args:
        line: receives the sync line's edges, instead of the meter.
        slowed: False: the files are not on its medium.
        probe: the probe's class, or a function that starts one.
    """
    shell, feed = LocalShell(), supply.feed
    folder = supply.folder / new_session()
    folder.mkdir()
    watched = ("--scope", "processes", "--kernel-files", simulator.kernel_files)
    live = ("--live", str(feed.system.path), "--live-period-ms", str(PERIOD_MS))

    def faults() -> list[str]:
        return simulator.faults() + supply.faults()

    start = partial(probe, feed=feed, ended=feed.probe_ended, faults=faults, warnings=simulator.warnings)
    facts = read_facts(shell).values
    return Board(
        profile.name,
        profile.cores,
        shell,
        programs,
        facts={**facts, "connection": "simulated"},
        session=str(folder),
        medium=Medium(str(storage)),
        kept=str(kept) if kept else "",
        preparation=Preparation(shell, str(storage)),
        probe=ProbeOptions(
            f"virtual:{(line or feed.sync).path}" if sync else None,
            extra=(*watched, *live),
            under=simulator.under if slowed else (),
            start=start,
        ),
        disturbance=disturbance,
    )
