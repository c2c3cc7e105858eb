"""Faults of the board: a measurement over a real sshd on loopback, whose link, medium or database server fails."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import mongo_server
from opjoule.devices.connection.ssh import SshConnection
from opjoule.devices.preparation.preparation import recover
from test_devices_measurement import LoopbackRig

from faults.trial import LIMIT_S, Trial, env, judged, note_what_is_left, of_ours

OPERATIONS = ("--operations", "20000", "-p", "target=5000")
"""A run of 4 s."""
MEASURED_S = 14.0
"""About as long as load, run and their settling take."""
LOADER_LIVES_S = 4.0
AFTER_S = 15.0
"""Longer than it takes to notice that a link is cut."""
SERVER_KILLED = "board: database server killed"


Strike = Callable[[subprocess.Popen[str]], object]
"""Strikes while the measurement runs; False if there was nothing to strike."""


class Measured:
    """A measurement over ssh on loopback, struck at a random moment."""

    def __init__(self, folder: Path, chance: random.Random, *more: str, engine: str = "leveldb") -> None:
        self.chance, self.folder = chance, folder
        self.engine = ("--db", engine)
        self.rig = LoopbackRig(folder, "ssh", *more)
        (folder / "tmp").mkdir()
        os.environ.update(env(folder / "tmp"))
        self.mounts = Path("/proc/self/mounts").read_text()

    def run(self, strike: Strike, within_s: float = MEASURED_S) -> Trial:
        """Measures, strikes up to `within_s` after the first phase has begun, and judges the record."""
        running = self.rig.measure(*self.engine, *OPERATIONS)
        until_s = time.monotonic() + LIMIT_S
        while not self.rig.phases() and running.poll() is None and time.monotonic() < until_s:
            time.sleep(0.05)
        time.sleep(self.chance.uniform(0.0, within_s))
        early = running.poll() is not None
        struck = strike(running) is not False and not early
        try:
            _, said = running.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
            return Trial(-1, "hangs", wrong=["it did not end"])
        trial = judged(self.rig.out, running.returncode, said)
        trial.struck = struck
        trial.status += "" if struck else " before it"
        return trial

    def put_back(self, trial: Trial) -> None:
        """What the board has left is restored, and its medium is empty then."""
        self.rig.link.heal()
        shell = SshConnection(self.rig.sshd.target, self.rig.sshd.options())
        try:
            left = recover(
                shell, [str(self.rig.storage)], self.folder / "back", str(self.folder / "journal")
            )[1]
        finally:
            shell.close()
        if left:
            trial.wrong.append(f"restore left {left[0]}")
        there = self.rig.storage.iterdir() if self.rig.storage.is_dir() else ()
        if names := [path.name for path in there if path.name != "lost+found"]:  # fsck's own
            trial.wrong.append(f"on the medium: {names[0]}")

    def next_works(self, trial: Trial) -> None:
        """A measurement after it."""
        self.rig.out = self.folder / "next"
        self.rig.reset_meter()  # a simulator that lags behind on a busy computer would not answer in time
        with self.rig.measure(*self.engine, "--operations", "500", "--idle", "0") as running:
            _, said = running.communicate(timeout=LIMIT_S)
        after = judged(self.rig.out, running.returncode, said)
        if after.status != "complete" or after.wrong:
            trial.wrong.append(f"the next measurement: {after.status} {after.wrong} {said.strip()[-200:]}")


def link_cut(measured: Measured) -> Trial:
    """Every byte is lost for 15 s."""

    def cut(_: subprocess.Popen[str]) -> None:
        measured.rig.link.cut()
        time.sleep(AFTER_S)
        measured.rig.link.heal()

    return measured.run(cut)


def link_slow(measured: Measured) -> Trial:
    """From a random moment on every byte takes 0.4 s each way."""

    def slow(_: subprocess.Popen[str]) -> None:
        measured.rig.link.delay_s = 0.4

    trial = measured.run(slow)
    measured.rig.link.delay_s = 0.0
    return trial


def host_killed(measured: Measured) -> Trial:
    """kill -9 of measure.py; the board stops the workload by itself."""
    return measured.run(lambda running: running.send_signal(signal.SIGKILL))


def loader_killed(measured: Measured) -> Trial:
    """kill -9 of a loader, which loads or runs: what the kernel does where memory ends."""

    def kill(running: subprocess.Popen[str]) -> bool:
        while not of_ours(measured.folder, "loader") and running.poll() is None:
            time.sleep(0.05)
        time.sleep(measured.chance.uniform(0.0, LOADER_LIVES_S))
        return _kill(measured, "loader")

    return measured.run(kill)


def server_killed(measured: Measured) -> Trial:
    """kill -9 of the database server."""
    return measured.run(lambda _: _kill(measured, "java"))


def _kill(measured: Measured, name: str) -> bool:
    pids = of_ours(measured.folder, name)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


@contextlib.contextmanager
def shared_mounts(folder: Path) -> Iterator[None]:
    """What is mounted below a folder is seen by the board, too: its sshd has a table of mounts of its own."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "--make-shared", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)  # sshd's end may still keep it busy


