"""Entry point of every command in .venv; Ctrl-C gives one line even while the program is still loading."""

import io
import sys
from collections.abc import Callable

from opjoule.base.scripts import Needs, script_name
from opjoule.cli.failures import answer_with, interrupt, leave, masked_tracebacks, reporting_failures


def main(argv: list[str], set_up: Callable[[Needs], None] = lambda needs: None) -> int:
    """Parses a command line, sets up what its command needs, and runs it.

    SIGTERM and SIGHUP (a closed terminal) end it as Ctrl-C does.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal's encoding lacks is printed as an escape instead of ending the program.
            stream.reconfigure(errors="backslashreplace")
    masked_tracebacks()

    def run() -> int:
        answer_with(leave)
        _load_msgspec()
        from opjoule.cli.commands import parse  # noqa: PLC0415  # slow to load: Ctrl-C is answered by now

        command = parse(argv)  # --help ends here
        answer_with(interrupt)
        set_up(command.needs)
        answer_with(leave)
        loaded = command.loaded()
        answer_with(interrupt)
        return loaded()

    status = reporting_failures(script_name(argv), run)
    # Ctrl-C during an exec() of text (as by dataclasses when a module loads) sets a flag in CPython, which then ends by
    # SIGINT although the exception was handled. Another exec() clears the flag (Python/pythonrun.c, run_eval_code_obj).
    exec("")
    return status


def _load_msgspec() -> None:
    """Loads msgspec without typing_extensions, which takes 35 ms; typing has the names that msgspec needs of it."""
    name = "typing_extensions"
    if name in sys.modules:
        return
    sys.modules[name] = None  # type: ignore[assignment]  # as if it were not installed (importlib's documentation)
    import msgspec  # noqa: F401, PLC0415  # commands.py needs it

    del sys.modules[name]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
