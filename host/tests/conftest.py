"""What holds for every test."""

import signal

from hypothesis import settings

# A shell that runs the tests in the background has them ignore Ctrl-C, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup has them ignore a closed terminal.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Property tests draw the same examples each time; `pytest --hypothesis-profile=explore` draws new ones.
settings.register_profile("same", derandomize=True)
settings.register_profile("explore", derandomize=False, print_blob=True)
settings.load_profile("same")
