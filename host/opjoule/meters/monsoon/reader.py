"""Reads a Monsoon in a process of its own, so that nothing else on the host can make the device's queue overflow.

The device queues 16 samples (3.2 ms). The process only reads, stamps and passes packets on. A separate thread sends
them, so that a busy receiver does not stop the reading.
"""

import contextlib
import gc
import io
import multiprocessing
import os
import queue
import signal
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from opjoule.base.errors import MeterFault
from opjoule.meters import usb_link
from opjoule.meters.interface import MeterGone
from opjoule.meters.monsoon.assembler import PACKET_BYTES, whole_packets
from opjoule.meters.usb_link import LIBUSB

BATCH_NS: Final = 100_000_000
START_LIMIT_S: Final = 60.0
"""Longest time to the first answer: a new process loads its libraries, slowly on a busy host."""
REPLY_LIMIT_S: Final = 10.0
_LINGER_S: Final = 60.0
"""Longest time that the process waits for a busy host to take its last messages."""
_NO_DEVICE: Final = 19
_FORBIDDEN: Final = 13

PERMISSION: Final = usb_link.PERMISSION.format("monsoon")
LIBRARY: Final = "the Monsoon library is not installed: .venv/bin/pip install -r host/requirements/monsoon.in"


MonsoonProtocol = Any
"""Connection to one device: Monsoon.pmapi.USB_protocol. Used: Connect, getValue, sendCommand, startSampling,
stopSampling, BulkRead and closeDevice."""


MakeProtocol = Callable[[], MonsoonProtocol]
"""Opens the connection; called inside the reader process, to which it is pickled."""


@dataclass(frozen=True)
class Batch:
    """Packets as received."""

    data: bytes
    arrival_ns: bytes
    """int64, one value a packet [host_ns]"""


