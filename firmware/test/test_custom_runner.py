"""Runs doctest suites under `pio test` with PlatformIO's own doctest runner, but without its registry.

PlatformIO's runner would fetch doctest from the registry; here the system's doctest is used (Debian:
doctest-dev). The runner counts the test cases that are printed, so passing ones must be printed too.
"""

from platformio.test.runners.doctest import DoctestTestRunner


class CustomTestRunner(DoctestTestRunner):
    """A runner that uses doctest from the system's include path."""

    EXTRA_LIB_DEPS = None

    def stage_testing(self) -> None:
        """Runs the test program so that it prints every test case."""
        self.options.program_args = [*(self.options.program_args or []), "--success"]
        super().stage_testing()
