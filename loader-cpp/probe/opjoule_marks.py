"""Sends marks of a Python job to OpJoule's probe. Copy this file beside the job: Python 3.7, standard library only.

    from opjoule_marks import operation, phase

    with phase("load"):
        for record in records:
            with operation("insert", bytes=len(record)):
                store(record)

Operations are sent in batches, between two operations. An operation whose block raises an exception counts as failed.
Without OPJOULE_MARKS in the environment (`probe run` sets it) nothing is sent. docs/reference/probe.md describes the
lines.
"""

import atexit
import os
import re
import socket
import sys
import threading
import time
from contextlib import contextmanager

_BATCH_LINES = 512
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,63}")
_checked = set()


def _check(what, name):
    """Raises ValueError at once for a name that the probe would refuse, even if there is no probe."""
    if name not in _checked:
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise ValueError(f"{what} {name!r}: a name has 1 to 63 of the letters a to z, digits, '_', '.' and '-'")
        _checked.add(name)


class _Marks:
    def __init__(self):
        self.path = os.environ.get("OPJOULE_MARKS", "")
        self.forget()

    def forget(self):
        """Starts without lines and connection, as in a forked process: the parent sends the lines that wait."""
        self.lock = threading.RLock()
        self.lines = []
        self.connection = None

    def add(self, line, at_once):
        if self.path:
            with self.lock:
                self.lines.append(line + "\n")
                if at_once or len(self.lines) >= _BATCH_LINES:
                    self.send()

    def connect(self):
        """Connects through the folder's descriptor, because a socket's address has at most 107 bytes (unix(7))."""
        folder, name = os.path.split(self.path)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            self.connection = socket.socket(socket.AF_UNIX)
            self.connection.connect(f"/proc/self/fd/{descriptor}/{name}")
        finally:
            os.close(descriptor)

    def send(self):
        with self.lock:
            text, self.lines = "".join(self.lines).encode("ascii", "replace"), []
            try:
                if text and self.connection is None:
                    self.connect()
                if text:
                    self.connection.sendall(text)
            except OSError as error:  # the job goes on
                self.path = ""
                print(f"opjoule_marks: the probe has gone, no more marks are sent: {error}", file=sys.stderr)


_marks = _Marks()
os.register_at_fork(after_in_child=_marks.forget)
atexit.register(_marks.send)


@contextmanager
def phase(name):
    """Marks the block as a phase of the job. Raises: ValueError: the name is not allowed."""
    _check("phase", name)
    _marks.add(f"phase begin {name} {time.monotonic_ns()}", True)
    try:
        yield
    finally:
        _marks.add(f"phase end {name} {time.monotonic_ns()}", True)


def phase_between(name, start_ns, end_ns):
    """Marks a past phase by its times on CLOCK_MONOTONIC [ns], as reported by a program that the job started."""
    _check("phase", name)
    _marks.add(f"phase begin {name} {start_ns}", True)
    _marks.add(f"phase end {name} {end_ns}", True)


class operation:
    """Marks the block as one operation of a kind. `bytes`: the bytes that it moves, which the block may also set."""

    __slots__ = ("bytes", "kind", "start_ns")

    def __init__(self, kind, bytes=0):
        self.kind = kind
        self.bytes = bytes

    def __enter__(self):
        if self.kind not in _checked:
            _check("operation", self.kind)
        self.start_ns = time.monotonic_ns()
        return self

    def __exit__(self, failure, *_):
        duration_ns = time.monotonic_ns() - self.start_ns
        outcome = "ok" if failure is None else "failed"
        _marks.add(f"operation {self.kind} {self.start_ns} {duration_ns} {self.bytes} {outcome}", False)
