"""`measure.py commission`: the guided procedure that checks a rig, or its rehearsal on the simulated rig."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from opjoule.base.errors import FAULTY_EXIT, BadInput
from opjoule.base.files import file_sha256, write_whole
from opjoule.base.scripts import CALIBRATIONS, ROOT, RUNS
from opjoule.base.terminal import Stopped, say
from opjoule.bench.commissioning.certificate import (
    COMMAND,
    FILE,
    PAGE,
    Certificate,
    DeskStep,
    Procedure,
    read_certificate,
    step_called,
    write_certificate,
)
from opjoule.bench.commissioning.desk import (
    SIMULATED_PACE,
    DeskDialogue,
    DeskPace,
    OpenDesk,
    Parts,
    Setup,
    StepOutcome,
    meter_words,
)
from opjoule.bench.commissioning.known_loads import ZERO_A
from opjoule.bench.commissioning.page import render
from opjoule.boards.profiles import BoardAndMedium, find_profile
from opjoule.boards.rig import Rig, read_rig
from opjoule.boards.rig_board import open_board
from opjoule.cli.rig_commands import STEP_KEYS, CommissionOptions
from opjoule.meters.registry import open_meter
from opjoule.runs.measuring.open_meter import Calibrations, OpenMeter, opened_meter
from opjoule.runs.record.directory import free_directory

REAL_PACE: Final = DeskPace()
REHEARSED: Final = "rpi4"
"""The board of a rehearsal if none is named."""
HEAD: Final = (
    "SIMULATED: a rehearsal. Steps and limits are those of a real rig, times are shortened, and the rewiring is "
    "simulated."
)


def run_commission(options: CommissionOptions) -> int:
    """Carries out the remaining steps; 0 if the rig has passed, 6 if a step failed, 1 if some are left.

    Raises: BadInput: rig.toml, or the certificate beside it, is invalid.
    """
    return _rehearse(options) if options.simulate else _commission(options)


def _commission(options: CommissionOptions) -> int:
    rig = read_rig(options.rig)
    device = options.device or _only_device(rig)
    board = find_profile(device).with_medium(options.storage or next(iter(rig.device(device).media), None))
    path = options.rig.with_name(FILE)
    certificate = _going_on(path, options, board)
    dialogue = DeskDialogue()
    folder = _free_folder()
    try:
        if not certificate.parts:
            say("First the parts, for the certificate. Press Enter to leave one out.")
            certificate.parts = Parts.asked(dialogue)
        opened = _RealDesk(rig, board, certificate, certificate.parts, dialogue)
        return _carried_out(certificate, opened.open, folder, path, options, dialogue)
    except Stopped:
        return _left(certificate, path)


def _rehearse(options: CommissionOptions) -> int:
    # Only a rehearsal loads the simulated rig.
    from opjoule.bench.simulation.rehearsal import DrawnRig, simulated_desk  # noqa: PLC0415

    profile = find_profile(options.device or REHEARSED)
    board = profile.with_medium(options.storage)
    drawn = DrawnRig.draw(board, options.seed, options.plant)
    folder = options.out or _free_folder("-simulated")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    certificate = read_certificate(path) or Certificate("", profile.name, board.medium, simulated=True)
    say(HEAD)
    open_desk = partial(simulated_desk, drawn, certificate, SIMULATED_PACE)
    return _carried_out(certificate, open_desk, folder, path, options, None)


def _free_folder(ending: str = "") -> Path:
    return free_directory(RUNS / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-commissioning{ending}")


def _carried_out(
    certificate: Certificate,
    open_desk: Callable[[DeskStep, Path], AbstractContextManager[OpenDesk]],
    folder: Path,
    path: Path,
    options: CommissionOptions,
    dialogue: DeskDialogue | None,
) -> int:
    def save() -> None:
        write_certificate(path, certificate)
        write_whole(path.with_name(PAGE), render(certificate).encode())

    procedure = Procedure(certificate, open_desk, save, say, folder, dialogue)
    steps = [step_called(key) for key in options.step or STEP_KEYS]
    try:
        procedure.run(steps, again=options.anew or bool(options.step))
    except KeyboardInterrupt:
        say(f"\ninterrupted; finished steps are kept in {path}: {COMMAND} continues")
        raise
    return _left(certificate, path, options.step or STEP_KEYS)


def _left(certificate: Certificate, path: Path, keys: Sequence[str] = STEP_KEYS) -> int:
    """Prints the state of the rig; returns the exit status for the steps that were asked for."""
    mark = "SIMULATED: " if certificate.simulated else ""
    print(f"{mark}{certificate.conclusion}")
    if certificate.finished:
        print(f"certificate {path}\npage        {path.with_name(PAGE)}")
    outcomes = [certificate.outcome(key) for key in keys]
    if StepOutcome.FAILED in outcomes:
        return FAULTY_EXIT
    return 1 if None in outcomes else 0


def _going_on(path: Path, options: CommissionOptions, board: BoardAndMedium) -> Certificate:
    """The certificate so far if it is for this rig.toml, board and medium; else a new one with the same parts."""
    sha256 = file_sha256(options.rig)
    earlier = read_certificate(path)
    new = Certificate(sha256, board.profile.name, board.medium, simulated=False)
    if earlier is None or earlier.simulated:
        return new
    same = (earlier.rig_sha256, earlier.device, earlier.medium) == (sha256, new.device, new.medium)
    if same and not options.anew:
        return earlier
    new.parts = earlier.parts
    if not same:
        say(f"{options.rig}, board or medium have changed since {path} was written: every step is repeated.")
    return new


def _only_device(rig: Rig) -> str:
    if len(rig.devices) == 1:
        return next(iter(rig.devices))
    raise BadInput(
        f"{rig.path} describes {len(rig.devices)} boards ({', '.join(sorted(rig.devices))}): give --device NAME"
    )


@dataclass
class _RealDesk:
    """Opens the meter, board and second meter that rig.toml and the parts name."""

    rig: Rig
    board: BoardAndMedium
    certificate: Certificate
    parts: Parts
    dialogue: DeskDialogue
    connected: Setup | None = None
    """The wiring that was set up last."""

    def set_up(self, setup: Setup) -> None:
        """Asks the person at the desk to change the wiring if this setup needs it."""
        if setup is not Setup.BOARD or self.connected is not setup:
            self.dialogue.ready(f"      {setup.value}")
            self.connected = setup

    @contextmanager
    def open(self, step: DeskStep, folder: Path) -> Iterator[OpenDesk]:
        """The equipment that one step needs."""
        calibrations = Calibrations(CALIBRATIONS, self.rig.room.temperature_c)
        with ExitStack() as opened:

            def meter_called(name: str) -> OpenMeter:
                return opened.enter_context(opened_meter(open_meter(name), name, calibrations))

            meter = meter_called(self.rig.meter)
            second_name = self.parts.second_meter if step.second else ""
            second = meter_called(second_name) if second_name else None
            self.certificate.meter = meter_words(meter)
            yield OpenDesk(
                self.set_up,
                folder,
                REAL_PACE,
                self.parts,
                self.board.profile,
                zero_a=self.certificate.figure("zero", ZERO_A),
                rig=meter,
                open_board=lambda: closing(open_board(self.rig, self.board, builds=ROOT / "build")),
                second=second,
            )
