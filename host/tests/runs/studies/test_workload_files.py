"""Workload files in the style of public repositories: each is read as it says, or refused in one line with the remedy.

The texts are made up. A file that is read gives the properties that host and loader hold; both must agree.
"""

import json
import subprocess
from pathlib import Path

import pytest
from opjoule.base.errors import BadInput
from opjoule.cli.measure.options import MEASURE, YcsbOptions
from opjoule.cli.measure.planning import make_plan
from opjoule.runs.studies.properties import OTHER_NAMES, ignored_words

ROOT = Path(__file__).resolve().parents[4]
LOADER = ROOT / "build/loader/loader"
CORE = "workload=site.ycsb.workloads.CoreWorkload\n"
READ_ONLY = CORE + "recordcount=100\noperationcount=50\nreadproportion=1\nupdateproportion=0\n"

READ: dict[str, tuple[str | bytes, dict[str, str]]] = {
    "workloadg.properties, a seventh core workload": (
        "# Yahoo! Cloud System Benchmark\n# Workload G: large scan free mix\n" + CORE
        + "recordcount=256000\noperationcount=300000\nreadproportion=0.8\nupdateproportion=0.2\n"
        "requestdistribution=zipfian\n",
        {"recordcount": "256000", "operationcount": "300000", "requestdistribution": "zipfian"},
    ),
    "workloadc, edited in place": (
        "recordcount=1000000\noperationcount=250000\n" + CORE
        + "readallfields=true\n\nreadproportion=1\nupdateproportion=0\nscanproportion=0\ninsertproportion=0\n",
        {"recordcount": "1000000", "operationcount": "250000", "readproportion": "1"},
    ),
    "com.yahoo's old class name": (
        "workload=com.yahoo.ycsb.workloads.CoreWorkload\nrecordcount=1000\noperationcount=1000\n",
        {"recordcount": "1000", "readproportion": "0.95", "updateproportion": "0.05"},
    ),
    "threads and seed in the file": (
        READ_ONLY + "threadcount=4\nseed=77\n", {"threadcount": "4", "seed": "77"},
    ),
    "a run of a minute": (
        CORE + "recordcount=5000\nmaxexecutiontime=60\n", {"maxexecutiontime": "60", "recordcount": "5000"},
    ),
    "a run with both ends": (
        READ_ONLY + "maxexecutiontime=180\n", {"operationcount": "50", "maxexecutiontime": "180"},
    ),
    "saved by Notepad, with a mark and Windows' line ends": (
        b"\xef\xbb\xbf# Lasttest\r\nrecordcount=2000\r\noperationcount=10\r\nreadproportion=0.5\r\n"
        b"updateproportion=0.5\r\n",
        {"recordcount": "2000", "operationcount": "10", "updateproportion": "0.5"},
    ),
    "a mark right before the first property": (
        b"\xef\xbb\xbfrecordcount=2000\noperationcount=10\n", {"recordcount": "2000"},
    ),
    "a comment in Latin-1": (
        "# Gr\xf6\xdfe der Datens\xe4tze\nrecordcount=300\noperationcount=3\n".encode("iso-8859-1"),
        {"recordcount": "300"},
    ),
    "old Macintosh line ends": (
        "recordcount=300\roperationcount=3\rfieldcount=2\r", {"recordcount": "300", "fieldcount": "2"},
    ),
    "colons": (
        "recordcount: 400\noperationcount : 4\nrequestdistribution:latest\n",
        {"recordcount": "400", "requestdistribution": "latest"},
    ),
    "columns set with blanks": (
        "recordcount          400\noperationcount       4\nrequestdistribution  uniform\n",
        {"recordcount": "400", "operationcount": "4", "requestdistribution": "uniform"},
    ),
    "a continued line": (
        "recordcount=1\\\n    000\noperationcount=5\nrequestdistribution=\\\n  hotspot\n",
        {"recordcount": "1000", "requestdistribution": "hotspot"},
    ),
    "an escaped key": ("\\u0072ecordcount=12\noperationcount=2\n", {"recordcount": "12"}),
    "a character of two escapes": ("recordcount=12\noperationcount=2\ntable=\\uD83D\\uDE00\n", {"table": "\U0001f600"}),
    "exclamation marks as comments": (
        "! recordcount=9\nrecordcount=10\n  ! operationcount=9\noperationcount=10\n",
        {"recordcount": "10", "operationcount": "10"},
    ),
    "a value given twice": (
        "recordcount=1000\noperationcount=10\nrecordcount=20000\n", {"recordcount": "20000"},
    ),
    "blanks around everything": (
        "   recordcount   =   1000   \n\toperationcount\t=\t10\t\n", {"recordcount": "1000", "operationcount": "10"},
    ),
    "shares in percent": (
        "recordcount=100\noperationcount=10\nreadproportion=95\nupdateproportion=5\n",
        {"readproportion": "95", "updateproportion": "5"},
    ),
    "shares that do not add up": (
        "recordcount=100\noperationcount=10\nreadproportion=0.5\nupdateproportion=0.2\ninsertproportion=0.1\n",
        {"readproportion": "0.5", "insertproportion": "0.1"},
    ),
    "a store of sessions with deletes": (
        "recordcount=100\noperationcount=10\nreadproportion=0.6\nupdateproportion=0.3\ndeleteproportion=0.1\n",
        {"removeproportion": "0.1", "updateproportion": "0.3"},
    ),
    "an exponent by its name in a C++ port": (
        READ_ONLY + "requestdistribution=truezipfian\nzipfian_const=0.8\n", {"truezipfian.theta": "0.8"},
    ),
    "an exponent by another name": (
        READ_ONLY + "requestdistribution=truezipfian\nzipfianconstant=1.2\n", {"truezipfian.theta": "1.2"},
    ),
    "YCSB's exponent, stated": (
        READ_ONLY + "requestdistribution=zipfian\nzipfianconstant=0.99\n", {"requestdistribution": "zipfian"},
    ),
    "field lengths by their name in a C++ port": (
        READ_ONLY + "field_len_dist=uniform\nfieldlength=400\n",
        {"fieldlengthdistribution": "uniform", "fieldlength": "400"},
    ),
    "Redis' place": (
        READ_ONLY + "redis.host=127.0.0.1\nredis.port=6379\nredis.cluster=false\n", {"recordcount": "100"},
    ),
    "JDBC's place": (
        READ_ONLY + "db.driver=org.postgresql.Driver\ndb.url=jdbc:postgresql://db/ycsb\ndb.user=ycsb\n"
        "jdbc.autocommit=true\n",
        {"recordcount": "100"},
    ),
    "MongoDB's place": (
        READ_ONLY + "mongodb.url=mongodb://localhost:27017/ycsb?w=1\n", {"recordcount": "100"},
    ),
    "RocksDB's place": (READ_ONLY + "rocksdb.dir=/mnt/nvme/rocks\n", {"recordcount": "100"}),
    "several databases at once": (
        READ_ONLY + "cassandra.readconsistencylevel=ONE\nhosts=10.0.0.1,10.0.0.2\nes.index.key=ycsb\n"
        "couchbase.host=cb\nrocksdb.optionsfile=/etc/rocks.ini\nsqlite.batch=7\n",
        {"recordcount": "100"},
    ),
    "a Go port's switches": (
        READ_ONLY + "dropdata=false\nsilence=true\nmysql.host=db\ntikv.pd=pd:2379\n", {"recordcount": "100"},
    ),
    "a C++ port's switches": (
        READ_ONLY + "doload=true\ndotransaction=true\ndbname=rocksdb\nstatus.interval=1\n", {"recordcount": "100"},
    ),
    "histograms and exporters": (
        READ_ONLY + "measurementtype=hdrhistogram\nhdrhistogram.percentiles=50,95,99,99.9\n"
        "exporter=site.ycsb.measurements.exporter.JSONMeasurementsExporter\nexportfile=/tmp/out.json\n",
        {"recordcount": "100"},
    ),
    "a file per lab course, with old text commented out": (
        "# recordcount=1000000   <- too slow on the Pi\nrecordcount=50000\n#operationcount=1000000\n"
        "operationcount=50000\nfieldcount=1\nfieldlength=1024\n",
        {"recordcount": "50000", "operationcount": "50000", "fieldlength": "1024"},
    ),
    "a hot set": (
        READ_ONLY + "requestdistribution=hotspot\nhotspotdatafraction=0.1\nhotspotopnfraction=0.9\n",
        {"hotspotdatafraction": "0.1", "hotspotopnfraction": "0.9"},
    ),
    "a part of the keys": (
        READ_ONLY + "insertstart=20\ninsertcount=30\n", {"insertstart": "20", "insertcount": "30"},
    ),
    "short scans": (
        "recordcount=100\noperationcount=10\nscanproportion=0.95\ninsertproportion=0.05\nreadproportion=0\n"
        "updateproportion=0\nmaxscanlength=100\nscanlengthdistribution=zipfian\n",
        {"maxscanlength": "100", "scanlengthdistribution": "zipfian"},
    ),
    "a rate": (READ_ONLY + "target=500\n", {"target": "500"}),
    "inserts of sensors": (
        "# iot ingest, 90 % inserts\nrecordcount=40000\noperationcount=80000\ninsertproportion=0.9\n"
        "readproportion=0.1\nupdateproportion=0.0\nrequestdistribution=latest\nfieldcount=4\nfieldlength=16\n",
        {"recordcount": "40000", "operationcount": "80000", "insertproportion": "0.9", "fieldcount": "4"},
    ),
    "a rate with a fraction": (READ_ONLY + "target=1000.5\n", {"target": "1000.5"}),
    "a mixture of everything": (
        READ_ONLY + "maxexecutiontime=60\nthreadcount=16\nrocksdb.dir=/data\nmeasurement.interval=intended\n",
        {"threadcount": "16", "maxexecutiontime": "60", "measurement.interval": "intended"},
    ),
    "MongoDB's concerns": (
        READ_ONLY + "mongodb.writeConcern=acknowledged\nmongodb.readPreference=primary\n", {"recordcount": "100"},
    ),
    "prose of a range of lengths": (
        READ_ONLY + "fieldlengthdistribution=zipfian\nminfieldlength=10\nfieldlength=90\nvaluetext=generated\n",
        {"fieldlength": "90", "minfieldlength": "10", "valuetext": "generated"},
    ),
    "no counts": (CORE + "readproportion=1\nupdateproportion=0\n", {"recordcount": "20000", "maxexecutiontime": "16"}),
    # a further set, written down with its values before it was tried
    "columns set with tabs and an equals sign": (
        "recordcount\t=\t1200\noperationcount\t=\t40\n", {"recordcount": "1200", "operationcount": "40"},
    ),
    "scans of up to 50": (
        CORE + "recordcount=900\noperationcount=9\nscanproportion=0.95\ninsertproportion=0.05\nreadproportion=0\n"
        "updateproportion=0\nmaxscanlength=50\nscanlengthdistribution=zipfian\n",
        {"maxscanlength": "50", "scanlengthdistribution": "zipfian", "scanproportion": "0.95"},
    ),
    "keys in order, with zeros before them": (
        READ_ONLY + "insertorder=ordered\nzeropadding=12\n", {"insertorder": "ordered", "zeropadding": "12"},
    ),
    "a part of a load": (
        CORE + "recordcount=10000\ninsertstart=5000\ninsertcount=2500\noperationcount=9\n",
        {"recordcount": "10000", "insertstart": "5000", "insertcount": "2500"},
    ),
    "a hot set of its own size": (
        READ_ONLY + "requestdistribution=hotspot\nhotspotdatafraction=0.1\nhotspotopnfraction=0.9\n",
        {"hotspotdatafraction": "0.1", "hotspotopnfraction": "0.9"},
    ),
    "an exponential of its own": (
        READ_ONLY + "requestdistribution=exponential\nexponential.percentile=90\nexponential.frac=0.5\n",
        {"exponential.percentile": "90", "exponential.frac": "0.5"},
    ),
    "a proportion that begins with its point": (
        CORE + "recordcount=10\noperationcount=5\nreadproportion=.5\nupdateproportion=.5\n", {"readproportion": ".5"},
    ),
    "how often an insertion is tried again": (
        READ_ONLY + "core_workload_insertion_retry_limit=3\ncore_workload_insertion_retry_interval=3\n",
        {"recordcount": "100"},
    ),
    "a time series of latencies": (
        READ_ONLY + "measurementtype=timeseries\ntimeseries.granularity=2000\n", {"operationcount": "50"},
    ),
    "the status line": (READ_ONLY + "status.interval=10\n", {"operationcount": "50"}),
    "the last of two counts": ("recordcount=10\nrecordcount=20\noperationcount=5\n", {"recordcount": "20"}),
    "names of fields": (READ_ONLY + "fieldnameprefix=col\nfieldcount=3\n", {"fieldcount": "3"}),
    "blanks behind values": ("recordcount=40   \noperationcount=4\t\n", {"recordcount": "40", "operationcount": "4"}),
    "a backslash at the end of the file": (READ_ONLY + "fieldcount=5\\", {"fieldcount": "5"}),
    "a proportion of updates alone": (
        CORE + "recordcount=70\noperationcount=7\nreadproportion=0\nupdateproportion=1.0\nwriteallfields=true\n",
        {"updateproportion": "1.0", "writeallfields": "true"},
    ),
}  # fmt: skip
"""Name of a file -> its text, and the properties that it states."""

