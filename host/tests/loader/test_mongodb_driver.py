"""What MongoDB's own driver does by default and the loader's must not: try an operation again."""

import contextlib
import json
import socket
import subprocess
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mongo_server import mongo_server

LOADER = Path(__file__).resolve().parents[3] / "build/loader/loader"


class Proxy:
    """Carries bytes to a server and back; closes the connection at the `drops`-th find."""

    def __init__(self, server: str, drops: int) -> None:
        self._server = (urlsplit(server).hostname, urlsplit(server).port)
        self._drops, self._finds = drops, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"mongodb://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                for pair in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, to: socket.socket, asks: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._finds += asks and b"\x02find\x00" in data
                if asks and self._finds == self._drops:
                    self._finds += 1
                    break
                to.sendall(data)
        for end in (source, to):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.slow
def test_a_read_whose_connection_breaks_has_failed_and_is_not_tried_again(tmp_path):
    def loader(command: str, address: str) -> dict:
        words = [LOADER, command, "--db", "mongodb", "--path", address, "-p", "recordcount=50"]
        words += ["-p", "operationcount=20", "-p", "readproportion=1", "-p", "updateproportion=0"]
        said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        return json.loads(next(line for line in reversed(said.splitlines()) if "summary" in line))["summary"]

    with mongo_server(tmp_path) as server, contextlib.closing(Proxy(server, drops=10)) as proxy:
        assert loader("load", server)["errors"] == 0
        broken = loader("run", proxy.address)
    assert (broken["errors"], broken["retries"]["timeout"]) == (1, 1)
