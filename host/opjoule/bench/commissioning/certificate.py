"""The twelve steps in order, and the procedure that carries them out; commissioning.toml keeps the verdicts."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from opjoule.base.errors import BadInput, OpJouleError
from opjoule.base.files import file_sha256, write_whole
from opjoule.base.settings import MEDIUM, as_struct
from opjoule.base.terminal import refusing
from opjoule.base.toml_file import read_toml, toml_float, toml_floats, toml_string
from opjoule.bench.commissioning import known_loads, load_course, medium_bytes, sync_line
from opjoule.bench.commissioning.desk import (
    CheckedFigure,
    DeskDialogue,
    OpenDesk,
    Parts,
    Picture,
    Skipped,
    StepOutcome,
    Verdict,
)

Kept = dict[str, Any]
"""Recordings that two steps share, by name; kept as long as the procedure runs."""


@dataclass(frozen=True)
class DeskStep:
    """One step."""

    key: str
    title: str
    measures: str
    """The measured quantity and its limit, in words."""
    carry_out: Callable[[OpenDesk, Kept, str], Verdict]
    """Makes the recording and judges it; takes the desk, the shared recordings and the medium's name."""
    board: bool = False
    """Whether the step needs the board's programs."""
    second: bool = False
    """Whether the step needs the second meter."""


def _shared(kept: Kept, name: str, take: Callable[[OpenDesk], Any], desk: OpenDesk) -> Any:
    if name not in kept:
        kept[name] = take(desk)
    return kept[name]


STEPS: Final = (
    DeskStep(
        "zero",
        "Zero without a load",
        "current with nothing connected: within the data sheet's offset, drift below 0.3 mA in 60 s",
        lambda desk, kept, _: known_loads.zero(desk),
    ),
    DeskStep(
        "back-feed",
        "Nothing feeds the board from elsewhere",
        "voltage with the supply's fuse out: below 0.5 V within 5 s",
        lambda desk, kept, _: known_loads.back_feed(desk),
    ),
    DeskStep(
        "resistor",
        "A known resistor",
        "current against V / R: within the combined bounds",
        lambda desk, kept, _: known_loads.resistor(desk),
    ),
    DeskStep(
        "additivity",
        "Two loads add up, cold and warm",
        "I(AB) - I(A) - I(B): below 0.2 %",
        lambda desk, kept, _: known_loads.additivity(desk),
    ),
    DeskStep(
        "sync",
        "Every sync pulse arrives, and no other",
        "edges of the sync line: all of them, no others, rms below 20 us",
        lambda desk, kept, _: sync_line.judge_sync(_shared(kept, "sync", sync_line.take_sync, desk)),
        board=True,
    ),
    DeskStep(
        "clocks",
        "The clocks",
        "resonator below 8,000 ppm, board below 200 ppm, sync line and load signature agree",
        lambda desk, kept, _: sync_line.judge_clocks(_shared(kept, "sync", sync_line.take_sync, desk)),
        board=True,
    ),
    DeskStep(
        "load-steps",
        "Load steps up and down",
        "power rises with the load, repeats within 0.5 %; cable at most 0.2 ohm",
        lambda desk, kept, _: load_course.levels(desk),
        board=True,
    ),
    DeskStep(
        "full-load",
        "Full load and medium",
        "least voltage 0.1 V above the board's limit, no flag, nothing clipped",
        lambda desk, kept, _: load_course.judge_full(*load_course.take_full(desk), desk.profile),
        board=True,
    ),
    DeskStep(
        "second-meter",
        "A second meter in series",
        "energies agree within both intervals, losses between them included",
        lambda desk, kept, _: load_course.second_meter(desk),
        second=True,
        board=True,
    ),
    DeskStep(
        "medium",
        "Bytes reach the medium",
        "256 MiB synced: the path's device, the kernel's bytes within 2 %, the medium's sensor moves only then",
        lambda desk, kept, medium: medium_bytes.judge_medium(medium_bytes.take_medium(desk, medium)),
        board=True,
    ),
    DeskStep(
        "errors",
        "Ten minutes without an error",
        "no I2C error, no missed conversion, no bad frame, no reset",
        lambda desk, kept, _: load_course.judge_errors(_shared(kept, "long", load_course.take_long, desk)),
    ),
    DeskStep(
        "idle",
        "Idle power",
        "inside the board's plausible range: a warning only",
        lambda desk, kept, _: load_course.judge_idle(_shared(kept, "long", load_course.take_long, desk), desk.profile),
    ),
)


