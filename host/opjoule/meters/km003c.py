"""ChargerLAB's POWER-Z KM003C and KM002C over USB: asked for their present values up to 1,000 times a second.

This is the project's own code for the request that the maker documents and Linux' driver uses
(drivers/hwmon/powerz.c): four bytes out, 52 back. The faster buffered stream needs an authentication that the maker
does not document; it is not used (docs/reference/meters.md).
"""

import struct
from typing import Final

from opjoule.base.errors import BadInput, MeterFault
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, CURRENT, VOLTAGE, ErrorBounds
from opjoule.meters.interface import Address, MeterGone, MeterIdentity, MeterKind, MeterOptions, SensorIdentity, Wishes
from opjoule.meters.polling import PolledMeter, Reading, Source
from opjoule.meters.usb_link import VENDOR_CLASS, UsbLink, open_usb

MODELS: Final = {(0x5FC9, 0x0063): "POWER-Z KM003C", (0x5FC9, 0x0061): "POWER-Z KM002C"}
RATE_HZ: Final = 1000
"""An answer takes about 0.6 ms (docs.rs/km003c-lib, device.rs); 1,000 answers a second were counted over this
interface (github.com/chaseleif/km003c)."""
_RATES_HZ: Final = (1, RATE_HZ)
_GET_DATA, _PUT_DATA, _ADC = 0x0C, 0x41, 0x0001
_VALUES: Final = struct.Struct("<ii")
"""Start of the payload: VBUS [uV] and IBUS [uA]; the sign of IBUS is its direction."""
_HEADER_BYTES: Final = 8
_PAYLOAD_BYTES: Final = 44
ANSWER_S: Final = 0.05
"""The kernel's driver waits 5 ms; the rest is for a busy computer."""
UNANSWERED_MAX: Final = 40
"""Consecutive lost answers after which the tester counts as silent: 2 s."""
CURRENT_MAX_A: Final = 6.0
VOLTAGE_MAX_V: Final = 50.0


class Km003cSource(Source):
    """The tester as a polled source. A reading is the value at that moment."""

    mean_since_last = False
    gap_s = 0.02
    """A busy computer asks less often; only a longer silence counts as a gap."""

    def __init__(self, serial_number: str = "", rate_hz: float = RATE_HZ) -> None:
        """`serial_number`: may be empty if only one tester is plugged in. Raises: BadInput: an impossible rate."""
        least_hz, most_hz = _RATES_HZ
        if not least_hz <= rate_hz <= most_hz:
            raise BadInput(f"km003c: rate={rate_hz:g}: must be {least_hz} to {most_hz} readings a second")
        self.period_s = 1.0 / rate_hz
        self._wanted = serial_number
        self._link: UsbLink | None = None
        self._number = 0
        self._silent = 0
        self._before: tuple[int, int] | None = None
        self._counts = {"unanswered": 0, "same_as_before": 0}

    def open(self) -> MeterIdentity:
        """Finds the tester and reads it once.

        Raises: MeterFault: absent, no permission, held by another program, silent, or unexpected answers.
        """
        model, self._link = open_usb("km003c", MODELS, self._wanted, VENDOR_CLASS)
        try:
            self._drain()
            if not any(self.read() is not None for _ in range(3)):
                raise MeterFault(f"km003c: {self._link.place} does not answer: plug it in again")
        except BaseException:
            self.close()
            raise
        return MeterIdentity(
            kind="km003c",
            place=self._link.place,
            board=model,
            serial_number=self._link.serial_number,
            tick_hz=1_000_000_000,
            sensors=(SensorIdentity(model, 0),),
            voltage_at="at the tester's plug on the board's side",
            notes=(
                f"asked {1 / self.period_s:.4g} times a second; each reading is an instantaneous value, stamped by "
                "this computer half-way between request and answer",
                "the current counts as positive whichever way round the tester is plugged in",
                "its error bounds are assumed: the maker's figures could not be checked",
            ),
        )

    def read(self) -> Reading | None:
        """The present values; None if no answer came. Raises: MeterFault: an unexpected answer. MeterGone: silent."""
        if self._link is None:
            raise MeterFault("km003c: not open")
        self._number = (self._number + 1) % 256
        self._link.write(bytes((_GET_DATA, self._number, _ADC << 1, 0)))
        answer = self._link.read(ANSWER_S)
        while answer and answer[1] != self._number:  # answer to a request that was given up
            answer = self._link.read(ANSWER_S)
        if not answer:
            self._counts["unanswered"] += 1
            self._silent += 1
            if self._silent >= UNANSWERED_MAX:
                raise MeterGone(f"km003c: {self._link.place} has stopped answering: plug it in again")
            return None
        self._silent = 0
        values = _values(answer)
        self._counts["same_as_before"] += values == self._before
        self._before = values
        volts, amperes = values[0] * 1e-6, abs(values[1]) * 1e-6
        return Reading(amperes, volts, clipped=amperes >= CURRENT_MAX_A or volts >= VOLTAGE_MAX_V)

    def counts(self) -> dict[str, int]:
        """Requests without an answer, and answers equal to the previous one to the microampere and microvolt."""
        return self._counts

    def close(self) -> None:
        """Releases the tester; may be called twice."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def error_bounds(self) -> ErrorBounds:
        """Assumed bounds."""
        return km003c_sensor()

    def _drain(self) -> None:
        """Discards answers to requests of an earlier program."""
        while self._link and self._link.read(0.005):
            pass


def _values(answer: bytes) -> tuple[int, int]:
    """VBUS [uV] and IBUS [uA] of one answer. Raises: MeterFault: the answer is not a measurement."""
    kind = answer[0] & 0x7F
    held = answer[4] | (answer[5] & 0x7F) << 8 if len(answer) >= _HEADER_BYTES else 0
    if kind != _PUT_DATA or held != _ADC or len(answer) < _HEADER_BYTES + _PAYLOAD_BYTES:
        raise MeterFault(
            f"km003c: it answers {len(answer)} bytes of type 0x{kind:02x} instead of a measurement (52 of 0x41): "
            "update its firmware with the maker's program (1.9.9 was seen to work)"
        )
    volts_uv, amperes_ua = _VALUES.unpack_from(answer, _HEADER_BYTES)
    return volts_uv, amperes_ua


def km003c_sensor() -> ErrorBounds:
    """Assumed bounds: an INA228 on 20 mohm (a KM002C opened by AnandTech, 18944) and its shunt, with a margin."""
    return ErrorBounds(
        gain_errors_max={CURRENT: 0.005, VOLTAGE: 0.005},
        current_offset_max_a=2e-3,
        current_step_a=1e-6,
        voltage_step_v=1e-6,
        current_max_a=CURRENT_MAX_A,
        seen_fraction=0.5,
        clock_error_max=CRYSTAL_ERROR_MAX,
        model="POWER-Z",
    )


class Km003cOptions(MeterOptions, frozen=True, kw_only=True):
    """How often it is asked."""

    rate: float = RATE_HZ


def _km003c(address: Address, _: Wishes) -> PolledMeter:
    return PolledMeter(Km003cSource(address.place, address.options.rate))


KIND: Final = MeterKind(
    name="km003c",
    written="km003c or km003c:SERIAL,rate=1000 (ChargerLAB POWER-Z)",
    make=_km003c,
    options=Km003cOptions,
    samples="1,000/s, instantaneous values",
    runs_on="the computer that it is plugged into",
    needs="`host/requirements/usb.in`, libusb, [udev rule](../how-to/60-usb-meters.rules)",
    draw="0.5 W at most (100 mA asked for)",
    imports={"km003c": km003c_sensor},
)
