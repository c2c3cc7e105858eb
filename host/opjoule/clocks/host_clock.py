"""Clock of host_ns, and waiting on it; injected wherever the host measures time."""

import select
import time
from typing import Final, Protocol


class Readable(Protocol):
    """An open file, port or socket."""

    def fileno(self) -> int:
        """File descriptor to wait for."""


class HostClock(Protocol):
    """Monotonic time; to be used by one thread at a time."""

    def now_ns(self) -> int:
        """Current time [host_ns]."""

    def sleep(self, duration_s: float) -> None:
        """Waits for this time."""

    def wait_readable(self, source: Readable, timeout_s: float) -> bool:
        """Whether `source` becomes readable within `timeout_s`. Raises: OSError, ValueError: it is closed."""


class MonotonicClock:
    """CLOCK_MONOTONIC of this computer."""

    def now_ns(self) -> int:
        """Current time [host_ns]."""
        return time.monotonic_ns()

    def sleep(self, duration_s: float) -> None:
        """Waits for this time."""
        time.sleep(duration_s)

    def wait_readable(self, source: Readable, timeout_s: float) -> bool:
        """Whether `source` becomes readable within `timeout_s`. Raises: OSError, ValueError: it is closed."""
        return bool(select.select([source], [], [], timeout_s)[0])


MONOTONIC: Final = MonotonicClock()


def now_s(clock: HostClock) -> float:
    """Current time [s], for limits and periods."""
    return clock.now_ns() * 1e-9
