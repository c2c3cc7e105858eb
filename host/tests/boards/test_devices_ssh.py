"""The connection to a board, against a real sshd on loopback."""

from __future__ import annotations

import contextlib
import os
import pty
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from loopback_sshd import Link, Sshd, make_key
from opjoule.base.errors import BadInput, LinkFault
from opjoule.boards.shell import Dialogue
from opjoule.boards.ssh import SshConnection, options_in_file, remote_line

HOST = Path(__file__).resolve().parents[2]
AWKWARD = [
    "two words",
    "it's",
    'a "quoted" one',
    "line\nbreak",
    "a;touch /tmp/opjoule-injected",
    "$(touch /tmp/opjoule-injected)",
    "`touch /tmp/opjoule-injected`",
    "${HOME} $HOME ~",
    "*",
    "back\\slash",
    "",
    "-rf",
    "ümläut €",
    "a|b>c<d&e!f#g",
    "tab\there",
]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def connection(sshd):
    made = SshConnection(sshd.target, sshd.options())
    yield made
    made.close()


@pytest.mark.parametrize("argument", AWKWARD)
def test_every_argument_reaches_the_board_as_data(connection, argument):
    ran = connection.run(["printf", "%s", argument, "--", argument])
    assert ran.out.decode() == argument + "--" + argument


def test_all_awkward_arguments_at_once_arrive_in_order_and_number(connection):
    ran = connection.run(["sh", "-c", 'for each; do printf "%s\\0" "$each"; done', "sh", *AWKWARD])
    assert ran.out.split(b"\0")[:-1] == [argument.encode() for argument in AWKWARD]


def test_a_nul_byte_is_refused(connection):
    with pytest.raises(BadInput, match="NUL"):
        connection.run(["echo", "a\0b"])


def test_status_output_and_feed_come_back(connection):
    ran = connection.run(["sh", "-c", "cat; echo oops >&2; exit 7"], feed=b"\x00\xff fed")
    assert (ran.status, ran.out, ran.err) == (7, b"\x00\xff fed", "oops\n")
    assert ran.last_line() == "oops"


def test_a_command_that_ends_with_255_is_not_taken_for_a_lost_link(connection):
    assert connection.run(["sh", "-c", "exit 255"]).status == 255


