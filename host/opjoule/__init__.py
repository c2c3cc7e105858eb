"""OpJoule's host software: joules per database operation on single-board computers.

`opjoule.open_run(path)` opens a run record; docs/how-to/analyse-in-python.md shows how it is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opjoule.analysis.opened_run import OpenedRun, RunPhase, open_run
    from opjoule.analysis.stretch import StretchEnergy

__version__ = "0.1.0"
__all__ = ["OpenedRun", "RunPhase", "StretchEnergy", "open_run"]


def __getattr__(name: str) -> Any:
    """Loads the names above when they are first used: what runs before set-up has no numpy."""
    if name not in __all__:
        raise AttributeError(f"module 'opjoule' has no attribute '{name}'")
    from opjoule.analysis import opened_run  # noqa: PLC0415

    return getattr(opened_run, name)
