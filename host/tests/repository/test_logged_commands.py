"""A command of set-up that fails: one line where the output shows what is the matter, else its last lines."""

import pytest
from logged_commands import Lasting, SetupError, logged


def failing(*said, log, status=1):
    script = "".join(f"echo '{line}'\n" for line in said)
    logged(["sh", "-c", f"{script}exit {status}"], log)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("E: Failed to fetch http://x/y.deb  Temporary failure resolving x", "network"),
        (
            "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution",
            "network",
        ),
        ("error: dns error: failed to lookup address information", "network"),
        (
            "Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)",
            "network",
        ),
        ("ERROR: [Errno 28] No space left on device", "disk is full"),
        ("E: You do not have enough free space: not enough free space in /var/cache", "disk is full"),
        (
            "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] unable to get issuer",
            "not trusted",
        ),
        ("g++: fatal error: Killed signal terminated program cc1plus", "memory"),
        ("mkdir: cannot create directory: Read-only file system", "is read-only"),
    ],
)
def test_a_failure_of_the_computer_is_one_line(tmp_path, said, reason):
    with pytest.raises(SetupError, match=reason) as failure:
        failing("Reading package lists...", said, "E: it failed", log=tmp_path / "log")
    assert "\n" not in str(failure.value) and str(tmp_path / "log") in str(failure.value)
    assert isinstance(failure.value, Lasting) == ("memory" not in reason)


def test_packages_that_apt_does_not_know_because_it_reached_nothing(tmp_path):
    """apt-get update ends with 0 where it reaches no mirror."""
    failing("W: Failed to fetch http://x/InRelease  Could not resolve x", log=tmp_path / "log", status=0)
    with pytest.raises(SetupError, match="network"):
        failing("E: Unable to locate package cmake", log=tmp_path / "log")


def test_a_mirror_that_is_away_is_not_blamed_for_another_failure(tmp_path):
    failing("W: Failed to fetch http://ppa/InRelease  Could not resolve ppa", log=tmp_path / "log", status=0)
    with pytest.raises(SetupError, match="This command failed") as failure:
        failing("dpkg: error processing package cmake", log=tmp_path / "log")
    assert "    dpkg: error processing package cmake" in str(failure.value)


def test_a_program_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SetupError, match="no-such-cmake is not installed"):
        logged(["no-such-cmake"], tmp_path / "log")
