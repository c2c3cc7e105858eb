"""Stated models of boards and media by name: models.toml, and a twin profile of the user's own on top of it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from opjoule.errors import BadInput
from opjoule.files import file_sha256
from opjoule.simulation.power_model import BoardModel, MediumModel, PowerModel, Supply
from opjoule.suggestion import unknown
from opjoule.toml_entry import check_keys, read_toml, table

STATED: Final = Path(__file__).parent / "models.toml"
TABLES: Final = ("profile", "supply", "board", "medium", "parameters")
"""What a twin profile may hold; models.toml has supply, board and medium alone."""
WHOLE: Final = frozenset({"write_bytes_per_s", "read_bytes_per_s", "open_voltage_v", "memory_bytes"})
"""Values that cannot be zero."""


@dataclass(frozen=True)
class Models:
    """Boards, media and the supply that a simulated rig knows."""

    boards: Mapping[str, BoardModel]
    media: Mapping[str, MediumModel]
    supply: Supply
    source: str = "host/opjoule/simulation/models.toml"
    sha256: str = ""
    """Hash of the twin profile; empty without one."""
    own_supply: bool = False
    """The supply is that of a twin profile: it is not drawn."""

    @classmethod
    def stated(cls) -> Models:
        """What models.toml states."""
        data = read_toml(STATED)
        return cls(_boards(data), _media(data), Supply(**data["supply"]))

    @classmethod
    def with_profile(cls, path: Path | None) -> Models:
        """The stated models with those of a twin profile in their place; the stated ones alone without a path.

        Raises: BadInput: the file cannot be read, is no profile, or holds a value that no board or medium has.
        """
        stated = cls.stated()
        if path is None:
            return stated
        try:
            data = read_toml(path)
            check_keys(data, TABLES)
            if not (table(data, "board") or table(data, "medium")):
                raise BadInput("it holds no [board.NAME] and no [medium.NAME]")
            boards, media = _boards(data), _media(data)
            supply = _supply(data)
        except OSError as error:
            raise BadInput(f"--simulate {path}: {error.strerror}; {MAKE}") from None
        except BadInput as error:
            raise BadInput(f"--simulate {path}: {error}; {MAKE}") from None
        return replace(
            stated,
            boards={**stated.boards, **boards},
            media={**stated.media, **media},
            supply=supply or stated.supply,
            source=str(path),
            sha256=file_sha256(path),
            own_supply=supply is not None,
        )

    def load(
        self, board: str, medium: str, supply: Supply | None = None, chance: random.Random | None = None
    ) -> PowerModel:
        """The model of one board with one medium, on this supply or the one stated here.

        Args:
            chance: draws one medium of its kind; None: the medium as stated.
        Raises: BadInput: there is no model of this board or medium.
        """
        for kind, name, known in (("board", board, self.boards), ("medium", medium, self.media)):
            if name not in known:
                names = ", ".join(sorted(known))
                raise BadInput(f"there is no power model of {kind} {name}: --simulate knows {names}")
        stated = self.media[medium]
        return PowerModel(
            self.boards[board], stated.drawn(chance) if chance else stated, supply or self.supply
        )

    def facts(self) -> dict[str, str]:
        """What run.json says of where the models come from."""
        return {"models": self.source, **({"twin_profile_sha256": self.sha256} if self.sha256 else {})}


def load_model(
    board: str, medium: str, supply: Supply | None = None, chance: random.Random | None = None
) -> PowerModel:
    """The model of one board with one medium that models.toml states. As `Models.load`."""
    return Models.stated().load(board, medium, supply, chance)


MAKE: Final = "host/measure.py twin --fit RECORD writes a profile"


def _boards(data: Mapping[str, Any]) -> dict[str, BoardModel]:
    found = {}
    for name, entry in table(data, "board").items():
        check_keys(entry, ("busy_cores_w", "memory_bytes"))
        watts = entry.get("busy_cores_w")
        if not isinstance(watts, list) or len(watts) < 2:
            raise BadInput(f"[board.{name}] busy_cores_w: give the power of 0, 1, ... busy cores [W]")
        numbers = [_number(f"[board.{name}] busy_cores_w", each) for each in watts]
        memory = _number(f"[board.{name}] memory_bytes", entry.get("memory_bytes"))
        found[name] = BoardModel(tuple(numbers), int(memory))
    return found


def _media(data: Mapping[str, Any]) -> dict[str, MediumModel]:
    names = [each.name for each in fields(MediumModel)]
    found = {}
    for name, entry in table(data, "medium").items():
        check_keys(entry, names)
        values = {
            key: _number(f"[medium.{name}] {key}", each) for key, each in entry.items() if key != "spread"
        }
        spread = table(entry, "spread")
        for key in spread:
            if key not in names:
                raise BadInput(unknown("key", key, names))
        try:
            found[name] = MediumModel(
                **values,
                spread={key: _number(f"[medium.{name}] spread", each) for key, each in spread.items()},
            )
        except TypeError:
            lacking = ", ".join(
                sorted(
                    {"write_bytes_per_s", "read_bytes_per_s", "flush_s", "idle_w", "active_w"} - entry.keys()
                )
            )
            raise BadInput(f"[medium.{name}] lacks {lacking}") from None
    return found


def _supply(data: Mapping[str, Any]) -> Supply | None:
    entry = table(data, "supply")
    if not entry:
        return None
    keys = ("open_voltage_v", "resistance_ohm")
    check_keys(entry, keys)
    return Supply(*(_number(f"[supply] {key}", entry.get(key)) for key in keys))


def _number(place: str, value: Any) -> float:
    """A number of at least zero, and above it where nothing is zero."""
    least_ok = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not least_ok or value < 0 or (value == 0 and place.rsplit(maxsplit=1)[-1] in WHOLE):
        raise BadInput(f"{place} = {value!r}: give a number above 0")
    return float(value)
