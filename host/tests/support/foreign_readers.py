"""Reads the loader's databases with other people's libraries; and a second implementation of YCSB's key formula."""

import hashlib
import json
import sqlite3
import struct
import subprocess

import berkeleydb.db
import lmdb
import plyvel
import pymongo
import rocksdict

RECORDS = 1500
FIELDS = 4
FIELD_BYTES = 60
WORKLOAD = f"""
workload=site.ycsb.workloads.CoreWorkload
recordcount={RECORDS}
operationcount={RECORDS}
fieldcount={FIELDS}
fieldlength={FIELD_BYTES}
readproportion=0.5
updateproportion=0.5
requestdistribution=zipfian
seed=11
"""


def ycsb_key(number):
    """site.ycsb.Utils.fnvhash64 over the eight little-endian bytes of the key number."""
    value = 0xCBF29CE484222325
    for byte in struct.pack("<q", number):
        value = ((value ^ byte) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    signed = value - (1 << 64) if value >> 63 else value
    return f"user{abs(signed)}"


def decode(stored):
    """One record as loader-cpp/include/loader/row.h lays it out: {field number: value}."""
    if stored[0] == 3:
        _, count, size = struct.unpack_from("<BBH", stored)
        assert len(stored) == 4 + count * size
        return {number: bytes(stored[4 + number * size :][:size]) for number in range(count)}
    layout, reserved, count = struct.unpack_from("<BBH", stored)
    assert (layout, reserved) == (1, 0)
    entries = [struct.unpack_from("<HHI", stored, 4 + 8 * i) for i in range(count)]
    at = 4 + 8 * count
    fields = {}
    for number, spare, length in entries:
        assert spare == 0
        fields[number] = bytes(stored[at : at + length])
        at += length
    assert at == len(stored)
    return fields


def read_leveldb(path):
    with plyvel.DB(str(path), create_if_missing=False) as database:
        return {key.decode(): decode(value) for key, value in database}


def read_rocksdb(path):
    options = rocksdict.Options(raw_mode=True)
    database = rocksdict.Rdict(str(path), options=options, access_type=rocksdict.AccessType.read_only())
    try:
        return {bytes(key).decode(): decode(bytes(value)) for key, value in database.items()}
    finally:
        database.close()


def read_lmdb(path):
    with lmdb.open(str(path), readonly=True) as environment, environment.begin() as transaction:
        return {bytes(key).decode(): decode(bytes(value)) for key, value in transaction.cursor()}


def read_berkeleydb(path):
    database = berkeleydb.db.DB()
    database.open(str(path / "usertable.db"), dbtype=berkeleydb.db.DB_BTREE, flags=berkeleydb.db.DB_RDONLY)
    try:
        return {key.decode(): decode(value) for key, value in database.items()}
    finally:
        database.close()


def read_sqlite(path):
    connection = sqlite3.connect(path / "usertable.sqlite")
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("SELECT * FROM usertable").fetchall()
        columns = [row[1] for row in connection.execute("PRAGMA table_info(usertable)")]
        assert columns == ["YCSB_KEY", *(f"FIELD{i}" for i in range(FIELDS))]
        return {row[0]: dict(enumerate(row[1:])) for row in rows}
    finally:
        connection.close()


def read_flatfolder(path):
    return {file.name: decode(file.read_bytes()) for file in (path / "records").iterdir()}


def read_nestedfolder(path):
    tables = {}
    for number in range(RECORDS):
        digest = hashlib.md5(ycsb_key(number).encode()).hexdigest()
        file = path / "records" / digest[:2] / digest[2:4] / digest
        tables[ycsb_key(number)] = decode(file.read_bytes())
    assert sum(1 for file in (path / "records").rglob("*") if file.is_file()) == RECORDS
    return tables


def read_mongodb(address):
    with pymongo.MongoClient(address) as client:
        documents = list(client.ycsb.usertable.find())
    return {
        document["_id"]: {int(name[5:]): value for name, value in document.items() if name != "_id"}
        for document in documents
    }


READERS = {
    "leveldb": read_leveldb,
    "rocksdb": read_rocksdb,
    "lmdb": read_lmdb,
    "berkeleydb": read_berkeleydb,
    "sqlite": read_sqlite,
    "flatfolder": read_flatfolder,
    "nestedfolder": read_nestedfolder,
}


def run_loader(loader, phase, engine, path, workload, *more):
    """Runs one phase. `loader`: a command line. Returns: the phase's summary."""
    line = [*loader, phase, "--db", engine, "--path", path, "--workload", workload, *more]
    done = subprocess.run([str(part) for part in line], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])["summary"]
