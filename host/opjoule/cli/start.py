"""Where `host/measure.py` begins in .venv: a Ctrl-C is answered in one line even while the program still loads."""

from __future__ import annotations

import io
import sys

from opjoule.cli.command import handed_over
from opjoule.cli.failures import answer_with, interrupt, leave, masked_tracebacks, reporting_failures
from opjoule.scripts import script_name


def main(argv: list[str]) -> int:
    """Runs the command that was handed over, or, without set-up before it, the one that a command line names.

    SIGTERM and SIGHUP (a closed terminal) end it as Ctrl-C does.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A letter that the terminal's encoding does not have comes as an escape instead of ending the program.
            stream.reconfigure(errors="backslashreplace")
    masked_tracebacks()

    def run() -> int:
        answer_with(leave)
        from opjoule.cli.commands import parse  # noqa: PLC0415  # what takes long to load

        command = (handed_over() or parse(argv)).loaded()
        answer_with(interrupt)
        return command()

    status = reporting_failures(script_name(argv), run)
    # A Ctrl-C while text is executed, as by dataclasses when a module loads, leaves a mark in CPython: it then ends by
    # SIGINT, although the exception was handled. The next text clears it (Python/pythonrun.c, run_eval_code_obj).
    exec("")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
