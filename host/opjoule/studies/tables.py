"""Which quantities a record has, by its study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opjoule.record.definition import Quantities
from opjoule.studies.command import quantities as command
from opjoule.studies.ycsb import quantities as ycsb

TABLES: Final[Mapping[str, Quantities]] = {"ycsb": ycsb.QUANTITIES, "command": command.QUANTITIES}


def quantities_of(run: Mapping[str, Any]) -> Quantities:
    """The table of a record.

    Args:
        run: its run.json. Records from before a plan was written down are YCSB's.
    """
    study = ((run.get("plan") or {}).get("study") or {}).get("name")
    return TABLES.get(str(study), ycsb.QUANTITIES)