def step_called(key: str) -> DeskStep:
    """The step of this key."""
    return next(step for step in STEPS if step.key == key)


SCHEMA: Final = 1
FILE: Final = "commissioning.toml"
PAGE: Final = "commissioning.html"
COMMAND: Final = "host/measure.py commission"
_ANEW: Final = f"remove it, then {COMMAND} writes a new one"


class Finished(Struct, frozen=True):
    """One step with a verdict: a table [[step]] of the file."""

    key: Annotated[str, Meta(pattern=f"^({'|'.join(step.key for step in STEPS)})$", description="the key of a step")]
    outcome: Annotated[StepOutcome, Meta(description=" or ".join(StepOutcome))]
    date_utc: Annotated[datetime, Meta(tz=True, description="a time with a zone")]
    words: str
    advice: str = ""
    folder: str = ""
    """Folder of the step's recordings."""
    figures: dict[str, CheckedFigure] = {}
    picture: Picture | None = None


class Certificate(Struct):
    """Results of the commissioning of a rig so far."""

    rig_sha256: str
    device: str
    medium: str = field(name=MEDIUM)
    simulated: bool
    parts: Parts | None = None
    """None: the person has not been asked for them yet."""
    meter: dict[str, str] = {}
    """The meter's own statements: board, place, firmware, serial number, sensors."""
    step: tuple[Finished, ...] = ()
    """The steps that have a verdict."""

    @property
    def finished(self) -> dict[str, Finished]:
        """The steps that have a verdict, by key."""
        return {step.key: step for step in self.step}

    def titles(self, outcome: StepOutcome | None) -> list[str]:
        """Titles of the steps with this outcome; None: titles of the steps without a verdict."""
        return [step.title for step in STEPS if self.outcome(step.key) is outcome]

    @property
    def date_utc(self) -> datetime | None:
        """Date of the latest verdict."""
        return max((step.date_utc.astimezone(UTC) for step in self.step), default=None)

    def outcome(self, key: str) -> StepOutcome | None:
        """Outcome of a step; None if it has no verdict yet."""
        step = self.finished.get(key)
        return step.outcome if step else None

    def figure(self, key: str, name: str) -> float | None:
        """A figure of a step; None if there is none."""
        step = self.finished.get(key)
        return step.figures[name].value if step and name in step.figures else None

    def finish(self, key: str, verdict: Verdict, folder: Path | None = None) -> None:
        """Stores a verdict; it replaces an earlier one."""
        now_utc = datetime.now(UTC).replace(microsecond=0)
        place, figures = str(folder or ""), dict(verdict.figures)
        step = key, verdict.outcome, now_utc, verdict.words, verdict.advice, place, figures, verdict.picture
        self.step = (*(other for other in self.step if other.key != key), Finished(*step))

    @property
    def conclusion(self) -> str:
        """State of the rig in one line."""
        failed, left = self.titles(StepOutcome.FAILED), self.titles(None)
        if failed:
            return f"the rig has not passed yet; failed: {', '.join(failed)}"
        if left:
            return f"{len(left)} of {len(STEPS)} steps are left: {', '.join(left)}"
        skipped = ", ".join(self.titles(StepOutcome.SKIPPED))
        return f"the rig has passed{f'; left out: {skipped}' if skipped else ''}"

    @property
    def is_fit(self) -> bool:
        """Whether every step has a verdict and none failed."""
        return not self.titles(StepOutcome.FAILED) and not self.titles(None)


