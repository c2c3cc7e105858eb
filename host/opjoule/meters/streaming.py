"""Meters that send by themselves and cannot be asked for their time; only the arrival of samples is known."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from opjoule.base.errors import MeterFault
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.power_trace import Gap, Int64Array
from opjoule.meters.interface import GapEvent, Losses, Meter, MeterEvent, MeterIdentity, Samples

EXCHANGE_PERIOD_NS: Final = 200_000_000
WATCH_NS: Final = 1_000_000_000
HOLE_PERIODS: Final = 1.01
"""Distance of two samples, in periods, above which samples are missing between them; the rest is rounding of times."""


class ArrivalExchanges:
    """One exchange every 0.2 s, from the data with the shortest delay after their last sample.

    That sample ended before its data arrived, by at most the longest time of gathering and transfer. This is equivalent
    to a request that was sent that much earlier and answered on arrival.
    """

    def __init__(self, delivery_ns: int) -> None:
        """`delivery_ns`: longest time from a sample's end to its arrival if nothing has to wait."""
        self._delivery_ns = delivery_ns
        self._soonest: tuple[int, int, int] | None = None
        """(delay, end of the last sample, arrival) of the data with the shortest delay since the last exchange"""
        self._due_ns = 0

    def exchanges(self, end_ns: int, arrival_ns: int) -> list[MeterEvent]:
        """Takes data whose last sample ended at `end_ns` on the meter's clock; returns an exchange if one is due."""
        delay_ns = arrival_ns - end_ns
        if self._soonest is None or delay_ns < self._soonest[0]:
            self._soonest = delay_ns, end_ns, arrival_ns
        if arrival_ns < self._due_ns:
            return []
        self._due_ns = arrival_ns + EXCHANGE_PERIOD_NS
        _, ended_ns, arrived_ns = self._soonest
        self._soonest = None
        return [Exchange(arrived_ns - self._delivery_ns, ended_ns, ended_ns, arrived_ns)]


class DelayWatch:
    """Detects lost time from the arrival times if a device's own counts do not show it.

    Data arrives late whenever the host is busy, but never early. If the minimum delay over a second grows, samples are
    missing that no counter has reported.
    """

    def __init__(self, limit_ns: int) -> None:
        """`limit_ns`: largest growth of the minimum delay that buffers alone could cause."""
        self._limit_ns = limit_ns
        self._window: tuple[int, int] | None = None
        """(start on the device's clock, minimum delay so far) of the current window"""
        self._usual_ns: int | None = None

    def missing_ns(self, end_ns: Int64Array, arrival_ns: Int64Array) -> int:
        """Unexplained time before the end of these data [ns], usually 0; the caller adds it to the device's clock.

        `end_ns`: end of each piece of data by the device's counts, shape (n,); `arrival_ns`: its arrival [host_ns].
        """
        least_ns = int((arrival_ns - end_ns).min())
        if self._window is None:
            self._window = int(end_ns[0]), least_ns
            return 0
        start_ns, so_far_ns = self._window
        least_ns = min(so_far_ns, least_ns)
        self._window = start_ns, least_ns
        if int(end_ns[-1]) - start_ns < WATCH_NS:
            return 0
        self._window = None
        missing_ns = 0 if self._usual_ns is None else least_ns - self._usual_ns
        if missing_ns <= self._limit_ns:
            self._usual_ns = least_ns
            return 0
        return missing_ns


class StreamAssembler:
    """Turns the data since start into events; holds the state between start and stop."""

    def __init__(
        self, delivery_ns: int, late_ns: int, gap_reason: str = "samples lost", hole_periods: float = HOLE_PERIODS
    ) -> None:
        """`delivery_ns` as for ArrivalExchanges, `late_ns` as for DelayWatch.

        `hole_periods`: distance of two samples, in periods, above which samples are missing between them.
        """
        self._arrivals, self._delays = ArrivalExchanges(delivery_ns), DelayWatch(late_ns)
        self._gap_reason, self._hole_periods = gap_reason, hole_periods
        self._last_ns: int | None = None
        self._lost = 0
        """samples of the trace, or of the device if its losses() say so"""

    def losses(self) -> Losses:
        """Losses since start."""
        return Losses(lost_samples=self._lost)

    def _following(self, samples: Samples, period_ns: int) -> tuple[list[MeterEvent], int]:
        """(events, missing): the samples, preceded by a gap if some are missing before them, and the number missing."""
        first_ns, before_ns = int(samples.meter_ns[0]), self._last_ns
        self._last_ns = int(samples.meter_ns[-1])
        if before_ns is None or first_ns - before_ns < self._hole_periods * period_ns:
            return [samples], 0
        start_ns, end_ns = before_ns + period_ns // 2, first_ns - period_ns // 2
        missing = max(round((end_ns - start_ns) / period_ns), 1)
        return [GapEvent(0, Gap(start_ns, end_ns, missing, None, self._gap_reason)), samples], missing


Device = TypeVar("Device")
Assembler = TypeVar("Assembler", bound=StreamAssembler)


class StreamingMeter(Meter, Generic[Device, Assembler]):
    """A meter that sends without requests; `read` returns the exchanges too. See Meter for the contract."""

    def __init__(self, name: str, bounds: Callable[[], ErrorBounds]) -> None:
        """`name`: name of the kind, for messages."""
        self._name, self._bounds = name, bounds
        self._device: Device | None = None
        self._assembler: Assembler | None = None

    def open(self) -> MeterIdentity:
        """Connects. Raises: MeterFault: absent, no permission, held by another program, silent, or another device."""
        try:
            return self._connect()
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _connect(self) -> MeterIdentity:
        """Connects and sets `_device`."""

    def close(self) -> None:
        """Releases the device; whatever it supplies stays on."""
        device, self._device = self._device, None
        if device is not None:
            self._release(device)

    def _release(self, device: Any) -> None:
        device.close()

    def error_bounds(self) -> ErrorBounds:
        """Error bounds of the measured current and voltage."""
        return self._bounds()

    @property
    def losses(self) -> Losses:
        """Losses since start."""
        return Losses() if self._assembler is None else self._assembler.losses()

    def _opened(self) -> Device:
        if self._device is None:
            raise MeterFault(f"{self._name}: not open")
        return self._device

    def _started(self) -> Assembler:
        if self._assembler is None:
            raise MeterFault(f"{self._name}: not started")
        return self._assembler
