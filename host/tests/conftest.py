"""What holds for every test."""

import signal

# A shell that runs the tests in the background has them ignore Ctrl-C, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
