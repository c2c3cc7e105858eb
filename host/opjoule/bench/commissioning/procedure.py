"""Carries out the steps one after the other; each verdict is saved at once."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from opjoule.base.errors import BadInput, OpJouleError
from opjoule.base.terminal import refusing
from opjoule.bench.commissioning.certificate import Certificate
from opjoule.bench.commissioning.desk import OpenDesk, StepOutcome, Verdict
from opjoule.bench.commissioning.dialogue import DeskDialogue, Skipped
from opjoule.bench.commissioning.steps import STEPS, DeskStep, Kept

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
    _kept: Kept = field(default_factory=dict)
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
