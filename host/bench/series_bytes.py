"""Measures a server of study S4 while points are inserted: seconds, blocks on the medium, memory.

    .venv/bin/python host/bench/series_bytes.py FOLDER [SYSTEM] [POINTS,POINTS] [PROGRAM=PATH ...]

Starts the server on FOLDER (new; on the disk in question) as the rig starts it, and inserts the study's drawn points
through the study's own client. Samples the server's folder and process ten times a second: the most blocks that the
folder had (logs, tables before and after compaction), its blocks after the server was stopped, and the peak memory
(VmHWM). Runs each query once. Prints a line for each number of points. SYNTHETIC.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

HOST = Path(__file__).parents[1]
STUDIES = HOST.parent / "studies"
sys.path[:0] = [str(HOST), str(STUDIES / "s4"), str(STUDIES), str(HOST.parent / "loader-cpp" / "probe")]
PERIOD_S = 0.1
BATCH = 10_000


class Watch(threading.Thread):
    """Samples a server's folder and memory until end() is called."""

    def __init__(self, server: Any) -> None:
        super().__init__(daemon=True)
        self._server, self._ended = server, threading.Event()
        self.peak_bytes = self.peak_memory_bytes = 0

    def run(self) -> None:
        """Samples; a sample during which a file disappears is skipped."""
        while not self._ended.wait(PERIOD_S):
            try:
                self.peak_bytes = max(self.peak_bytes, self._server.stored_bytes())
                status = Path(f"/proc/{self._server._process.pid}/status").read_text()
            except OSError:
                continue
            kib = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]
            self.peak_memory_bytes = max([self.peak_memory_bytes, *(1024 * size_kib for size_kib in kib)])

    def end(self) -> None:
        """Stops the sampling."""
        self._ended.set()
        self.join()


def set_up(system: str, folder: Path, given: dict[str, str]) -> str:
    """The commands that start the server, as JSON for the job."""
    from opjoule.boards.databases import database_called  # noqa: PLC0415
    from opjoule.boards.runner import Runner  # noqa: PLC0415
    from opjoule.boards.server import ServerPrograms, ServerSetup  # noqa: PLC0415
    from opjoule.boards.shell import LocalShell  # noqa: PLC0415
    from opjoule.runs.studies.wheels import fetch_jar  # noqa: PLC0415

    database = database_called(system)
    assert database, system
    jars = HOST.parent / "build" / "jars"
    given = {name: str(fetch_jar(jar, jars)) for name, jar in database.jars.items()} | given
    runner = Runner(LocalShell(), "probe", str(folder / "session"))
    made = ServerSetup(LocalShell(), runner, database, ServerPrograms(given), data=str(folder / "data"))
    return json.dumps(made.to_json())


def measured(system: str, folder: Path, count: int, given: dict[str, str]) -> str:
    """Measures one system with one number of points. Returns: the line of results."""
    import points  # noqa: PLC0415
    from job import SYSTEMS  # noqa: PLC0415
    from opjoule_server import Server  # noqa: PLC0415

    folder.mkdir()
    file = folder / "points.csv"
    points.draw(file, count, 1)
    server = Server(set_up(system, folder, given), str(folder / "server.log"))
    watch, held = Watch(server), []
    try:
        server.start()
        watch.start()
        empty_bytes = server.stored_bytes()
        client = SYSTEMS[system](server.address)
        version = client.version()
        client.create()
        start_s = time.monotonic()
        for point in points.read(file, count, {}):
            held.append(point)
            if len(held) == BATCH:
                client.insert(held)
                held = []
        if held:
            client.insert(held)
        client.settle(count)
        ingest_s = time.monotonic() - start_s
        ingest_memory = watch.peak_memory_bytes
        at_end_bytes = server.stored_bytes()
        query_s = []
        for name in ("q1", "q2", "q3"):
            start_s = time.monotonic()
            getattr(client, name)()
            query_s.append(time.monotonic() - start_s)
        client.close()
    finally:
        watch.end()
        server.stop()
    watch.peak_bytes = max(watch.peak_bytes, at_end_bytes)
    stopped_bytes = server.stored_bytes()
    csv_bytes = file.stat().st_size
    shutil.rmtree(folder)
    queries = ", ".join(f"{time_s:.1f}" for time_s in query_s)
    return (
        f"{system} {version}, {count} points: {ingest_s:.1f} s ({count / ingest_s:.0f} points/s); "
        f"empty {empty_bytes / 1e6:.1f} MB, peak {watch.peak_bytes / 1e6:.1f} MB "
        f"({(watch.peak_bytes - empty_bytes) / count:.1f} B a point), then {at_end_bytes / 1e6:.1f} MB, "
        f"stopped {stopped_bytes / 1e6:.1f} MB; CSV {csv_bytes / count:.1f} B a point; Q1, Q2, Q3 {queries} s; "
        f"memory {ingest_memory / 1e6:.0f} MB at the end of ingestion, {watch.peak_memory_bytes / 1e6:.0f} MB in all"
    )


def main() -> None:
    """Prints a line for each system and number of points."""
    place = Path(sys.argv[1])
    systems = sys.argv[2].split(",") if len(sys.argv) > 2 else ["influxdb", "questdb"]
    counts = [int(count) for count in (sys.argv[3] if len(sys.argv) > 3 else "1000,100000,1000000").split(",")]
    given = dict(option.split("=", 1) for option in sys.argv[4:])
    place.mkdir(exist_ok=True)
    for system in systems:
        for count in counts:
            print(measured(system, place.resolve() / f"{system}-{count}", count, given), flush=True)


if __name__ == "__main__":
    main()
