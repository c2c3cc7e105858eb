"""A study as one file for others: an RO-Crate with records, figures, tables, methods, citation and checksums.

Source: RO-Crate 1.1, https://www.researchobject.org/ro-crate/specification/1.1/ (plain JSON-LD: no library is needed).
"""

import hashlib
import json
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from opjoule.errors import BadInput, RecordFault
from opjoule.files import file_sha256, replacing
from opjoule.record.run_record import RunRecord, with_digest
from opjoule.scripts import program

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
        plain = _PATH.sub(
            lambda match: match[0] if match[0].startswith(_KEPT) else match[1] or "folder", text
        )
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
            if path.is_file() and path.suffix in TEXTS:  # the index of several records, and their tables
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
            shutil.copyfile(path, copy)
    document = {key: redaction.value(value) for key, value in record.document.items() if key != "checksums"}
    document |= {"checksums": known} if record.is_finished else {}
    (target / "run.json").write_text(json.dumps(with_digest(document), indent=1), encoding="utf-8")
    return target


def _copy_text(source: Path, target: Path, redaction: Redaction) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    text = source.read_text(encoding="utf-8", errors="surrogateescape")
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


def unpack(bundle: Path, folder: Path) -> dict[str, Any]:
    """Checks a bundle, unpacks it into a new folder and returns its description. Raises: BadInput: it is not valid."""
    if folder.exists():
        raise BadInput(f"{folder} exists already: name another folder with --out")
    if bundle.is_dir():
        raise BadInput(
            f"{bundle} is a folder: give the file that '{program('runs')} bundle' wrote; records need no unpacking"
        )
    try:
        with zipfile.ZipFile(bundle) as packed:
            _check(bundle, packed)
            with replacing(folder) as temporary:
                packed.extractall(temporary)
            crate: dict[str, Any] = json.loads(packed.read(CRATE))
            return next(entry for entry in crate["@graph"] if entry["@id"] == "./")
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise BadInput(
            f"{bundle} is not a bundle of '{program('runs')}', or it is damaged: {error}; copy or download it again"
        ) from None


def _check(bundle: Path, packed: zipfile.ZipFile) -> None:
    """Raises: BadInput: a name leads out of the folder, or a file does not match its checksum."""
    lines = (line.partition("  ") for line in packed.read(CHECKSUMS).decode().splitlines())
    expected = {name: digest for digest, _, name in lines}
    names = set(packed.namelist()) - {CHECKSUMS}
    for name in names:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name:
            raise BadInput(
                f"{bundle}: {name!r} would be written outside of the folder: the bundle is not opened"
            )
    if lost := sorted(names ^ set(expected)):
        raise BadInput(f"{bundle}: {lost[0]} is missing, or has no checksum")
    for name in sorted(names):
        with packed.open(name) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # reads as a file does
        if digest != expected[name]:
            raise BadInput(f"{bundle}: {name} was changed since it was packed")