def commissioning_note(rig: Path, device: str, meter: str | None = None) -> str:
    """Warning for figures of a rig that is not, or no longer, commissioned; empty if it is.

    Args:
        rig: path of an existing rig.toml.
        device: the board that is measured.
        meter: meter that replaces the one in rig.toml, or None.
    """
    path = rig.with_name(FILE)
    try:
        certificate = read_certificate(path)
    except BadInput as fault:
        return str(fault)
    if certificate is None or certificate.simulated:
        return f"this rig has not been commissioned: {COMMAND} shows whether its figures can be trusted"
    date = f"{certificate.date_utc:%Y-%m-%d}" if certificate.date_utc else "an unknown date"
    if certificate.rig_sha256 != file_sha256(rig):
        return f"{rig} has changed since the rig was commissioned ({date}): run {COMMAND} again"
    if certificate.device != device:
        return f"the rig was commissioned with device {certificate.device}, not {device}: {COMMAND} --device {device}"
    if meter:
        return f"the rig was commissioned with the meter of {rig}, not with {meter}"
    if not certificate.is_fit:
        return f"commissioning ({date}): {certificate.conclusion}; {COMMAND} continues"
    skipped = ", ".join(certificate.titles(StepOutcome.SKIPPED))
    return f"commissioning ({date}) left out: {skipped}" if skipped else ""


