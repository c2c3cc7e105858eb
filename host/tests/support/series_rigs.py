"""Two simulated meters in series on one load, both in this computer's time: a sensor and its reference."""

import os
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

from rig_session import FIRMWARE, LIMIT_S, RIG_SIM

DELAY_MS = 100
TICK_S = 0.02


class SeriesLoad:
    """The supply of both rigs; each load lasts until the next."""

    def __init__(self, fifos):
        self._fifos, self._lock, self._ended = fifos, threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def set(self, current_a, voltage_v):
        self._write(lambda now_ns: f"p {now_ns} {current_a} {voltage_v}\n")

    def end(self):
        self._ended.set()
        self._thread.join(LIMIT_S)
        with suppress(BrokenPipeError):
            self._write(lambda now_ns: "q\n")

    def _tick(self):
        while not self._ended.wait(TICK_S):
            with suppress(BrokenPipeError):
                self._write(lambda now_ns: f"w {now_ns}\n")

    def _write(self, line):
        """Writes a line with the same time to both; no line after a `w` has an earlier time."""
        with self._lock:
            text = line(time.monotonic_ns()).encode()
            for fifo in self._fifos:
                os.write(fifo, text)


@contextmanager
def series_rigs(folder, *options):
    """One rig-sim for each tuple of options, all on one load; yields their ports and the load."""
    with ExitStack() as stack:
        ports, fifos = [], []
        for number, rig_options in enumerate(options):
            live, port = folder / f"live-{number}", folder / f"meter-{number}"
            os.mkfifo(live)
            # Opened for reading, too, so that the rig may open its side at any time.
            fifos.append(os.open(live, os.O_RDWR))
            stack.callback(os.close, fifos[-1])
            command = [RIG_SIM, "--elf", FIRMWARE, "--pty", port, "--truth", folder / f"truth-{number}.json"]
            command += [
                "--live",
                live,
                "--delay-ms",
                str(DELAY_MS),
                "--patience-s",
                str(LIMIT_S),
                *rig_options,
            ]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            assert "SIMULATED meter at" in process.stdout.readline()
            ports.append(port)
        load = SeriesLoad(fifos)
        stack.callback(load.end)
        load.set(0.0, 5.0)
        yield ports, load
