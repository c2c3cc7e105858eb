"""The page's server in this process, and requests to it with any headers."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from opjoule.pages.view.replies import Replies
from opjoule.pages.view.runs_folder import RunsFolder
from opjoule.pages.view.server import ViewServer

LIMIT_S = 60


@contextmanager
def served(folder: Path) -> Iterator[ViewServer]:
    """Runs a server for the runs in a folder."""
    replies = Replies(RunsFolder(folder))
    with ViewServer(replies.known, replies.pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(LIMIT_S)


def get(server, path, **headers):
    """Status, headers and body of one request; the path is sent as it stands."""
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=LIMIT_S)
    try:
        link.putrequest("GET", path, skip_host=True)
        for name, value in {"Host": f"127.0.0.1:{server.server_port}", **headers}.items():
            if value is not None:
                link.putheader(name, value)
        link.endheaders()
        answer = link.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        link.close()


def ask(server, what, **parameters):
    """Status and JSON value of one request."""
    status, _, body = get(server, f"/{server.token}/{what}?{urlencode(parameters)}")
    return status, json.loads(body)
