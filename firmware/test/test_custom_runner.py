"""Runs doctest suites under `pio test`: PlatformIO's own doctest runner without its registry.

PlatformIO's runner would fetch doctest from the registry; here it is the system's (Debian:
doctest-dev). It counts the test cases that are printed, so passing ones must be printed too.
"""

from platformio.test.runners.doctest import DoctestTestRunner


class CustomTestRunner(DoctestTestRunner):
    """doctest from the system's include path."""

    EXTRA_LIB_DEPS = None

    def stage_testing(self) -> None:
        """Runs the program with every test case printed."""
        self.options.program_args = [*(self.options.program_args or []), "--success"]
        super().stage_testing()
