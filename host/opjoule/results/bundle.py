"""A study as one file for others: an RO-Crate with records, figures, tables, methods, citation and checksums.

Source: RO-Crate 1.1, https://www.researchobject.org/ro-crate/specification/1.1/ (plain JSON-LD: no library is needed).
"""

import hashlib
import json
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from opjoule.base.errors import BadInput, RecordFault
from opjoule.base.files import file_sha256, open_regular, replacing
from opjoule.base.scripts import program
from opjoule.runs.record.json_file import DAMAGE
from opjoule.runs.record.run_record import RunRecord, with_digest

_PATH: Final = re.compile(r"(?<![\w.:/~+-])/(?:[^\s/\"'<>|,;:=\\]+/)+([^\s/\"'<>|,;:=\\]*)")
"""An absolute path with at least one folder; its last part is kept."""
_REMOTE: Final = re.compile(r"\bssh:[^\s\"',;]+")
_ADDRESS: Final = re.compile(r"\b[A-Za-z_][\w.-]*@[A-Za-z0-9][\w.-]*\b")
_KEPT: Final = ("/dev/null", "/proc/", "/sys/")
"""Beginnings of paths that are the same on every computer."""


@dataclass(frozen=True)
class Redaction:
    """Replaces paths by their last part, and the names of this computer and its user by "host" and "user"."""

    host: str
    user: str
    kept: bool = False
    """Whether everything is left unchanged, at the user's request."""

    def text(self, text: str) -> str:
        """The redacted text."""
        if self.kept:
            return text
        plain = _PATH.sub(lambda match: match[0] if match[0].startswith(_KEPT) else match[1] or "folder", text)
        plain = _ADDRESS.sub("user@host", _REMOTE.sub("ssh", plain))
        for name, words in ((self.host, "host"), (self.user, "user")):
            if len(name) > 2 and name not in ("root", "localhost"):
                plain = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", words, plain)
        return plain

    def value(self, value: Any) -> Any:
        """A JSON value with all its texts redacted; keys are not changed."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self.value(entry) for entry in value]
        return value


CRATE: Final = "ro-crate-metadata.json"
CHECKSUMS: Final = "checksums.sha256"
RECORDS: Final = "records"
NOT_TAKEN: Final = ("report.html", "view.cache", "run.json")
"""Files that are not copied: they can be made again, or are written separately without names (run.json)."""
TEXTS: Final = (".json", ".jsonl", ".csv", ".log", ".txt", ".toml", ".md")
_TYPES: Final = {
    ".json": "application/json",
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".tex": "application/x-tex",
    ".cff": "text/yaml",
}
_SPECIFICATION: Final = "https://w3id.org/ro/crate/1.1"


@dataclass(frozen=True)
class Described:
    """Description of a bundle."""

    name: str
    about: str
    license: str
    made_utc: str
    """Start of the newest record, ISO 8601, so that the same records give the same file."""
    programs: Sequence[str]
    """Program versions that made the records."""
    simulated: bool


def copy_runs(places: Sequence[Path], folder: Path, redaction: Redaction) -> list[Path]:
    """Copies records, and folders of several with their index, below a folder; returns the records' copies.

    Raises: BadInput: no record, or two places with the same name. RecordFault: a record was changed since its run.
    """
    copies: list[Path] = []
    for place in places:
        target = folder / place.resolve().name
        if target.exists():
            raise BadInput(f"{place}: the bundle already has a folder of this name: rename one of them")
        records = sorted(path.parent for path in place.rglob("run.json"))
        if not records:
            raise BadInput(f"{place} contains no record: give runs/NAME or a campaign's folder")
        for record in records:
            copies.append(_copy_record(record, target / record.relative_to(place), redaction))
        for path in sorted(place.iterdir()) if place not in records else ():
            if path.suffix in TEXTS and not path.is_dir():  # the index of several records, and their tables
                _copy_text(path, target / path.name, redaction)
    return copies


def _copy_record(source: Path, target: Path, redaction: Redaction) -> Path:
    """Copies one record; the checksums of redacted texts are computed again."""
    record = RunRecord.open(source)
    if altered := record.altered:
        raise RecordFault(f"{altered[0]}; it cannot go into a bundle: leave out {source}")
    known: dict[str, str] = dict(record.document.get("checksums") or {})
    for path in sorted(file for file in source.rglob("*") if file.is_file()):
        name = path.relative_to(source).as_posix()
        if path.name in NOT_TAKEN or path.suffix in (".tmp", ".lock"):
            known.pop(name, None)
            continue
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in TEXTS:
            _copy_text(path, copy, redaction)
            known |= {name: file_sha256(copy)} if name in known else {}
        else:
            with open_regular(path) as file, copy.open("wb") as copied:
                shutil.copyfileobj(file, copied)
    document = {key: redaction.value(value) for key, value in record.document.items() if key != "checksums"}
    document |= {"checksums": known} if record.is_finished else {}
    (target / "run.json").write_text(json.dumps(with_digest(document), indent=1), encoding="utf-8")
    return target


def _copy_text(source: Path, target: Path, redaction: Redaction) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_regular(source) as file:
        text = file.read().decode("utf-8", errors="surrogateescape")
    target.write_text(redaction.text(text), encoding="utf-8", errors="surrogateescape")


def describe(folder: Path, about: Described) -> None:
    """Writes a folder's description and the checksums of all its files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    digests = {path.relative_to(folder).as_posix(): file_sha256(path) for path in files}
    (folder / CRATE).write_text(json.dumps(_crate(folder, about, digests), indent=1), encoding="utf-8")
    digests[CRATE] = file_sha256(folder / CRATE)
    lines = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    (folder / CHECKSUMS).write_text(lines, encoding="utf-8")


