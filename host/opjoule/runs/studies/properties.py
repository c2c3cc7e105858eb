"""Properties of a YCSB workload from its file and from the command line, and the space that its records need."""

import re
import shutil
import subprocess
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opjoule.base.errors import BadInput, RigFault, suggestion, unknown

VERSION = "0.17.0"
"""Version of site.ycsb:core, pinned in host/requirements/ycsb/pom.xml."""
MIX_BLOCK: Final = "mixblock.length_s"
"""The loader's property for the time [s] after which the mix of a run changes at random."""
INSERT_ROOM: Final = "insertroom.operations"
"""The loader's property for the operations for whose inserts zipfian requests leave room."""
NOT_YCSBS = frozenset(
    (
        "arrivals",
        "removeproportion",
        "truezipfian.theta",
        "valuecharacters",
        "valuecompressratio",
        "valuetext",
        "putback",
        MIX_BLOCK,
        INSERT_ROOM,
    )
)
"""Properties of a workload that the loader's own generator supports but YCSB does not."""
_OPERATION = re.compile(r"(READ|UPDATE|INSERT|SCAN) ")
_PROBLEM = re.compile(r"(?:Exception|Error): (.*)")
_TRIAL_S = 120
_BLANKS = " \t\f"
_CONTINUED = re.compile(r"(?<!\\)(\\\\)*\\$")
_PAIR = re.compile(r"((?:\\.|[^\\=: \t\f])*\\?)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
OTHER_NAMES = {
    "deleteproportion": "removeproportion",
    "field_len_dist": "fieldlengthdistribution",
    **dict.fromkeys(
        (
            *("zipfianconstant", "zipfian_constant", "zipfian.constant", "zipfian_const", "zipfian.theta"),
            *("zipfian_theta", "zipfianexponent", "zipfian.exponent"),
        ),
        "truezipfian.theta",
    ),
}
"""Names of ports of YCSB -> the property; those of loader-cpp/properties.cc."""
_DIGITS = 18
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_DEFAULTS = {"fieldcount": "10", "fieldlength": "100"}
"""Defaults of YCSB's CoreWorkload."""
DEFAULT_RECORDS = 20_000
DEFAULT_OPERATIONS = 100_000
DISTRIBUTIONS = ("zipfian", "latest", "uniform", "truezipfian", "hotspot", "exponential", "sequential")
EQUAL: Final = "equal"
"""Rate of all conditions of a campaign: half of what the slowest of them reaches."""
LOAD: Final = "load"
"""Each repeat loads its database."""
COPY: Final = "copy"
"""Each repeat copies a database that was loaded once."""
GO_ON: Final = "go-on"
"""Each repeat goes on with the database of the one before."""
OF_THE_RUN_ALONE: Final = frozenset(
    {
        *("operationcount", "maxexecutiontime", "requestdistribution", "readallfields", "writeallfields"),
        *(f"{kind}proportion" for kind in ("read", "update", "insert", "scan", "readmodifywrite", "remove")),
        *("maxscanlength", "minscanlength", "scanlengthdistribution", "mixblock.length_s"),
        *("hotspotdatafraction", "hotspotopnfraction", "exponential.percentile", "exponential.frac"),
        *("truezipfian.theta", INSERT_ROOM),
    }
)
"""Properties that do not affect a load. All others do."""


@dataclass(frozen=True)
class YcsbCore:
    """The real YCSB from its jars in one folder, which prints its operations on this computer.

    YCSB's BasicDB prints each operation as text (docs/reference/loader.md, Traces); the loader on the board replays the
    lines as they arrive. YCSB ignores unknown properties; they are refused here.
    """

    jars: Path
    name = "ycsb"
    version = VERSION

    def command(self, phase: str, workload: Path, properties: Mapping[str, str]) -> list[str]:
        """The command that prints the operations of `phase`, load or run."""
        settings = {**file_properties(workload), **properties}  # under YCSB's names
        settings |= {"workload": "site.ycsb.workloads.CoreWorkload", "basicdb.verbose": "true"}
        return [
            *("java", "-cp", str(self.jars / "*"), "site.ycsb.Client", "-load" if phase == "load" else "-t"),
            *("-db", "site.ycsb.BasicDB", "-P", str(workload)),
            *(part for key, value in settings.items() for part in ("-p", f"{key}={value}")),
        ]

    def check(self, workload: Path, properties: Mapping[str, str]) -> None:
        """Makes YCSB generate one operation of the workload, as a check; check_settings() has accepted its settings.

        Raises: BadInput: a workload that YCSB rejects. RigFault: Java or YCSB is missing.
        """
        if not shutil.which("java"):
            raise RigFault(
                "java is missing; --generator ycsb needs it to run the real YCSB on this computer: "
                "install default-jre-headless, or leave --generator out"
            )
        if not (self.jars / f"core-{VERSION}.jar").exists():
            raise RigFault(f"YCSB is not in {self.jars}: start host/measure.py, which fetches it")
        trial = self.command("run", workload, {**properties, "operationcount": "1"})
        try:
            ended = subprocess.run(
                trial, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_S, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            raise RigFault(f"YCSB has not made its first operation within {_TRIAL_S} s") from None
        if not any(_OPERATION.match(line) for line in ended.stdout.splitlines()):
            problems = _PROBLEM.findall(ended.stdout + ended.stderr)
            problems += [f"it made no operation and ended with status {ended.returncode}"]
            raise BadInput(f"YCSB {VERSION} rejects this workload: {problems[0]}")


def check_settings(properties: Mapping[str, str], threads: int) -> None:
    """Refuses settings that the real YCSB would silently ignore. Raises: BadInput: the first of them."""
    if threads > 1:
        raise BadInput(
            "--generator ycsb makes one stream of operations, whose order several threads would change: "
            "use --threads 1, or leave --generator out"
        )
    refused = [f"property {key}" for key in sorted(NOT_YCSBS & properties.keys())]
    if properties.get("requestdistribution") == "truezipfian":
        refused.append("requestdistribution=truezipfian")
    if refused:
        raise BadInput(f"{refused[0]}: the real YCSB does not support it; leave it or --generator ycsb out")


def expected_operations(phase: str, properties: Mapping[str, str]) -> int:
    """Least number of operations that YCSB makes in a phase; 0 for a run that a time limit may end."""
    if phase == "load":
        return inserts_of_load(properties)
    return 0 if whole_number(properties, "maxexecutiontime") else whole_number(properties, "operationcount")


def inserts_of_load(properties: Mapping[str, str]) -> int:
    """Number of records that a load inserts: all, or those of a part of the key space."""
    rest = max(whole_number(properties, "recordcount") - whole_number(properties, "insertstart"), 0)
    return whole_number(properties, "insertcount", rest)


def file_text(workload: Path) -> str:
    """The text of a workload file without a byte order mark: UTF-8, or ISO 8859-1 (as in Java) if it is no UTF-8.

    Raises: BadInput: it is UTF-16.
    """
    contents = workload.read_bytes()
    if contents.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise BadInput(f"workload file {workload}, line 1: expected UTF-8, found UTF-16; save it as UTF-8")
    try:
        return contents.decode("utf-8-sig")
    except UnicodeDecodeError:
        return contents.decode("iso-8859-1")


def file_properties(workload: Path) -> dict[str, str]:
    """The properties of a workload file, read as java.util.Properties does; only the loader checks the file."""
    found: dict[str, str] = {}
    lines = iter(re.split(r"\r\n|\r|\n", file_text(workload)))
    for line in lines:
        logical = line.lstrip(_BLANKS)
        if not logical or logical[0] in "#!":
            continue
        while _CONTINUED.search(logical):
            logical = logical[:-1] + next(lines, "").lstrip(_BLANKS)
        key, value = _PAIR.fullmatch(logical).groups()  # type: ignore[union-attr]  # matches any text
        try:
            name, of_it = _unescaped(key), _unescaped(_trimmed(value))
        except ValueError as problem:
            raise BadInput(f"workload {workload}: {line.strip()[:60]!r}: {problem}") from None
        found[OTHER_NAMES.get(name, name)] = of_it
    return found


def _trimmed(value: str) -> str:
    """The value without blanks at its end that no backslash escapes."""
    kept = value.rstrip(_BLANKS)
    return value[: len(kept) + 1] if _CONTINUED.search(kept) else kept


def _unescaped(text: str) -> str:
    """A key or value as java.util.Properties reads it. Raises: ValueError: it has a NUL, or half of a character."""
    plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _LETTERS.get(match[2], match[2]), text)
    if "\0" in plain:
        raise ValueError("a property cannot contain a NUL")
    try:
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")  # two escapes may be one character
    except UnicodeDecodeError:
        raise ValueError("an escape is half of a surrogate pair") from None


def find_workload(name: str, folder: Path) -> Path:
    """The property file of a workload given by letter, by name under `folder`, or by path.

    Raises: BadInput: no such workload (the line names the most similar one), or two files of this name: one under
        `folder`, another in the current folder.
    """
    here = Path(name)
    stems = () if here.is_absolute() or name.startswith(("./", "../")) else (f"workload{name}", name)
    inside = [folder / file for stem in stems for file in (f"{stem}.properties", stem)]
    found = next((candidate.resolve() for candidate in inside if candidate.is_file()), None)
    if here.is_file():
        if found not in (None, here.resolve()):
            raise BadInput(
                f"workload '{name}' is {found} and a file here: give that path, or ./{name} for the file here"
            )
        return here.resolve()
    if found:
        return found
    known = [
        str(path.relative_to(folder)).removesuffix(".properties")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    letters = [entry.removeprefix("workload") for entry in known if "/" not in entry]
    hint = suggestion(name, known + letters, 0.4)
    raise BadInput(f"unknown workload '{name}': {hint}give {', '.join(letters[:6])}, a name under {folder}, or a file")


def parse_properties(settings: Sequence[str]) -> dict[str, str]:
    """The -p KEY=VALUE settings as a mapping; the loader checks them. Raises: BadInput: a setting without '='."""
    parsed: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"-p {setting!r} is not KEY=VALUE; for example -p readproportion=0.9")
        parsed[OTHER_NAMES.get(key.strip(), key.strip())] = value.strip()
    return parsed


_OF_A_STREAM: Final = ("operationcount", "table")
"""Properties for the program that makes a stream of operations, which the loader that replays it does not need."""


def ignored_words(keys: Sequence[str], *, streamed: bool) -> str:
    """Words for the properties that the loader has accepted without effect; empty if there are none.

    Args:
        streamed: another generator made the loader's operations, and took its own properties into account.
    """
    without = [key for key in keys if not (streamed and key in _OF_A_STREAM)]
    return f"properties without effect here: {', '.join(without)}" if without else ""


INSERT: Final = "insert"
REMOVE: Final = "remove"
PROPORTIONS: Final = {"readproportion": "0.95", "updateproportion": "0.05"}
"""Proportions of a workload that states none of its own. Source: YCSB's CoreWorkload."""


def changing_keys(properties: Mapping[str, str]) -> list[str]:
    """Kinds of operation after which the database has other keys: inserts, and removals that are not put back."""
    lasting = (INSERT,) if properties.get("putback") == "true" else (INSERT, REMOVE)
    return [kind for kind in kinds(properties) if kind in lasting]


def kinds(properties: Mapping[str, str]) -> list[str]:
    """Kinds of operation in a workload, from its complete properties; the loader checks the proportions."""
    ending = "proportion"
    return [key.removesuffix(ending) for key, value in properties.items() if key.endswith(ending) and value.strip("0.")]


_ONLY_READ: Final = ("read", "scan")


def write_shares(properties: Mapping[str, str]) -> dict[str, float]:
    """Kind that writes -> its part of the workload's operations, from its complete properties.

    Raises: BadInput: a proportion that is no number.
    """
    try:
        return {kind: float(properties[f"{kind}proportion"]) for kind in kinds(properties) if kind not in _ONLY_READ}
    except ValueError as error:
        raise BadInput(f"a proportion of the workload is no number: {error}") from None


def in_favour_of(kind: str, shares: Mapping[str, float]) -> dict[str, str]:
    """The proportions with which the other kinds that write are halved in favour of one."""
    halved = {other: share if other == kind else share / 2 for other, share in shares.items()}
    halved[kind] += sum(shares.values()) - sum(halved.values())
    return {f"{name}proportion": f"{share:.6g}" for name, share in halved.items()}


OPTIONS: Final[Mapping[str, str]] = {
    "recordcount": "--records",
    "operationcount": "--operations",
    "maxexecutiontime": "--seconds",
    "requestdistribution": "--distribution",
    "fieldcount": "--value-size",
    "fieldlength": "--value-size",
    "fieldlengthdistribution": "--value-size",
    "threadcount": "--threads",
    "seed": "--seed",
    "target": "--rate",
    "arrivals": "--rate",
}
"""Property -> the option that sets it. The option takes precedence over a workload file."""


def at_random(properties: Mapping[str, str]) -> dict[str, str]:
    """The property that makes the operations of a rate come at random; empty if the workload sets how they come.

    Exponential gaps are those of many independent clients. Source: the server scenario of MLPerf (Reddi et al., ISCA
    2020).
    """
    return {} if "arrivals" in properties else {"arrivals": "exponential"}


def command_line_properties(settings: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """The properties that the command line sets by -p and by the options of OPTIONS.

    Raises: BadInput: an unknown distribution, or an option that contradicts a setting of -p.
    """
    if (distribution := options.get("requestdistribution")) and distribution not in DISTRIBUTIONS:
        raise BadInput(unknown("distribution", distribution, DISTRIBUTIONS))
    for key, value in options.items():
        if settings.get(key, value) != value:
            raise BadInput(
                f"{OPTIONS[key]} sets {key}={value}, and -p sets {key}={settings[key]}: leave one of them out"
            )
    return {**settings, **options}


def whole_number(properties: Mapping[str, str], key: str, default: int = 0) -> int:
    """A property that is a whole number from 0 to 10^18. Raises: BadInput: it is none."""
    text = properties.get(key, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        comment = "; a comment needs a line of its own" if set("#!;/") & set(text) else ""
        raise BadInput(f"property {key}={text[:60]!r} is not a whole number from 0 to 10^18{comment}")
    return int(text)


def named_files(properties: Mapping[str, str], workload: Path) -> dict[str, str]:
    """Property -> absolute path of the file that it names, relative to the current folder or the workload's.

    Raises: BadInput: there is no such file, or two have the same name, which a board's folder of files has once.
    """
    names = {"valuetext": properties.get("valuetext", "")}
    if properties.get("fieldlengthdistribution") == "histogram":
        names["fieldlengthhistogram"] = properties.get("fieldlengthhistogram", "hist.txt")
    used, paths = {workload.name}, dict[str, str]()
    for key, name in names.items():
        if name in ("", "generated"):
            continue
        file = next((file for file in (Path(name), workload.parent / name) if file.is_file()), None)
        if file is None:
            raise BadInput(f"property {key}={name}: no such file here or in {workload.parent}; give its path")
        if file.name in used:
            raise BadInput(f"property {key}={name}: another file of this workload has this name; rename one")
        used.add(file.name)
        paths[key] = str(file.resolve())
    return paths


def values_bytes(properties: Mapping[str, str]) -> int | None:
    """Bytes of all values of a workload, from its effective properties; None if they do not follow from counts."""
    if properties.get("fieldlengthdistribution", "constant") != "constant":
        return None
    if "valuecompressratio" in properties or "valuetext" in properties:
        return None
    counts = [properties.get(key, default).strip() for key, default in _DEFAULTS.items()]
    if not all(count.isdecimal() for count in counts):
        return None
    fields, length = (int(count) for count in counts)
    return inserts_of_load(properties) * fields * length


def check_space(properties: Mapping[str, str], free_bytes: int | None, where: str, *, databases: int = 1) -> None:
    """Checks that the medium has space for the values. Raises: BadInput: the values alone need more than is free.

    Args:
        free_bytes: free space on the medium [B]; None if the board does not report it.
        databases: number of databases that exist at the same time.
    """
    needed = values_bytes(properties)
    if free_bytes is None or needed is None or databases * needed <= free_bytes:
        return
    twice = f", {databases} times (one is kept, and copied with --reset copy)" if databases > 1 else ""
    raise BadInput(
        f"the values of {inserts_of_load(properties):,} records need {needed / 1e9:,.1f} GB{twice}, but "
        f"{free_bytes / 1e9:,.1f} GB are free on {where}: ask for fewer with --records, for smaller ones with "
        f"--value-size, {'use --reset load, ' if twice else ''}or free some space"
    )
