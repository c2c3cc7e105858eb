"""What set-up has to do for a command. Standard library only: the first set-up makes the Python environment."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Needs:
    """What set-up has to do for a command."""

    loader: bool = False
    """Loader and probe, for this computer."""
    engines: frozenset[str] = frozenset()
    """Databases that a loader contains or connects to; the other engines are not built."""
    simulate: bool = False
    """The simulated rig: simulator and firmware."""
    test: bool = False
    ycsb: bool = False
    virtual: bool = False
    """The programs that build the virtual board."""
    board: str = ""
    """Architecture of a board whose loader is built here (aarch64, armhf, amd64), or empty."""
    figures: bool = False
    """The libraries that draw figures for print."""
    fleet: bool = False
    """The libraries that connect several rigs."""
    packages: tuple[str, ...] = ()
    """Further system packages, for a study's databases."""

    @property
    def sections(self) -> list[str]:
        """The sections of host/packages.txt, without those of engines."""
        wanted = {
            "host": True,
            "loader": self.loader or self.simulate,
            "rig": self.simulate,
            "test": self.test,
            "virtual": self.virtual or self.test,
            "ycsb": self.ycsb,
        }
        return [section for section, needed in wanted.items() if needed]

    @property
    def pins(self) -> str:
        """Name of the file in host/requirements that pins the Python packages."""
        return "test" if self.test else "figures" if self.figures else "fleet" if self.fleet else "measure"
