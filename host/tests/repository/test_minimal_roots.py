"""A minimal root: made once, not too old, closed to this computer but for its network settings."""

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import minimal_roots
import network_settings
import pytest
from logged_commands import SetupError
from minimal_roots import MinimalRoot

NO_SETTINGS = network_settings.NetworkSettings({}, (), (), ())


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A minimal root whose mmdebstrap is a stand-in: it packs one file, or fails half-way if the suite is 'broken'."""
    programs = tmp_path / "programs"
    programs.mkdir()
    stand_in = programs / "mmdebstrap"
    stand_in.write_text(
        '#!/bin/sh\nfor last in "$@"; do before=$target target=$file file=$last; done\n'
        'case $before in broken) echo half > "$target"; echo no such suite; exit 1;; esac\n'
        'echo made > "$TMPDIR/made"\ntar --zstd -C "$TMPDIR" -cf "$target" made\n'
    )
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(minimal_roots, "ROOTS", tmp_path / "roots")
    return MinimalRoot("bookworm", minimal_roots._own_architecture() or "arm64")


def made(root, tmp_path):
    minimal_roots.get_root(root, tmp_path / "log", NO_SETTINGS)
    return root.packed.stat().st_mtime_ns


def test_a_root_is_made_once_and_unpacked_each_time(root, tmp_path):
    first = made(root, tmp_path)
    assert made(root, tmp_path) == first
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/left-over").touch()
    root.unpack(tmp_path / "tree", tmp_path / "log")
    assert [path.name for path in (tmp_path / "tree").iterdir()] == ["made"]
    assert [path.name for path in minimal_roots.ROOTS.iterdir()] == [root.packed.name]


@pytest.mark.parametrize("damage", ["old", "cut off", "garbage"])
def test_a_root_that_is_old_or_damaged_is_made_again(root, tmp_path, damage):
    made(root, tmp_path)
    if damage == "old":
        then_s = time.time() - minimal_roots.OLDEST_S - 60
        os.utime(root.packed, (then_s, then_s))
    else:
        whole = root.packed.read_bytes()
        root.packed.write_bytes(whole[:-8] if damage == "cut off" else b"no archive")
    assert not root.is_usable(time.time())
    made(root, tmp_path)
    assert root.is_usable(time.time())


def test_a_root_that_could_not_be_made_leaves_nothing_that_looks_like_one(root, tmp_path):
    broken = replace(root, suite="broken")
    with pytest.raises(SetupError, match="no such suite"):
        made(broken, tmp_path)
    assert list(minimal_roots.ROOTS.iterdir()) == []


def test_a_foreign_processor_is_emulated_unless_the_kernel_does_it_already(tmp_path, monkeypatch):
    monkeypatch.setattr(minimal_roots.platform, "machine", lambda: "x86_64")
    assert minimal_roots.emulation("amd64", tmp_path) == ()
    assert minimal_roots.emulation("arm64", tmp_path) == ("python3", str(minimal_roots._EMULATION))
    (tmp_path / "qemu-aarch64").write_text("enabled\ninterpreter /usr/bin/qemu-aarch64-static\n")
    assert minimal_roots.emulation("arm64", tmp_path) == ()
    monkeypatch.setattr(minimal_roots.platform, "machine", lambda: "aarch64")
    assert minimal_roots.can_run("arm64") and not minimal_roots.can_run("amd64")


def test_a_root_has_its_own_environment_and_its_users_home(tmp_path):
    command = minimal_roots.inside(
        tmp_path,
        MinimalRoot("bookworm", "amd64"),
        "true",
        user="user",
        folder="/home",
        variables={"A": "b c"},
    )
    after = command[command.index("env") :]
    assert after[1:4] == ["-i", "-C", "/home"] and after[-3:] == ["bash", "-c", "true"]
    assert {"HOME=/home/user", "USER=user", "A=b c"} < set(after)
    assert "--reuid=user" in command


def namespaces_allowed():
    command = ["unshare", "--mount", "--pid", "--uts", "--fork", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not namespaces_allowed(), reason="only root can enter a root, where namespaces are allowed")
def test_a_program_in_a_root_sees_none_of_this_computers_processes_devices_and_mounts(tmp_path):
    """The root is this computer's own, bound to another place."""
    tree = tmp_path / "tree"
    for name in ("proc", "sys", "dev", "run", "tmp"):
        (tree / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "usr", "sbin", "etc"):
        if (place := Path("/") / name).is_symlink():
            (tree / name).symlink_to(place.readlink())
        elif place.is_dir():
            (tree / name).mkdir()
    script = (
        "ls /dev; cat /proc/sys/kernel/hostname; ls -d /proc/[0-9]* | wc -l; stat -c %a /tmp /run /dev/shm;"
        "stat -c %m /; python3 -c 'import os; print(len(os.openpty()))'; exit 7"
    )
    arranged = 'for name in usr etc lib lib64 bin sbin; do test -L "$0/$name" || mount --bind "/$name" "$0/$name"; done'
    command = minimal_roots.inside(tree, MinimalRoot("bookworm", minimal_roots._own_architecture()), script)
    outer = ["unshare", "--mount", "sh", "-c", f'{arranged}; shift; exec "$@"', str(tree), "x", *command]
    ended = subprocess.run(outer, capture_output=True, text=True, check=False)
    devices = {
        "null",
        "zero",
        "full",
        "random",
        "urandom",
        "tty",
        "pts",
        "ptmx",
        "shm",
        "fd",
        "stdin",
        "stdout",
        "stderr",
    }
    *shown, name, processes, tmp, run, shm, mount, ends = ended.stdout.split()
    assert set(shown) == devices, ended.stderr
    assert (name, tmp, run, shm, mount, ends) == ("fresh-root", "1777", "755", "1777", "/", "2")
    assert int(processes) <= 6
    assert ended.returncode == 7
    assert str(tree) not in Path("/proc/mounts").read_text()


