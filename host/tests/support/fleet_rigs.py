"""Starts processes of a fleet on loopback, forked from one that has loaded Dask.

A program that writes records stands for a board. `fleet_rigs.py` reads a JSON line for each process to start: {"kind":
"rig" or "campaign", "argv", "log", "pid", "status"}; the last three are names of files. A rig's cell takes until the
file `go` exists beside its spool, or for the number of seconds in `wait.txt`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2]))


def serve() -> None:
    """Starts the requested processes until its input ends, as when its starter is killed, and ends them then."""
    import opjoule.campaign.fleet  # noqa: F401  # loaded once for all

    started = []
    for line in sys.stdin:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        request = json.loads(line)
        if pid := os.fork():
            started.append(os.pidfd_open(pid))
        else:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for number in (1, 2):
                os.dup2(log, number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            Path(request["pid"]).write_text(str(os.getpid()))
            status = (rig if request["kind"] == "rig" else campaign)(request["argv"])
            sys.stdout.flush()
            Path(request["status"]).write_text(str(status))
            os._exit(status)
    for process in started:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)


def rig(argv: list[str]) -> int:
    """Runs a worker whose cells are measured by `measure` below. Returns: its exit status."""
    import opjoule
    from opjoule.cli.campaign.fleet import run_worker
    from opjoule.cli.campaign.options import WorkerOptions
    from opjoule.cli.failures import reporting_failures

    address, spool, name = argv
    if name.endswith("-old"):
        opjoule.__version__ = "0.0.1"
    options = WorkerOptions(scheduler=address, simulate=True, name=name, spool=Path(spool) / name)
    return reporting_failures(name, lambda: run_worker(options, [sys.executable, str(HERE), "cell", spool]))


def campaign(argv: list[str]) -> int:
    """Runs the part of host/campaign.py, or of host/measure.py --study, that follows set-up."""
    from opjoule.cli.start import main

    sys.argv = ["measure.py", *(argv if argv[0] == "--study" else ["campaign", *argv])]
    return main(sys.argv[1:])


def measure(spool: Path, name: str, place: Path) -> int:
    """Stands for the measurement of one cell: takes its time and writes a record of the job."""
    import msgspec
    from opjoule.campaign.fleet_rig import Outcome
    from opjoule.runs.record.run_record import RunRecord

    job = json.loads((place / "job.json").read_text())
    with (spool / "begun.txt").open("a") as begun:
        begun.write(f"{name} {job['block']} {job['condition']['storage']} {os.getpid()}\n")

    def end(outcome: Outcome) -> int:
        (place / "outcome.json").write_bytes(msgspec.json.encode(outcome))
        return outcome.status

    if (spool / f"{name}.broken").exists():
        return end(Outcome(3, "the board is gone"))
    asked = {"block": job["block"], "rig_name": name, "state": job["options"].get("state")}
    record = RunRecord.create(place / job["name"], asked, simulated=True)
    plan_sha256 = "0" * 64 if (spool / f"{name}.astray").exists() else job["plan_sha256"]
    record.update(plan_sha256=plan_sha256, found={"opjoule": "0.1.0"})
    (place / job["name"] / "raw").mkdir()
    (place / job["name"] / "raw" / "trace.bin").write_bytes(os.urandom(100_000))
    worker = os.getppid()
    wait = spool / "wait.txt"
    until_s = time.monotonic() + float(wait.read_text()) if wait.exists() else None
    while not (spool / "go").exists() if until_s is None else time.monotonic() < until_s:
        if os.getppid() != worker:
            return 1
        time.sleep(0.05)
    record.finish("complete")
    return end(Outcome(0))


if __name__ == "__main__":
    if sys.argv[1:2] == ["cell"]:
        _, _, spool, _, name, place = sys.argv
        sys.exit(measure(Path(spool), name, Path(place)))
    serve()
