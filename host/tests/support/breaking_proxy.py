"""A connection to a server that breaks in the middle of its work."""

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class BreakingProxy:
    """Carries bytes to a MongoDB server and back; closes the connection at the `drops`-th find."""

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
