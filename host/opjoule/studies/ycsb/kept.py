"""Which loaded database a workload begins with: everything that its load depends on, as one name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from opjoule.errors import BadInput

LOAD, COPY = "load", "copy"
"""How the database of each repeat comes to be: loaded, or copied from one that was loaded once."""
_OF_THE_RUN_ALONE: Final = frozenset(
    {
        *("operationcount", "maxexecutiontime", "requestdistribution", "readallfields", "writeallfields"),
        *(f"{kind}proportion" for kind in ("read", "update", "insert", "scan", "readmodifywrite", "remove")),
        *("maxscanlength", "minscanlength", "scanlengthdistribution", "mixblock.length_s"),
        *("hotspotdatafraction", "hotspotopnfraction", "exponential.percentile", "exponential.frac"),
        "truezipfian.theta",
    }
)
"""Properties that do not affect a load. All others do."""


def check_copyable(database: str, properties: Mapping[str, str], *, server: bool) -> None:
    """Raises: BadInput: a database that cannot be copied while nobody has it open, or whose load cannot be told."""
    if server:
        raise BadInput(
            f"--reset copy with {database}: a server has its files open all the time, and a copy of open "
            "files is not a valid database; use --reset load"
        )
    if "fieldlengthhistogram" in properties:
        raise BadInput(
            "--reset copy: nobody can tell whether the file of fieldlengthhistogram is still the one of the load; "
            "use --reset load"
        )


def kept_name(
    database: str,
    loader_sha256: str,
    properties: Mapping[str, str],
    *,
    threads: int,
    seed: int,
    generator: str,
) -> str:
    """The name of the kept database that these make: the engine's, and a hash of all of them.

    Args:
        loader_sha256: of the loader on the board, which has the engine in it.
        properties: the effective ones.
        generator: what makes the operations of the load, with its version.
    """
    load: dict[str, Any] = {key: value for key, value in properties.items() if key not in _OF_THE_RUN_ALONE}
    made = [database, loader_sha256, load, threads, seed, generator]
    return f"{database}-{hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:16]}"
