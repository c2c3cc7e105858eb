"""The clock of host_ns, and waiting by it; injected wherever the host measures time."""

import select
import time
from typing import Final, Protocol


class Readable(Protocol):
    """An open file, port or socket."""

    def fileno(self) -> int:
        """File descriptor to wait for."""


class HostClock(Protocol):
    """Time that only goes on; may be used by one thread at a time."""

    def now_ns(self) -> int:
        """This moment [host_ns]."""

    def sleep(self, duration_s: float) -> None:
        """Waits so long."""

    def wait_readable(self, source: Readable, timeout_s: float) -> bool:
        """True once something can be read, within `timeout_s`. Raises: OSError, ValueError: it is closed."""


class MonotonicClock:
    """CLOCK_MONOTONIC of this computer."""

    def now_ns(self) -> int:
        """This moment [host_ns]."""
        return time.monotonic_ns()

    def sleep(self, duration_s: float) -> None:
        """Waits so long."""
        time.sleep(duration_s)

    def wait_readable(self, source: Readable, timeout_s: float) -> bool:
        """True once something can be read, within `timeout_s`. Raises: OSError, ValueError: it is closed."""
        return bool(select.select([source], [], [], timeout_s)[0])


MONOTONIC: Final = MonotonicClock()


def now_s(clock: HostClock) -> float:
    """This moment [s], for limits and periods."""
    return clock.now_ns() * 1e-9
