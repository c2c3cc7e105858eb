"""Runs SecantusDB with mongod's options, so that a rig starts it as it starts mongod."""

import argparse
import importlib.metadata
import os
import sys
from pathlib import Path


def main() -> None:
    """Replaces this process by the server."""
    options = argparse.ArgumentParser(prog="mongod", description=__doc__)
    options.add_argument(
        "--version", action="version", version=f"SecantusDB {importlib.metadata.version('secantusdb')}"
    )
    options.add_argument("--dbpath", required=True, help="folder of the data")
    options.add_argument("--port", default="27017")
    options.add_argument("--bind_ip", default="127.0.0.1", metavar="ADDRESS")
    options.add_argument("--wiredTigerCacheSizeGB", type=float, default=0.25, metavar="GB", dest="cache_gb")
    given = options.parse_args()
    server = str(Path(sys.executable).with_name("secantusd-py"))
    words = ["--storage-path", given.dbpath, "--host", given.bind_ip, "--port", given.port, "--standalone"]
    words += ["--cache-size", f"{round(given.cache_gb * 1024)}M", "--log-level", "WARNING"]
    os.execv(server, [server, *words])


if __name__ == "__main__":
    main()