REFUSED: dict[str, tuple[str | bytes, str]] = {
    "a comment behind a count": (
        "recordcount=1000 # a thousand\noperationcount=5\n", "recordcount='1000 # a thousand' is not a whole number",
    ),
    "a NUL": (READ_ONLY + "table=a\0b\n", "a property cannot contain a NUL"),
    "half of a character": (READ_ONLY + "table=\\uD83Dx\n", "half of a surrogate pair"),
    "a comment behind a word": (
        READ_ONLY + "requestdistribution=zipfian   # skewed\n",
        "requestdistribution=zipfian   # skewed: expected one of uniform, zipfian",
    ),
    "a count with a suffix": ("recordcount=10M\noperationcount=5\n", "recordcount='10M' is not a whole number"),
    "a count as a float": ("recordcount=1e6\noperationcount=5\n", "recordcount='1e6' is not a whole number"),
    "a count with underscores": ("recordcount=1_000\noperationcount=5\n", "recordcount='1_000' is not a whole"),
    "a share with a comma": (READ_ONLY + "scanproportion=0,5\n", "scanproportion=0,5: expected a number"),
    "a share with a percent sign": (READ_ONLY + "scanproportion=5%\n", "scanproportion=5%: expected a number"),
    "an exponent that YCSB's zipfian does not have": (
        READ_ONLY + "requestdistribution=zipfian\nzipfian_const=0.8\n", "set requestdistribution=truezipfian",
    ),
    "a wrong letter": (READ_ONLY + "readpropotion=1\n", "did you mean readproportion?"),
    "a name of camels": (READ_ONLY + "recordCount=1000\n", "did you mean recordcount?"),
    "a name of others": (READ_ONLY + "threads=8\n", "unknown property threads=8: here it is threadcount"),
    "writes": (READ_ONLY + "writeproportion=0.5\n", "here it is updateproportion, or insertproportion"),
    "values' size": (READ_ONLY + "valuesize=1024\n", "set fieldcount=1 and fieldlength"),
    "a name that is near none": (READ_ONLY + "cooling=fan\n", "docs/reference/loader.md has a list of all"),
    "an engine's slip": (READ_ONLY + "leveldb.block_byte=4096\n", "did you mean leveldb.block_bytes?"),
    "another workload's class": (
        "workload=site.ycsb.workloads.TimeSeriesWorkload\nrecordcount=5\noperationcount=5\n",
        "expected site.ycsb.workloads.CoreWorkload",
    ),
    "UTF-16": ("recordcount=5\noperationcount=5\n".encode("utf-16"), "found UTF-16; save it as UTF-8"),
    "JSON": ('{"recordcount": 1000,\n "operationcount": 5}\n', "unknown property"),
    "a line without a value": ("recordcount=5\noperationcount\n", "operationcount='' is not a whole number"),
    "a histogram that is not there": (
        READ_ONLY + "fieldlengthdistribution=histogram\n", "fieldlengthhistogram=hist.txt: no such file",
    ),
    "no threads": (READ_ONLY + "threadcount=0\n", "threadcount=0: a run has 1 to 1024 threads"),
    "nothing to do": ("recordcount=5\noperationcount=0\n", "operationcount=0: nothing ends the run"),
    "no records": ("recordcount=0\noperationcount=5\n", "recordcount: not given, or 0"),
    "a short name of a distribution": (
        READ_ONLY + "requestdistribution=zipf\n", "requestdistribution=zipf: expected one of uniform, zipfian",
    ),
    "a distribution in capitals": (
        READ_ONLY + "requestdistribution=ZIPFIAN\n", "requestdistribution=ZIPFIAN: expected one of",
    ),
    "a count with commas": ("recordcount=25,000\noperationcount=5\n", "recordcount='25,000' is not a whole"),
    "a count with blanks": ("recordcount = 1 000 000\noperationcount=5\n", "'1 000 000' is not a whole number"),
    "a section of an INI file": ("[workload]\nrecordcount=9\n", "line 1: expected key=value, found '[workload]'"),
    "semicolons": ("recordcount=1000;\noperationcount=1000\n", "recordcount='1000;' is not a whole number"),
    "a shell script": ("export recordcount=1000\n", "unknown property export=recordcount=1000"),
    "quotes": ('recordcount="1000"\noperationcount=5\n', "recordcount='\"1000\"' is not a whole number"),
    "a number for a truth": (READ_ONLY + "readallfields=1\n", "readallfields=1: expected true or false"),
    "a count of 5,000 digits": ("recordcount=" + "9" * 5000 + "\noperationcount=5\n", "is not a whole number"),
    "a negative share": (READ_ONLY + "scanproportion=-0.5\n", "scanproportion=-0.5: expected a number"),
    "minutes": (READ_ONLY + "maxexecutiontime=5m\n", "maxexecutiontime='5m' is not a whole number"),
    "half a second": (READ_ONLY + "maxexecutiontime=0.5\n", "maxexecutiontime='0.5' is not a whole number"),
    "threads in words": (READ_ONLY + "threadcount=four\n", "threadcount='four' is not a whole number"),
    "too many threads": (READ_ONLY + "threadcount=5000\n", "threadcount=5000: a run has 1 to 1024 threads"),
    "a length with a unit": (READ_ONLY + "fieldlength=1KB\n", "fieldlength=1KB: expected a whole number"),
    "empty scans": (READ_ONLY + "maxscanlength=0\n", "maxscanlength=0: expected a whole number from 1"),
    "an order of its own": (READ_ONLY + "insertorder=sorted\n", "insertorder=sorted: expected one of hashed"),
    "an option of LevelDB's own name": (
        READ_ONLY + "leveldb.write_buffer_size=4194304\n", "did you mean leveldb.write_buffer_bytes?",
    ),
    "a template": ("recordcount=${RECORDS}\noperationcount=5\n", "recordcount='${RECORDS}' is not a whole"),
    "an included file": (READ_ONLY + "include=workloada\n", "unknown property include=workloada"),
    "no operations of any kind": (
        "recordcount=5\noperationcount=5\nreadproportion=0\nupdateproportion=0\n", "all proportions are 0",
    ),
    "a part beyond the end": (READ_ONLY + "insertstart=90\ninsertcount=30\n", "expected at most recordcount"),
    # a further set, written down with its answers before it was tried
    "zipfian in capitals": (READ_ONLY + "requestdistribution=ZIPFIAN\n", "zipfian"),
    "scans whose least length is above the greatest": (
        CORE + "recordcount=9\noperationcount=9\nscanproportion=1\nreadproportion=0\nupdateproportion=0\n"
        "minscanlength=10\nmaxscanlength=5\n",
        "minscanlength",
    ),
    "a warm-up of go-ycsb": (READ_ONLY + "warmuptime=5\n", "measure.py --warm-up SECONDS warms up"),
    "thousands as k": ("recordcount=5k\noperationcount=5\n", "recordcount"),
    "a proportion in per cent": (CORE + "recordcount=5\noperationcount=5\nreadproportion=50%\n", "readproportion"),
    "a file in JSON": ('{"recordcount": 1000, "operationcount": 10}\n', "recordcount"),
    "a file in YAML": ("workload:\n  recordcount: 1000\n  reads: 0.5\n", "reads"),
    "a negative length": (READ_ONLY + "fieldlength=-5\n", "fieldlength"),
    "as many threads as there are": (READ_ONLY + "threadcount=all\n", "threadcount"),
}  # fmt: skip
"""Name of a file -> its text, and a part of the line that refuses it."""


