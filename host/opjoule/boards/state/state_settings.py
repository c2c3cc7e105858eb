"""State in which the board is measured: the [device.NAME.state] table of rig.toml, or --state KEY=VALUE."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Final, Literal, Self

from msgspec import Meta

from opjoule.base.settings import as_struct

_Count = Annotated[int, Meta(ge=0, description="a whole number of at least 0")]

SIMULATED: Final = ("page_cache", "memory_mb")
"""Keys that a simulated board takes. The rest of its state is its own."""


@dataclass(frozen=True)
class StateSettings:
    """One value per key, as written in rig.toml and --state."""

    page_cache: Literal["drop", "keep"] = "drop"
    governor: str = "performance"
    """CPU frequency governor; "keep" leaves it unchanged."""
    frequency_khz: _Count = 0
    """Fixed CPU frequency; 0 leaves the board's range unchanged."""
    wifi: Literal["off", "keep"] = "off"
    bluetooth: Literal["off", "keep"] = "off"
    hdmi: Literal["off", "keep"] = "off"
    leds: Literal["off", "keep"] = "off"
    fan: Literal["keep", "0", "1", "2", "3", "4"] = "keep"
    """Step of the board's fan, 0 for off; "keep" leaves it to the kernel, which switches it by temperature."""
    swap: Literal["off", "keep"] = "off"
    services: Literal["stop", "keep"] = "stop"
    """Services and timers that wake up periodically: stopped, or kept."""
    time_daemons: Literal["stop", "keep"] = "stop"
    """Daemons that adjust the clock to network time (systemd-timesyncd, chrony, ntpd): stopped, or kept."""
    cpus: _Count = 0
    """Number of enabled processors; 0 for all."""
    memory_mb: _Count = 0
    """Memory available to the board; 0 for all."""
    pin: str = ""
    """Processors that the loader is restricted to, as taskset -c takes them."""
    file_system: Literal["keep", "check", "new"] = "keep"
    """File system of an expendable medium: keep it, check it, or make a new ext4."""
    journal: Literal["keep", "on", "off"] = "keep"
    """ext4 journalling of an expendable medium."""
    trim: Literal["yes", "no"] = "yes"
    precondition_mb: _Count = 0
    """Megabytes written to the medium and removed before the run; 0 for none."""

    def changed(self, settings: Mapping[str, object], where: str) -> Self:
        """These settings with some changes.

        Raises: BadInput: an unknown key, or an invalid value; `where` names the file or option.
        """
        return as_struct({**asdict(self), **settings}, type(self), f"{where}:", texts=True)


AS_SIMULATED: Final = StateSettings(page_cache="keep")
"""State of a simulated board for which nothing else is asked."""
