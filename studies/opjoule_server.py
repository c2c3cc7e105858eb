"""A server that the job of a study starts and stops itself, so that it can be measured cold.

    from opjoule_server import Server

    server = Server(COMMANDS, "server.log")  # COMMANDS: {server_commands} in study.toml
    server.start()
    server.stop()
    server.forget_files()  # the next reads come from the medium

This module is copied to the board automatically. It needs only Python 3.7 and its standard library. The server is a
process of the job and ends with it at the latest.
"""

import json
import os
import signal
import socket
import subprocess
import time

START_LIMIT_S, STOP_LIMIT_S = 120.0, 60.0


def forget_file(path):
    """Writes the dirty pages of a file to the medium and removes the file from the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


class ServerFault(Exception):
    """The server does not start; the message is its last line of output."""


class Server:
    """One server on an empty data folder."""

    def __init__(self, commands, log):
        """Prepares the server without starting it.

        Args:
            commands: JSON object with title, start, ready (lists of words), data, port, address.
            log: file for its output.
        """
        asked = json.loads(commands)
        self.title, self.address, self.data = asked["title"], asked["address"], asked["data"]
        self._start, self._ready, self._port = asked["start"], asked["ready"], asked["port"]
        self._log, self._process = log, None

    def start(self):
        """Starts the server and waits until it is ready. Raises: ServerFault: it ended, or does not become ready."""
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(self._start, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        limit_s = time.monotonic() + START_LIMIT_S
        while not self._takes_work():
            ended = self._process.poll() is not None
            if ended or time.monotonic() > limit_s:
                why = "ended" if ended else f"is not ready after {START_LIMIT_S:g} s"
                self.stop()
                raise ServerFault(f"{self.title} {why}: {self._last_line()}")
            time.sleep(0.02)

    def _takes_work(self):
        try:
            socket.create_connection(("127.0.0.1", self._port), 1).close()
        except OSError:
            return False
        if not self._ready:
            return True
        asked = subprocess.run(self._ready, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return asked.returncode == 0

    def stop(self):
        """Stops the server; kills it if it takes too long."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def files(self):
        """Every file in its data folder."""
        for folder, _, names in os.walk(self.data):
            for name in names:
                yield os.path.join(folder, name)

    def stored_bytes(self):
        """Size of the blocks that the file system has allocated to its files [B]."""
        return sum(os.lstat(path).st_blocks * 512 for path in self.files())

    def forget_files(self):
        """Writes its files to the medium and drops them from the page cache (posix_fadvise(2), POSIX_FADV_DONTNEED).

        The server must be stopped, because mapped pages stay in memory. Root permission is not needed.
        """
        for path in self.files():
            forget_file(path)

    def _last_line(self):
        with open(self._log, errors="replace") as log:
            lines = [line.strip() for line in log if line.strip()]
        return lines[-1][:300] if lines else "it wrote no message"
