"""Commands out, messages in, over a serial port: retries, matching of answers, protocol version."""

import itertools
from collections.abc import Callable
from dataclasses import fields
from enum import IntEnum
from typing import TypeVar

from opjoule.base.errors import MeterFault
from opjoule.clocks.host_clock import HostClock
from opjoule.meters import messages
from opjoule.meters.serial.assembler import parse
from opjoule.meters.serial.port import SerialPort
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
