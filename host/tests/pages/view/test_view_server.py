"""The page of runs over HTTP, without a browser: who gets an answer, and that it is the library's."""

import http.client
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import opjoule
import pytest
from opjoule.base.errors import BadInput
from opjoule.pages.view.server import CLIENTS_MAX, FILES, ViewServer
from opjoule.results.rounding import quantity_text
from opjoule.results.run_list import ONE_RUN
from opjoule.runs.record.directory import Notes, write_notes
from raw_record import finished_record
from report_record import DURATION_S, GAPS_S, make_record
from view_client import ask, get, served

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    top = tmp_path_factory.mktemp("runs")
    make_record(top / "20261122-made")
    finished_record(top / "20261123-raw")
    finished_record(top / "several" / "sd")
    (top / "20261121-broken").mkdir()
    (top / "20261121-broken" / "run.json").write_text("{")
    (top.parent / "outside").mkdir(exist_ok=True)
    shutil.copy(top / "20261122-made" / "run.json", top.parent / "outside" / "run.json")
    return top


@pytest.fixture(scope="module")
def server(folder):
    with served(folder) as server:
        yield server


def test_the_page_and_its_files_come_with_headers_that_keep_others_out(server):
    for name in FILES:
        status, headers, body = get(server, f"/{server.token}/{name}")
        assert status == 200 and len(body) > 100
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers


def test_no_file_of_the_page_names_another_place():
    for name, (_, given) in FILES.items():
        text = given().replace("http://www.w3.org", "").replace("/*! https://github.com/leeoniya/uPlot", "")
        assert "://" not in text, name


@pytest.mark.parametrize(
    "path", ["/", "/runs", "//runs", "/{}/", "/{}/runs", "/{token}x/runs", "/{token}", "*", "/%C3%A9/runs"]
)
def test_without_the_token_there_is_nothing(server, path):
    wrong = path.replace("{token}", server.token).replace("{}", "A" * len(server.token))
    status, _, body = get(server, wrong)
    assert status in (400, 403) and b"run" not in body.replace(b"host/view.py", b"")


def test_each_server_has_a_token_of_its_own(server):
    with ViewServer({}) as other:
        assert other.token != server.token and len(other.token) >= 32


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.2:{port}",
     "a@127.0.0.1:{port}", "127.0.0.1:{port}.evil.example", "127.0.0.1:x", "[::1", "0.0.0.0:{port}"],
)  # fmt: skip
def test_a_host_header_that_is_not_this_server_is_refused(server, host):
    header = host and host.replace("{port}", str(server.server_port))
    assert get(server, f"/{server.token}/runs", Host=header)[0] == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_its_own_names_are_answered(server, name):
    assert get(server, f"/{server.token}/runs", Host=f"{name}:{server.server_port}")[0] == 200


@pytest.mark.parametrize("origin", ["null", "https://evil.example", "http://127.0.0.1", "http://localhost:{port}"])
def test_another_page_is_refused(server, origin):
    header = origin.replace("{port}", str(server.server_port))
    assert get(server, f"/{server.token}/runs", Origin=header)[0] == 403


def test_its_own_page_is_answered(server):
    origin = f"http://127.0.0.1:{server.server_port}"
    assert get(server, f"/{server.token}/runs", Origin=origin)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "../runs",
        "..%2f..%2fetc/passwd",
        "view.css/../../server.py",
        "%00",
        "chart.js%00",
        "run.json",
    ],
)
def test_a_path_that_is_no_page_is_not_found(server, path):
    assert get(server, f"/{server.token}/{path}")[0] == 404


@pytest.mark.parametrize("name", ["../outside", "..", ".", "", "/etc", "20261122-made/../20261122-made", "none\0"])
def test_only_runs_of_the_list_can_be_opened(server, name):
    for what in ("run", "power", "stretch"):
        status, value = ask(server, what, run=name, start=0, end=1, columns=100)
        assert status == 422 and "no run" in value["error"], what


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"start": 1, "end": 1},
        {"start": 2, "end": 1},
        {"start": "nan", "end": 2},
        {"start": "1e400", "end": "x"},
    ],
)
def test_a_stretch_that_is_none_is_one_line(server, query):
    status, value = ask(server, "stretch", run="20261122-made", **query)
    assert status == 422 and len(value["error"].splitlines()) == 1


