"""Energy counters of the processor (RAPL) from Linux' powercap; they need no rig.

The counters cover the processor package (and its memory, if it has such a domain), but not the board, its supply or its
disks.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opjoule.base.errors import MeterFault
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, POWER, ErrorBounds
from opjoule.meters.interface import MeterIdentity, MeterKind, SensorIdentity
from opjoule.meters.polling import ON_BOARD, PolledMeter, Reading, Source

ROOT: Final = Path("/sys/class/powercap")
PERIOD_S: Final = 0.01
"""The counters are updated about once a millisecond; ten updates a reading bound its own error to 10 %."""
GAIN_ERROR_MAX: Final = 0.05
"""Assumed: no vendor states one; published comparisons find a few per cent."""
POWER_MAX_W: Final = 500.0


@dataclass
class _Domain:
    """One counter and its last value."""

    name: str
    file: Path
    range_uj: int
    last_uj: int | None = None

    def step_uj(self) -> int | None:
        """Energy since the last call [uJ]; None for the first call. The counter wraps at its range."""
        try:
            now_uj = int(self.file.read_text())
        except PermissionError:
            raise MeterFault(
                f"rapl: only root may read {self.file}: start as root, or run 'sudo chmod a+r {self.file}' "
                "(it lasts until the next boot)"
            ) from None
        except (OSError, ValueError) as error:
            raise MeterFault(f"rapl: {self.file} cannot be read ({error})") from None
        before, self.last_uj = self.last_uj, now_uj
        return None if before is None else (now_uj - before) % (self.range_uj + 1)


class RaplSource(Source):
    """Total power of all packages and their memory, recorded as 1 V and as many amperes as watts."""

    period_s = PERIOD_S
    mean_since_last = True

    def __init__(self, root: Path = ROOT, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._root, self._clock_ns = root, clock_ns
        self._domains: list[_Domain] = []
        self._last_ns = 0

    def open(self) -> MeterIdentity:
        """Finds the counters. Raises: MeterFault: there are none, or this user may not read them."""
        self._domains = [domain for path in sorted(self._root.glob("*/energy_uj")) if (domain := _domain(path))]
        if not self._domains:
            raise MeterFault(
                f"rapl: no energy counter under {self._root}: this processor has none, or it is a virtual machine"
            )
        for domain in self._domains:
            domain.step_uj()
            domain.last_uj = None
        return MeterIdentity(
            kind="rapl",
            place=str(self._root),
            board="processor",
            tick_hz=1_000_000_000,
            sensors=tuple(SensorIdentity(domain.name, number) for number, domain in enumerate(self._domains)),
            notes=(
                "covers the processor (and memory where listed), not the board, its supply or its disks",
                "power only: recorded as 1 V, with as many amperes as watts",
                f"one reading every {PERIOD_S * 1e3:g} ms; the vendor states no accuracy, "
                f"{GAIN_ERROR_MAX:.0%} is assumed",
                ON_BOARD,
            ),
        )

    def read(self) -> Reading | None:
        """Mean power since the last reading."""
        steps = [domain.step_uj() for domain in self._domains]
        now_ns = self._clock_ns()
        last_ns, self._last_ns = self._last_ns, now_ns
        energy_uj = sum(step for step in steps if step is not None)
        if None in steps or now_ns <= last_ns:
            return None
        return Reading(energy_uj * 1e3 / (now_ns - last_ns), 1.0)

    def error_bounds(self) -> ErrorBounds:
        """Bounds of the power alone, as amperes at 1 V, which has no error; its step is one count a reading."""
        return ErrorBounds(
            gain_errors_max={POWER: GAIN_ERROR_MAX},
            current_offset_max_a=0.0,
            current_step_a=1e-6 / PERIOD_S,
            voltage_step_v=0.0,
            current_max_a=POWER_MAX_W,
            seen_fraction=1.0,
            clock_error_max=CRYSTAL_ERROR_MAX,
        )


def _domain(energy: Path) -> _Domain | None:
    """The counter at this path if it is used: packages and their memory; a core's counter is part of its package's."""
    folder = energy.parent
    try:
        name = (folder / "name").read_text().strip()
        range_uj = int((folder / "max_energy_range_uj").read_text())
    except (OSError, ValueError):
        return None
    # intel-rapl-mmio shows the same package a second time.
    counted = name.startswith("package") or name == "dram"
    return _Domain(name, energy, range_uj) if counted and "mmio" not in folder.name else None


KIND: Final = MeterKind(
    name="rapl",
    written="rapl (this computer's processor)",
    make=lambda address, _: PolledMeter(RaplSource(Path(address.place) if address.place else ROOT)),
    samples="100/s, each the mean of its 10 ms",
    runs_on="the computer that is measured",
    needs="root, or the right to read the counter",
)
