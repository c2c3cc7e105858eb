"""Properties of a YCSB workload from its file and from the command line, and the space that its records need."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opjoule.errors import BadInput, RigFault, suggestion, unknown

VERSION = "0.17.0"
"""Version of site.ycsb:core, pinned in host/requirements/ycsb/pom.xml."""
MIX_BLOCK: Final = "mixblock.length_s"
"""The loader's property for the time [s] after which the mix of a run changes at random."""
NOT_YCSBS = frozenset(
    ("removeproportion", "truezipfian.theta", "valuecharacters", "valuecompressratio", "valuetext", MIX_BLOCK)
)
"""Properties of a workload that the loader's own generator supports but YCSB does not."""
_OPERATION = re.compile(r"(READ|UPDATE|INSERT|SCAN) ")
_PROBLEM = re.compile(r"(?:Exception|Error): (.*)")
_TRIAL_S = 120
_DEFAULTS = {"recordcount": "0", "fieldcount": "10", "fieldlength": "100"}
"""Defaults of YCSB's CoreWorkload."""
DEFAULT_RECORDS = 20_000
DEFAULT_OPERATIONS = 100_000
FASTEST_PER_S = 1_000_000
"""Operations per second that no engine exceeds; --seconds computes the operation count from it."""
DISTRIBUTIONS = ("zipfian", "latest", "uniform", "truezipfian", "hotspot", "exponential", "sequential")
EQUAL: Final = "equal"
"""Rate of all conditions of a campaign: half of what the slowest of them reaches."""
LOAD: Final = "load"
"""Each repeat loads its database."""
COPY: Final = "copy"
"""Each repeat copies a database that was loaded once."""
GO_ON: Final = "go-on"
"""Each repeat goes on with the database of the one before."""
OF_THE_RUN_ALONE: Final = frozenset(
    {
        *("operationcount", "maxexecutiontime", "requestdistribution", "readallfields", "writeallfields"),
        *(f"{kind}proportion" for kind in ("read", "update", "insert", "scan", "readmodifywrite", "remove")),
        *("maxscanlength", "minscanlength", "scanlengthdistribution", "mixblock.length_s"),
        *("hotspotdatafraction", "hotspotopnfraction", "exponential.percentile", "exponential.frac"),
        "truezipfian.theta",
    }
)
"""Properties that do not affect a load. All others do."""


