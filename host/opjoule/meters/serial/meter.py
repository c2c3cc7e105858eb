"""The meter behind a serial port that speaks the protocol of messages.toml; retries, and matching of answers."""

import contextlib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeVar

from opjoule.base.errors import MeterFault
from opjoule.clocks.exchanges import Exchange
from opjoule.clocks.host_clock import MONOTONIC, HostClock
from opjoule.energy.error_bounds import ErrorBounds, Shunt
from opjoule.meters import messages
from opjoule.meters.chips import (
    Chip,
    ConversionTimes,
    SensorSettings,
    chip_of,
    code_ends,
    default_settings,
    ina219_breakout,
    read_times,
)
from opjoule.meters.interface import (
    LOAD_SIDE,
    Address,
    InputEnded,
    Losses,
    Meter,
    MeterEvent,
    MeterGone,
    MeterIdentity,
    MeterKind,
    SensorIdentity,
    ShuntOf,
    Wishes,
)
from opjoule.meters.serial.assembler import Assembler, parse, status_ticks
from opjoule.meters.serial.conversions import ConversionAssembler
from opjoule.meters.serial.options import SerialOptions, shunts
from opjoule.meters.serial.port import SerialPort, is_pseudo_terminal
from opjoule.meters.serial.wire import FrameReader, LinkCounts, encode_frame, protocol_version

Answer = TypeVar("Answer", messages.Identity, messages.Ack, messages.Status)

ANSWER_LIMIT_S = 15.0
"""A meter answers in milliseconds; a simulated one on a busy computer may need seconds."""
RETRY_PERIOD_S = 0.5
"""Time after which an unanswered command is repeated: the command or its answer may have been lost on the line."""
GATHER_S = 0.01
"""Time for which bytes are gathered before they are decoded; time-stamped answers are decoded at once."""

Command = messages.Configure | messages.Start | messages.Stop
"""Messages that change something and are answered by an Ack."""
Handler = Callable[[messages.Message, int], None]


class SerialLink:
    """One open port. `handler` is called with each received message and the time of its arrival [host_ns]."""

    def __init__(self, path: str, handler: Handler, clock: HostClock) -> None:
        self.path, self._clock = path, clock
        self._handler = handler
        self._reader = FrameReader()
        self._seq = itertools.count()
        self._bytes = 0
        self._port = SerialPort(path, clock)

    @property
    def counts(self) -> LinkCounts:
        """Counts of the line since it was opened."""
        return self._reader.counts

    def send(self, message: messages.Message, after: bytes = b"") -> None:
        """Sends the raw bytes `after`, then one message. Raises: MeterGone."""
        self._port.write(after + encode_frame(message, next(self._seq)))

    def pump(self, timeout_s: float, gather: bool = False) -> list[messages.Message]:
        """Reads once, hands over and returns the messages. Raises: MeterGone; MeterFault: another protocol version."""
        data = self._port.read(timeout_s, GATHER_S if gather else 0.0)
        received_host_ns = self._clock.now_ns()
        self._bytes += len(data)
        handed_out = []
        for frame in self._reader.feed(data):
            version = protocol_version(frame)
            if version is not None and version != messages.VERSION:
                raise self._other_version(version)
            message = parse(frame)
            if message is not None:
                handed_out.append(message)
                self._handler(message, received_host_ns)
        return handed_out

    def ask(
        self,
        command: messages.Message,
        kind: type[Answer],
        limit_s: float = ANSWER_LIMIT_S,
        wanted: Callable[[Answer], bool] = lambda answer: True,
    ) -> Answer:
        """Sends a command, repeated every RETRY_PERIOD_S, until an answer of this kind comes.

        Raises: MeterFault: none came in `limit_s`, or one of another protocol version. MeterGone.
        """
        retry_s = began_s = self._clock.now_s()
        end_s = began_s + limit_s
        while (at_s := self._clock.now_s()) < end_s:
            if at_s >= retry_s:
                self.send(command)
                retry_s = at_s + RETRY_PERIOD_S
            for message in self.pump(max(0.0, min(retry_s, end_s) - at_s)):
                if isinstance(message, kind) and wanted(message):
                    return message
        raise self._silent(limit_s)

    def command(self, command: Command, limit_s: float = ANSWER_LIMIT_S) -> None:
        """Sends a command that changes something. Raises: MeterFault: refused, or no answer in `limit_s`; MeterGone."""
        ack = self.ask(command, messages.Ack, limit_s, wanted=lambda ack: ack.command == command.TYPE)
        # A start or stop whose answer was lost is repeated, when it has been done already.
        is_repeated = ack.result == messages.Result.WRONG_STATE and not isinstance(command, messages.Configure)
        if ack.result != messages.Result.OK and not is_repeated:
            raise self._refused(command, ack)

    def close(self) -> None:
        """Releases the port; never raises."""
        self._port.close()

    def _refused(self, command: Command, ack: messages.Ack) -> MeterFault:
        reason = name_of(messages.Result, ack.result).replace("_", " ")
        if ack.result == messages.Result.BAD_VALUE:
            names = [known.name for known in fields(command)]
            name = names[ack.detail] if ack.detail < len(names) else f"field {ack.detail}"
            reason = f"cannot do {name} = {getattr(command, name, '?')}"
        elif ack.result == messages.Result.SENSOR_FAILED:
            fault = name_of(messages.Fault, ack.detail)
            reason = f"its sensor did not answer ({fault}): check the wiring of SDA, SCL, VCC and GND"
        return MeterFault(f"meter on {self.path}: {type(command).__name__.lower()} refused: {reason}")

    def _silent(self, limit_s: float) -> MeterFault:
        if self.counts.frames:
            return MeterFault(f"meter on {self.path}: no answer in {limit_s:g} s: reset it, or check its cable")
        if self._bytes:
            return MeterFault(
                f"meter on {self.path}: {self._bytes} bytes came in {limit_s:g} s, but no frame: this is not "
                f"the meter's port, or its rate is not {messages.BAUD} baud"
            )
        return MeterFault(
            f"meter on {self.path}: nothing answered in {limit_s:g} s: is it this port, and is the firmware "
            "on the board ('pio run -e uno -t upload')?"
        )

    def _other_version(self, version: int) -> MeterFault:
        remedy = "put the firmware of this OpJoule on the meter ('pio run -e uno -t upload')"
        if version > messages.VERSION:
            remedy = "update OpJoule on this host"
        return MeterFault(
            f"meter on {self.path}: speaks protocol version {version}, this host version {messages.VERSION}: {remedy}"
        )


