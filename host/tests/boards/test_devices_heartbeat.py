"""A program on a board hears a sign of life until it is over, or nobody listens."""

import os
import queue
import threading

import pytest
from opjoule.base.errors import LinkFault
from opjoule.boards import shell
from opjoule.boards.shell import beat_until

LIMIT_S = 60


def thread_named(name):
    return next((thread for thread in threading.enumerate() if thread.name == name), None)


def test_beats_come_until_the_end(monkeypatch):
    monkeypatch.setattr(shell, "BEAT_S", 0.001)
    ended, beats = threading.Event(), queue.SimpleQueue()
    beat_until(ended, lambda: beats.put("."), "until-the-end")
    running = thread_named("until-the-end")
    assert [beats.get(timeout=LIMIT_S) for _ in range(3)] == ["."] * 3
    ended.set()
    running.join(LIMIT_S)
    assert not running.is_alive()


def closed_pipe():
    """Nobody reads it any more."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "wb", buffering=0)


@pytest.mark.parametrize("fault", ["pipe", "closed", "link"])
def test_nobody_who_listens_is_the_end_and_no_traceback(fault, capsys, monkeypatch):
    monkeypatch.setattr(shell, "BEAT_S", 0.001)
    pipe = closed_pipe()
    if fault == "closed":
        pipe.close()
    called = threading.Event()

    def beat():
        called.set()
        if fault == "link":
            raise LinkFault("the board is gone")
        pipe.write(b".")

    beat_until(threading.Event(), beat, fault)
    assert called.wait(LIMIT_S)
    if running := thread_named(fault):
        running.join(LIMIT_S)
        assert not running.is_alive()
    assert capsys.readouterr().err == ""
    if fault != "closed":
        pipe.close()
