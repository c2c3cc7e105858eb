"""A real sshd on loopback with its own configuration and keys, and a link in front of it that can be slow or cut."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin") or "/usr/sbin/sshd"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_key(path: Path) -> str:
    """Makes a new key pair. Returns: its public key."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.with_name(path.name + ".pub").read_text()


class Sshd:
    """An sshd that the test starts and ends. It reads and changes nothing of the computer's own configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host_key = make_key(folder / "host_key")
        self.user_key = folder / "user_key"
        (folder / "authorized_keys").write_text(make_key(self.user_key))
        self._settings = {
            "ListenAddress": "127.0.0.1",
            "HostKey": folder / "host_key",
            "AuthorizedKeysFile": folder / "authorized_keys",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "PermitRootLogin": "yes",
            "MaxSessions": 40,
            # SHLVL keeps bash from the account's own start-up files, which may take long.
            # Programs in bin/ come before the system's: a test can put a slow or old one there.
            "SetEnv": f"SHLVL=2 OPJOULE_WORK={folder}/work XDG_CACHE_HOME={folder}/cache "
            f"PATH={folder}/bin:{os.environ['PATH']}",
        }
        self._log = (folder / "sshd.log").open("wb")
        for _ in range(10):  # another program may take the port before sshd does
            self.port = free_port()
            self._process = self._start()
            if self._listens():
                return
        raise AssertionError((folder / "sshd.log").read_text())

    def _start(self) -> subprocess.Popen[bytes]:
        config = self.folder / "sshd_config"
        settings = {**self._settings, "Port": self.port}
        config.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        command = [SSHD, "-D", "-e", "-f", str(config)]
        if os.geteuid() == 0:  # root's sshd needs /run/sshd: it gets its own /run
            inside = 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$@"'
            namespace = [
                "unshare",
                "--mount",
                "--propagation",
                "slave",
            ]  # it sees shared mounts that are made later
            command = [*namespace, "sh", "-c", inside, "sh", *command]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)

    def _listens(self) -> bool:
        """Waits until sshd says that it listens; False if it has ended instead."""
        deadline_s = time.monotonic() + 120
        while f"listening on 127.0.0.1 port {self.port}." not in (log := self._log_text()):
            if self._process.poll() is not None:
                return False
            assert time.monotonic() < deadline_s, log
            time.sleep(0.02)
        return True

    def _log_text(self) -> str:
        return (self.folder / "sshd.log").read_text(errors="replace")

    def options(self, port: int | None = None, *, host_key: str | None = None) -> list[str]:
        """ssh options for a connection to `port` (default: sshd's own) that knows `host_key` (default: sshd's)."""
        port = port or self.port
        known = self.folder / f"known_hosts_{port}"
        known.write_text(f"[127.0.0.1]:{port} {self.host_key if host_key is None else host_key}")
        return [
            *("-F", "none", "-p", str(port), "-i", str(self.user_key), "-o", "IdentitiesOnly=yes"),
            *("-o", f"UserKnownHostsFile={known}", "-o", "GlobalKnownHostsFile=none"),
        ]

    @property
    def target(self) -> str:
        return f"{getpass.getuser()}@127.0.0.1"

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
        self._log.close()


class Link:
    """A TCP link to `port` that delays each way by `delay_s`; cut() lets nothing pass until heal()."""

    def __init__(self, port: int, delay_s: float = 0.0) -> None:
        self._target = port
        self.delay_s = delay_s
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(60), "the link does not start"

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port = int(server.sockets[0].getsockname()[1])
        started.set()
        self._loop.run_forever()
        server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if not self._is_cut:
                self._loop.call_later(self.delay_s, self._deliver, writer, data)
        self._loop.call_later(self.delay_s, writer.close)

    def _deliver(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if not self._is_cut and not writer.is_closing():
            writer.write(data)

    def cut(self) -> None:
        """From now on every byte is lost, both ways, and new connections are refused."""
        self._is_cut = True

    def heal(self) -> None:
        """New connections pass again; the old ones, which have lost bytes, end."""

        def end_old() -> None:
            for writer in self._writers:
                writer.transport.abort()
            self._writers.clear()
            self._is_cut = False

        self._loop.call_soon_threadsafe(end_old)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