def name_of(kind: type[IntEnum], code: int) -> str:
    """Name of a code in lower case; the number if the code is unknown."""
    return kind(code).name.lower() if code in kind._value2member_map_ else str(code)


IDENTIFY_LIMIT_S = 15.0
"""An Uno resets when its port opens and waits up to 2 s in its boot loader; the rest is for a busy computer."""
LATE_LIMIT_S = 300.0
"""Limit for the answer to stop. A simulated meter that lags behind on a slow computer answers once it has caught up."""
REPLY_LIMIT_S = 0.05
"""Time after a clock request in which bytes are read as they come, so that the reply's arrival is exact."""
NS_PER_S = 1_000_000_000


class _Sensor(NamedTuple):
    chip: Chip
    settings: SensorSettings
    times: ConversionTimes
    shunt: Shunt


@dataclass
class SerialMeter(Meter):
    """A meter on a serial port; see Meter for the contract.

    Samples one or more of its sensors. The first of `sensors` is in the board's supply and has number 0 in the events,
    the next one has number 1, and so on.
    """

    path: str
    settings: SensorSettings | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings that replace the defaults of controller and chip."""
    sensors: tuple[int, ...] = (0,)
    shunts: tuple[Shunt, ...] = (Shunt(),)
    """Shunts of the sensors in their order; the last one also counts for all further sensors."""
    genuine: bool = False
    """True if the chips are known to be the maker's own, not copies."""
    clock: HostClock = MONOTONIC

    def __post_init__(self) -> None:
        self._link: SerialLink | None = None
        self._identity: messages.Identity | None = None
        self._assembler: Assembler | None = None
        self._events: list[MeterEvent] = []
        self._reset: messages.Identity | None = None
        self._input_ended = False
        self._tokens = itertools.count(1)
        self._sharp_until_s = 0.0

    def open(self) -> MeterIdentity:
        """Opens the port and identifies the meter.

        Raises: MeterFault: port absent, busy or without permission; no answer; another protocol version.
        """
        self._link = SerialLink(self.path, self._take, self.clock)
        try:
            # First a delimiter, for a meter in mid-frame. Stop silences a meter left sampling by an earlier host.
            self._link.send(messages.Stop(), after=b"\0")
            self._identity = self._link.ask(messages.Identify(), messages.Identity, IDENTIFY_LIMIT_S)
            return self._describe(self._identity)
        except BaseException:
            self.close()
            raise

    def configure(self) -> None:
        """Sends the requested settings, or the best ones for the meter's firmware if none were requested.

        Raises: MeterFault: the meter refuses them. BadInput: the chip has no such setting.
        """
        link, identity = self._opened()
        for place in self.sensors:
            self._sensor(identity, place)
        for place in range(len(identity.items)):
            if place not in self.sensors and identity.items["chip"][place] == messages.ChipKind.NONE:
                continue
            link.command(self._configuration(identity, place))

    def start(self) -> None:
        """Starts sampling."""
        link, identity = self._opened()
        status = link.ask(messages.RequestStatus(), messages.Status)
        ns_per_tick = NS_PER_S // identity.tick_hz
        conversions = {}
        for number, place in enumerate(self.sensors):
            sensor = self._sensor(identity, place)
            scale = sensor.chip.scale(sensor.shunt.ohm, sensor.settings.shunt_range)
            ends = code_ends(identity.controller, sensor.chip, sensor.settings)
            conversions[place] = ConversionAssembler(number, sensor.times, scale, ns_per_tick, ends)
        self._events.clear()
        self._assembler = Assembler(ns_per_tick, conversions, status_ticks(status))
        self._reset = None  # answers to a repeated identify came before the answer to the status
        link.command(messages.Start())

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events since the last call.

        Raises: MeterGone; InputEnded; MeterFault: the meter was reset in mid-run, or now has another protocol version.
        """
        link, _ = self._opened()
        if not self._events and self._reset is None and not self._input_ended:
            link.pump(timeout_s, gather=self.clock.now_s() >= self._sharp_until_s)
        if self._reset is not None and not self._events:
            bits = self._reset.reset_cause
            raise MeterFault(f"meter on {self.path}: was reset in mid-run ({_causes(bits)}): {_reset_advice(bits)}")
        if self._input_ended and not self._events:
            raise InputEnded(f"meter on {self.path}: the simulator's input has ended")
        return self._handed_out()

    def clock_exchange(self) -> None:
        """Begins a round trip, unless the meter was reset or the line has closed. read() reports these, after the
        earlier events."""
        link, _ = self._opened()
        if self._reset is not None or self._input_ended:
            return
        token = next(self._tokens) & 0xFFFFFFFF
        self._sharp_until_s = self.clock.now_s() + REPLY_LIMIT_S
        if self._assembler is not None:
            self._assembler.requested(token, self.clock.now_ns())
        with contextlib.suppress(MeterGone):
            link.send(messages.Clock(token))

    def stop(self) -> list[MeterEvent]:
        """Stops sampling and waits for the final sums, which show frames lost at the end."""
        link, _ = self._opened()
        link.command(messages.Stop(), LATE_LIMIT_S if is_pseudo_terminal(self.path) else ANSWER_LIMIT_S)
        link.ask(
            messages.RequestStatus(),
            messages.Status,
            wanted=lambda status: status.acquisition == messages.Acquisition.IDLE,
        )
        return self._handed_out()

    def close(self) -> None:
        """Releases the port."""
        if self._link is not None:
            self._link.close()

    def error_bounds(self) -> ErrorBounds:
        """Error bounds of the first sensor with the present settings, from the data sheet."""
        return self._bounds(self.sensors[0])

    def further_error_bounds(self) -> dict[int, ErrorBounds]:
        """Number (from 1) of each further sensor -> its error bounds, from the data sheet."""
        return {number: self._bounds(place) for number, place in enumerate(self.sensors) if number}

    @property
    def losses(self) -> Losses:
        """Losses since start, and on the line since open."""
        link = asdict(self._link.counts) if self._link is not None else {}
        return Losses(link=link) if self._assembler is None else self._assembler.losses(link)

    def _take(self, message: messages.Message, received_host_ns: int) -> None:
        if isinstance(message, messages.Identity):
            self._reset = message  # not requested while running
        self._input_ended |= isinstance(message, messages.EndOfInput)
        if self._assembler is not None and self._reset is None:  # a restarted meter has another clock
            events = self._assembler.take(message, received_host_ns)
            self._events += events
            if any(isinstance(event, Exchange) for event in events):
                self._sharp_until_s = 0.0

    def _handed_out(self) -> list[MeterEvent]:
        events, self._events = self._events, []
        return events

    def _opened(self) -> tuple[SerialLink, messages.Identity]:
        if self._link is None or self._identity is None:
            raise MeterFault(f"meter on {self.path}: not open")
        return self._link, self._identity

    def _configuration(self, identity: messages.Identity, place: int) -> messages.Configure:
        """Configuration of the meter's sensor number `place`; switched off if it is not recorded."""
        settings = SensorSettings(mode=messages.Mode.OFF, shunt_range=0, samples_per_frame=1)
        if place in self.sensors:
            settings = self._sensor(identity, place).settings
        samples = min(settings.samples_per_frame, identity.max_samples_per_frame)
        adcs = settings.shunt_adc, settings.bus_adc
        framed = settings.shunt_range, samples, settings.bus_every
        return messages.Configure(place, settings.mode, *adcs, *framed)

    def _sensor(self, identity: messages.Identity, place: int) -> _Sensor:
        """A recorded sensor with its settings. Raises: MeterFault: absent, or unknown. BadInput: no such setting."""
        chip = self._chip(identity, place)
        settings = self.settings or default_settings(identity.controller, chip, len(self.sensors))
        changes = dict(self.changes)
        if "range_mv" in changes:
            changes["shunt_range"] = chip.range_code(changes.pop("range_mv"))
        if "adc_code" in changes:
            changes |= chip.adc_codes(changes.pop("adc_code"))
        settings = replace(settings, **changes)
        shunt = chip.own_shunt or self.shunts[min(self.sensors.index(place), len(self.shunts) - 1)]
        return _Sensor(chip, settings, read_times(identity.controller, chip, settings), shunt)

    def _bounds(self, place: int) -> ErrorBounds:
        sensor = self._sensor(self._opened()[1], place)
        settings = sensor.settings
        return sensor.chip.error_bounds(
            *(settings.shunt_range, sensor.times.seen_fraction, sensor.shunt),
            genuine=self.genuine,
            shunt_adc=settings.shunt_adc,
            bus_adc=settings.bus_adc,
        )

    def _chip(self, identity: messages.Identity, place: int) -> Chip:
        if place >= len(identity.items):
            count = f"{len(identity.items)} sensors found"
            raise MeterFault(f"meter on {self.path}: no sensor {place} ({count}): check the wiring")
        code = int(identity.items["chip"][place])
        if code not in messages.ChipKind._value2member_map_:
            raise MeterFault(f"meter on {self.path}: sensor chip {code} is unknown here: update OpJoule")
        return chip_of(messages.ChipKind(code))

    def _describe(self, identity: messages.Identity) -> MeterIdentity:
        if identity.tick_hz == 0 or NS_PER_S % identity.tick_hz:
            raise MeterFault(f"meter on {self.path}: ticks of {identity.tick_hz} Hz are not whole nanoseconds")
        number = bytes(identity.device_id)
        sensors = zip(identity.items["chip"], identity.items["address"], strict=True)
        return MeterIdentity(
            kind="serial",
            place=self.path,
            protocol_version=identity.protocol_version,
            firmware_version=".".join(str(part) for part in identity.firmware_version),
            board=name_of(messages.ControllerKind, identity.controller),
            serial_number=number.hex() if any(number) else "",
            reset_cause=_causes(identity.reset_cause),
            tick_hz=identity.tick_hz,
            sensors=tuple(SensorIdentity(name_of(messages.ChipKind, int(c)), int(a)) for c, a in sensors),
            voltage_at=LOAD_SIDE,
            simulated=is_pseudo_terminal(self.path),
            notes=self._notes(identity),
        )

    def _notes(self, identity: messages.Identity) -> tuple[str, ...]:
        """Notes on its sensors' chips, for the user."""
        recorded = [place for place in self.sensors if place < len(identity.items)]
        codes = set(identity.items["chip"][recorded].tolist()) - {messages.ChipKind.NONE}
        notes = (chip_of(kind).note for kind in messages.ChipKind if kind in codes)
        return tuple(dict.fromkeys(note for note in notes if note))


