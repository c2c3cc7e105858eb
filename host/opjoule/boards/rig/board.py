"""The board of rig.toml, connected, with its programs installed; as a load for calibrations, in steps by the probe."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from opjoule.base.errors import BadInput, unknown
from opjoule.base.names import MEDIUM
from opjoule.boards.board import Board, ProbeOptions
from opjoule.boards.board_state import StateSettings, read_facts
from opjoule.boards.connection.sessions import BoardLock, new_session, remove_sessions
from opjoule.boards.connection.shell import LocalShell, Shell
from opjoule.boards.connection.ssh import SshConnection
from opjoule.boards.connection.steps import JOURNAL
from opjoule.boards.medium import Medium
from opjoule.boards.preparation import BoardPreparation, plan_for
from opjoule.boards.profiles import BoardAndMedium, Profile
from opjoule.boards.programs.binaries import install_programs
from opjoule.boards.programs.probe import Probe
from opjoule.boards.programs.runner import PROBE_FOLDER, Disturbance
from opjoule.boards.rig.file import CPUFREQ, Rig, RigDevice, check_sync
from opjoule.boards.server import ServerPrograms


def open_board(
    rig: Rig,
    board: BoardAndMedium,
    *,
    builds: Path,
    sync: str | None = None,
    state: StateSettings | None = None,
    database: str = "",
    disturbance: Disturbance | None = None,
) -> Board:
    """Connects to the board and installs loader and probe there; the caller closes it.

    Args:
        sync: the sync line's carrier or "none", instead of rig.toml's.
        state: the state to measure in, instead of rig.toml's.
        database: database to be measured, if the loader must contain its engine.
    Raises: BadInput: rig.toml does not describe it. LinkFault, DeviceFault: the board is out of reach or unfit.
    """
    described, place = described_medium(rig, board)
    carrier = check_sync(sync or described.sync or board.profile.sync)
    shell = open_shell(described)
    try:
        return board_on(
            shell,
            board.profile,
            place,
            builds=builds,
            probe=ProbeOptions(None if carrier == "none" else carrier),
            wanted=state or described.state,
            cpufreq=described.cpufreq,
            history=builds / "media-speeds.json",
            database=database,
            server=ServerPrograms(
                {"mongod": described.mongod} if described.mongod else {},
                {"mongodb": described.mongod_options},
            ),
            disturbance=disturbance,
        )
    except BaseException:
        shell.close()
        raise


def board_on(
    shell: Shell,
    profile: Profile,
    medium: Medium,
    *,
    builds: Path,
    probe: ProbeOptions,
    wanted: StateSettings,
    cpufreq: str = CPUFREQ,
    journal: str = JOURNAL,
    history: Path | None = None,
    database: str = "",
    server: ServerPrograms | None = None,
    disturbance: Disturbance | None = None,
) -> Board:
    """A real board behind a shell, with its facts read and its programs installed; it closes the shell.

    Raises: LinkFault, DeviceFault: the board is out of reach, or a program cannot be installed.
    """
    session = new_session()
    facts = read_facts(shell, journal=journal, session=session)
    lasting = BoardPreparation(
        shell, medium, profile, facts, sync=probe.sync, wanted=wanted, cpufreq=cpufreq, history=history
    )
    try:
        cores = int(facts.values.get("processors") or profile.cores)
        return Board(
            profile.name,
            cores,
            shell,
            install_programs(shell, builds, facts.machine, facts.cache, database),
            facts=facts.values,
            session=f"{facts.work}/{session}",
            preparation=lasting,
            probe=probe,
            pin=wanted.pin,
            disturbance=disturbance,
            server=server,
        )
    except BaseException:
        lasting.close()
        raise


def preview(rig: Rig, board: BoardAndMedium, state: StateSettings | None = None) -> list[str]:
    """Changes that preparing the board would make, one line each; nothing is changed. Raises: as open_board()."""
    described, place = described_medium(rig, board)
    carrier = described.sync or board.profile.sync
    shell = open_shell(described)
    try:
        facts = read_facts(shell)
        sync = None if carrier == "none" else carrier
        plan, _ = plan_for(shell, facts, place, state or described.state, described.cpufreq, sync)
        return plan.lines()
    finally:
        shell.close()


def described_medium(rig: Rig, board: BoardAndMedium) -> tuple[RigDevice, Medium]:
    """Descriptions of board and medium. Raises: BadInput: rig.toml lacks the board or the medium."""
    described = rig.device(board.profile.name)
    if board.medium not in described.media:
        known = unknown("medium", board.medium, sorted(described.media))
        raise BadInput(f"{rig.path}: [device.{board.profile.name}.{MEDIUM}] {known}")
    return described, described.media[board.medium]


def open_shell(described: RigDevice) -> Shell:
    """The connection that rig.toml specifies. Raises: LinkFault: with ssh's own message."""
    target = described.ssh_target
    return LocalShell() if target is None else SshConnection(target, list(described.ssh_options))


CHIPS: Final = 8
"""Number of chips in a repeating pattern; a step is busy in some of them."""
CHIP_MS: Final = 20
PERIOD_NS: Final = CHIPS * CHIP_MS * 1_000_000
LEVELS: Final = (0, 2, 4, 6, 8)
LEAD_S: Final = 1.0
"""Start of a step, in which supply and frequencies settle; the probe idles 250 ms before and after."""
TAIL_S: Final = 0.5


def pattern(level: int, seconds: float) -> str:
    """The probe's load signature of this duration, busy in `level` of 8 chips, evenly spread."""
    chips = "".join("1" if (chip + 1) * level // CHIPS > chip * level // CHIPS else "0" for chip in range(CHIPS))
    return chips * max(round(seconds * 1e9 / PERIOD_NS), 1)


LoadSteps = Callable[[int, float], tuple[int, int]]
"""play() on a board whose probe runs."""


def play(probe: Probe, level: int, seconds: float) -> tuple[int, int]:
    """Plays one step; returns start and end [host_ns] of `seconds` of it, whole periods of the pattern.

    Raises: LinkFault, DeviceFault: the board does not answer.
    """
    begun_ns = time.monotonic_ns()
    probe.play_signature(pattern(level, LEAD_S + seconds + TAIL_S), CHIP_MS)
    start_ns = begun_ns + round(LEAD_S * 1e9)
    periods = max((time.monotonic_ns() - round(TAIL_S * 1e9) - start_ns) // PERIOD_NS, 1)
    return start_ns, start_ns + min(periods, round(seconds * 1e9 / PERIOD_NS)) * PERIOD_NS


@contextmanager
def load_steps(described: RigDevice, builds: Path) -> Iterator[LoadSteps]:
    """Connects to a board and runs the probe there; it changes nothing else, and nothing stays installed.

    Raises: LinkFault, DeviceFault: out of reach, without the probe, or in use by another measurement.
    """
    with closing(open_shell(described)) as shell:
        facts = read_facts(shell)
        programs = install_programs(shell, builds, facts.machine, facts.cache)
        folder = f"{facts.work}/{new_session()}"
        shell.run(["mkdir", "-p", "--", folder])
        try:
            with closing(BoardLock(shell, facts.work)) as lock:
                lock.confirm()
                with closing(Probe(shell, programs.probe, f"{folder}/{PROBE_FOLDER}", [])) as probe:
                    yield partial(play, probe)
        finally:
            remove_sessions(shell, [folder])
