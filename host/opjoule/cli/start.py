"""Entry point of `host/measure.py` in .venv; Ctrl-C gives one line even while the program is still loading."""

import io
import sys

from opjoule.base.scripts import script_name
from opjoule.cli.command import ParsedCommand, handed_over
from opjoule.cli.failures import answer_with, interrupt, leave, masked_tracebacks, reporting_failures


def main(argv: list[str]) -> int:
    """Runs the command that set-up handed over; without set-up, the command that the command line names.

    SIGTERM and SIGHUP (a closed terminal) end it as Ctrl-C does.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal's encoding lacks is printed as an escape instead of ending the program.
            stream.reconfigure(errors="backslashreplace")
    masked_tracebacks()

    def run() -> int:
        answer_with(leave)
        command = (handed_over() or _parsed(argv)).loaded()
        answer_with(interrupt)
        return command()

    status = reporting_failures(script_name(argv), run)
    # Ctrl-C during an exec() of text (as by dataclasses when a module loads) sets a flag in CPython, which then ends by
    # SIGINT although the exception was handled. Another exec() clears the flag (Python/pythonrun.c, run_eval_code_obj).
    exec("")
    return status


def _parsed(argv: list[str]) -> ParsedCommand:
    from opjoule.cli.commands import parse  # noqa: PLC0415  # slow to load, and not needed for a command handed over

    return parse(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