def _causes(bits: int) -> str:
    names = [cause.name for cause in messages.ResetCause if bits & cause and cause.name]
    named = [name.lower().replace("_", "-") for name in names]
    return ", ".join(named) or "unknown cause"


def _reset_advice(bits: int) -> str:
    if bits & messages.ResetCause.WATCHDOG:
        return "its firmware hung: check SDA, SCL, D2 and D8 for loose wires, and flash the firmware anew"
    if bits & messages.ResetCause.EXTERNAL:
        return "another program may have opened its port; or its reset pin or cable is loose"
    return "check its supply and cable"


def _serial(address: Address, wishes: Wishes) -> SerialMeter:
    options: SerialOptions = address.options
    return SerialMeter(
        address.needed_place(),
        settings=wishes.settings,
        sensors=options.sensors,
        shunts=shunts(options, wishes.stated_in),
        genuine=options.genuine,
        changes=options.settings,
        clock=wishes.clock,
    )


KIND: Final = MeterKind(
    name="serial",
    written="serial:PORT, for example serial:/dev/ttyACM0 or serial:/dev/ttyACM0,shunt=0.02,shunt_tolerance=0.5%",
    make=_serial,
    samples="see the firmware",
    sync_input="yes, 0.5 µs",
    runs_on="a microcontroller",
    # 46.5 mA at 5 V for an Arduino Uno R3 without load (gadgetmakersblog.com, "Arduino power consumption").
    draw="about 0.25 W for an Arduino Uno, unknown for other boards",
    on_serial_port=True,
    shunt_of=ShuntOf.USER,
    options=SerialOptions,
    imports={"ina219": ina219_breakout},
)
