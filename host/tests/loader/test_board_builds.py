"""The static programs for boards: every engine in each, run under qemu-user, and the same records from all of them."""

import contextlib
import json
import os
import platform
import re
import shlex
import socket
import struct
import subprocess
import threading
from pathlib import Path

import bson
import pytest
from breaking_proxy import BreakingProxy
from foreign_readers import FIELDS, READERS, RECORDS, WORKLOAD, read_mongodb, run_loader, ycsb_key
from made_mongod import COPIES, made_mongod
from mongo_server import mongo_server

ROOT = Path(__file__).resolve().parents[3]
EMULATORS = {"aarch64": "qemu-aarch64-static", "armhf": "qemu-arm-static", "amd64": "qemu-x86_64-static"}
HEAP_AT_ONCE = ("-E", "GLIBC_TUNABLES=glibc.malloc.top_pad=134217728")
"""Lets the program's heap grow once. If it grows often beside threads, QEMU 10.0.13 (Debian 13) misplaces the break and
malloc ends the program: in 17 of 170 loads and runs of RocksDB, and in 0 of 180 with this setting. QEMU 7.2 needs no
setting (0 of 110)."""
NATIVE = {"x86_64": "amd64", "aarch64": "aarch64"}.get(platform.machine())
ENGINES = [*READERS, "mongodb", "null"]
pytestmark = pytest.mark.board_builds


def command(board, name="loader"):
    """How this computer runs a program of the board's."""
    program = [str(ROOT / "build/board" / board / name)]
    return program if board == NATIVE else [EMULATORS[board], *HEAP_AT_ONCE, *program]


BOARDS = ["aarch64", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("amd64", "armhf"))]


@pytest.fixture(params=BOARDS)
def board(request):
    """The board of each architecture, with its programs."""
    return built(request.param)


def built(board):
    """The board, once the documented command has built its programs."""
    subprocess.run([ROOT / "loader-cpp/board-builds", board], check=True, timeout=3600)
    return board


@pytest.fixture(scope="module")
def workload(tmp_path_factory):
    file = tmp_path_factory.mktemp("workload") / "small.properties"
    file.write_text(WORKLOAD)
    return file


def load_and_update(loader, engine, path, workload, read):
    run_loader(loader, "load", engine, path, workload)
    summary = run_loader(loader, "run", engine, path, workload)
    assert summary["operations"] == RECORDS
    return read(path)


@pytest.fixture(scope="module")
def expected(tmp_path_factory, workload):
    """The records as this computer's own loader makes them in SQLite."""
    path = tmp_path_factory.mktemp("expected") / "database"
    records = load_and_update([str(ROOT / "build/loader/loader")], "sqlite", path, workload, READERS["sqlite"])
    assert set(records) == {ycsb_key(number) for number in range(RECORDS)}
    return records


