"""Board profiles: properties of all boards of a kind, one TOML file each under profiles/."""

from dataclasses import dataclass
from pathlib import Path

from opjoule.base.errors import BadInput, unknown
from opjoule.base.settings import MEDIUM
from opjoule.base.toml_file import read_toml

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
    """Temperature at which the board starts to throttle."""
    throttled: str = ""
    """The board's file with the Raspberry Pi firmware's flags, or a pattern for it; empty if there is none."""
    nominal_voltage_v: float | None = None
    """Voltage of the supply that the maker specifies [V]; None if unknown."""
    least_voltage_v: float | None = None
    """Voltage below which the board throttles with a warning, or is outside its specification [V]."""
    peak_current_a: float | None = None
    """Current that the maker requires of a supply [A]."""
    idle_w: tuple[float, float] | None = None
    """Least and greatest plausible idle power [W], including a medium and a fan; None if unknown."""
    supply_note: str = ""

    def with_medium(self, name: str | None) -> "BoardAndMedium":
        """The board with the medium of this name, or by default its first. Raises: BadInput: no such medium."""
        if name is not None and name not in self.media:
            raise BadInput(unknown(f"{MEDIUM} for {self.name}", name, list(self.media)))
        return BoardAndMedium(self, name or self.media[0])


@dataclass(frozen=True)
class BoardAndMedium:
    """A kind of board, and its medium for the databases."""

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
    """The profile of board `name`. Raises: BadInput: no such board; names the known ones and the nearest."""
    if name not in known_profiles():
        raise BadInput(unknown("device", name, known_profiles()))
    entry = read_toml(_FOLDER / f"{name}.toml")
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return Profile(name=name, **{**entry, **lists})
