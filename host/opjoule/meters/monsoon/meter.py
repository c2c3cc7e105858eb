"""The Monsoon behind the meter interface."""

import contextlib
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import numpy as np

from opjoule.base.errors import BadInput, MeterFault
from opjoule.meters.interface import (
    Address,
    MeterEvent,
    MeterGone,
    MeterIdentity,
    MeterKind,
    MeterOptions,
    SensorIdentity,
    Wishes,
)
from opjoule.meters.monsoon.assembler import Calibration, MonsoonAssembler
from opjoule.meters.monsoon.models import DAC_RANGES, HVPM, LVPM, MODELS, PASSTHROUGH, Model, Opcode
from opjoule.meters.monsoon.reader import LIBRARY, PERMISSION, MakeProtocol, Reader, usb_protocol
from opjoule.meters.streaming import StreamingMeter
from opjoule.meters.usb_link import LIBUSB, SEVERAL

VOLTAGE_STEPS_A_VOLT: Final = 1 << 20
CALIBRATION_PERIOD_MS: Final = 1250
SAMPLES_WITHOUT_END: Final = 0xFFFFFFFF
VOLTAGE_CHANNEL_MAIN_USB: Final = 0
RESET_LIMIT_S: Final = 10.0
"""The library's closeDevice() resets the USB device, and its own reconnect() then waits 5 s for it."""
RETRY_S: Final = 0.5
NO_WAITING_MENDS: Final = (PERMISSION, LIBRARY, LIBUSB, SEVERAL)
"""Faults that do not go away by waiting. Permission is checked again after an absence, because udev grants it a moment
after the device is back."""


@dataclass(frozen=True)
class MonsoonSettings:
    """How the device supplies the board, and which channel it records."""

    model: str = "hvpm"
    """'hvpm' or 'lvpm'"""
    serial_number: str | None = None
    """Serial number of the monitor; None: the only one that is plugged in."""
    channel: str = "main"
    """'main', or 'usb' for a board that is supplied through the USB pass-through"""
    voltage_v: float | None = None
    """output voltage of the main channel; None: unchanged"""
    limit_a: float | None = None
    """current limit, at power-up and afterwards; None: unchanged"""
    passthrough: str | None = None
    """USB pass-through 'on', 'off' or 'auto'; None: on for channel usb, else unchanged"""
    supply_v: tuple[float, float] | None = None
    """minimum and maximum supply voltage of the board"""

    def checked(self) -> Model:
        """The model, if it can do what is set. Raises: BadInput: it cannot."""
        if self.channel == "usb" and self.passthrough == "off":
            raise BadInput("monsoon: channel=usb with the pass-through off measures nothing")
        model = MODELS[self.model]
        if self.voltage_v is not None:
            model.check_voltage(self.voltage_v, self.supply_v if self.channel == "main" else None)
        if self.limit_a is not None:
            model.limit_code(self.limit_a)
        return model


