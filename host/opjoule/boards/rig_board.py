"""The board of rig.toml: connected, with its programs installed; as a load in steps; and examined without a change."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from opjoule.base.errors import BadInput, OpJouleError, unknown
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.settings import MEDIUM
from opjoule.boards.binaries import LOADER, PROBE, find_program, install_programs
from opjoule.boards.board import Board, ProbeOptions
from opjoule.boards.board_state import BoardFacts, StateSettings, read_facts
from opjoule.boards.medium import Medium
from opjoule.boards.preparation import BoardPreparation, plan_for
from opjoule.boards.probe import Probe
from opjoule.boards.profiles import BoardAndMedium, Profile, find_profile
from opjoule.boards.rig import CPUFREQ, Rig, RigDevice, check_sync
from opjoule.boards.runner import PROBE_FOLDER, Disturbance
from opjoule.boards.server import ServerPrograms
from opjoule.boards.sessions import BoardLock, new_session, remove_sessions
from opjoule.boards.shell import LocalShell, Shell, script
from opjoule.boards.ssh import SshConnection
from opjoule.boards.state_gate import HWMON
from opjoule.boards.steps import JOURNAL, as_root


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


PULSE_S: Final = 0.5
PULSES: Final = 3
"""Number of pulses on a sync line that a meter listens to."""
_EDGES_LIMIT_S: Final = 2.0
"""Time limit from the last pulse to its last edge: the meter's line and this computer's load."""
_FLAGS = script("power_flags.sh")
EdgesSoFar = Callable[[int, float], int]
"""Function that gives the sync edges seen by a meter, once there are so many or the time is over [s]."""


def finding(about: str, well: bool, line: str, remedy: str = "") -> Notice:
    """The outcome of one check, with its remedy if it failed."""
    return Notice(NoticeKind.SOUND if well else NoticeKind.MEND, line, "" if well else remedy, about=about)


def examine_board(
    name: str, described: RigDevice, builds: Path, *, pulses: int = 0, edges: EdgesSoFar | None = None
) -> Iterator[Notice]:
    """Checks connection, rights, loader, remaining changes, sync line and each medium of one board.

    Args:
        pulses: number played on the sync line; 0 only requests the line from the kernel, with its level unchanged.
        edges: gives the edges that arrive; None if no meter listens.
    """
    try:
        shell = open_shell(described)
    except OpJouleError as error:
        yield finding(name, False, str(error))
        return
    try:
        board = read_facts(shell)
        yield finding(name, True, f"{board.values['system']}, {board.values['kernel']}, {board.machine}")
        yield from _board(name, board, builds)
        profile = find_profile(name)
        yield from _sync(name, shell, board, builds, described.sync or profile.sync, pulses, edges)
        yield _under_voltage(name, shell, profile)
        for medium in described.media:
            yield _medium(name, shell, board, described, medium)
    except OpJouleError as error:
        yield finding(name, False, str(error))
    finally:
        shell.close()


def _board(name: str, board: BoardFacts, builds: Path) -> Iterator[Notice]:
    yield finding(
        f"{name} rights",
        board.rights != "none",
        f"user {board.values.get('user')}: {board.rights}",
        "let the user use sudo without a password, or for one program alone (host/measure.py sudoers); otherwise its "
        "settings stay as they are",
    )
    try:
        programs = [find_program(builds, board.machine, program) for program in (LOADER, PROBE)]
        yield finding(f"{name} loader", True, ", ".join(map(str, programs)))
    except OpJouleError as error:
        yield finding(f"{name} loader", False, str(error))
    if board.journal_left:
        remedy = f"host/measure.py restore --device {name}"
        yield finding(f"{name} state", False, "an earlier measurement has not been undone", remedy)


def _sync(
    name: str, shell: Shell, board: BoardFacts, builds: Path, sync: str, pulses: int, edges: EdgesSoFar | None
) -> Iterator[Notice]:
    if not sync.startswith("gpio:"):
        return
    before = edges(0, 0.0) if edges else 0
    try:
        program = install_programs(shell, builds, board.machine, board.cache).probe
        pin = look_at_pin(shell, [*as_root(board.rights), program], sync, pulses)
    except OpJouleError as error:
        remedy = "'probe gpio' on the board lists its lines; or sync = \"none\""
        yield finding(f"{name} sync", False, str(error), remedy)
        return
    if sync.startswith("gpio:sysfs:") and board.values.get("user_id") != "0":
        remedy = "connect as root, or name the line where the kernel has a GPIO character device"
        yield finding(f"{name} sync", False, f"{sync} can be driven by root alone", remedy)
        return
    about = pin or f"{sync}, about which the kernel says nothing"
    played = f"; {pulses} pulses of {PULSE_S:g} s were played" if pulses and not edges else ""
    yield finding(f"{name} sync", True, about + played)
    if pulses and edges:
        arrived = edges(before + 2 * pulses, _EDGES_LIMIT_S) - before
        yield edges_finding(name, 2 * pulses, arrived)
    if "denied" in board.values.get("gpio", "") and board.rights == "none":
        remedy = "add the user to the group of /dev/gpiochip*, or let it use sudo without a password"
        words = f"user {board.values.get('user')} may not open the GPIO chips"
        yield finding(f"{name} sync", False, words, remedy)


def look_at_pin(shell: Shell, probe: list[str], carrier: str, pulses: int = 0) -> str:
    """Requests the sync line from the board's kernel, and drives it only if `pulses` is not 0.

    Args:
        pulses: number of pulses, half a second each; 0 leaves the pin's level and direction unchanged.
    Returns: the line in words; empty for a sysfs line, of which nothing more is known.
    Raises: BadInput: with the probe's message: no such line, in use, or no access. LinkFault: no connection.
    """
    drive = ["--pulses", str(pulses)] if pulses else []
    ran = shell.run([*probe, "gpio", "--sync", carrier, *drive], limit_s=60 + 2 * PULSE_S * pulses)
    if ran.status != 0:
        raise BadInput(ran.last_line().removeprefix("probe: "))
    for line in ran.text().splitlines():
        if pin := json.loads(line).get("gpio"):
            called = f" '{pin['name']}'" if pin["name"] else ", which the kernel has no name for"
            now = f"free, now an {pin['direction']}put; character device {pin['interface']}"
            return f"{pin['chip']} line {pin['line']}{called}, {now}"
    return ""


def edges_finding(name: str, played: int, arrived: int) -> Notice:
    """Compares the edges that the board played with those that the meter captured."""
    about, said = f"{name} sync line", f"{arrived} of {played} edges arrived at the meter"
    if arrived == 0:
        return finding(
            about,
            False,
            f"{said}: the wire is dead",
            "check the wire from the board's pin to the buffer's input, its supply and enable (pin 1 to GND), and its "
            "output to D8; a multimeter shows the pulses of doctor --pulses 20",
        )
    if arrived == played:
        return finding(about, True, said)
    return finding(
        about,
        False,
        f"{said}: the line {'loses' if arrived < played else 'picks up'} edges",
        "100 kohm from the buffer's input to GND, the board's ground joined to the buffer's, a short wire",
    )


def _under_voltage(name: str, shell: Shell, profile: Profile) -> Notice:
    """Reports under-voltage if the board detects it; a kernel without detection is not a fault of the rig."""
    flags = shell.run(["sh", "-c", _FLAGS, "sh", profile.throttled, HWMON]).text().split()
    about = f"{name} under-voltage"
    if not flags:
        return Notice(NoticeKind.NOTE, about=about, line="the board does not report it: watch the voltage in the trace")
    return finding(about, True, ", ".join(flags))


def _medium(name: str, shell: Shell, board: BoardFacts, described: RigDevice, medium: str) -> Notice:
    place = described.media[medium]
    if not place.device:
        paths = place.path, place.path.rpartition("/")[0]
        usable = any(shell.run(["test", "-w", path]).status == 0 for path in paths)
        remedy = f"mount the medium and make {place.path} writable for {board.values.get('user')}"
        return finding(f"{name} {medium}", usable, place.path, remedy)
    try:
        plan_for(shell, board, place, described.state, described.cpufreq)
    except OpJouleError as error:
        return finding(f"{name} {medium}", False, str(error))
    return finding(f"{name} {medium}", True, f"{place.device}{' (expendable)' if place.expendable else ''}")