class Reader:
    """The host's side of the reader process. Use it from one thread at a time."""

    def __init__(self, make_protocol: MakeProtocol) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = theirs, make_protocol
        self._process = context.Process(target=_serve, args=arguments, name="monsoon-reader", daemon=True)
        self._process.start()
        theirs.close()
        self._batches: list[Batch] = []
        self._has_answered = False

    def ask(self, what: str, *arguments: Any) -> Any:
        """Sends a request to the connection and returns its answer; batches that come meanwhile are kept.

        Raises: MeterFault: the library or the device reported a fault. MeterGone: the process or the device is gone.
        """
        self._send((what, *arguments))
        limit_s = REPLY_LIMIT_S if self._has_answered else START_LIMIT_S
        deadline_s = time.monotonic() + limit_s
        while time.monotonic() < deadline_s:
            kind, content = self._receive(deadline_s - time.monotonic())
            if kind in {"answer", "fault"}:
                self._has_answered = True
                if kind == "fault":
                    raise MeterFault(f"monsoon: {content}")
                return content
        raise MeterFault(f"monsoon: no answer to '{what}' for {limit_s:g} s: switch it off and on again")

    def batches(self, timeout_s: float) -> list[Batch]:
        """Batches read since the last call. Raises: MeterGone."""
        if not self._batches:
            self._receive(timeout_s)
        while self._pipe.poll():
            self._receive(0)
        batches, self._batches = self._batches, []
        return batches

    def close(self) -> None:
        """Ends the process, which releases the device."""
        with contextlib.suppress(OSError, MeterGone):
            self._send(("close",))
        self._process.join(REPLY_LIMIT_S / 5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()

    def _send(self, message: tuple[Any, ...]) -> None:
        try:
            self._pipe.send(message)
        except OSError:
            raise MeterGone("monsoon: its reader process has ended") from None

    def _receive(self, timeout_s: float) -> tuple[str, Any]:
        """The next message, if one comes in time. A batch is kept."""
        try:
            if not self._pipe.poll(max(timeout_s, 0)):
                return "nothing", None
            kind, content = self._pipe.recv()
        except (OSError, EOFError):
            raise MeterGone("monsoon: its reader process has ended") from None
        if kind == "gone":
            raise MeterGone(f"monsoon: {content}")
        if kind == "batch":
            self._batches.append(content)
        return str(kind), content


def _serve(pipe: Connection, make_protocol: MakeProtocol) -> None:
    """Runs in the process: answers requests until it is asked to close or the host is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host, which ends this process in order
    with contextlib.suppress(OSError):
        os.nice(-15)  # if allowed
    gc.disable()
    outbox: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
    sender = threading.Thread(target=_send_all, args=(pipe, outbox), daemon=True)
    sender.start()
    try:
        _Server(pipe, make_protocol, outbox).run()
    finally:
        outbox.put(None)
        sender.join(_LINGER_S)


def _send_all(pipe: Connection, outbox: "queue.SimpleQueue[tuple[str, Any] | None]") -> None:
    with contextlib.suppress(OSError):
        while (message := outbox.get()) is not None:
            pipe.send(message)


class _Server:
    """State inside the reader process."""

    def __init__(
        self,
        pipe: Connection,
        make_protocol: MakeProtocol,
        outbox: "queue.SimpleQueue[tuple[str, Any] | None]",
    ) -> None:
        self._pipe, self._make_protocol, self._outbox = pipe, make_protocol, outbox
        self._protocol: MonsoonProtocol | None = None
        self._sampling = False

    def run(self) -> None:
        try:
            while True:
                if self._sampling and not self._pipe.poll():
                    if not self._read():
                        return
                    continue
                what, *arguments = self._pipe.recv()
                if what == "close":
                    return
                self._answer(what, arguments)
        except (OSError, EOFError):
            return  # the host is gone
        finally:
            self._release()

    def _answer(self, what: str, arguments: list[Any]) -> None:
        said = io.StringIO()  # the library prints errors instead of raising them
        try:
            with contextlib.redirect_stdout(said):
                answer = self._do(what, arguments)
            self._outbox.put(("answer", answer))
        except Exception as error:
            self._outbox.put(("fault", _in_words(error, said.getvalue())))

    def _do(self, what: str, arguments: list[Any]) -> Any:
        if what == "connect":
            self._protocol = self._make_protocol()
            return self._protocol.Connect(*arguments)
        assert self._protocol is not None
        if what == "get":
            return int(self._protocol.getValue(*arguments))
        if what == "set":
            return self._protocol.sendCommand(*arguments)
        if what == "start":
            self._protocol.startSampling(*arguments)
            self._sampling = True
            return None
        self._sampling = False
        return self._protocol.stopSampling()

    def _read(self) -> bool:
        """Reads for 0.1 s and passes the packets on; False once the device is gone."""
        assert self._protocol is not None
        chunks: list[bytes] = []
        arrivals = array("q")
        began_ns = time.monotonic_ns()
        gone = ""
        while True:
            try:
                data = whole_packets(bytes(self._protocol.BulkRead()))
            except Exception as error:
                data = b""
                if getattr(error, "errno", None) == _NO_DEVICE:
                    gone = "it was unplugged or switched off"
            now_ns = time.monotonic_ns()
            if data:
                chunks.append(data)
                arrivals.extend([now_ns] * (len(data) // PACKET_BYTES))
            if gone or not data or now_ns - began_ns >= BATCH_NS:
                break
        if chunks:
            self._outbox.put(("batch", Batch(b"".join(chunks), arrivals.tobytes())))
        if gone:
            self._outbox.put(("gone", gone))
        return not gone

    def _release(self) -> None:
        if self._protocol is not None:
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                self._protocol.closeDevice()


def _in_words(error: Exception, said: str) -> str:
    """An error in words, with a remedy if the library gives none."""
    if getattr(error, "errno", None) == _FORBIDDEN:
        return PERMISSION
    if isinstance(error, AttributeError | TypeError) and "NoneType" in str(error):
        return f"no answer ({said.strip() or error}): is it plugged in and switched on?"
    return " ".join([*said.split(), str(error) or type(error).__name__])


VENDOR: Final = 0x2AB9
PRODUCT: Final = 0x0001


def usb_protocol(serial_number: str | None = None) -> MonsoonProtocol:
    """A connection over USB by PyPI's Monsoon library, which is loaded only here, in the reader process.

    The library opens the first device that fits. The wrong one would switch its voltage onto another board, so
    `serial_number` has to say which if there are several.
    Raises: MeterFault: the library is missing, no Monsoon is plugged in, several fit, or this user may not open one.
    """
    try:
        import usb.core  # noqa: PLC0415
        from Monsoon import pmapi  # noqa: PLC0415
    except ImportError:
        raise MeterFault(LIBRARY) from None
    try:
        devices = list(usb.core.find(find_all=True, idVendor=VENDOR, idProduct=PRODUCT))
    except usb.core.NoBackendError:
        raise MeterFault(LIBUSB) from None
    if not devices:
        raise MeterFault("none is plugged in (USB 2ab9:0001): check its cable and its switch")
    try:
        # Checks the permission, too: the library treats a refusal like an absent device.
        numbers = [str(device.serial_number or "") for device in devices]
    except (usb.core.USBError, ValueError):
        raise MeterFault(PERMISSION) from None
    fitting = [number for number in numbers if serial_number in {None, number}]
    if len(fitting) > 1:
        raise MeterFault(usb_link.several("monsoon", fitting))
    return pmapi.USB_protocol()
