"""The board of rig.toml, connected and with its programs installed."""

from pathlib import Path

from opjoule.base.errors import BadInput, unknown
from opjoule.boards.board import Board, ProbeOptions
from opjoule.boards.connection.sessions import new_session
from opjoule.boards.connection.shell import LocalShell, Shell
from opjoule.boards.connection.ssh import SshConnection
from opjoule.boards.connection.steps import JOURNAL
from opjoule.boards.media.medium import Medium
from opjoule.boards.preparation.preparation import BoardPreparation, plan_for
from opjoule.boards.profiles import BoardAndMedium, Profile
from opjoule.boards.programs.binaries import install_programs
from opjoule.boards.programs.disturbance import Disturbance
from opjoule.boards.rig.file import CPUFREQ, Rig, RigDevice, check_sync
from opjoule.boards.server.setup import ServerPrograms
from opjoule.boards.state.board_state import read_facts
from opjoule.boards.state.state_settings import StateSettings


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
    if board.medium not in described.storage:
        known = unknown("medium", board.medium, sorted(described.storage))
        raise BadInput(f"{rig.path}: [device.{board.profile.name}.storage] {known}")
    return described, described.storage[board.medium]


def open_shell(described: RigDevice) -> Shell:
    """The connection that rig.toml specifies. Raises: LinkFault: with ssh's own message."""
    target = described.ssh_target
    return LocalShell() if target is None else SshConnection(target, list(described.ssh_options))
