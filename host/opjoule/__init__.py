"""OpJoule's host software: joules per database operation on single-board computers.

`opjoule.open_run(path)` opens a run record, `opjoule.open_runs(folder)` all of a folder
(docs/how-to/analyse-in-python.md).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opjoule.results.run import OpenedRun, RunPhase, StretchEnergy, open_run
    from opjoule.results.runs import OpenedRuns, open_runs

__version__ = "0.1.0"
__all__ = ["OpenedRun", "OpenedRuns", "RunPhase", "StretchEnergy", "open_run", "open_runs"]


def __getattr__(name: str) -> Any:
    """Loads the names above when they are first used, because code that runs before set-up has no numpy."""
    if name not in __all__:
        raise AttributeError(f"module 'opjoule' has no attribute '{name}'")
    if name in ("OpenedRuns", "open_runs"):
        from opjoule.results import runs as opened_runs  # noqa: PLC0415

        return getattr(opened_runs, name)
    from opjoule.results import run as opened_run  # noqa: PLC0415

    return getattr(opened_run, name)
