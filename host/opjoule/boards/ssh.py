"""One persistent connection to a board through the system's OpenSSH.

The user's own configuration, agent, jump hosts and known_hosts apply; host keys are always checked. A master
process holds the connection (ssh_config(5), ControlMaster) and every command is a session over it. Remote commands
are quoted in one place, `remote_line`. When this program dies, the master's and every session's standard input
ends, and with it the remote side.
"""

import contextlib
import functools
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

from opjoule.base.errors import BadInput, LinkFault
from opjoule.boards.shell import Ran, Shell, without_nul

_READY = b"opjoule-ready\n"
_ALIVE_S = 2
_ALIVE_COUNT = 5
_CONNECT_S = 20
_PROBE_S = 60.0
_EXIT_S = 10.0
"""Time limit from the end of a connection to the end of its master, including its last messages."""
_RETRY_S = 1.0
# At a terminal ssh must stay in the terminal's session to ask for a passphrase, but a Ctrl-C is for this program: it
# still needs the connection to restore the board. ssh leaves an ignored signal ignored.
_DEAF = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
_WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"
"""Options of ssh with a value (ssh(1), SYNOPSIS)."""
SSH_LOST = 255
"""Exit status of ssh when the connection, not the command, failed (ssh(1), EXIT STATUS)."""


def _settings(*settings: str) -> list[str]:
    return [part for setting in settings for part in ("-o", setting)]


# The first value of an option wins in ssh, so later options cannot relax the host key check. Source: ssh_config(5).
_CHECKED = _settings(
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "VerifyHostKeyDNS=no",
    "NoHostAuthenticationForLocalhost=no",
)


def options_in_file(options: list[str], config: Path) -> list[str]:
    """The options with each -o moved to a file readable by its owner alone: `ps` shows arguments to all users.

    Options missing in the file come from the file of the user's own -F, or from ssh's default files.
    """
    settings: list[str] = []
    others: list[str] = []
    given = iter(options)
    base = ["~/.ssh/config", "/etc/ssh/ssh_config"]
    for option in given:
        if option.startswith(("-o", "-F")):
            value = option[2:] or next(given, "")
            if option.startswith("-o"):
                settings.append(value)
            else:
                base = [] if value == "none" else [str(Path(value).expanduser().absolute())]
        else:
            others.append(option)
            others += [next(given, "")] if len(option) == 2 and option[1:] in _WITH_VALUE else []
    if not settings or not all(path.startswith("~") or Path(path).is_file() for path in base[:1]):
        return options  # ssh itself reports a missing file
    lines = [*settings, *(f'Match all\nInclude "{path}"' for path in base)]
    config.touch(mode=0o600)
    config.write_text("".join(f"{line}\n" for line in lines))
    return ["-F", str(config), *others]


def remote_line(arguments: list[str]) -> str:
    """The line that the board's shell splits into exactly these arguments again (POSIX quoting)."""
    return shlex.join(without_nul(arguments))


