"""Command lines of measure.py in a process of limited memory."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BAD_INPUT = 2
BYTES_MAX = 1 << 30
LIMIT_S = 300
DRIVER = """
import json, resource, sys
from opjoule.cli.commands import main
for argv in json.load(open(sys.argv[1])):
    try:
        status = main(argv)
    except SystemExit as ended:
        status = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
    print(json.dumps({"status": status}), file=sys.stderr, flush=True)
print(json.dumps({"peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), file=sys.stderr)
"""

DRY = ["--device", "rpi4", "--simulate", "--dry-run"]
LEVELDB = ["--db", "leveldb", *DRY]
STUDY = ["--study", "s1", *DRY]
REAL = ["--db", "leveldb", "--device", "rpi4", "--dry-run", "--rig", "{rig}"]
WRONG: list[list[str]] = [
    [*LEVELDB, "--seed", "-1"],
    [*LEVELDB, "--seed", "9" * 5000],
    [*LEVELDB, "-p", "readpropotion=0.5"],
    [*LEVELDB, "-p", "leveldb.write_buffer=4"],
    [*LEVELDB, "-p", "sqlite.colour=1", "--db", "sqlite"],
    [*LEVELDB, "-p", "requestdistribution=zipfain"],
    [*LEVELDB, "-p", "readproportion=-0.1"],
    [*LEVELDB, "-p", "recordcount=" + "9" * 30],
    [*LEVELDB, "-p", "fieldlength=1e3"],
    [*LEVELDB, "--out", "{file}"],
    [*LEVELDB, "--out", "{full}"],
    [*LEVELDB, "--out", "{file}/below"],
    [*LEVELDB, "--out", "/proc/nothing"],
    [*LEVELDB, "--out", "{long}"],
    [*LEVELDB, "--threads", "4097"],
    [*LEVELDB, "--threads", "1" + "0" * 17],
    [*LEVELDB, "--value-size", "1" + "0" * 15],
    [*LEVELDB, "--value-size", "1073741824", "--threads", "1024"],
    [*LEVELDB, "--records", "1" + "0" * 12],
    [*LEVELDB, "--repeats", "100000000"],
    [*LEVELDB, "--repeats-limit", "100000000", "--until-u", "3%"],
    [*LEVELDB, "--seconds", "1" + "0" * 17],
    [*LEVELDB, "--workload", "{file}"],
    [*LEVELDB, "--storage", "sd,sd"],
    [*LEVELDB, "--simulate", "{file}"],
    [*STUDY, "--repeats", "10000"],
    [*STUDY, "--only", "system=nothing"],
    [*STUDY, "--scale", "0"],
    [*STUDY, "--out", "{file}"],
    ["--study", "{full}", *DRY],
    ["campaign", "{campaign}/blocks.toml", "--dry-run"],
    ["campaign", "{campaign}/property.toml", "--dry-run"],
    ["campaign", "{campaign}/name.toml", "--dry-run"],
    ["campaign", "{campaign}/values.toml", "--dry-run"],
    ["command", *DRY, "--file", "{full}", "--", "true"],
    ["command", *DRY, "--seed", "-5", "--", "true"],
    ["again", "{file}", "--dry-run"],
    [*REAL, "--meter", "serial:/dev/null,mode=fast"],
    [*REAL, "--sync", "gpio:none of them"],
    ["runs", "prune", "--older-than", "99999999999999"],
]
