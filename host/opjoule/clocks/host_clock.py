"""Clock of host_ns, and waiting on it; injected wherever the host measures time."""

import select
import time
from typing import Any, Final


class HostClock:
    """CLOCK_MONOTONIC of this computer; a simulated rig has a subclass. To be used by one thread at a time."""

    def now_ns(self) -> int:
        """Current time [host_ns]."""
        return time.monotonic_ns()

    def now_s(self) -> float:
        """Current time [s], for limits and periods."""
        return self.now_ns() * 1e-9

    def sleep(self, duration_s: float) -> None:
        """Waits for this time."""
        time.sleep(duration_s)

    def wait_readable(self, source: Any, timeout_s: float) -> bool:
        """Whether `source`, an open file, port or socket, becomes readable within `timeout_s`.

        Raises: OSError, ValueError: it is closed.
        """
        return bool(select.select([source], [], [], timeout_s)[0])


MONOTONIC: Final = HostClock()