def test_a_board_s_loader_is_one_static_program_with_every_engine(board):
    program = ROOT / "build/board" / board / "loader"
    headers = subprocess.run(["readelf", "-l", program], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers
    listed = subprocess.run(
        [*command(board), "databases"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [line.split()[0] for line in listed] == sorted(ENGINES)


@pytest.mark.parametrize("engine", READERS)
def test_a_board_s_loader_writes_the_same_records_as_this_computer_s(tmp_path, workload, expected, board, engine):
    if engine == "lmdb" and board == "armhf":
        # LMDB's files of 32-bit and 64-bit programs differ: only the loader itself can read them back.
        run_loader(command(board), "load", engine, tmp_path / "database", workload)
        summary = run_loader(command(board), "run", engine, tmp_path / "database", workload)
        assert summary["by_kind"]["read"]["not_found"] == 0
        return
    records = load_and_update(command(board), engine, tmp_path / "database", workload, READERS[engine])
    assert records == expected


COMPILER_HEADERS = re.compile(
    r"/usr/lib/gcc|/usr/include/c\+\+/|/usr/include/[\w-]+/c\+\+/|/usr/(aarch64|arm)-linux-gnu\w*/include/"
)
"""Headers of the compiler, the C++ library and a cross compiler's C library."""


def test_no_header_of_this_computer_is_compiled_into_a_board_s_programs(board):
    """Another version than the board's would be compiled without an error, and linked with the board's archives."""
    build = (ROOT / "build/board" / board / "build").resolve()
    listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    objects = [group.splitlines() for group in listed.split("\n\n") if ".o: " in group.partition("\n")[0]]
    headers = {Path(os.path.normpath(build / line.strip())) for _, *lines in objects for line in lines}
    assert any("sysroot/usr/include/rocksdb" in str(header) for header in headers)
    others = [str(header) for header in headers if not header.is_relative_to(ROOT)]
    assert not [header for header in others if not COMPILER_HEADERS.match(header)]


def test_a_board_s_compiler_does_not_find_what_only_this_computer_has(board, tmp_path):
    """doctest is one such library: this computer's tests need it, and no board's program does."""
    assert Path("/usr/include/doctest").is_dir()
    build = ROOT / "build/board" / board / "build"
    command = json.loads((build / "compile_commands.json").read_text())[0]
    words = shlex.split(command["command"])
    flags = words[: words.index("-o")]
    for name, found in (("doctest/doctest.h", False), ("rocksdb/db.h", True), ("stdio.h", True)):
        source = tmp_path / "asks.cc"
        source.write_text(f"#if !__has_include(<{name}>)\n#error not found\n#endif\n")
        ended = subprocess.run(
            [*flags, "-fsyntax-only", source], cwd=build, capture_output=True, text=True, check=False
        )
        assert (ended.returncode == 0) == found, ended.stderr


def test_a_board_s_probe_is_one_static_program_that_answers(tmp_path, board):
    program = ROOT / "build/board" / board / "probe"
    headers = subprocess.run(["readelf", "-l", program], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers
    served = subprocess.run(
        [*command(board, "probe"), "serve", "--dir", tmp_path],
        input="files a\nclock\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    answers = {line["answer"]: line for line in map(json.loads, served.splitlines()) if "answer" in line}
    assert 0 < answers["clock"]["received_ns"] <= answers["clock"]["sent_ns"]
    assert (tmp_path / "a.system.csv").read_text().startswith("board_ns,")


def test_a_board_s_loader_speaks_to_a_mongodb_server(tmp_path, workload, expected, board):
    with mongo_server(tmp_path) as address:
        records = load_and_update(command(board), "mongodb", address, workload, read_mongodb)
        assert all(len(fields) == FIELDS for fields in records.values())
        assert records == expected


@pytest.mark.parametrize("copied", range(len(COPIES) + 1))
def test_a_board_s_loader_says_mongod_only_of_a_server_that_proves_it(copied, workload, board):
    with made_mongod(COPIES[:copied]) as server:
        summary = run_loader(command(board), "load", "mongodb", server.address, workload, "-p", "recordcount=1")
    named = summary["settings"]["mongodb.server"]
    assert named.startswith("mongod " if copied == len(COPIES) else "not mongod: "), named


def test_a_read_whose_connection_breaks_has_failed_and_is_not_tried_again(tmp_path, workload, board):
    words = [*command(board), "run", "--db", "mongodb", "--workload", workload]
    words += ["-p", "operationcount=20", "-p", "readproportion=1", "-p", "updateproportion=0"]
    with mongo_server(tmp_path) as server, contextlib.closing(BreakingProxy(server, drops=10)) as proxy:
        run_loader(command(board), "load", "mongodb", server, workload)
        ended = subprocess.run([*words, "--path", proxy.address], capture_output=True, text=True, check=False)
    broken = json.loads(ended.stdout.splitlines()[-1])["summary"]
    assert ended.returncode == 1, ended.stderr
    assert (broken["errors"], broken["retries"]["timeout"]) == (1, 1)


def answer_hello(server: socket.socket, newest: int) -> None:
    """A MongoDB of another generation, by the wire version that it tells (OP_QUERY's answer, OP_REPLY)."""
    connection, _ = server.accept()
    with connection:
        head = connection.recv(16, socket.MSG_WAITALL)
        size, request, _, _ = struct.unpack("<iiii", head)
        connection.recv(size - len(head), socket.MSG_WAITALL)
        hello = {"ismaster": True, "minWireVersion": 0, "maxWireVersion": newest, "ok": 1.0}
        reply = struct.pack("<iqii", 0, 0, 0, 1) + bson.encode(hello)
        connection.sendall(struct.pack("<iiii", 16 + len(reply), 1, request, 1) + reply)


@pytest.mark.parametrize(
    ("newest", "address", "says"),
    [
        (1, "mongodb://127.0.0.1:{port}", "wire version 1, "),
        (None, "mongodb://127.0.0.1:1", "connection refused"),
        (17, "mongodb://user:secret@127.0.0.1:{port}/?authMechanism=SCRAM-SHA-256", "authentication"),
    ],
)
def test_a_server_that_does_not_take_the_loader_is_one_line_before_anything_is_loaded(
    workload, board, newest, address, says
):
    with socket.create_server(("127.0.0.1", 0)) as server:
        if newest:
            threading.Thread(target=answer_hello, args=(server, newest), daemon=True).start()
        path = address.format(port=server.getsockname()[1])
        arguments = ["load", "--db", "mongodb", "--path", path, "--workload", workload]
        ended = subprocess.run([*command(board), *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 3 and says in ended.stderr and ended.stderr.count("\n") == 1
    assert "load-start" not in ended.stdout and "secret" not in ended.stderr
