"""State in which the board is measured: the [device.NAME.state] table of rig.toml, or --state KEY=VALUE."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, Self, get_args, get_type_hints

from opjoule.base.errors import BadInput, unknown

SIMULATED: Final = ("page_cache", "memory_mb")
"""Keys that a simulated board takes. The rest of its state is its own."""


@dataclass(frozen=True)
class StateSettings:
    """One value per key, as written in rig.toml and --state."""

    page_cache: Literal["drop", "keep"] = "drop"
    governor: str = "performance"
    """CPU frequency governor; "keep" leaves it unchanged."""
    frequency_khz: int = 0
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
    cpus: int = 0
    """Number of enabled processors; 0 for all."""
    memory_mb: int = 0
    """Memory available to the board; 0 for all."""
    pin: str = ""
    """Processors that the loader is restricted to, as taskset -c takes them."""
    file_system: Literal["keep", "check", "new"] = "keep"
    """File system of an expendable medium: keep it, check it, or make a new ext4."""
    journal: Literal["keep", "on", "off"] = "keep"
    """ext4 journalling of an expendable medium."""
    trim: Literal["yes", "no"] = "yes"
    precondition_mb: int = 0
    """Megabytes written to the medium and removed before the run; 0 for none."""

    def changed(self, settings: Mapping[str, object], where: str) -> Self:
        """These settings with some changes.

        Raises: BadInput: an unknown key, or an invalid value; `where` names the file or option.
        """
        kinds = get_type_hints(StateSettings)
        values: dict[str, object] = {}
        for key, value in settings.items():
            if key not in kinds:
                raise BadInput(f"{where}: {unknown('key', key, sorted(kinds))}")
            kind = kinds[key]
            values[key] = _number(value, key, where) if kind is int else _word(value, key, where, get_args(kind))
        return replace(self, **values)  # type: ignore[arg-type]


AS_SIMULATED: Final = StateSettings(page_cache="keep")
"""State of a simulated board for which nothing else is asked."""


def _number(value: object, key: str, where: str) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isdigit():
        raise BadInput(f"{where}: {key} must be a whole number of at least 0, not {value!r}")
    return int(text)


def _word(value: object, key: str, where: str, choices: tuple[str, ...]) -> str:
    if choices and type(value) is int:
        value = str(value)
    if not isinstance(value, str) or (choices and value not in choices):
        limit = " or ".join(choices) if choices else "text in quotes"
        raise BadInput(f"{where}: {key} must be {limit}, not {value!r}")
    return value
