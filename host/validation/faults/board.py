"""Faults of the board: its link, medium, loader or server fails during a measurement over a real sshd on loopback."""

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
from opjoule.boards.medium import Medium
from opjoule.boards.preparation import recover
from opjoule.boards.ssh import SshConnection
from opjoule.runs.record.run_record import RunRecord
from test_devices_measurement import LoopbackRig

from faults.trial import LIMIT_S, Trial, env, judged, note_what_is_left, of_ours

OPERATIONS = ("--operations", "20000", "-p", "target=5000")
"""Options for a run of 4 s."""
MEASURED_S = 14.0
"""Approximate duration of load, run and their settling."""
LOADER_LIVES_S = 4.0
AFTER_S = 15.0
"""Longer than the time after which a cut link is noticed."""
SERVER_KILLED = "board: database server killed"


Strike = Callable[[subprocess.Popen[str]], object]
"""Injects a fault while the measurement runs; returns False if there was nothing to strike."""


class Measured:
    """Measurement over ssh on loopback, with a fault at a random moment."""

    def __init__(self, folder: Path, chance: random.Random, *more: str, engine: str = "leveldb") -> None:
        self.chance, self.folder = chance, folder
        self.engine = ("--db", engine)
        self.rig = LoopbackRig(folder, "ssh", *more)
        (folder / "tmp").mkdir()
        os.environ.update(env(folder / "tmp"))
        self.mounts = Path("/proc/self/mounts").read_text()

    def run(self, strike: Strike, within_s: float = MEASURED_S) -> Trial:
        """Measures, injects the fault within `within_s` after the start of the first phase, and judges the record."""
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
        trial.status += "" if struck else " before the fault"
        return trial

    def put_back(self, trial: Trial) -> None:
        """Restores the board, and notes in the trial what is still not restored or left on the medium."""
        self.rig.link.heal()
        shell = SshConnection(self.rig.sshd.target, self.rig.sshd.options())
        try:
            left = recover(shell, [Medium(str(self.rig.storage))], self.folder / "back", str(self.folder / "journal"))[
                1
            ]
        finally:
            shell.close()
        if left:
            trial.wrong.append(f"restore left {left[0]}")
        there = self.rig.storage.iterdir() if self.rig.storage.is_dir() else ()
        if names := [path.name for path in there if path.name != "lost+found"]:  # made by mkfs or fsck
            trial.wrong.append(f"left on the medium: {names[0]}")

    def next_works(self, trial: Trial) -> None:
        """Checks that the next measurement works."""
        self.rig.out = self.folder / "next"
        self.rig.reset_meter()  # a simulator that lags behind on a busy computer would not answer in time
        with self.rig.measure(*self.engine, "--operations", "500", "--idle", "1") as running:
            _, said = running.communicate(timeout=LIMIT_S)
        after = judged(self.rig.out, running.returncode, said)
        if after.status != "complete" or after.wrong:
            reasons = RunRecord.open(self.rig.out).faults if after.status != "no record" else []
            trial.wrong.append(f"next measurement failed: {after.status} {after.wrong} {reasons} {said.strip()[-200:]}")


def link_cut(measured: Measured) -> Trial:
    """Loses every byte for 15 s."""

    def cut(_: subprocess.Popen[str]) -> None:
        measured.rig.link.cut()
        time.sleep(AFTER_S)
        measured.rig.link.heal()

    return measured.run(cut)


def link_slow(measured: Measured) -> Trial:
    """Delays every byte by 0.4 s each way, from a random moment on."""

    def slow(_: subprocess.Popen[str]) -> None:
        measured.rig.link.delay_s = 0.4

    trial = measured.run(slow)
    measured.rig.link.delay_s = 0.0
    return trial


def host_killed(measured: Measured) -> Trial:
    """Kills measure.py (SIGKILL); the board has to stop the workload by itself."""
    return measured.run(lambda running: running.send_signal(signal.SIGKILL))


def loader_killed(measured: Measured) -> Trial:
    """Kills a loader that loads or runs (SIGKILL), as the kernel does when memory is exhausted."""

    def kill(running: subprocess.Popen[str]) -> bool:
        while not of_ours(measured.folder, "loader") and running.poll() is None:
            time.sleep(0.05)
        time.sleep(measured.chance.uniform(0.0, LOADER_LIVES_S))
        return _kill(measured, "loader")

    return measured.run(kill)


def server_killed(measured: Measured) -> Trial:
    """Kills the database server (SIGKILL)."""
    return measured.run(lambda _: _kill(measured, "java"))


def _kill(measured: Measured, name: str) -> bool:
    pids = of_ours(measured.folder, name)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


@contextlib.contextmanager
def shared_mounts(folder: Path) -> Iterator[None]:
    """Makes mounts below a folder visible to the board, whose sshd has its own mount table."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "--make-shared", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)  # sshd's end may still keep it busy


@contextlib.contextmanager
def own_disk(measured: Measured, megabytes: int) -> Iterator[str]:
    """Puts the medium on its own ext4 file system, which turns read-only on an error; yields its kernel name."""
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
    """Turns the file system read-only by an error of the medium (ext4, errors=remount-ro)."""
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
    """Fills the medium by another program."""
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
    """Injects one fault at one moment of a measurement over ssh."""
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