def test_sessions_run_side_by_side(connection):
    outcomes = []
    threads = [
        threading.Thread(
            target=lambda n=n: outcomes.append(connection.run(["echo", str(n)]).text().strip()), daemon=True
        )
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(outcomes) == [str(n) for n in range(8)]


@pytest.mark.parametrize("target", ["", "-oProxyCommand=touch /tmp/x", "-l", "user@host name", "a\nb"])
def test_a_target_that_ssh_would_take_for_an_option_is_refused(target):
    with pytest.raises(BadInput, match="ssh destination"):
        SshConnection(target)


def test_an_unknown_host_key_stops_with_sshs_own_line(sshd):
    with pytest.raises(LinkFault, match=r"No ED25519 .*127\.0\.0\.1"):
        SshConnection(sshd.target, sshd.options(host_key="\n"))


def test_a_changed_host_key_stops_with_sshs_own_line(sshd, tmp_path):
    other = make_key(tmp_path / "other")
    with pytest.raises(LinkFault, match=r"127\.0\.0\.1.* has changed"):
        SshConnection(sshd.target, sshd.options(host_key=other))


def test_the_users_options_cannot_switch_the_host_key_check_off(sshd):
    relaxed = [*sshd.options(host_key="\n"), "-o", "StrictHostKeyChecking=no"]
    with pytest.raises(LinkFault, match="Host key"):
        SshConnection(sshd.target, relaxed)


def test_a_refused_key_shows_sshs_own_line(sshd, tmp_path):
    make_key(tmp_path / "stranger")
    options = [str(tmp_path / "stranger") if part == str(sshd.user_key) else part for part in sshd.options()]
    with pytest.raises(LinkFault, match=r"Permission denied"):
        SshConnection(sshd.target, options)


def test_nobody_listening_shows_sshs_own_line(sshd):
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # nobody else gets the port, and nobody listens
        port = int(unheard.getsockname()[1])
        with pytest.raises(LinkFault, match="refused"):
            SshConnection(sshd.target, sshd.options(port))


def test_a_cut_link_is_noticed_and_made_again(sshd):
    link = Link(sshd.port)
    connection = SshConnection(sshd.target, sshd.options(link.port))
    try:
        assert connection.run(["echo", "before"]).text() == "before\n"
        link.cut()
        with pytest.raises(LinkFault, match="lost"):
            connection.run(["echo", "during"])
        assert not connection.is_up()
        assert not connection.reconnect(0.5)
        link.heal()
        assert connection.reconnect(120)
        assert connection.run(["echo", "after"]).text() == "after\n"
    finally:
        connection.close()
        link.close()


def test_without_its_master_a_session_makes_no_connection_of_its_own(sshd):
    connection = SshConnection(sshd.target, sshd.options())
    command = connection.command(["echo", "alone"])
    connection.close()
    ended = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert ended.returncode == 255
    assert b"alone" not in ended.stdout


def test_a_dialogue_answers_line_by_line_and_recovers(connection):
    dialogue = Dialogue(
        connection, ["sh", "-c", 'while read -r line; do [ "$line" = die ] && exit; echo "<$line>"; done']
    )
    sent_ns = time.monotonic_ns()
    answer, received_ns = dialogue.ask("a b")
    assert answer == "<a b>"
    assert sent_ns < received_ns <= time.monotonic_ns()
    with pytest.raises(LinkFault, match="does not answer"):
        dialogue.ask("die")
    assert dialogue.ask("again")[0] == "<again>"
    dialogue.close()


def test_the_remote_line_is_posix_quoting():
    assert remote_line(["echo", "a b", "c'd"]) == "echo 'a b' 'c'\"'\"'d'"


AT_TERMINAL = """
import sys
sys.path[:0] = [sys.argv[1]]
from opjoule.boards.ssh import SshConnection, options_in_file
connection = SshConnection(sys.argv[2], sys.argv[3:])
try:
    print("connected", flush=True)
    sys.stdin.read()
except KeyboardInterrupt:
    print("interrupted", connection.run(["echo", "still", "there"]).text(), flush=True)
connection.close()
"""


def press_ctrl_c(screen, ended, every_s=10.0):
    """Presses it, and again each ten seconds until it was answered."""
    screen.write(b"\x03")
    while not ended.wait(every_s):
        screen.write(b"\x03")


def test_the_connection_survives_ctrl_c_at_a_terminal(sshd):
    """After Ctrl-C the program still has to put the board back."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", AT_TERMINAL, str(HOST), sshd.target, *sshd.options()])
    said = b""
    with os.fdopen(terminal, "r+b", buffering=0) as screen:
        while b"connected" not in said:
            said += screen.read(100)
        # One that comes between two instructions of Python, right before it waits for input, is seen with the next.
        ended = threading.Event()
        threading.Thread(target=press_ctrl_c, args=(screen, ended), daemon=True).start()
        with contextlib.suppress(OSError):  # EIO at the end of a terminal
            while part := screen.read(100):
                said += part
                if b"interrupted" in said:
                    ended.set()
        ended.set()
    os.waitpid(pid, 0)
    assert b"interrupted still there" in said


def test_the_name_behind_an_alias_is_the_one_that_ssh_connects_to(sshd):
    connection = SshConnection(sshd.target, sshd.options())
    try:
        assert connection.hostname == "127.0.0.1"
    finally:
        connection.close()


def test_options_in_their_private_file_come_before_the_users_own_file(tmp_path):
    user_config, config = tmp_path / "own config", tmp_path / "options"
    user_config.write_text("Host board\n  HostName 10.0.0.1\n  Port 2222\n  User pi\n")
    options = options_in_file(["-4", "-F", str(user_config), "-o", "Port=99", "-i", "key", "-oUser=me"], config)
    assert options == ["-F", str(config), "-4", "-i", "key"]
    assert config.stat().st_mode & 0o777 == 0o600
    settings = subprocess.run(["ssh", "-G", *options, "board"], capture_output=True, text=True, check=True).stdout
    assert {"hostname 10.0.0.1", "port 99", "user me"} <= set(settings.splitlines())


@pytest.mark.parametrize("options", [[], ["-p", "22"], ["-F", "/no/such/file", "-o", "Port=99"]])
def test_without_settings_and_with_a_file_that_is_missing_the_options_stay(tmp_path, options):
    assert options_in_file(options, tmp_path / "options") == options


def test_no_key_is_taken_from_anywhere_but_known_hosts(sshd):
    connection = SshConnection(sshd.target, sshd.options())
    try:
        settings = subprocess.run(
            [*connection.command(["true"])[:-3], "-G", sshd.target],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
    finally:
        connection.close()
    kept = {"stricthostkeychecking true", "updatehostkeys false", "verifyhostkeydns false"}
    assert kept | {"nohostauthenticationforlocalhost no"} <= set(settings)
