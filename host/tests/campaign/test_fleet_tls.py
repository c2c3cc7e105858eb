"""Dask's connections with TLS: scheduler, worker and campaign of one authority meet; nobody else gets in."""

import socket
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException

import psutil
import pytest

LIMIT_S = 120


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def authority(folder):
    """A certificate authority, and a certificate of it: ca, cert and key as files."""
    folder.mkdir()
    ca, ca_key, csr, cert, key = (folder / f"{name}.pem" for name in ("ca", "cakey", "csr", "cert", "key"))
    kind = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *kind, "-subj", "/CN=authority", "-keyout", ca_key, "-out", ca, "-days", "2")
    openssl("req", *kind, "-subj", "/CN=rig", "-keyout", key, "-out", csr)
    openssl(
        "x509",
        "-req",
        "-in",
        csr,
        "-CA",
        ca,
        "-CAkey",
        ca_key,
        "-CAcreateserial",
        "-out",
        cert,
        "-days",
        "2",
    )
    return {"tls_ca_file": ca, "tls_cert": cert, "tls_key": key}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return authority(tmp_path_factory.mktemp("tls") / "lab")


@contextmanager
def command(*words):
    """host/campaign.py with these words, until it has said its first line."""
    full = [sys.executable, "-m", "opjoule.cli.start", "campaign", *map(str, words)]
    with subprocess.Popen(full, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(LIMIT_S)


@pytest.fixture(scope="module")
def scheduler(lab):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [word for name, path in lab.items() for word in (f"--{name.replace('_', '-')}", path)]
    with command("scheduler", "--port", port, *words) as process:
        said = ""
        while f"{port}" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        assert "tls://" in said, said
        yield f"127.0.0.1:{port}"


def connected(address, security, timeout_s=5):
    """How many workers a client sees that connects so."""
    from distributed import Client

    with Client(address, security=security, timeout=timeout_s, set_as_default=False) as client:
        return len(client.scheduler_info()["workers"])


def of(files):
    """What the product makes of TLS's options."""
    from opjoule.cli.campaign.fleet import security
    from opjoule.cli.campaign.options import TlsOptions

    return security(TlsOptions(**files))


def test_a_holder_of_a_certificate_of_the_authority_gets_in(scheduler, lab):
    assert connected(f"tls://{scheduler}", of(lab), 60) == 0


def test_a_certificate_of_another_authority_does_not(scheduler, tmp_path):
    with pytest.raises((OSError, ValueError)):
        connected(f"tls://{scheduler}", of(authority(tmp_path / "other")))


def test_a_connection_without_tls_does_not(scheduler):
    with pytest.raises((OSError, ValueError)):
        connected(f"tcp://{scheduler}", None)


def listeners(pid):
    """Addresses at which a process and its children listen."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    found = [link for process in processes for link in process.net_connections("inet")]
    return {link.laddr.ip for link in found if link.status == psutil.CONN_LISTEN}


def pages(pid):
    """Answers of everything that listens in a process to a request for a page of Dask."""
    for link in psutil.Process(pid).net_connections("inet"):
        if link.status != psutil.CONN_LISTEN:
            continue
        asked = HTTPConnection("127.0.0.1", link.laddr.port, timeout=LIMIT_S)
        with suppress(OSError, HTTPException), closing(asked):
            asked.request("GET", "/json/identity.json")
            yield asked.getresponse().status


def test_programs_listen_on_this_computer_alone_and_show_no_pages(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    with command("scheduler", "--port", port) as scheduler:
        assert scheduler.stdout.readline() == f"{address}, until Ctrl-C\n"
        with command("worker", address, "--simulate", "--name", "r", "--spool", tmp_path) as worker:
            while "works for" not in (line := worker.stdout.readline()):
                assert line
            for process in (scheduler, worker):
                assert listeners(process.pid) == {"127.0.0.1"}
                assert set(pages(process.pid)) <= {404}
            worker.terminate()
            assert "Traceback" not in worker.stdout.read()
        ended = subprocess.run(scheduler.args, check=False, capture_output=True, text=True)
        assert ended.returncode == 2 and ended.stderr.count("\n") == 1, ended.stderr
        assert "Address already in use: give another --host or --port" in ended.stderr
        scheduler.terminate()
        said = scheduler.stdout.read()
        assert said == "campaign.py: ended; campaigns and workers wait for the next scheduler\n"