def _crate(folder: Path, about: Described, digests: Mapping[str, str]) -> dict[str, Any]:
    parts = [_part(folder / name, name, digest) for name, digest in digests.items()]
    program: dict[str, Any] = {"@id": "#opjoule", "@type": "SoftwareApplication", "name": "OpJoule"}
    root: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        "name": about.name,
        "description": about.about,
        "datePublished": about.made_utc,
        "license": about.license,
        "keywords": "SIMULATED" if about.simulated else "measured",
        "hasPart": [{"@id": part["@id"]} for part in parts],
        "mentions": {"@id": "#opjoule"},
    }
    descriptor = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _SPECIFICATION},
        "about": {"@id": "./"},
    }
    graph = [descriptor, root, {**program, "softwareVersion": ", ".join(about.programs)}, *parts]
    return {"@context": f"{_SPECIFICATION}/context", "@graph": graph}


def _part(path: Path, name: str, digest: str) -> dict[str, Any]:
    kind = _TYPES.get(path.suffix)
    entry = {"@id": name, "@type": "File", "contentSize": str(path.stat().st_size), "sha256": digest}
    return entry | ({"encodingFormat": kind} if kind else {})


def pack(folder: Path, out: Path) -> None:
    """Writes a folder as a ZIP file; the same content gives the same file."""
    with (
        replacing(out) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as made,
    ):
        for path in sorted(file for file in folder.rglob("*") if file.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix())
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with path.open("rb") as source, made.open(entry, "w", force_zip64=True) as target:
                shutil.copyfileobj(source, target)


TEXT_BYTES: Final = 1 << 26
"""Maximum size of a bundle's description and of its checksums; 10,000 records need about 50 MB."""
TIMES: Final = 100
"""Maximum ratio of the unpacked size to the packed one; tables of operations reach 10, zeros 1,000."""
_ENCRYPTED: Final = 1
"""Bit of an entry's flags. Source: PKWARE APPNOTE.TXT, 4.4.4."""
_SMALL_BYTES: Final = 1 << 26
"""Unpacked size up to which the ratio does not matter."""


