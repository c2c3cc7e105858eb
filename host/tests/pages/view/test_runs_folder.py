"""The list of records of the view: read in a thread, given when it is whole."""

import threading

import pytest
from opjoule.pages.view import runs_folder
from opjoule.pages.view.runs_folder import RunsFolder

LIMIT_S = 60


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """A folder whose records take longer to check than a call waits, and the semaphore of its checks."""
    monkeypatch.setattr(runs_folder, "READ_S", 0.001)
    folder, checks = RunsFolder(tmp_path), threading.Semaphore(0)

    def runs():
        assert checks.acquire(timeout=LIMIT_S)
        return iter(())

    monkeypatch.setattr(folder._index, "runs", runs)
    return folder, checks


def test_a_list_that_takes_longer_than_a_call_is_whole_once_it_was_read(slow):
    folder, checks = slow
    assert not folder.listing().is_whole and not folder.listing().is_whole
    checks.release()
    folder._reading.join(LIMIT_S)
    assert folder.listing().is_whole
    assert not folder.listing().is_whole, "the next one is checked anew"
    checks.release()


def test_a_list_that_nobody_asked_for_grows_old(slow, monkeypatch):
    folder, checks = slow
    assert not folder.listing().is_whole
    checks.release()
    folder._reading.join(LIMIT_S)
    monkeypatch.setattr(runs_folder, "NEW_S", 0.0)
    assert not folder.listing().is_whole
    checks.release()