def test_a_stretch_outside_the_trace_is_reported(server):
    status, value = ask(server, "stretch", run="20261122-made", start=0, end=1e6)
    assert status == 422 and "outside" in value["error"]


def test_only_questions_are_taken(server):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as link:
        link.sendall(f"POST /{server.token}/runs HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        assert b"501" in link.makefile("rb").readline()


def test_it_listens_on_loopback_alone_unless_told(server):
    assert server.server_address[0] == "127.0.0.1"
    with ViewServer({}, listen="0.0.0.0") as open_to_all:
        assert open_to_all.server_address[0] == "0.0.0.0"
        port = open_to_all.server_port
        assert open_to_all.is_own(f"192.168.1.7:{port}") and not open_to_all.is_own(f"evil.example:{port}")


def test_an_address_that_cannot_be_had_is_one_line(server):
    with pytest.raises(BadInput, match=r"example\.org"):
        ViewServer({}, listen="example.org")
    with pytest.raises(BadInput, match=r"cannot listen on 127\.0\.0\.1, port"):
        ViewServer({}, port=server.server_port)


def test_the_list_has_every_run_the_newest_first(server):
    status, value = ask(server, "runs")
    assert status == 200
    listed = {run["name"]: run for run in value["runs"]}
    assert list(listed) == ["several/sd", "20261123-raw", "20261122-made", "20261121-broken"]
    assert "SIMULATED" in listed["20261122-made"]["title"] and listed["20261122-made"]["status"] == "complete"
    assert listed["20261121-broken"]["status"] == "unreadable" and listed["20261121-broken"]["why"]
    assert value["whole"] and value["total"] == 4


def test_the_list_says_what_to_know_of_a_run_and_what_its_note_is(server, folder):
    write_notes(folder / "20261122-made", Notes("the first", ("paper",)))
    listed = {run["name"]: run for run in ask(server, "runs")[1]["runs"]}
    made = listed["20261122-made"]
    assert (made["note"], made["tags"]) == ("the first", ["paper"])
    assert {"mark": "one run", "text": ONE_RUN.text, "is_grave": False} in made["notices"] and made["simulated"] is True
    assert made["headline"] == quantity_text(
        opjoule.open_run(folder / "20261122-made")["marginal_energy_per_operation_j"]
    )


@pytest.mark.parametrize("name", ["20261122-made", "20261123-raw"])
def test_a_report_comes_without_leave_to_reach_the_server(server, folder, name):
    """Also of a record that has none: then it is made, and not kept."""
    (folder / name / "report.html").unlink(missing_ok=True)
    status, headers, body = get(server, f"/{server.token}/report?run={name}")
    assert status == 200 and b"SIMULATED" in body and not (folder / name / "report.html").exists()
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts") and "allow-same-origin" not in policy
    assert "connect-src" not in policy and "default-src 'none'" in policy


def test_a_report_of_no_run_is_one_line(server):
    status, _, body = get(server, f"/{server.token}/report?run=../outside")
    assert status == 422 and body.startswith(b"there is no run")


def test_joules_of_a_stretch_add_up_to_the_numbers_of_the_library(server, folder):
    energy = opjoule.open_run(folder / "20261123-raw").energy(1.25, 2.75)
    status, value = ask(server, "running", run="20261123-raw", start=1.25, end=2.75, columns=50)
    assert status == 200 and len(value["time_s"]) == 50 and value["time_s"][-1] == pytest.approx(1.5)
    for key in ("energy_j", "marginal_energy_j"):
        assert value[key][0] == 0 and value[key][-1] == pytest.approx(getattr(energy, key).value, rel=1e-6)


def test_a_run_that_cannot_be_read_is_one_line(server):
    status, value = ask(server, "run", run="20261121-broken")
    assert status == 422 and "run.json" in value["error"]


@pytest.mark.parametrize("name", ["20261123-raw", "several/sd"])
def test_a_stretch_has_the_numbers_of_the_library(server, folder, name):
    run = opjoule.open_run(folder / name)
    energy = run.energy(1.25, 2.75)
    status, value = ask(server, "stretch", run=name, start=1.25, end=2.75)
    assert status == 200 and value["operations"] == energy.operations > 0
    stated = {quantity["key"]: (quantity["value"], quantity["u"]) for quantity in value["quantities"]}
    assert len(stated) == 6
    for key, (number, u) in stated.items():
        figure = getattr(energy, key)
        assert (number, u) == (figure.value, figure.u), key
        assert number is not None, key


def test_phases_and_length_are_those_of_the_run(server, folder):
    run = opjoule.open_run(folder / "20261122-made")
    _, value = ask(server, "run", run="20261122-made")
    assert [(phase["name"], phase["start_s"], phase["end_s"]) for phase in value["phases"]] == [
        (phase.name, phase.start_s, phase.end_s) for phase in run.phases
    ]
    assert value["duration_s"] == pytest.approx(DURATION_S, abs=0.01)


def test_samples_come_one_by_one_when_the_view_is_narrow(server, folder):
    power = opjoule.open_run(folder / "20261122-made").power
    _, value = ask(server, "power", run="20261122-made", start=17.4, end=17.6, columns=1000)
    assert value["single"]
    near = (power["time_s"] > 17.41) & (power["time_s"] < 17.59)
    sent = np.array(value["mean_w"], float)
    assert np.isin(np.round(power["power_w"][near], 6), sent).all()


def test_wide_views_keep_every_extreme_and_every_loss(server, folder):
    power = opjoule.open_run(folder / "20261122-made").power
    _, value = ask(server, "power", run="20261122-made", start=0, end=DURATION_S, columns=300)
    assert not value["single"] and len(value["mean_w"]) <= 320
    assert max(power_w for power_w in value["greatest_w"] if power_w is not None) == pytest.approx(
        np.nanmax(power["power_w"]), abs=1e-6
    )
    assert len(value["lost_s"]) == len(GAPS_S)
    bins = np.array(value["operations"]["per_s"]) * np.diff(value["operations"]["bounds_s"])
    assert bins.sum() == pytest.approx(ask(server, "run", run="20261122-made")[1]["operations"], rel=1e-4)


def test_the_command_prints_its_address_and_ends_with_ctrl_c(folder):
    command = [sys.executable, "-m", "opjoule.cli.start", "view", str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT / "host"
    ) as process:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:") and address.count("/") == 4
        process.send_signal(2)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and "Traceback" not in said


def test_answers_are_strict_json(server):
    def refuse(word):
        raise AssertionError(word)

    body = get(server, f"/{server.token}/power?run=20261122-made&start=0&end=31&columns=99999")[2]
    json.loads(body, parse_constant=refuse)


CLIENTS = 1000
END_S = 60.0


def test_a_thousand_clients_that_never_finish_their_question_keep_nobody_out(server):
    before = threading.active_count()
    with ExitStack() as open_links:
        for _ in range(CLIENTS):
            link = open_links.enter_context(socket.create_connection(("127.0.0.1", server.server_port)))
            link.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert get(server, f"/{server.token}/runs")[0] == 200
        end_s = time.monotonic() + END_S
        while threading.active_count() > before + CLIENTS_MAX + 1 and time.monotonic() < end_s:
            time.sleep(0.05)  # a thread whose connection was cut has yet to read the end
        assert threading.active_count() <= before + CLIENTS_MAX + 1
    assert get(server, f"/{server.token}/runs")[0] == 200


def test_a_client_that_has_just_been_answered_is_not_the_one_that_is_cut(server):
    known = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    known.connect()
    first_socket = known.sock
    with ExitStack() as open_links:
        for _ in range(4):
            known.request("GET", f"/{server.token}/style.css")
            answer = known.getresponse()
            assert answer.status == 200 and answer.read()
            assert known.sock is first_socket, "it was cut and had to come again"
            for _ in range(CLIENTS_MAX // 2):
                link = open_links.enter_context(socket.create_connection(("127.0.0.1", server.server_port)))
                link.sendall(b"GET / HTTP/1.1\r\nHost: ")
    known.close()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: " + b"x" * 100_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n",
        b"\r\n" * 1000,
        b"GET http://127.0.0.1/../../etc/passwd HTTP/9.9\r\n\r\n",
    ],
)
def test_what_is_no_question_is_refused_and_the_server_goes_on(server, head, capfd):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as link, suppress(OSError):
        link.sendall(head)
        link.shutdown(socket.SHUT_WR)
        assert b" 200 " not in link.recv(1000)
    assert get(server, f"/{server.token}/runs")[0] == 200
    assert "Traceback" not in capfd.readouterr().err