def unpack(bundle: Path, folder: Path) -> tuple[str, str]:
    """Checks a bundle and unpacks it into a new folder; nothing is left of one that is refused.

    Returns: its name and its description. Raises: BadInput: it is not valid.
    """
    if folder.exists():
        raise BadInput(f"{folder} exists already: name another folder with --out")
    if bundle.is_dir():
        raise BadInput(
            f"{bundle} is a folder: give the file that '{program('runs')} bundle' wrote; records need no unpacking"
        )
    try:
        with open_regular(bundle.resolve()) as file, zipfile.ZipFile(file) as packed:
            _check_size(bundle, packed, folder)
            _check(bundle, packed)
            about = _root(packed)
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as name:
                unpacked = Path(name) / "content"
                packed.extractall(unpacked)
                unpacked.replace(folder)
            return about
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, *DAMAGE) as error:
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise BadInput(
            f"{bundle} is not a bundle of '{program('runs')}', or it is damaged: {why:.200}; copy or download it again"
        ) from None


def _root(packed: zipfile.ZipFile) -> tuple[str, str]:
    """Name and description of the bundle. Raises: ValueError, LookupError, TypeError: it has none."""
    crate = json.loads(_text(packed, CRATE))
    root: dict[str, Any] = next((entry for entry in crate["@graph"] if entry.get("@id") == "./"), {})
    name, about = root.get("name"), root.get("description")
    if not isinstance(name, str) or not isinstance(about, str):
        raise ValueError(f"{CRATE} does not describe it")
    return name, about


def _text(packed: zipfile.ZipFile, name: str) -> str:
    """A text of the bundle. Raises: KeyError, ValueError: it is absent, too long or not UTF-8."""
    if packed.getinfo(name).file_size > TEXT_BYTES:
        raise ValueError(f"{name} is larger than {TEXT_BYTES >> 20} MiB")
    return packed.read(name).decode()


def _check_size(bundle: Path, packed: zipfile.ZipFile, folder: Path) -> None:
    """Raises: BadInput: the content is too large for its file, or for the disk. ValueError: it cannot be unpacked."""
    entries = packed.infolist()
    for entry in entries:
        if entry.flag_bits & _ENCRYPTED:
            raise ValueError(f"{entry.filename!r} is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{entry.filename!r} is compressed in another way than by deflate")
    unpacked, size = sum(entry.file_size for entry in entries), bundle.stat().st_size
    if unpacked > max(TIMES * size, _SMALL_BYTES):
        what = f"{size / 1e6:.1f} MB would become {unpacked / 1e6:.0f} MB"
        raise BadInput(f"{bundle}: {what}, more than {TIMES} times as much: the bundle is not opened")
    there = next(place for place in folder.absolute().parents if place.exists())
    if unpacked > (free := shutil.disk_usage(there).free):
        raise BadInput(
            f"{bundle}: it needs {unpacked / 1e6:.0f} MB, and {there} has {free / 1e6:.0f} MB free: free some space, "
            "or name a folder on another disk with --out"
        )


def _check(bundle: Path, packed: zipfile.ZipFile) -> None:
    """Raises: BadInput: a name leads out of the folder, or a file does not match its checksum."""
    lines = (line.partition("  ") for line in _text(packed, CHECKSUMS).splitlines())
    expected = {name: digest for digest, _, name in lines}
    names = set(packed.namelist()) - {CHECKSUMS}
    for name in names:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name:
            raise BadInput(f"{bundle}: {name!r:.200} would be written outside of the folder: the bundle is not opened")
    if lost := sorted(names ^ set(expected)):
        raise BadInput(f"{bundle}: {lost[0]!r:.200} is missing, or has no checksum")
    for name in sorted(names):
        with packed.open(name) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # reads as a file does
        if digest != expected[name]:
            raise BadInput(f"{bundle}: {name!r:.200} was changed since it was packed")
