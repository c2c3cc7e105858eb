"""Starts and stops virtual boards: fresh disks over a cached image, restored from a snapshot if there is one."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from opjoule.base.errors import DeviceFault

EMULATOR = "qemu-system-aarch64"
MEDIA = {"sd": ("SD", 20 << 20, 1500), "emmc": ("EMMC", 80 << 20, 5000), "ssd": ("SSD", 200 << 20, 20000)}
"""Serial, bytes a second and operations a second of each medium's disk; invented, only their order is meaningful."""
MEDIUM_BYTES = 1 << 30
_START_S = 1200.0
_NO_MITIGATIONS = "nokaslr kpti=off mitigations=off"
"""Options of the kernel. With a random address layout it changes page tables at each system call
(kaslr_requires_kpti in Linux' arch/arm64/kernel/cpufeature.c). The emulator then empties its TLB, a third of its work,
which is pointless for an emulated board."""


class Image:
    """Files built by image.py, in one cache folder."""

    def __init__(self, folder: Path, start: str) -> None:
        """Paths of the machine's files; `start`: hash of the machine that the snapshot belongs to."""
        self.folder = folder
        self.kernel = folder / "vmlinuz"
        self.initrd = folder / "initrd"
        self.root = folder / "root.qcow2"
        """The root disk, never written to."""
        self.booted_root = folder / f"booted-{start}.qcow2"
        """Changes over `root` by booting, as of the snapshot."""
        self.snapshot = folder / f"booted-{start}.zst"
        """Memory and devices of a booted machine."""
        self.user_key = folder / "user_key"
        """Private key of both of the board's users."""
        self.host_key_file = folder / "host_key.pub"

    def ssh_options(self, port: int, known_hosts: Path) -> list[str]:
        """ssh options for a board of this image behind loopback `port`; writes its host key to `known_hosts`."""
        known_hosts.write_text(f"[127.0.0.1]:{port} {self.host_key_file.read_text()}")
        return [
            *("-F", "none", "-p", str(port), "-i", str(self.user_key), "-o", "IdentitiesOnly=yes"),
            *("-o", f"UserKnownHostsFile={known_hosts}", "-o", "GlobalKnownHostsFile=none"),
        ]


