"""A whole rig on this computer: a simulated meter, and a board behind a real sshd on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loopback_sshd import Link, Sshd
from rig_session import rig_sim

ROOT = Path(__file__).resolve().parents[3]
KEEP = ("page_cache", "governor", "wifi", "bluetooth", "hdmi", "leds", "swap", "services")
RUN_THROUGH = (0, 6)
"""Exit statuses of a complete run. 6: this computer, as the board, was busy with other work, which the record names."""


@pytest.fixture
def rig(tmp_path):
    made = LoopbackRig(tmp_path)
    yield made
    made.close()


class LoopbackRig:
    """A real sshd behind a link that can be cut, a simulated meter, and the rig.toml of both."""

    def __init__(self, folder: Path, connection: str = "ssh", *more: str) -> None:
        self.folder = folder
        self._host: subprocess.Popen[str] | None = None
        self.out = folder / "out"
        (folder / "sshd").mkdir()
        self.sshd = Sshd(folder / "sshd")
        self.link = Link(self.sshd.port)
        self.storage = folder / 'sd card; $(touch injected) "x"'
        (folder / "profile.csv").write_text("time_s,current_a,voltage_v\n0,0.6,5.0\n3600,0.6,5.0\n")
        self._simulator = contextlib.ExitStack()
        meter = self.reset_meter()
        lines = [
            f'[meter]\nport = "serial:{meter}"',
            f'[device.rpi4]\nconnection = "{"local" if connection == "local" else f"ssh:{self.sshd.target}"}"',
            f"ssh_options = {json.dumps([] if connection == 'local' else self.sshd.options(self.link.port))}",
            *('sync = "none"', *more),
            f"[device.rpi4.storage]\nsd = {json.dumps(str(self.storage))}",
            "[device.rpi4.state]",
            *(f'{key} = "keep"' for key in KEEP),
        ]
        (folder / "rig.toml").write_text("\n".join(lines) + "\n")

    def reset_meter(self) -> str:
        """Starts a new meter, as an Uno is reset at each opening. Returns: its port, which is always the same."""
        self._simulator.close()
        running = rig_sim(self.folder, "--profile", str(self.folder / "profile.csv"), pace="1")
        return str(self._simulator.enter_context(running).port)

    def measure(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "opjoule.cli.start", "--device", "rpi4"]
        if "--db" not in options:
            command += ["--db", "leveldb"]
        command += [
            "--rig",
            str(self.folder / "rig.toml"),
            "--out",
            str(self.out),
            "--records",
            "2000",
            "--idle",
            "0.5",
        ]
        command += [
            "--repeats",
            "1",
            "--settle-limit",
            "60",
            "--no-harness",
            "--reset",
            "load",
            "--no-signature",
            *options,
        ]
        if not any(option.startswith("target=") for option in options):
            command += ["--rate", "full"]
        self._host = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )
        return self._host

    def record(self) -> dict:
        return json.loads((self.out / "run.json").read_text())

    def phases(self) -> list[str]:
        if not (self.out / "run.json").exists():
            return []
        return [phase["name"] for phase in self.record().get("phases", [])]

    def windows(self) -> list[tuple[str, int, int]]:
        return [(phase["name"], phase["start_board_ns"], phase["end_board_ns"]) for phase in self.record()["phases"]]

    def await_phase(self, name: str) -> None:
        deadline_s = time.monotonic() + 300
        while True:
            ended = self._host.poll() is not None
            if name in self.phases():
                return
            assert not ended, f"it ended before {name}: {self._host.communicate()[1]}"
            assert time.monotonic() < deadline_s, f"no phase {name}"
            time.sleep(0.05)

    def await_operations(self) -> None:
        """Waits until the run has logged operations on the board, and the meter's samples of it are on disk."""
        deadline_s = time.monotonic() + 300
        while self._sizes(self.folder / "sshd/work", "*/*/run-1/run-1.oplog") < 10_000 or (
            self._sizes(self.out, "raw/power.arrows") < 20_000
        ):
            assert self._host.poll() is None, f"it ended before the run: {self._host.communicate()[1]}"
            assert time.monotonic() < deadline_s, "the run does not begin"
            time.sleep(0.05)

    @staticmethod
    def _sizes(folder: Path, pattern: str) -> int:
        return sum(path.stat().st_size for path in folder.glob(pattern))

    def close(self) -> None:
        self._simulator.close()
        self.link.close()
        self.sshd.close()