def read_certificate(path: Path) -> Certificate | None:
    """The certificate in a file; None if there is no file. Raises: BadInput: it cannot be read, or is invalid."""
    if not path.exists():
        return None
    try:
        tables = read_toml(path, _ANEW)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    if tables.get("schema") != SCHEMA:
        raise BadInput(f"{path}: schema {tables.get('schema')!r}, this program reads {SCHEMA}: {_ANEW}")
    contents = {key: value for key, value in tables.items() if key not in ("schema", "conclusion")}
    try:
        return as_struct(contents, Certificate, f"{path}:")
    except BadInput as error:
        raise BadInput(f"{error}; {_ANEW}") from None


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Writes the file, replacing it as a whole."""
    write_whole(path, to_toml(certificate).encode())


def to_toml(certificate: Certificate) -> str:
    """Text of the file."""
    lines = [
        "# Results of the commissioning of this rig: docs/how-to/commission-the-rig.md.",
        *(["# SIMULATED: it says nothing about any hardware."] if certificate.simulated else []),
        f"schema = {SCHEMA}",
        f"simulated = {str(certificate.simulated).lower()}",
        f"rig_sha256 = {toml_string(certificate.rig_sha256)}  # of rig.toml; any change of it makes this invalid",
        f"device = {toml_string(certificate.device)}",
        f"{MEDIUM} = {toml_string(certificate.medium)}",
        f"conclusion = {toml_string(certificate.conclusion)}",
    ]
    if certificate.parts:
        lines += ["", "[parts]", *_pairs(asdict(certificate.parts))]
    if certificate.meter:
        lines += ["", "[meter]", *_pairs(certificate.meter)]
    for step in STEPS:
        if finished := certificate.finished.get(step.key):
            lines += _step_lines(finished, step.title)
    return "\n".join(lines) + "\n"


def _step_lines(finished: Finished, title: str) -> list[str]:
    lines = [
        "",
        f"[[step]]  # {title}",
        f"key = {toml_string(finished.key)}",
        f"outcome = {toml_string(finished.outcome)}",
        f"date_utc = {finished.date_utc.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        f"words = {toml_string(finished.words)}",
        *([f"advice = {toml_string(finished.advice)}"] if finished.advice else []),
        *([f"folder = {toml_string(finished.folder)}"] if finished.folder else []),
    ]
    if finished.figures:
        lines.append("[step.figures]")
    for name, figure in finished.figures.items():
        limit = f", limit = {toml_string(figure.limit)}" if figure.limit else ""
        lines.append(f"{name} = {{ value = {toml_float(figure.value)}, unit = {toml_string(figure.unit)}{limit} }}")
    if drawn := finished.picture:
        lines += ["[step.picture]", f"x = {toml_floats(drawn.x)}", f"y = {toml_floats(drawn.y)}"]
        lines += [f"x_words = {toml_string(drawn.x_words)}", f"y_words = {toml_string(drawn.y_words)}"]
        if drawn.gain is not None:
            lines += [f"gain = {toml_float(drawn.gain)}", f"offset = {toml_float(drawn.offset)}"]
    return lines


def _pairs(table: Mapping[str, str]) -> list[str]:
    return [f"{key} = {toml_string(value)}" for key, value in table.items()]


REPEAT: Final = "repeat"
NEXT: Final = "next"
_MEND: Final = f"      Fix it, then press Enter to repeat the step; '{NEXT}' continues with the fault, 'stop' ends here"
_CHECK: Final = refusing((REPEAT, NEXT).__contains__, f"neither {REPEAT} nor {NEXT}")
_KEYS: Final = [step.key for step in STEPS]
_MARKS: Final = {
    StepOutcome.PASSED: "ok  ",
    StepOutcome.FAILED: "MEND",
    StepOutcome.WARNING: "LOOK",
    StepOutcome.SKIPPED: "left out",
}


@dataclass
class Procedure:
    """One session at the desk."""

    certificate: Certificate
    open_desk: Callable[[DeskStep, Path], AbstractContextManager[OpenDesk]]
    """Opens what a step needs, with a folder for its recordings."""
    save: Callable[[], None]
    """Writes the certificate and the page; called after each verdict."""
    say: Callable[[str], None]
    folder: Path
    """Folder for recordings, a new one for each session."""
    dialogue: DeskDialogue | None = None
    """Asks what to do after a fault; None: the procedure ends at the first fault."""
    _kept: Kept = dataclasses.field(default_factory=dict)
    _taken: int = 0

    def run(self, steps: Sequence[DeskStep] = STEPS, *, again: bool = False) -> bool:
        """Carries out the steps that have not passed; True if none of them failed.

        Args:
            again: also repeats steps that have passed.
        Raises: Stopped: the person ended the procedure.
        """
        done = self.certificate.finished
        well = True
        for step in steps:
            number = _KEYS.index(step.key) + 1
            if not again and step.key in done and done[step.key].outcome is not StepOutcome.FAILED:
                self.say(f"{number:2} of {len(STEPS)}  {step.title}: {done[step.key].outcome}, as before")
                continue
            if not self._until_well(step, number):
                well = False
                if self.dialogue is None:
                    break
        return well

    def _until_well(self, step: DeskStep, number: int) -> bool:
        """Carries out one step, and repeats it as long as the person wants; True unless it failed."""
        while True:
            self.say(f"{number:2} of {len(STEPS)}  {step.title}: {step.measures}")
            verdict = self._attempt(step)
            self.say(f"      {_MARKS[verdict.outcome]}  {verdict.words}")
            if verdict.advice:
                self.say(f"            -> {verdict.advice}")
            self.save()
            if verdict.outcome is not StepOutcome.FAILED:
                return True
            if self.dialogue is None or self.dialogue.text(_MEND, _CHECK, REPEAT) == NEXT:
                return False
            self._kept.clear()

    def _attempt(self, step: DeskStep) -> Verdict:
        """One attempt at a step; a fault of the rig becomes its verdict."""
        self._taken += 1
        folder = self.folder / f"{self._taken:02}-{step.key}"
        try:
            with self.open_desk(step, folder) as desk:
                verdict = step.carry_out(desk, self._kept, self.certificate.medium)
        except Skipped as why:
            verdict = Verdict.skipped(str(why))
        except BadInput:
            raise
        except OpJouleError as fault:
            verdict = Verdict.failed(str(fault), "fix what the line says, and repeat the step")
        self.certificate.finish(step.key, verdict, folder if folder.exists() else None)
        return verdict
