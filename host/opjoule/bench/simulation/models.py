"""Stated models of boards and media by name: models.toml, and optionally a user's twin profile."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from msgspec import Struct

from opjoule.base.errors import BadInput
from opjoule.base.files import file_sha256
from opjoule.base.settings import as_struct
from opjoule.base.toml_file import read_toml
from opjoule.bench.simulation.power_model import BoardModel, MediumModel, PowerModel, Supply
from opjoule.boards.profiles import BoardAndMedium

STATED: Final = Path(__file__).parent / "models.toml"
MAKE: Final = "host/measure.py twin --fit RECORD writes a profile"


class ModelFile(Struct):
    """Tables of models.toml (supply, boards and media only) and of a twin profile."""

    supply: Supply | None = None
    board: dict[str, BoardModel] = {}
    medium: dict[str, MediumModel] = {}
    profile: dict[str, Any] = {}
    """Description of how a twin profile was made."""
    parameters: dict[str, Any] = {}


@dataclass(frozen=True)
class Models:
    """Known boards, media and supply of a simulated rig."""

    boards: Mapping[str, BoardModel]
    media: Mapping[str, MediumModel]
    supply: Supply
    source: str = "host/opjoule/bench/simulation/models.toml"
    sha256: str = ""
    """Hash of the twin profile; empty without one."""
    own_supply: bool = False
    """Whether the supply is from a twin profile, and so is not drawn."""

    @classmethod
    def stated(cls) -> Self:
        """The models of models.toml."""
        tables = as_struct(read_toml(STATED), ModelFile, f"{STATED}:")
        assert tables.supply
        return cls(tables.board, tables.medium, tables.supply)

    @classmethod
    def with_profile(cls, path: Path | None) -> Self:
        """The stated models, with those of a twin profile replacing them; without a path the stated models alone.

        Raises: BadInput: the file cannot be read, is no profile, or has a value that no board or medium has.
        """
        stated = cls.stated()
        if path is None:
            return stated
        try:
            tables = as_struct(read_toml(path), ModelFile, f"{path}:")
            if not (tables.board or tables.medium):
                raise BadInput(f"{path} holds no [board.NAME] and no [medium.NAME]")
        except OSError as error:
            raise BadInput(f"--simulate {path}: {error.strerror}; {MAKE}") from None
        except BadInput as error:
            raise BadInput(f"--simulate {error}; {MAKE}") from None
        return replace(
            stated,
            boards={**stated.boards, **tables.board},
            media={**stated.media, **tables.medium},
            supply=tables.supply or stated.supply,
            source=str(path),
            sha256=file_sha256(path),
            own_supply=tables.supply is not None,
        )

    def load(self, board: BoardAndMedium, seed: int | None = None) -> PowerModel:
        """The model of one board with one medium, on the supply stated here; a seed draws a unit of each.

        Raises: BadInput: no model of this board or medium.
        """
        name, medium = board.profile.name, board.medium
        for kind, wanted, known in (("board", name, self.boards), ("medium", medium, self.media)):
            if wanted not in known:
                names = ", ".join(sorted(known))
                raise BadInput(f"there is no power model of {kind} {wanted}: --simulate knows {names}")
        if seed is None:
            return PowerModel(self.boards[name], self.media[medium], self.supply)
        return PowerModel(
            self.boards[name].drawn(random.Random(f"board {name} {seed}")),
            self.media[medium].drawn(random.Random(f"medium {medium} {seed}")),
            self.supply,
        )

    def facts(self) -> dict[str, str]:
        """Origin of the models, for run.json."""
        return {"models": self.source, **({"twin_profile_sha256": self.sha256} if self.sha256 else {})}
