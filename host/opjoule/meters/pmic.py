"""The Raspberry Pi 5's power chip, read with `vcgencmd pmic_read_adc`."""

import re
import subprocess
from collections.abc import Mapping
from typing import Final

from opjoule.base.errors import MeterFault
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, CURRENT, VOLTAGE, ErrorBounds
from opjoule.meters.interface import MeterIdentity, MeterKind, SensorIdentity
from opjoule.meters.polling import ON_BOARD, PolledMeter, Reading, Source

PROGRAM: Final = "vcgencmd"
PERIOD_S: Final = 0.1
"""One call starts a process and takes about 5 to 10 ms of one core."""
LIMIT_S: Final = 10.0
GAIN_ERROR_MAX: Final = 0.2
OFFSET_MAX_A: Final = 0.15
"""Chosen to hold the formula by which a monitor estimates this board's supply: 1.145 times the sum of the rails and
0.59 W, which is 0.12 A at 5 V (pitop.hongjunwu.com/guide/power). The vendor states no bounds."""
_LINE: Final = re.compile(r"^\s*(\w+?)_([AV])\s+(?:current|volt)\(\d+\)=([-+0-9.eE]+)[AV]\s*$")
_INPUT: Final = "EXT5V"


class PmicSource(Source):
    """Sum over the chip's rails, as current at the 5 V input. Excludes the power of the USB ports and the fan."""

    period_s = PERIOD_S
    mean_since_last = False

    def __init__(self, program: str = PROGRAM) -> None:
        self._program = program
        self._rails: tuple[str, ...] = ()

    def open(self) -> MeterIdentity:
        """Reads the chip once. Raises: MeterFault: the program is missing, or this is no Raspberry Pi 5."""
        currents, voltages = self._values()
        self._rails = tuple(sorted(currents.keys() & voltages.keys()))
        if not self._rails or _INPUT not in voltages:
            raise MeterFault(f"pmic: '{self._program} pmic_read_adc' gives no rails: only a Raspberry Pi 5 has them")
        return MeterIdentity(
            kind="pmic",
            place=self._program,
            board="Raspberry Pi 5 PMIC",
            tick_hz=1_000_000_000,
            sensors=tuple(SensorIdentity(rail, number) for number, rail in enumerate(self._rails)),
            voltage_at="at the board's own 5 V input",
            notes=(
                "sum of the power chip's rails: without USB devices, the fan and the chip's own conversion loss",
                f"one reading every {PERIOD_S * 1e3:g} ms, each an instantaneous value: too slow for single operations",
                ON_BOARD,
            ),
        )

    def read(self) -> Reading:
        """Power of all rails, as current at the input's voltage."""
        currents, voltages = self._values()
        try:
            power_w = sum(currents[rail] * voltages[rail] for rail in self._rails)
            input_v = voltages[_INPUT]
        except KeyError as error:
            raise MeterFault(f"pmic: rail {error} is missing from the answer") from None
        return Reading(power_w / input_v, input_v)

    def error_bounds(self) -> ErrorBounds:
        """Bounds of the supply's power, of which the rails are a part."""
        return ErrorBounds(
            gain_errors_max={CURRENT: GAIN_ERROR_MAX, VOLTAGE: 0.01},
            current_offset_max_a=OFFSET_MAX_A,
            current_step_a=1e-3,
            voltage_step_v=5e-3,
            current_max_a=5.0,
            seen_fraction=0.01,
            clock_error_max=CRYSTAL_ERROR_MAX,
        )

    def _values(self) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """Currents [A] and voltages [V] by rail."""
        command = [self._program, "pmic_read_adc"]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MeterFault(f"pmic: '{self._program}' does not run ({error}): only a Raspberry Pi 5 has it") from None
        currents: dict[str, float] = {}
        voltages: dict[str, float] = {}
        for line in ended.stdout.splitlines():
            if match := _LINE.match(line):
                rail, kind, value = match.groups()
                (currents if kind == "A" else voltages)[rail] = float(value)
        return currents, voltages


KIND: Final = MeterKind(
    name="pmic",
    written="pmic (this Raspberry Pi 5's power chip)",
    make=lambda address, _: PolledMeter(PmicSource(address.place or PROGRAM)),
    samples="10/s, instantaneous values",
    runs_on="the Raspberry Pi 5 that is measured",
    needs="`vcgencmd`",
)
