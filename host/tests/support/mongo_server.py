"""A MongoDB server for the tests: a real `mongod` if one is on the PATH, else mongo-java-server from Maven Central.

host/tests/support/mongo_server.py COMMAND...     runs a command with the server's address in OPJOULE_TEST_MONGODB
"""

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "host"))

from bootstrap import folder_hashes  # noqa: E402  # the path is set just above

SOURCE = Path(__file__).resolve().parent / "mongo_java_server"
JARS = ROOT / "build" / "mongo-java-server"
MONGOD_LOCK = Path("/tmp/opjoule-tests-mongod.lock")
"""Outside of the test process's temporary folder, because the whole computer shares the port."""
START_LIMIT_S = 300
STAND_IN = """#!/bin/sh
printf '%s\\n' "$@" > "{seen}"
while [ "$1" != --port ]; do shift; done
exec java -cp '{jars}/*' '{source}' "$2"
"""


@contextlib.contextmanager
def mongo_server(folder):
    """Yields the server's address, mongodb://127.0.0.1:PORT; `folder`: for the data of a real mongod."""
    start = _real if shutil.which("mongod") else _java
    process, port = start(folder)
    try:
        yield f"mongodb://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(300)


def _fetch_jars():
    """Fetches all jars or none, in one process at a time, because several test files need them at the same time."""
    JARS.parent.mkdir(exist_ok=True)
    with JARS.with_name(JARS.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if list(JARS.glob("mongo-java-server-[0-9]*.jar")):
            return
        fetch = ["mvn", "-q", "-B", "-f", SOURCE / "pom.xml", "dependency:copy-dependencies"]
        with tempfile.TemporaryDirectory(prefix="mongo-java-server-", dir=JARS.parent) as folder:
            fetched = Path(folder) / "jars"
            subprocess.run([*fetch, f"-DoutputDirectory={fetched}"], check=True, timeout=1200)
            pinned = dict(reversed(line.split()) for line in (SOURCE / "jars.sha256").read_text().splitlines())
            assert folder_hashes(fetched) == pinned, "the jars from Maven Central are not the pinned ones"
            fetched.rename(JARS)


def _java(_folder):
    _fetch_jars()
    process = subprocess.Popen(
        ["java", "-cp", f"{JARS}/*", SOURCE / "Server.java"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, int(process.stdout.readline())


def _real(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = ["mongod", "--dbpath", str(folder), "--port", str(port), "--bind_ip", "127.0.0.1"]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    until_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < until_s:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return process, port
    process.terminate()
    raise TimeoutError(f"mongod does not listen on port {port}")


def stand_in_mongod(folder):
    """Makes a mongod in `folder` that runs mongo-java-server, and writes its arguments to `folder/arguments`."""
    _fetch_jars()
    program = folder / "mongod; $(stand in)"
    program.write_text(STAND_IN.format(jars=JARS, source=SOURCE / "On.java", seen=folder / "arguments"))
    program.chmod(0o755)
    return program


@contextlib.contextmanager
def stand_in_alone(folder):
    """The same, for one test of this computer at a time, because the rig always starts it on the same port."""
    with MONGOD_LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield stand_in_mongod(folder)


def main(command):
    """Runs a command with the address of a server in OPJOULE_TEST_MONGODB. Returns: its exit status."""
    with tempfile.TemporaryDirectory() as folder, mongo_server(folder) as address:
        return subprocess.run(command, env={**os.environ, "OPJOULE_TEST_MONGODB": address}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