@contextlib.contextmanager
def own_disk(measured: Measured, megabytes: int) -> Iterator[str]:
    """The medium on an ext4 file system of its own, which turns read-only on an error; gives its kernel name."""
    image = measured.folder / "card"
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    measured.rig.storage.mkdir()
    subprocess.run(["mount", "-o", "loop,errors=remount-ro", image, measured.rig.storage], check=True)
    (measured.rig.storage / "lost+found").rmdir()
    source = subprocess.run(
        ["findmnt", "-n", "-o", "SOURCE", "-M", measured.rig.storage],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    try:
        yield Path(source).name
    finally:
        subprocess.run(["umount", measured.rig.storage], check=True)


def card_read_only(measured: Measured) -> Trial:
    """An error of the medium turns its file system read-only (ext4, errors=remount-ro)."""
    with own_disk(measured, 64) as name:
        trigger = Path(f"/sys/fs/ext4/{name}/trigger_fs_error")
        trial = measured.run(lambda _: _trigger(trigger))
        card, storage = measured.folder / "card", measured.rig.storage
        subprocess.run(["umount", storage], check=True)
        subprocess.run(["fsck.ext4", "-p", card], check=False, stdout=subprocess.DEVNULL)
        subprocess.run(["mount", "-o", "loop", card, storage], check=True)
        measured.put_back(trial)
        measured.next_works(trial)
        return trial


def _trigger(trigger: Path) -> None:
    trigger.write_text("1\n")


def medium_full(measured: Measured) -> Trial:
    """Another program fills the medium."""
    with own_disk(measured, 64):

        def fill(_: subprocess.Popen[str]) -> None:
            command = ["dd", "if=/dev/zero", f"of={measured.rig.storage}/filler", "bs=64k"]
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL)

        trial = measured.run(fill)
        (measured.rig.storage / "filler").unlink(missing_ok=True)
        measured.put_back(trial)
        measured.next_works(trial)
        return trial


FAULTS: dict[str, Callable[[Measured], Trial]] = {
    "board: ssh cut for 15 s": link_cut,
    "board: slow link (0.8 s there and back)": link_slow,
    "board: host killed": host_killed,
    "board: loader killed as by the kernel out of memory": loader_killed,
    SERVER_KILLED: server_killed,
    "board: medium full": medium_full,
    "board: card turns read-only": card_read_only,
}
_PUT_BACK_THEMSELVES = ("board: medium full", "board: card turns read-only")


def board_trial(name: str, chance: random.Random, folder: Path) -> Trial:
    """One fault at one moment of a measurement over ssh."""
    with contextlib.ExitStack() as server:
        server.enter_context(shared_mounts(folder))
        if name != SERVER_KILLED:
            return _tried(name, folder, Measured(folder, chance))
        mongod = server.enter_context(mongo_server.stand_in_alone(folder))
        mongod_line = f"mongod = {json.dumps(str(mongod))}"
        return _tried(name, folder, Measured(folder, chance, mongod_line, engine="mongodb"))


def _tried(name: str, folder: Path, measured: Measured) -> Trial:
    try:
        trial = FAULTS[name](measured)
        if name not in _PUT_BACK_THEMSELVES:
            measured.put_back(trial)
            measured.next_works(trial)
    finally:
        measured.rig.close()
    note_what_is_left(trial, folder / "tmp", measured.mounts)
    return trial