def study_of(folder: Path, text: str | bytes):
    """The study of a file and the loader's answer to it: its exit status, and what it prints on stdout and stderr."""
    path = folder / "workload.properties"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    words = ["--db", "leveldb", "--device", "rpi4", "--simulate", "--workload", str(path)]
    study = make_plan(YcsbOptions.parsed(MEASURE.parser(), words)).study
    command = study.check_command(str(LOADER), str, str(folder / "db"))
    return study, subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", READ)
def test_a_file_is_read_as_it_says(tmp_path, name):
    text, states = READ[name]
    study, checked = study_of(tmp_path, text)
    assert checked.returncode == 0, checked.stderr
    held = {**study.effective, "threadcount": str(study.threads), "seed": str(study.seed)}
    held |= {"maxexecutiontime": str(study.run_s)} if study.run_s else {}
    assert {key: held.get(key, states[key]) for key in states} == states
    command = [*study.check_command(str(LOADER), str, str(tmp_path))[:-1], "-p", "operationcount=1"]
    command[command.index("--db") + 1] = "null"
    run = subprocess.run([*command, "-p", "target=0"], capture_output=True, text=True, check=True)
    loader = json.loads(run.stdout.splitlines()[-1])["summary"]["workload"]
    assert {key: loader[key] for key in states if key not in ("operationcount", "target")} == {
        key: value for key, value in states.items() if key not in ("operationcount", "target")
    }


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_read_as_it_says_is_refused_in_one_line(tmp_path, name):
    text, says = REFUSED[name]
    try:
        _, checked = study_of(tmp_path, text)
    except BadInput as error:
        line = str(error)
    else:
        assert checked.returncode == 2, checked
        line = checked.stderr.strip()
    assert says in line and "\n" not in line


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_host_and_loader_know_the_same_names_of_ports(tmp_path, name):
    value = {"removeproportion": "0.1", "fieldlengthdistribution": "uniform"}.get(OTHER_NAMES[name], "0.8")
    text = READ_ONLY + f"requestdistribution=truezipfian\n{name}={value}\n"
    study, checked = study_of(tmp_path, text)
    assert checked.returncode == 0, checked.stderr
    assert study.effective[OTHER_NAMES[name]] == value


def test_properties_of_other_databases_are_accepted_and_named(tmp_path):
    _, checked = study_of(tmp_path, READ["several databases at once"][0])
    assert json.loads(checked.stdout)["ignored"] == [
        *("cassandra.readconsistencylevel", "couchbase.host", "es.index.key", "hosts"),
        *("rocksdb.optionsfile", "sqlite.batch"),
    ]
    assert json.loads(study_of(tmp_path, READ_ONLY)[1].stdout)["ignored"] == []


def test_a_table_is_named_as_ignored_unless_another_generator_prints_it(tmp_path):
    _, checked = study_of(tmp_path, READ_ONLY + "table=other\n")
    assert (ignored := json.loads(checked.stdout)["ignored"]) == ["table"]
    assert ignored_words([*ignored, "hosts"], streamed=False) == "properties without effect here: table, hosts"
    assert ignored_words([*ignored, "hosts"], streamed=True) == "properties without effect here: hosts"
    assert not ignored_words(["operationcount"], streamed=True)
