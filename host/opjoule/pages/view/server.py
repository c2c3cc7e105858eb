"""Server of the page: HTTP on loopback, for clients that know the random token in its address.

The standard library's server is enough for one reader, a handful of addresses and no state between requests.
"""

import hmac
import ipaddress
import json
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from opjoule.base.errors import BadInput, OpJouleError, of_system
from opjoule.base.scripts import program
from opjoule.pages.drawing.page import chart_frame, library_script, page_style, text_of

LOOPBACK: Final = "127.0.0.1"
ASSETS: Final = Path(__file__).parent / "assets"


def _asset_text(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


FILES: Final[Mapping[str, tuple[str, Callable[[], str]]]] = {
    "": ("text/html", lambda: Template(_asset_text("view.html")).substitute(chart=text_of(*chart_frame()))),
    "style.css": ("text/css", lambda: page_style() + _asset_text("view.css")),
    "drawing.js": ("text/javascript", library_script),
    **{
        f"{name}.js": ("text/javascript", partial(_asset_text, f"{name}.js"))
        for name in ("chart", "running", "table", "live", "view")
    },
}
"""Files of the page -> content type and the function that makes the file. Chart and style are those of a report."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Content policy of the page: nothing is loaded from elsewhere, and nothing may frame it."""
REPORT_POLICY: Final = (
    "sandbox allow-scripts allow-popups; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content policy of a record's page. It comes with the record, so it may reach neither the server nor other runs."""
HEADERS: Final = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Further headers of every answer; they keep other pages from reading it."""
SILENCE_LIMIT_S: Final = 60.0
CLIENTS_MAX: Final = 64
"""Most open connections, each with a thread (a browser opens six); another one closes the longest idle one."""
PLAIN: Final = "text/plain; charset=utf-8"

Reply = Callable[[Mapping[str, str]], Any]
"""Makes a JSON value from the parameters of a request."""
Page = Callable[[Mapping[str, str]], bytes]
"""Makes a record's own page from the parameters of a request."""


class ViewServer(ThreadingHTTPServer):
    """Serves the page and its data until `shutdown`."""

    daemon_threads = True
    request_queue_size = 128
    """Length of the queue of new connections; with the library's 5, some of many simultaneous ones wait for seconds."""

    def __init__(
        self,
        replies: Mapping[str, Reply],
        pages: Mapping[str, Page] | None = None,
        *,
        listen: str = LOOPBACK,
        port: int = 0,
    ) -> None:
        """Listens; requests are answered only in `serve_forever`.

        Args:
            replies: name in the address -> function that answers with a JSON value; pages: the same with a page.
            listen: address of this computer to listen on; port: 0 for any free port.
        Raises: BadInput: the address or the port cannot be used.
        """
        try:
            self.listen = ipaddress.ip_address(listen)
        except ValueError:
            examples = "give one such as 127.0.0.1 or 0.0.0.0"
            raise BadInput(f"--listen {listen} is not an address: {examples}") from None
        self.address_family = socket.AF_INET6 if self.listen.version == 6 else socket.AF_INET
        self.replies, self.pages = replies, pages or {}
        self.asked_s = 0.0
        """Time of the last request, on the clock of time.monotonic(); 0: none yet."""
        self.token = secrets.token_urlsafe(24)
        self._quiet_since_s: dict[socket.socket, float] = {}
        self._guard = threading.Lock()
        try:
            super().__init__((listen, port), _Handler)
        except OSError as error:
            raise BadInput(f"cannot listen on {listen}, port {port}: {of_system(error)}") from None

    def server_bind(self) -> None:
        """Binds the socket without HTTPServer's name lookup, which may ask a name server."""
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.listen), int(self.server_address[1])

    @property
    def address(self) -> str:
        """Address to open in a browser."""
        host = LOOPBACK if self.listen.is_unspecified else str(self.listen)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/{self.token}/"

    def is_own(self, host: str) -> bool:
        """Whether a Host header names this server by its own address; another name may be a DNS rebinding attack."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        if port != self.server_port or host != parts.netloc or "@" in host:
            return False
        if name == "localhost":
            return self.listen.is_loopback or self.listen.is_unspecified
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return self.listen.is_unspecified and name == socket.gethostname().lower()
        return address == self.listen or self.listen.is_unspecified

    def process_request(self, request: Any, client_address: Any) -> None:
        """Accepts a connection; if there are too many, the one that was answered longest ago is closed."""
        with self._guard:
            if len(self._quiet_since_s) >= CLIENTS_MAX:
                quietest = min(self._quiet_since_s, key=self._quiet_since_s.__getitem__)
                del self._quiet_since_s[quietest]
                with suppress(OSError):
                    quietest.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it
            self._quiet_since_s[request] = time.monotonic()
        super().process_request(request, client_address)

    def answered(self, request: socket.socket) -> None:
        """Records that a connection has just been answered."""
        with self._guard:
            if request in self._quiet_since_s:
                self._quiet_since_s[request] = time.monotonic()

    def shutdown_request(self, request: Any) -> None:
        """Ends a connection."""
        with self._guard:
            self._quiet_since_s.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a browser that closes the connection during an answer."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    timeout = SILENCE_LIMIT_S
    server_version = "OpJoule"
    sys_version = ""
    disable_nagle_algorithm = True

    def do_GET(self) -> None:  # name required by http.server
        refused = self._refused()
        if refused:
            self._answer(HTTPStatus.FORBIDDEN, PLAIN, f"{refused}\n".encode())
            return
        self.server.asked_s = time.monotonic()
        address = urlsplit(self.path)
        _, _, what = address.path.removeprefix("/").partition("/")
        if what in FILES:
            kind, made = FILES[what]
            self._answer(HTTPStatus.OK, f"{kind}; charset=utf-8", made().encode())
        elif what in self.server.replies:
            self._reply(self.server.replies[what], dict(parse_qsl(address.query)))
        elif what in self.server.pages:
            self._show(self.server.pages[what], dict(parse_qsl(address.query)))
        else:
            self._answer(HTTPStatus.NOT_FOUND, PLAIN, b"there is no such page\n")

    def _refused(self) -> str:
        """Reason why this request is refused; empty if it is answered."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not self.server.is_own(hosts[0].strip().lower()):
            return "the Host header does not name this server"
        for origin in self.headers.get_all("Origin") or []:
            if origin.strip().lower() != f"http://{hosts[0].strip().lower()}":
                return "the request comes from another page"
        token, slash, _ = self.path.removeprefix("/").partition("/")
        is_known = hmac.compare_digest(token.encode("latin-1", "replace"), self.server.token.encode())
        return "" if slash and is_known else f"the address lacks the token that {program('view')} printed"

    def _reply(self, reply: Reply, query: Mapping[str, str]) -> None:
        try:
            status, value = HTTPStatus.OK, reply(query)
        except (OpJouleError, OSError, MemoryError) as error:
            status, value = HTTPStatus.UNPROCESSABLE_ENTITY, {"error": _error_line(error)}
        self._answer(status, "application/json", json.dumps(value, allow_nan=False).encode())

    def _show(self, page: Page, query: Mapping[str, str]) -> None:
        try:
            body = page(query)
        except (OpJouleError, OSError, MemoryError) as error:
            self._answer(HTTPStatus.UNPROCESSABLE_ENTITY, PLAIN, f"{_error_line(error)}\n".encode())
            return
        self._answer(HTTPStatus.OK, "text/html; charset=utf-8", body, REPORT_POLICY)

    def _answer(self, status: HTTPStatus, kind: str, body: bytes, policy: str = POLICY) -> None:
        self.send_response(status)
        self.send_header("Content-Security-Policy", policy)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.answered(self.connection)

    def log_message(self, format: str, *args: Any) -> None:  # name required by http.server
        """Logs nothing, since the terminal belongs to the user."""


def _error_line(error: Exception) -> str:
    if isinstance(error, OSError):
        return of_system(error)
    return str(error) or "not enough memory"