# --- network settings


def test_only_network_settings_are_passed_on(tmp_path, monkeypatch):
    home, bundle = tmp_path / "home", tmp_path / "authorities.crt"
    (home / ".m2").mkdir(parents=True)
    (home / ".m2/settings.xml").write_text("<settings/>")
    (home / ".ssh").mkdir()
    (home / ".ssh/id_ed25519").touch()
    bundle.write_text("certificates")
    environment = {
        "https_proxy": "http://proxy:3128",
        "NO_PROXY": "localhost",
        "SSL_CERT_FILE": str(bundle),
        "PIP_CERT": str(tmp_path / "missing.crt"),
        "AWS_SECRET_ACCESS_KEY": "secret",
        "PATH": "/bin",
        "PYTHONPATH": "/here",
    }
    monkeypatch.setattr(network_settings, "_apt_configuration", lambda: 'Acquire::http::Proxy "http://p:1";\n')
    settings = network_settings.network_settings(environment, home, tmp_path)
    assert set(settings.variables) == {"https_proxy", "NO_PROXY", "SSL_CERT_FILE", "PIP_CERT"}
    tree = tmp_path / "tree"
    settings.write(tree, "/home/user")
    assert (tree / str(bundle).lstrip("/")).read_text() == "certificates"
    assert (tree / "home/user/.m2/settings.xml").read_text() == "<settings/>"
    assert (tree / network_settings.APT_FILE).read_text() == 'Acquire::http::Proxy "http://p:1";\n'
    assert not list(tree.rglob("id_ed25519")) and not list(tree.rglob("missing.crt"))


def test_a_link_in_the_root_is_replaced_and_not_written_through(tmp_path):
    """A root's /etc/resolv.conf may be a link out of it."""
    source, outside = tmp_path / "resolv.conf", tmp_path / "outside"
    source.write_text("nameserver 192.0.2.1\n")
    outside.write_text("mine\n")
    target = tmp_path / "tree" / str(source).lstrip("/")
    target.parent.mkdir(parents=True)
    target.symlink_to(outside)
    network_settings.NetworkSettings({}, (source,), (), ()).write(tmp_path / "tree", "/root")
    assert outside.read_text() == "mine\n" and target.read_text() == "nameserver 192.0.2.1\n"


def test_of_apts_configuration_proxies_and_certificates_alone_are_passed_on():
    dump = (
        'Acquire "";\nAcquire::AllowInsecureRepositories "1";\nAcquire::http "";\n'
        'Acquire::http::Proxy "http://proxy:3142";\nAcquire::https::CaInfo "/etc/ca.crt";\n'
        'Acquire::https::Verify-Peer "false";\nAcquire::http::Proxy::internal "DIRECT";\nAcquire::ftp::Proxy "";\n'
    )
    assert network_settings.apt_lines(dump) == (
        'Acquire::http::Proxy "http://proxy:3142";',
        'Acquire::https::CaInfo "/etc/ca.crt";',
        'Acquire::http::Proxy::internal "DIRECT";',
    )
