"""Operations made by the real YCSB: its core runs on this computer and prints what it would ask of a database.

Its BasicDB prints each operation in text (docs/reference/loader.md, Traces); the loader on the board replays the lines
as they come. YCSB passes over properties it does not know, so what it would pass over is refused here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opjoule.errors import BadInput, RigFault

VERSION = "0.17.0"
"""Version of site.ycsb:core, as host/requirements/ycsb/pom.xml pins it."""
MIX_BLOCK: Final = "mixblock.length_s"
"""The loader's property: its run's mix changes at random every so many seconds."""
NOT_YCSBS = frozenset(
    {
        *("removeproportion", "truezipfian.theta", "valuecharacters", "valuecompressratio"),
        "valuetext",
        MIX_BLOCK,
    }
)
"""Properties of a workload that the loader's own generator knows and YCSB does not."""
_OPERATION = re.compile(r"(READ|UPDATE|INSERT|SCAN) ")
_PROBLEM = re.compile(r"(?:Exception|Error): (.*)")
_TRIAL_S = 120


@dataclass(frozen=True)
class YcsbCore:
    """YCSB's jars in one folder."""

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

    def check(self, workload: Path, properties: Mapping[str, str], threads: int) -> None:
        """Has YCSB make one operation of the workload, to see that it can.

        Raises:
            BadInput: more than one thread, or a workload that YCSB does not know.
            RigFault: Java or YCSB is not there.
        """
        check_settings({**file_properties(workload), **properties}, threads)
        if not shutil.which("java"):
            raise RigFault(
                "java is missing, and --generator ycsb has the real YCSB make the operations on this computer: "
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
            why = (
                problems[0] if problems else f"it made no operation and ended with status {ended.returncode}"
            )
            raise BadInput(f"YCSB {VERSION} does not take this workload: {why}")


def check_settings(properties: Mapping[str, str], threads: int) -> None:
    """Refuses what the real YCSB would silently leave out.

    Raises: BadInput: the first such thing.
    """
    if max(threads, _count(properties.get("threadcount", "1"))) > 1:
        raise BadInput(
            "--generator ycsb makes one stream of operations, which several threads would do in another order: "
            "use --threads 1, or leave --generator out"
        )
    for key in sorted(NOT_YCSBS & properties.keys()):
        raise BadInput(f"property {key}: the real YCSB does not know it; leave it or --generator ycsb out")
    if properties.get("requestdistribution") == "truezipfian":
        raise BadInput(
            "requestdistribution=truezipfian: the real YCSB does not have it; leave it or --generator ycsb out"
        )


def expected_operations(phase: str, properties: Mapping[str, str]) -> int:
    """The fewest operations that YCSB makes of a phase; 0 where time or part of the records ends it."""
    if _count(properties.get("maxexecutiontime", "0")) > 0:
        return 0
    if phase == "run":
        return _count(properties.get("operationcount", "0"))
    return _count(properties.get("insertcount", properties.get("recordcount", "0")))


def file_properties(workload: Path) -> dict[str, str]:
    """The properties of a workload file; the loader is the one that checks the file."""
    lines = (line.strip() for line in workload.read_text(errors="replace").splitlines())
    parts = (re.split(r"\s*[=:]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {part[0]: part[1] for part in parts if len(part) == 2}


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 0
