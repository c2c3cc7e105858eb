"""Board profiles: what is true of every board of a kind, one TOML file each under profiles/."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opjoule.errors import BadInput
from opjoule.suggestion import unknown
from opjoule.toml_file import read_toml

_FOLDER = Path(__file__).parent / "profiles"


@dataclass(frozen=True)
class Profile:
    """One kind of board."""

    name: str
    title: str
    cores: int
    architecture: str
    supply_voltage_v: tuple[float, float]
    """Lowest and highest supply voltage the board is specified for [V]."""
    media: tuple[str, ...]
    """Storage media the board can take, the default first."""
    sync: str
    """Carrier of the sync line, as the probe's --sync takes it."""

    temperature: str = "/sys/class/thermal/thermal_zone0/temp"
    """The board's file with the CPU temperature in thousandths of a degree."""
    temperature_limit_c: float = 80.0
    """From here on the board slows itself down."""
    throttled: str = ""
    """The board's file with the Raspberry Pi firmware's flags, or a pattern for it; empty for none."""
    nominal_voltage_v: float | None = None
    """Voltage of the supply that its maker asks for [V]; None where nothing is known of the board."""
    least_voltage_v: float | None = None
    """Below this the board complains and throttles, or is outside its specification [V]."""
    peak_current_a: float | None = None
    """What its maker asks a supply to give [A]."""
    idle_w: tuple[float, float] | None = None
    """Least and greatest idle power that is plausible [W], a medium and a fan included; None where nothing is known."""
    supply_note: str = ""
    """What else its supply has to do with."""

    def with_medium(self, name: str | None) -> BoardAndMedium:
        """The board with the medium of this name, or with its first. Raises: BadInput: the board has no such medium."""
        if name is not None and name not in self.media:
            raise BadInput(unknown(f"storage for {self.name}", name, list(self.media)))
        return BoardAndMedium(self, name or self.media[0])


@dataclass(frozen=True)
class BoardAndMedium:
    """A kind of board, and the one of its media that the databases go to."""

    profile: Profile
    medium: str
    """Name of the medium: one of the profile's."""

    @property
    def name(self) -> str:
        """Name of board and medium, as rpi4/sd."""
        return f"{self.profile.name}/{self.medium}"


def known_profiles() -> list[str]:
    """Names of all boards, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def find_profile(name: str) -> Profile:
    """The profile of board `name`. Set-up asks for it too, before any package is installed.

    Raises: BadInput: no such board; names the known ones and the nearest.
    """
    if name not in known_profiles():
        raise BadInput(unknown("device", name, known_profiles()))
    entry = read_toml(_FOLDER / f"{name}.toml")
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return Profile(name=name, **{**entry, **lists})
