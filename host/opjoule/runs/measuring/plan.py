"""Plan of a measurement, complete and checked before anything starts; it can be written as JSON."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self, get_type_hints

import msgspec

from opjoule.base.errors import BadInput
from opjoule.base.files import file_sha256
from opjoule.base.settings import MEDIUM
from opjoule.boards.profiles import BoardAndMedium, find_profile
from opjoule.runs.record.phases import WORKED, Role
from opjoule.runs.studies.interface import Step, Study

PLAN_VERSION: Final = 1
IDLE_S = 30.0
"""Length of an idle phase before and after each run on a board."""
SIMULATED_IDLE_S = 3.0
"""Length of an idle phase on the simulated rig, whose board comes to rest at once."""
REPEATS: Final = 5
SETTLE_LIMIT_S: Final = 60.0
"""Longest wait without progress of the medium's writes."""
RUN_S = 16
"""Default length of a run."""
LEAD_IN_MAX_S = 10.0
_APART: Final = ("study", "board", "twin_profile", "asked", "condition", "rank")
"""Fields of a plan that are not written, or in a form of their own; all others are written unchanged."""


@dataclass(frozen=True)
class TwinProfile:
    """A file with parameters of a simulated rig, as `measure.py twin --fit` writes it."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        """Profile with the digest of a file. Raises: OSError: it cannot be read."""
        return cls(str(path), file_sha256(path))

    @property
    def checked(self) -> Path:
        """Path of the file. Raises: BadInput: the file is missing or has changed."""
        path = Path(self.path)
        if not path.is_file() or file_sha256(path) != self.sha256:
            used = f"was used (SHA-256 {self.sha256:.12}...)"
            raise BadInput(f"twin profile {path} is missing or has changed since it {used}")
        return path


@dataclass(frozen=True)
class Plan:
    """All settings of a measurement, complete and checked."""

    study: Study
    board: BoardAndMedium
    idle_s: float
    """Length of an idle phase, including its lead-in."""
    repeats: int
    """Least number of repeats; `until_u` may ask for more."""
    settle_limit_s: float
    simulated: bool
    signature: bool | None = None
    """Whether to play the load signature before and after; None: only without a sync line."""
    until_u: float | None = None
    """Relative interval of the headline at which repeating ends, after at most repeats_limit repeats."""
    repeats_limit: int = 30
    twin_profile: TwinProfile | None = None
    """Source of a simulated rig's parameters, instead of the stated ones."""
    asked: dict[str, Any] = field(default_factory=dict)
    """The user's own words, for run.json."""
    condition: Mapping[str, str] = field(default_factory=dict)
    """Condition of this measurement within a campaign, axis -> value; empty for a measurement of its own."""
    rank: int = 0
    """Place of that condition among all conditions, in the requested order."""

    def __post_init__(self) -> None:
        """Raises: BadInput: incompatible settings."""
        if self.until_u and not self.idle_s:
            raise BadInput("--until-u needs idle power: leave out --idle 0")

    @property
    def condition_name(self) -> str:
        """The condition in words; empty for a measurement of its own."""
        return " ".join(self.condition.values())

    @property
    def lead_in_s(self) -> float:
        """Length of an idle phase's start that is left out: a third of it, at most 10 s."""
        return min(self.idle_s / 3.0, LEAD_IN_MAX_S)

    def phases(self) -> list[tuple[str, str]]:
        """(phase, description) of one repeat and of the controls, in order."""
        words, shown, worked = self.study.words(), [], False
        steps = self.study.steps()
        first = len([step for step in steps if step.role is not Role.CONTROL])
        mixed = [step for mix in self.study.mixes()[:1] for step in mix.steps() if step.role is Role.MIX]
        for step in [*self.study.once(), *steps[:first], *mixed, *steps[first:]]:
            if step.role is Role.BASELINE:
                about = f"{self.idle_s:g} s of idle power, the first {self.lead_in_s:.3g} s left out"
                none = "none: without idle power no energy above idle is known (--idle 0)"
                shown.append(("idle", about if self.idle_s else none))
            elif step.role is Role.DRAIN:
                until = "until writes are done and the power is back at rest"
                before = "until its writes are on the medium"
                limit = f"at most {self.settle_limit_s:g} s beyond them"
                shown.append(("settle", f"{until if worked else before}, {limit}"))
            else:
                worked = worked or step.role in WORKED
                shown.append((step.name, words.get(step.name, "")))
        return shown

    def all_steps(self) -> list[Step]:
        """The steps of all repeats, and those before and after them, in order, without workloads."""
        once, steps = self.study.once(), self.study.steps()
        first = [step for step in steps if step.role is not Role.CONTROL]
        later = first
        if first[0].role is Role.BASELINE and once:
            # Nothing is prepared between repeats: the idle phase between two is that of both.
            later = first[1:]
        controls = [step for step in steps if step.role is Role.CONTROL]
        mixes = [step for mix in self.study.mixes() for step in mix.steps()[len(first) - len(later) : len(first)]]
        return [*once, *first, *later * (self.repeats - 1), *mixes, *controls]

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON: what is done, without its names on the command line and its destination."""
        return {
            "schema": {"name": "plan", "version": PLAN_VERSION},
            "study": self.study.to_json(),
            "device": self.board.profile.name,
            MEDIUM: self.board.medium,
            **{name: getattr(self, name) for name in _plain_fields()},
            **({"twin_profile": asdict(self.twin_profile)} if self.twin_profile else {}),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any], study: Study, asked: Mapping[str, Any]) -> Self:
        """The plan from to_json(); the study reads its own part. Raises: BadInput: newer, or unknown."""
        if (version := entry["schema"]["version"]) > PLAN_VERSION:
            raise BadInput(f"the plan is of version {version}; this OpJoule knows {PLAN_VERSION}")
        kinds = get_type_hints(cls)
        return cls(
            study=study,
            board=find_profile(entry["device"]).with_medium(entry[MEDIUM]),
            **{
                name: msgspec.convert(entry[name], kinds[name])
                for name, required in _plain_fields().items()
                if required or name in entry  # a plan of an earlier version lacks a newer option
            },
            twin_profile=TwinProfile(**entry["twin_profile"]) if "twin_profile" in entry else None,
            asked=dict(asked),
        )

    @property
    def sha256(self) -> str:
        """Hash of the plan's JSON: plans with the same hash are identical."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()


def _plain_fields() -> dict[str, bool]:
    """Field of a plan that is written unchanged -> whether it has no default."""
    return {of.name: of.default is MISSING for of in fields(Plan) if of.name not in _APART}