class Machine:
    """One running virtual board. Its disks are in `folder` and survive reset and power cut, but not close()."""

    def __init__(self, image: Image, folder: Path, *, serial: Path | None = None) -> None:
        """Starts the board, from the snapshot if possible.

        Args:
            folder: a new or empty folder for its disks, sockets and logs.
            serial: a serial port of this computer, connected to the board's /dev/ttyS0; None for none.
        Raises: DeviceFault: qemu does not start, or the board does not boot.
        """
        self.image = image
        self.folder = folder
        self.port = _free_port()
        self.edges = folder / "edges.log"
        self._serial = serial
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise DeviceFault(f"{folder} is not empty: a virtual board removes its folder when it ends")
        restore = image.snapshot.exists()
        backing = (image.booted_root if restore else image.root).resolve()
        _make_disk("-F", "qcow2", "-b", str(backing), str(folder / "root.qcow2"))
        for name in MEDIA:
            _make_disk(str(folder / f"{name}.qcow2"), str(MEDIUM_BYTES))
        self.power_on(restore=restore)

    def power_on(self, *, restore: bool = False) -> None:
        """Starts qemu with the present disks and waits until sshd answers."""
        command = self._command()
        if restore:
            command += ["-incoming", f"exec:zstd -dc {shlex.quote(str(self.image.snapshot))}"]
        with (self.folder / "qemu.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        self._await_ssh()

    def _command(self) -> list[str]:
        disks = [("root", "ROOT", "")]
        for name, (serial, rate, operations) in MEDIA.items():
            disks.append((name, serial, f",throttling.bps-total={rate},throttling.iops-total={operations}"))
        drives: list[str] = []
        for name, serial, throttle in disks:
            file = f"file={name}.qcow2,format=qcow2,cache=writeback,discard=unmap{throttle}"
            drives += ["-drive", f"if=none,id={serial},{file}"]
            drives += ["-device", f"virtio-blk-device,drive={serial},serial={serial}"]
        return [
            *f"{EMULATOR} -M virt-7.2 -cpu cortex-a53 -accel tcg,thread=multi -smp 2 -m 1G".split(),
            *("-nographic", "-monitor", "none", "-serial", "file:console.log", "-nodefaults"),
            *("-kernel", str(self.image.kernel), "-initrd", str(self.image.initrd)),
            *("-append", f"console=ttyAMA0 quiet net.ifnames=0 {_NO_MITIGATIONS}"),
            *drives,
            *("-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22"),
            *("-device", "virtio-net-device,netdev=net"),
            *("-chardev", f"serial,id=meter,path={self._serial}" if self._serial else "null,id=meter"),
            *("-device", "pci-serial,chardev=meter"),
            *("-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-device,rng=rng"),
            *("-qmp", "unix:qmp.sock,server=on,wait=off"),
            *("-msg", "timestamp=on", "-D", str(self.edges), "-trace", "pl061_set_output"),
        ]

    def _await_ssh(self) -> None:
        deadline_s = time.monotonic() + _START_S
        while not self._greets():
            assert self._process
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                tail = (self.folder / "qemu.log").read_text(errors="replace").strip().splitlines()[-1:]
                self.power_off()
                raise DeviceFault(f"the virtual board does not start: {' '.join(tail) or 'no word from qemu'}")
            time.sleep(0.1)

    def _greets(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1.0) as probe:
                probe.settimeout(20.0)
                return probe.recv(4) == b"SSH-"
        except OSError:
            return False

    def qmp(self, command: str, **arguments: Any) -> Any:
        """Sends one command to qemu's machine protocol; returns its value."""
        with socket.socket(socket.AF_UNIX) as line:
            # A path relative to the folder, because a socket's name is limited to 107 bytes.
            descriptor = os.open(self.folder, os.O_RDONLY)
            try:
                line.connect(f"/proc/self/fd/{descriptor}/qmp.sock")
            finally:
                os.close(descriptor)
            stream = line.makefile("rw")
            stream.readline()
            for order in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                stream.write(json.dumps(order) + "\n")
                stream.flush()
                reply = _reply(stream)
            return reply

    def save(self) -> None:
        """Stops the machine and saves its memory and disk changes as the image's snapshot."""
        part = self.image.snapshot.with_suffix(".part")
        self.qmp("migrate", uri=f"exec:zstd -q -T2 -3 -c > {shlex.quote(str(part))}")
        while (state := self.qmp("query-migrate").get("status")) not in ("completed", "failed"):
            time.sleep(0.2)
        self.power_off()
        if state == "failed":
            raise DeviceFault("qemu could not save the virtual board")
        shutil.move(self.folder / "root.qcow2", self.image.booted_root)
        part.rename(self.image.snapshot)

    def is_running(self) -> bool:
        """False once qemu has ended."""
        return self._process is not None and self._process.poll() is None

    def power_off(self) -> None:
        """Cuts the power: qemu is killed, the disks keep their contents."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        if self._process:
            self._process.wait()

    def close(self) -> None:
        """Cuts the power and removes the disks."""
        self.power_off()
        shutil.rmtree(self.folder, ignore_errors=True)


def _reply(stream: Any) -> Any:
    for line in stream:
        answer = json.loads(line)
        if "return" in answer:
            return answer["return"]
        if "error" in answer:
            raise DeviceFault(f"qemu: {answer['error']['desc']}")
    raise DeviceFault("qemu has ended")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _make_disk(*arguments: str) -> None:
    command = ["qemu-img", "create", "-q", "-f", "qcow2", *arguments]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise DeviceFault(f"qemu-img: {made.stderr.strip()}")
