"""Questions to the person at the desk, and the parts of the rig."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from opjoule.base.errors import BadInput
from opjoule.base.terminal import Prompts, refusing
from opjoule.energy.calibration.reference import Accuracy
from opjoule.energy.error_bounds import SQRT3
from opjoule.meters.registry import address_of

SKIP: Final = "skip"
HOW: Final = "Enter continues, 'skip WHY' leaves the step out, 'stop' ends here"
SUPPLY_SIDE: Final = "supply"
BOARD_SIDE: Final = "board"
BETWEEN_SHARE_MAX: Final = 0.2
"""Relative error bound of the stated resistance between two meters, which includes plugs."""


class Skipped(Exception):
    """Raised when the person leaves a step out; `str()` is the reason."""


@dataclass(frozen=True)
class DeskDialogue(Prompts):
    """Questions to the person at the desk, who may leave a step out or end the procedure; finished steps are kept."""

    stops: tuple[str, ...] = ("stop", "q", "quit")

    def ready(self, words: str) -> None:
        """Asks the person to do something and waits until it is done. Raises: Skipped, Stopped: the person said so."""
        wrong = ""
        while True:
            answer = self.answer(f"{wrong}{words}\n  [{HOW}] ")
            if not answer:
                return
            word, _, why = answer.partition(" ")
            if word.lower() == SKIP and why.strip():
                raise Skipped(why.strip())
            wrong = (
                "  Give a reason, for example: skip no such resistor here\n"
                if word.lower() == SKIP
                else f"  '{answer}' is none of these.\n"
            )


@dataclass(frozen=True)
class Parts:
    """Parts of the rig as the person at the desk names them; an empty text means a missing or unknown part."""

    supply: str = ""
    sensor: str = ""
    shunt: str = ""
    resistor: str = ""
    """The known resistor: "10,0.1%"."""
    resistor_certificate: str = ""
    second_meter: str = ""
    """Name of the meter, as in rig.toml."""
    second_certificate: str = ""
    second_side: str = SUPPLY_SIDE
    """On which side of the rig's shunt the second meter reads the voltage."""
    between_ohm: str = "0.05"
    """Resistance between the two places where the meters read the voltage, without the rig's shunt."""

    @classmethod
    def asked(cls, dialogue: Prompts) -> Self:
        """Asks for each part. Raises: Stopped."""
        answers: dict[str, str] = {}
        for key, question, default, check in _QUESTIONS:
            if key in _OF_SECOND and not answers.get("second_meter"):
                continue
            if key == "resistor_certificate" and not answers.get("resistor"):
                continue
            answers[key] = dialogue.text(question, check, default)
        return cls(**answers)


def known_resistor(text: str) -> tuple[float, float]:
    """Resistance [ohm] and relative error bound from "10,0.1%". Raises: BadInput: the text has another form."""
    ohm_text, _, accuracy = text.partition(",")
    try:
        ohm = float(ohm_text)
        if not 0.1 <= ohm <= 1000:
            raise ValueError
        known = Accuracy.of(accuracy, "ohm")
    except (ValueError, BadInput):
        raise BadInput(f"'{text}': write OHM,ACCURACY, from 0.1 to 1000 ohm, for example 10,0.1%") from None
    return ohm, SQRT3 * (known.relative + known.absolute / ohm)


_OF_SECOND: Final = ("second_certificate", "second_side", "between_ohm")
_QUESTIONS: Final[tuple[tuple[str, str, str, Callable[[str], object]], ...]] = (
    ("supply", "Supply: model, serial number", "", str),
    ("sensor", "Sensor breakout and controller: model, marking", "", str),
    ("shunt", "Shunt: marking, tolerance, temperature coefficient, certificate", "", str),
    (
        "resistor",
        "Known resistor: OHM,ACCURACY, for example 10,0.1% (Enter: there is none)",
        "",
        lambda answer: answer and known_resistor(answer),
    ),
    ("resistor_certificate", "Its serial number and certificate", "", str),
    (
        "second_meter",
        "Second meter in series: KIND:PLACE (Enter: there is none)",
        "",
        lambda answer: answer and address_of(answer),
    ),
    ("second_certificate", "Its serial number and certificate", "", str),
    (
        "second_side",
        "Side on which it reads the voltage: supply or board",
        SUPPLY_SIDE,
        refusing((SUPPLY_SIDE, BOARD_SIDE).__contains__, f"neither {SUPPLY_SIDE} nor {BOARD_SIDE}"),
    ),
    (
        "between_ohm",
        "Resistance between the two places, without the shunt [ohm]",
        "0.05",
        refusing(lambda answer: 0 <= float(answer) <= 5, "not a resistance from 0 to 5 ohm"),
    ),
)