@dataclass(frozen=True)
class YcsbCore:
    """The real YCSB from its jars in one folder, which prints its operations on this computer.

    YCSB's BasicDB prints each operation as text (docs/reference/loader.md, Traces); the loader on the board replays the
    lines as they arrive. YCSB ignores unknown properties; they are refused here.
    """

    jars: Path
    name = "ycsb"
    version = VERSION

    def command(self, phase: str, workload: Path, properties: Mapping[str, str]) -> list[str]:
        """The command that prints the operations of `phase`, load or run."""
        settings = {**properties, "workload": "site.ycsb.workloads.CoreWorkload", "basicdb.verbose": "true"}
        return [
            *("java", "-cp", str(self.jars / "*"), "site.ycsb.Client", "-load" if phase == "load" else "-t"),
            *("-db", "site.ycsb.BasicDB", "-P", str(workload)),
            *(part for key, value in settings.items() for part in ("-p", f"{key}={value}")),
        ]

    def check(self, workload: Path, properties: Mapping[str, str]) -> None:
        """Makes YCSB generate one operation of the workload, as a check; check_settings() has accepted its settings.

        Raises: BadInput: a workload that YCSB rejects. RigFault: Java or YCSB is missing.
        """
        if not shutil.which("java"):
            raise RigFault(
                "java is missing; --generator ycsb needs it to run the real YCSB on this computer: "
                "install default-jre-headless, or leave --generator out"
            )
        if not (self.jars / f"core-{VERSION}.jar").exists():
            raise RigFault(f"YCSB is not in {self.jars}: start host/measure.py, which fetches it")
        trial = self.command("run", workload, {**properties, "operationcount": "1"})
        try:
            ended = subprocess.run(
                trial, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_S, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            raise RigFault(f"YCSB has not made its first operation within {_TRIAL_S} s") from None
        if not any(_OPERATION.match(line) for line in ended.stdout.splitlines()):
            problems = _PROBLEM.findall(ended.stdout + ended.stderr)
            problems += [f"it made no operation and ended with status {ended.returncode}"]
            raise BadInput(f"YCSB {VERSION} rejects this workload: {problems[0]}")


def check_settings(properties: Mapping[str, str], threads: int) -> None:
    """Refuses settings that the real YCSB would silently ignore. Raises: BadInput: the first of them."""
    if max(threads, _count(properties.get("threadcount", "1"))) > 1:
        raise BadInput(
            "--generator ycsb makes one stream of operations, whose order several threads would change: "
            "use --threads 1, or leave --generator out"
        )
    refused = [f"property {key}" for key in sorted(NOT_YCSBS & properties.keys())]
    if properties.get("requestdistribution") == "truezipfian":
        refused.append("requestdistribution=truezipfian")
    if refused:
        raise BadInput(f"{refused[0]}: the real YCSB does not support it; leave it or --generator ycsb out")


def expected_operations(phase: str, properties: Mapping[str, str]) -> int:
    """Least number of operations that YCSB makes in a phase; 0 if a time limit or a part of the records ends it."""
    if _count(properties.get("maxexecutiontime", "0")) > 0:
        return 0
    if phase == "run":
        return _count(properties.get("operationcount", "0"))
    return _count(properties.get("insertcount", properties.get("recordcount", "0")))


def file_properties(workload: Path) -> dict[str, str]:
    """The properties of a workload file; only the loader checks the file."""
    lines = (line.strip() for line in workload.read_text(encoding="utf-8", errors="replace").splitlines())
    parts = (re.split(r"\s*[=:]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {part[0]: part[1] for part in parts if len(part) == 2}


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 0


def find_workload(name: str, folder: Path) -> Path:
    """The property file of a workload given by letter, by name under `folder`, or by path.

    Raises: BadInput: no such workload; names the most similar one.
    """
    inside = (folder / f"{stem}.properties" for stem in (f"workload{name}", name))
    for candidate in (*inside, folder / name, Path(name)):
        if candidate.is_file():
            return candidate.resolve()
    known = [
        str(path.relative_to(folder)).removesuffix(".properties")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    letters = [entry.removeprefix("workload") for entry in known if "/" not in entry]
    hint = suggestion(name, known + letters, 0.4)
    raise BadInput(
        f"unknown workload '{name}': {hint}give {', '.join(letters[:6])}, a name under {folder}, or a file"
    )


def parse_properties(settings: Sequence[str]) -> dict[str, str]:
    """The -p KEY=VALUE settings as a mapping; the loader checks them. Raises: BadInput: a setting without '='."""
    parsed: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"-p {setting!r} is not KEY=VALUE; for example -p readproportion=0.9")
        parsed[key.strip()] = value.strip()
    return parsed


def own_counts(workload: Path) -> dict[str, str]:
    """Properties of a workload file whose counts are to be used; empty for YCSB's core workloads (counts of 1,000)."""
    core = workload.stem.startswith("workload") and len(workload.stem) == len("workloada")
    return {} if core else file_properties(workload)


INSERT = "insert"


def kinds(properties: Mapping[str, str]) -> list[str]:
    """Kinds of operation in a workload, from its complete properties; the loader checks the proportions."""
    ending = "proportion"
    return [
        key.removesuffix(ending)
        for key, value in properties.items()
        if key.endswith(ending) and value.strip("0.")
    ]


def workload_properties(
    settings: Sequence[str],
    workload: Path,
    *,
    distribution: str | None,
    records: int | None,
    operations: int | None,
    value_size: int | None,
) -> dict[str, str]:
    """The properties that the command line adds to the workload file; -p takes precedence over named options.

    They always include record and operation counts. The counts of 1,000 in YCSB's core workloads are only examples; the
    counts of any other file are used.

    Raises: BadInput: an unknown distribution or a malformed -p.
    """
    if distribution is not None and distribution not in DISTRIBUTIONS:
        raise BadInput(unknown("distribution", distribution, DISTRIBUTIONS))
    counts = own_counts(workload)
    chosen: dict[str, str] = {
        "recordcount": str(records or counts.get("recordcount", DEFAULT_RECORDS)),
        "operationcount": str(operations or counts.get("operationcount", DEFAULT_OPERATIONS)),
    }
    if distribution:
        chosen["requestdistribution"] = distribution
    if value_size:
        chosen |= {"fieldcount": "1", "fieldlength": str(value_size)}
    return chosen | parse_properties(settings)


def values_bytes(properties: Mapping[str, str]) -> int | None:
    """Bytes of all values of a workload, from its effective properties; None if they do not follow from counts."""
    if properties.get("fieldlengthdistribution", "constant") != "constant":
        return None
    if "valuecompressratio" in properties or "valuetext" in properties:
        return None
    counts = [properties.get(key, default).strip() for key, default in _DEFAULTS.items()]
    if not all(count.isdecimal() for count in counts):
        return None
    records, fields, length = (int(count) for count in counts)
    return records * fields * length


def check_space(
    properties: Mapping[str, str], free_bytes: int | None, where: str, *, databases: int = 1
) -> None:
    """Checks that the medium has space for the values. Raises: BadInput: the values alone need more than is free.

    Args:
        free_bytes: free space on the medium [B]; None if the board does not report it.
        databases: number of databases that exist at the same time.
    """
    needed = values_bytes(properties)
    if free_bytes is None or needed is None or databases * needed <= free_bytes:
        return
    twice = f", {databases} times (one is kept, and copied with --reset copy)" if databases > 1 else ""
    raise BadInput(
        f"the values of {int(properties['recordcount']):,} records need {needed / 1e9:,.1f} GB{twice}, but "
        f"{free_bytes / 1e9:,.1f} GB are free on {where}: ask for fewer with --records, for smaller ones with "
        f"--value-size, {'use --reset load, ' if twice else ''}or free some space"
    )
