"""Simulates a loss of power at any write of a recording and of a board's preparation. SIMULATED.

    .venv/bin/python host/validation/power_loss.py --cuts 400
    .venv/bin/python host/validation/power_loss.py --record DIR --log FILE        (kept by an earlier run with --keep)

A short recording runs while every change of its folder is logged (faults/write_log.c). Then the folder is rebuilt up to
the end of each change and up to random bytes within writes, in two ways. "kill" keeps everything that was written.
"power" loses a random part of each file's bytes that were not yet on the medium (fsync); in every third cut zeros
replace the lost bytes.

Each rebuilt folder is opened, its raw files are closed at their last seals, its trace is read, and every eighth record
is analysed by `measure.py report`. The samples must be the first ones of the whole recording, and a record with the
status complete must be the whole one. The journal of a board's settings is cut in the same way, and must still restore
the settings. Exit code 1 if a cut was not survived.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from faults.trial import COMMAND, CURRENT_A, env
from opjoule.base.errors import OpJouleError
from opjoule.boards.steps import Change, prepare_script, restore_script
from opjoule.energy.trace.journal import read_trace
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.runs.record.run_record import RunRecord
from rig_session import FIRMWARE, RIG_SIM, write_profile

HOST = Path(__file__).resolve().parents[1]

RECORDED_S = 3.0
REPORT_EVERY = 8
KILL, POWER, ZEROS = "kill", "power", "power, zeros"


@dataclass(frozen=True)
class Entry:
    """One logged change."""

    what: str
    path: str
    other: str
    at: int
    data: bytes


@dataclass
class Disk:
    """Files of a folder while logged changes are repeated, and the synced length of each."""

    files: dict[str, bytearray] = field(default_factory=dict)
    synced: dict[str, int] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    def make(self, entry: Entry, part: int | None = None) -> None:
        """Makes one change; if `part` is given, only the first `part` bytes of a write."""
        if entry.what == "mkdir":
            self.folders.append(entry.path)
        elif entry.what in ("make", "empty"):
            if entry.what == "empty" or entry.path not in self.files:
                self.files[entry.path], self.synced[entry.path] = bytearray(), 0
        elif entry.what == "write":
            file = self.files[entry.path]
            data = entry.data[:part]
            file.extend(bytes(max(entry.at - len(file), 0)))
            file[entry.at : entry.at + len(data)] = data
            self.synced[entry.path] = min(self.synced[entry.path], entry.at)
        elif entry.what == "size":
            file = self.files[entry.path]
            del file[entry.at :]
            file.extend(bytes(max(entry.at - len(file), 0)))
        elif entry.what == "sync" and entry.path in self.files:
            self.synced[entry.path] = len(self.files[entry.path])
        elif entry.what == "rename":
            self.files[entry.other] = self.files.pop(entry.path)
            self.synced[entry.other] = self.synced.pop(entry.path)
        elif entry.what == "unlink":
            self.files.pop(entry.path, None)

    def write(self, old: str, new: Path, how: str, chance: random.Random) -> None:
        """Writes the files of folder `old` into `new`, as a loss of the kind `how` leaves them."""
        new.mkdir(parents=True)
        for folder in self.folders:
            (new / os.path.relpath(folder, old)).mkdir(parents=True, exist_ok=True)
        for path, content in self.files.items():
            left = content
            if how != KILL and self.synced[path] < len(content):
                kept = chance.randint(self.synced[path], len(content))
                left = content[:kept] + bytes(len(content) - kept if how == ZEROS else 0)
            place = new / os.path.relpath(path, old)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(left)


def entries(log: Path) -> Iterator[Entry]:
    """Yields the changes in a log."""
    content, at = log.read_bytes(), 0
    while at < len(content):
        end = content.index(b"\n", at)
        path, other, offset, size = content[at:end].decode().split("\t")
        what, _, path = path.partition(" ")
        at = end + 1 + int(size)
        yield Entry(what, path, other, int(offset), content[end + 1 : at])


def record(folder: Path) -> tuple[Path, Path]:
    """Records 3 s from the simulated meter; returns the record's folder and the log."""
    library = folder / "write_log.so"
    source = HOST / "validation/faults/write_log.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread"], check=True)
    write_profile(folder / "profile.csv", [(0.0, CURRENT_A)], 5.04, 60)
    rig = [RIG_SIM, "--elf", FIRMWARE, "--pty", folder / "meter", "--truth", folder / "truth.json"]
    rig += ["--profile", folder / "profile.csv", "--pace", "1", "--patience-s", "60"]
    with subprocess.Popen(rig, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as meter:
        assert meter.stdout
        meter.stdout.readline()
        out, log = folder / "run", folder / "log"
        command = [*COMMAND, "record", "--meter", f"serial:{folder}/meter", "--out", str(out)]
        preloaded = {
            "LD_PRELOAD": str(library),
            "OPJOULE_WRITE_LOG": str(log),
            "OPJOULE_WRITE_FOLDER": str(out),
        }
        subprocess.run(
            [*command, "--seconds", str(RECORDED_S)],
            env=env(**preloaded),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        meter.kill()
    return out, log


def check_log(out: Path, made: list[Entry]) -> None:
    """Checks that the logged changes give the record. Raises: SystemExit: they do not."""
    disk = Disk()
    for entry in made:
        disk.make(entry)
    there = {str(path): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    if there != {path: bytes(content) for path, content in disk.files.items()}:
        differing = sorted(set(there) ^ set(disk.files)) or [p for p in there if there[p] != disk.files[p]]
        sys.exit(f"the log lacks changes: {differing[:3]}")


def judge(folder: Path, whole: PowerTrace, *, report: bool, kill: bool) -> tuple[str, list[str]]:
    """Examines the folder that a cut has left; returns its status and its faults."""
    if not (folder / "run.json").exists():
        return "no record yet", []
    wrong = []
    try:
        if report:
            ended = subprocess.run(
                [*COMMAND, "report", str(folder)],
                timeout=120,
                capture_output=True,
                text=True,
                check=False,
                env=env(),
            )
            if "Traceback" in ended.stderr:
                wrong.append("report: a traceback: " + ended.stderr.strip().splitlines()[-1])
        run = RunRecord.open(folder)
        if run.status == "complete" and (altered := run.verify()):
            wrong.append(f"says complete, but {altered[0]}")
        if not (folder / "raw/seals.csv").exists():
            return "begun, no sample yet", wrong + _has_samples(folder, kill=kill)
        if run.is_finished:
            trace = read_trace(folder)
        else:
            if kill:
                read_trace(folder)  # as someone would who looks at the record before it is closed
            run.close_raw()
            wrong += list(run.run.damaged.values())
            trace = read_trace(folder)
    except OpJouleError as fault:
        absent = "no power trace" in str(fault)
        return "partial" if absent else "unreadable", wrong + ([] if absent else [str(fault)])
    length = len(trace)
    same = all(
        np.array_equal(getattr(trace, name), getattr(whole, name)[:length], equal_nan=True)
        for name in ("meter_ns", "current_a")
    )
    if not same:
        wrong.append(f"its {length} samples differ from the first ones of the recording")
    return run.status, wrong


def _has_samples(folder: Path, *, kill: bool) -> list[str]:
    """Fault of a record without a seal: samples that nobody would find."""
    there = kill and (folder / "raw/power.arrows").exists() and len(read_trace(folder))
    return [f"{there} samples without a seal"] if there else []


def cut_record(out: Path, log: Path, cuts: int, chance: random.Random, *, report: bool = True) -> int:
    """Cuts a recording and prints the table; returns the number of cuts that were not survived."""
    made = list(entries(log))
    check_log(out, made)
    whole = read_trace(out)
    ends: list[tuple[int, int | None]] = [(number, None) for number in range(len(made) + 1)]
    writes = [number for number, entry in enumerate(made) if len(entry.data) > 1]
    ends += [(number, chance.randrange(1, len(made[number].data))) for number in chance.choices(writes, k=cuts)]
    print(
        f"{len(made)} changes, {len(whole)} samples; cuts after each change and within {cuts} writes",
        flush=True,
    )
    tally: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    broken = 0
    with tempfile.TemporaryDirectory(prefix="power-loss-") as place:
        for number, how, (end, part) in numbered(ends):
            disk = Disk()
            for entry in made[:end]:
                disk.make(entry)
            if part is not None:
                disk.make(made[end], part)
            folder = Path(place, "cut")
            disk.write(str(out), folder, how, chance)
            status, wrong = judge(folder, whole, report=report and number % REPORT_EVERY == 0, kill=how == KILL)
            shutil.rmtree(folder)
            tally[how][status] += 1
            if wrong:
                broken += 1
                print(f"  not survived: {how}, change {end}, byte {part}: {'; '.join(wrong)}", file=sys.stderr)
    for how, counts in tally.items():
        outcomes = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        print(f"| record: {how} | {sum(counts.values())} | {outcomes} |", flush=True)
    return broken


def numbered(ends: list[tuple[int, int | None]]) -> Iterator[tuple[int, str, tuple[int, int | None]]]:
    """Yields each cut twice: with a kill, and with one of the two kinds of power loss."""
    for number, end in enumerate(ends):
        yield number, KILL, end
        yield number + 1, ZEROS if number % 3 == 0 else POWER, end


def cut_journal(cuts: int, chance: random.Random) -> int:
    """Cuts a board's journal at random bytes of its newest file; returns how many journals did not restore."""
    broken = 0
    for _ in range(cuts):
        with tempfile.TemporaryDirectory(prefix="power-loss-") as place:
            broken += not _restores(Path(place), chance)
    print(f"| board's journal | {cuts} | {cuts - broken} restored |")
    return broken


def _restores(folder: Path, chance: random.Random) -> bool:
    """True if the settings are restored after the power is cut while the undo of one of six is written."""
    knobs = [folder / f"knob{number}" for number in range(6)]
    for knob in knobs:
        knob.write_text("a\n")
    done = chance.randrange(6)
    journal = str(folder / "journal")
    steps = [Change("x", ("put", str(knob), "b"), ("put", str(knob), "a"), lasting=True) for knob in knobs[: done + 1]]
    subprocess.run(["sh", "-s"], input=prepare_script(steps, journal), check=True, stdout=subprocess.DEVNULL)
    newest = Path(journal, f"{done + 1:04}.undo")
    knobs[done].write_text("a\n")  # its change comes after its undo
    content = newest.read_bytes()
    newest.unlink()
    Path(journal, f"{done + 1:04}.new").write_bytes(content[: chance.randint(0, len(content))])
    subprocess.run(["sh", "-s"], input=restore_script(journal), check=True, stdout=subprocess.DEVNULL)
    return all(knob.read_text() == "a\n" for knob in knobs) and not Path(journal).exists()


def main() -> int:
    """Prints the tables; exit status 1 if a cut was not survived."""
    parser = argparse.ArgumentParser(description="Simulates a loss of power at any write, SIMULATED.")
    parser.add_argument("--cuts", type=int, default=400, help="cuts within writes, besides one after each change")
    parser.add_argument("--journal-cuts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="keep the record and the log in this folder")
    parser.add_argument("--record", type=Path, help="record kept by an earlier run; needs --log")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    print("SIMULATED")
    with tempfile.TemporaryDirectory(prefix="power-loss-") as place:
        if options.keep:
            options.keep.mkdir(parents=True)
        out, log = (options.record, options.log) if options.record else record(options.keep or Path(place))
        broken = cut_record(out.resolve(), log, options.cuts, chance)
    broken += cut_journal(options.journal_cuts, chance)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