class MonsoonMeter(StreamingMeter[Reader, MonsoonAssembler]):
    """A HVPM or LVPM; see Meter for the contract."""

    def __init__(self, settings: MonsoonSettings, make_protocol: MakeProtocol | None = None) -> None:
        """`make_protocol`: None for a device on USB."""
        self._settings, self._model = settings, settings.checked()
        super().__init__("monsoon", lambda: self._model.error_bounds(settings.channel))
        self._make_protocol = make_protocol or partial(usb_protocol, settings.serial_number)

    def _connect(self) -> MeterIdentity:
        """Connects, and waits for an absent device: a Monsoon resets when its last user closes it."""
        self._device = Reader(self._make_protocol)
        code = self._hardware_model()
        if code != self._model.code:
            name = next((model.name for model in MODELS.values() if model.code == code), f"model {code}")
            raise MeterFault(f"monsoon: it is a {name}, not a {self._model.name}: write monsoon:model={name.lower()}")
        return self._identity()

    def _hardware_model(self) -> int:
        """Connects and asks for the hardware model, repeatedly until the time of a reset is over.

        Raises: MeterFault: the fault of the last try; raised at once if waiting cannot help.
        """
        waiting, until_s = False, time.monotonic() + RESET_LIMIT_S
        while True:
            try:
                return self._connected()
            except MeterGone:
                raise
            except MeterFault as fault:
                final = not waiting and any(text in str(fault) for text in NO_WAITING_MENDS)
                if final or time.monotonic() >= until_s:
                    raise
            if not waiting:
                said = f"monsoon: not found; after use it resets for up to {RESET_LIMIT_S:g} s"
                print(said, file=sys.stderr, flush=True)
            waiting = True
            time.sleep(RETRY_S)

    def _connected(self) -> int:
        self._opened().ask("connect", self._model.code, self._settings.serial_number)
        with contextlib.suppress(MeterFault):
            self._opened().ask("stop")  # left sampling by an earlier host
        return self._get(Opcode.HARDWARE_MODEL, 2)

    def configure(self) -> None:
        """Sets the current limits, then the pass-through, then the voltage, so that power is applied last.

        Raises: MeterFault: the device's voltage calibration is out of tolerance.
        """
        settings = self._settings
        if settings.limit_a is not None:
            for opcode in (Opcode.POWER_UP_LIMIT, Opcode.RUN_LIMIT):
                self._set(opcode, self._model.limit_code(settings.limit_a))
        passthrough = settings.passthrough or ("on" if settings.channel == "usb" else None)
        if passthrough is not None:
            self._set(Opcode.USB_PASSTHROUGH, PASSTHROUGH[passthrough])
        self._set(Opcode.VOLTAGE_CHANNEL, VOLTAGE_CHANNEL_MAIN_USB)
        if settings.voltage_v is not None:
            self._check_converter()
            self._set(Opcode.MAIN_VOLTAGE, round(settings.voltage_v * VOLTAGE_STEPS_A_VOLT))

    def start(self) -> None:
        """Reads the device's scale and starts sampling."""
        scale = self._model.channel_scale(self._settings.channel, self._get)
        self._assembler = MonsoonAssembler(Calibration(self._model, self._settings.channel, scale))
        self._opened().ask("start", CALIBRATION_PERIOD_MS, SAMPLES_WITHOUT_END)

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events since the last call. Raises: MeterGone."""
        events: list[MeterEvent] = []
        for batch in self._opened().batches(timeout_s):
            events += self._started().take(batch.data, np.frombuffer(batch.arrival_ns, np.int64))
        return events

    def stop(self) -> list[MeterEvent]:
        """Stops sampling. Returns the events read before. The board stays powered."""
        self._opened().ask("stop")
        return self.read(0.0)

    def _check_converter(self) -> None:
        """Checks the voltage calibration. With a wrong one, some units output far more than was set."""
        if self._model is not HVPM:
            return
        for opcode, (low, high) in DAC_RANGES.items():
            value = self._get(opcode, 2)
            if not low < value < high:
                raise MeterFault(
                    f"monsoon: its voltage calibration {opcode.name} is {value:#x}, outside {low:#x} to {high:#x}: "
                    "power stays off; update its firmware and run the library's HVPM.calibrateVoltage()"
                )

    def _identity(self) -> MeterIdentity:
        settings = self._settings
        low_v, high_v = self._model.voltage_v
        return MeterIdentity(
            kind="monsoon",
            place="USB",
            protocol_version=self._get(Opcode.PROTOCOL, 1),
            firmware_version=str(self._get(Opcode.FIRMWARE, 2)),
            board=self._model.name,
            serial_number=str(self._get(Opcode.SERIAL_NUMBER, 2)),
            tick_hz=5000,
            sensors=(SensorIdentity(f"{self._model.name} {settings.channel} channel", 0),),
            voltage_at="at the meter's output",
            notes=(
                f"main channel {low_v:g} to {high_v:g} V, up to {self._model.current_max_a:g} A",
                "5,000 samples/s on its own clock; no sync input: aligned by load signature and packet arrival",
            ),
        )

    def _get(self, opcode: int, length: int, signed: bool = False) -> int:
        value: int = self._opened().ask("get", int(opcode), length, signed)
        return value

    def _set(self, opcode: Opcode, value: int) -> None:
        self._opened().ask("set", int(opcode), value)


class MonsoonOptions(MeterOptions, frozen=True, kw_only=True):
    """How the device supplies the board, and which channel it records."""

    model: Literal["hvpm", "lvpm"] = "hvpm"
    channel: Literal["main", "usb"] = "main"
    voltage: float | None = None
    limit: float | None = None
    usb: Literal["on", "off", "auto"] | None = None


def _monsoon(address: Address, wishes: Wishes) -> MonsoonMeter:
    options: MonsoonOptions = address.options
    settings = MonsoonSettings(
        model=options.model,
        serial_number=address.place or None,
        channel=options.channel,
        voltage_v=options.voltage,
        limit_a=options.limit,
        passthrough=options.usb,
        supply_v=wishes.supply_v,
    )
    return MonsoonMeter(settings)


KIND: Final = MeterKind(
    name="monsoon",
    written="monsoon:voltage=5.1,limit=4 or monsoon:model=lvpm,channel=usb",
    make=_monsoon,
    options=MonsoonOptions,
    samples="5,000/s",
    runs_on="the device",
    needs="`host/requirements/monsoon.in`, libusb",
    draw="a Monsoon has its own supply",
    states_voltage=True,
    imports={
        "monsoon-hvpm": lambda: HVPM.error_bounds("main"),
        "monsoon-lvpm": lambda: LVPM.error_bounds("main"),
    },
    import_formats={"powertool": "monsoon-hvpm", "pymonsoon": "monsoon-hvpm"},
)
