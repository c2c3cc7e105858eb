"""What a measurement asks of its meter's capture while it goes on."""

from __future__ import annotations

from typing import Protocol

from opjoule.trace.power_history import PowerHistory


class Watched(Protocol):
    """What the execution asks of the meter's capture."""

    @property
    def ended(self) -> str | None:
        """Why the capture has ended by itself, or None while it goes on."""
        ...

    @property
    def error(self) -> BaseException | None:
        """What kept the capture from writing, or None."""
        ...

    @property
    def period_ns(self) -> int:
        """Mean distance of the samples so far [ns]; 0 before the second."""
        ...

    @property
    def history(self) -> PowerHistory:
        """Power of the board's supply so far."""
        ...
