"""`host/view.py`: past runs in a browser."""

import sys
from contextlib import suppress

from opjoule.base.scripts import RUNS
from opjoule.cli.short_commands import ViewOptions
from opjoule.pages.view.replies import Replies
from opjoule.pages.view.runs_folder import RunsFolder
from opjoule.pages.view.server import ViewServer


def run_view(options: ViewOptions) -> int:
    """Serves the page until Ctrl-C. Raises: BadInput: no such folder, or the address cannot be used."""
    replies = Replies(RunsFolder(options.runs or RUNS))
    with (
        suppress(KeyboardInterrupt),
        ViewServer(replies.known, replies.pages, listen=options.listen, port=options.port) as server,
    ):
        print("open this address in a browser; Ctrl-C ends the server:", file=sys.stderr)
        print(server.address, flush=True)
        server.serve_forever()
    return 0