class SshConnection(Shell):
    """A board behind ssh; several threads may run commands at the same time."""

    def __init__(self, target: str, options: list[str] | None = None) -> None:
        """Connects.

        Args:
            target: [user@]host as ssh takes it, an alias of the user's ssh_config, or ssh://user@host:port.
            options: additional ssh options, for example ["-p", "2222"].
        Raises: LinkFault: with ssh's own message. BadInput: not a target for ssh.
        """
        if not target or target.startswith("-") or any(character.isspace() for character in target):
            raise BadInput(f"'{target}' is not an ssh destination; write connection = \"ssh:user@host\"")
        self.target = target
        self._folder = tempfile.TemporaryDirectory(prefix=f"opjoule-ssh-{os.getpid()}-")
        self._master: subprocess.Popen[bytes] | None = None
        self._words: list[str] = []
        self._options = options_in_file(list(options or []), Path(self._folder.name, "config"))
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _base(self) -> list[str]:
        return ["ssh", "-T", *_CHECKED, "-S", f"{self._folder.name}/control"]

    def _connect(self) -> None:
        Path(self._folder.name, "control").unlink(missing_ok=True)
        ask = "no" if sys.stdin is not None and sys.stdin.isatty() else "yes"
        keep = [f"ServerAliveInterval={_ALIVE_S}", f"ServerAliveCountMax={_ALIVE_COUNT}", f"BatchMode={ask}"]
        keep += ["ControlMaster=yes", "ControlPersist=no", f"ConnectTimeout={_CONNECT_S}"]
        options = _settings(*keep)
        hold = remote_line(["sh", "-c", "echo opjoule-ready; cat >/dev/null"])
        try:
            self._master = subprocess.Popen(
                [*_DEAF, *self._base(), *options, *self._options, "--", self.target, hold],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=ask == "yes",
            )
        except OSError as error:
            raise LinkFault(f"ssh cannot be started ({error.strerror}): install openssh-client") from error
        assert self._master.stdout and self._master.stderr
        self._words = []
        reader = threading.Thread(target=self._listen, args=(self._master.stderr, self._words), daemon=True)
        reader.start()
        for line in self._master.stdout:  # a login script of the board may print a greeting first
            if line == _READY:
                return
        self._master.wait()
        reader.join(timeout=_EXIT_S)
        raise LinkFault(
            f"{self.target}: {self.why_down()}: make 'ssh {self.target}' work without a question first "
            "(docs/how-to/connect-a-board.md)"
        )

    @staticmethod
    def _listen(stream: IO[bytes], words: list[str]) -> None:
        for line in stream:
            text = line.decode(errors="replace").strip()
            if text and not text.startswith("@"):
                words.append(text)

    @functools.cached_property
    def hostname(self) -> str:
        """The host name that ssh connects to, after resolving the user's aliases (ssh -G)."""
        ran = subprocess.run(
            ["ssh", "-G", *self._options, "--", self.target],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        words = (line.split() for line in ran.stdout.splitlines())
        return next((word[1] for word in words if word[:1] == ["hostname"] and len(word) == 2), "")

    def why_down(self) -> str:
        """The last message of ssh; for a host key, also the line before, which names the key."""
        if not self._words:
            return "the connection ended, and ssh gave no reason"
        count = 2 if self._words[-1].startswith("Host key verification failed") else 1
        return " ".join(self._words[-count:])

    def is_up(self) -> bool:
        """Whether the master process holds the connection."""
        return self._master is not None and self._master.poll() is None

    def command(self, arguments: list[str]) -> list[str]:
        """The ssh command line that runs `arguments` on the board over the existing connection."""
        # Without its master, ssh would open a separate connection: a proxy that fails prevents that.
        alone = _settings("ControlMaster=no", "BatchMode=yes", "ProxyCommand=false", "LogLevel=ERROR")
        return [*self._base(), *alone, *self._options, "--", self.target, remote_line(arguments)]

    def run(self, arguments: list[str], *, feed: bytes = b"", limit_s: float = 120.0) -> Ran:
        """Runs one command on the board to its end."""
        if not self.is_up():
            raise LinkFault(f"the connection to {self.target} is lost: {self.why_down()}")
        try:
            ended = self._ended(arguments, limit_s, feed)
        except subprocess.TimeoutExpired as error:
            raise LinkFault(f"{self.target} has not answered '{arguments[0]}' within {limit_s:g} s") from error
        if ended.returncode == SSH_LOST and not self.is_still_up():
            raise LinkFault(f"the connection to {self.target} was lost: {self.why_down()}")
        return Ran(ended.returncode, ended.stdout, ended.stderr.decode(errors="replace"))

    def is_still_up(self) -> bool:
        """is_up() after the master has had time to notice what one of its sessions noticed."""
        assert self._master is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._master.wait(timeout=0.2)
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._ended(["true"], _PROBE_S).returncode != SSH_LOST:
                return True  # the master accepts another session
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._master.wait(timeout=_EXIT_S)
        return self.is_up()

    def _ended(self, arguments: list[str], limit_s: float, feed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """The result of one command over the connection. Raises: subprocess.TimeoutExpired."""
        return subprocess.run(
            self.command(arguments),
            input=feed,
            capture_output=True,
            timeout=limit_s,
            check=False,
            start_new_session=True,
        )

    def reconnect(self, limit_s: float) -> bool:
        """Connects again, trying once a second for up to limit_s."""
        deadline_s = time.monotonic() + limit_s
        while not self.is_up():
            try:
                self._connect()
            except LinkFault:
                if time.monotonic() + _RETRY_S > deadline_s:
                    return False
                time.sleep(_RETRY_S)
        return True

    def close(self) -> None:
        """Closes the connection and ends everything that still runs over it."""
        if self._master is not None:
            assert self._master.stdin
            with contextlib.suppress(BrokenPipeError):
                self._master.stdin.close()
            self._master.terminate()
            self._master.wait()
        self._folder.cleanup()
