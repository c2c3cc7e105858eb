"""`runs.py bundle` and `runs.py open`: pack a study into one file for others, and unpack it."""

import getpass
import shlex
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Final

from opjoule.base.errors import BadInput
from opjoule.base.scripts import CITATION, IS_CLONE, ROOT, RUNS, STUDIES, program
from opjoule.base.units import counted
from opjoule.cli.failures import one_line
from opjoule.cli.runs.conclusions import write_conclusions
from opjoule.cli.runs.options import BundleOptions, OpenOptions
from opjoule.pages.comparison import write_campaign_page
from opjoule.results.bundle import (
    RECORDS,
    Described,
    Redaction,
    copy_runs,
    describe,
    pack,
    unpack,
)
from opjoule.results.comparison.compared_run import allowed_groups
from opjoule.runs.record.directory import INDEX
from opjoule.runs.record.run import program_words
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.definition import StudyFolder
from opjoule.runs.studies.folder import find_study

README: Final = """{name}
{line}
{about}

records/     run records, one folder each, described in run-record.md;
             report.html in the folder of a campaign or study compares its runs
figures/     figures, tables, verdicts on the paper's conclusions and methods.txt, made from these records
study/       definition of the study, with the sources of its job, if a study was named
run-record.md  the schema of the records
program/     the program's own sources, if it was not an installed package: pip install ./program[figures]
CITATION.cff how to cite the program

Made by {programs}. Open it with OpJoule: {open} FILE.zip
The same figures, tables and verdicts are made again by: {again}
Its description is ro-crate-metadata.json (RO-Crate 1.1); checksums.sha256 is for sha256sum -c.
"""

STUDY: Final = "study"
"""Folder of a bundle for the study's definition."""
SCHEMA: Final = "docs/reference/run-record.md"
JOB_SOURCES: Final = (*("studies/opjoule_study.py", "studies/opjoule_server.py", "loader-cpp/probe/opjoule_marks.py"),)
"""Files that every study's job gets."""
PROGRAM: Final = (
    *("pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "host/opjoule"),
    *(f"studies/{path.parent.name}/{path.name}" for path in sorted(STUDIES.glob("*/study.toml"))),
    *(f"studies/{path.parent.name}/{path.name}" for path in sorted(STUDIES.glob("*/winners.csv"))),
)
"""The parts of a clone that pip needs to install the analysis."""


def run_bundle(options: BundleOptions) -> int:
    """Packs records and figures into one file. Raises: BadInput: a place has no record."""
    from opjoule.pages.plots.figures import write_figures  # noqa: PLC0415  # matplotlib is installed for this alone

    study = find_study(options.study) if options.study else None
    redaction = Redaction(socket.gethostname(), getpass.getuser(), kept=options.keep_names)
    with tempfile.TemporaryDirectory(prefix="opjoule-bundle-") as name:
        folder = Path(name)
        records = copy_runs(options.places, folder / RECORDS, redaction)
        for campaign in campaigns(folder / RECORDS):
            write_campaign_page(campaign, campaign.relative_to(folder).as_posix())
        allowed = allowed_groups(options.although)
        drawn = write_figures([str(folder / RECORDS)], folder / "figures", allowed, study)
        for line in drawn:
            if not line.startswith(str(folder)):
                print(one_line(line.replace(f"{folder}/", "")))
        if study and study.conclusions:
            write_conclusions(folder / "figures", [str(folder / RECORDS)], study)
        _copy_sources(folder, study)
        methods = folder / "figures" / "methods.txt"  # names left-out runs by a path in the temporary folder
        methods.write_text(methods.read_text(encoding="utf-8").replace(f"{folder}/", ""), encoding="utf-8")
        shutil.copyfile(CITATION, folder / "CITATION.cff")
        about = _described(options, records, study)
        words = {"name": about.name, "line": "=" * len(about.name), "about": about.about}
        words["again"] = shlex.join(_again(Path(), study, options.although))
        readme = README.format(**words, programs=", ".join(about.programs), open=f"{program('runs')} open")
        (folder / "README.txt").write_text(readme, encoding="utf-8")
        describe(folder, about)
        pack(folder, options.out)
    print(one_line(f"{options.out}: {counted(len(records), 'record')}, {options.out.stat().st_size / 1e6:.1f} MB"))
    return 0


def _copy_sources(folder: Path, study: StudyFolder | None) -> None:
    """Copies the study's definition and job, the records' schema, and the program if it is a clone."""
    cache = shutil.ignore_patterns("__pycache__", "*.pyc")
    if study:
        shutil.copytree(study.folder, folder / STUDY / study.folder.name, ignore=cache)
    if not IS_CLONE:
        return
    if study and study.command:
        for file in JOB_SOURCES:
            shutil.copyfile(ROOT / file, folder / STUDY / Path(file).name)
    shutil.copyfile(ROOT / SCHEMA, folder / Path(SCHEMA).name)
    for name in PROGRAM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / "program" / name, ignore=cache)
        else:
            (folder / "program" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / "program" / name)


def _again(folder: Path, study: StudyFolder | None, although: str | None = None) -> list[str]:
    """Words of the command that makes the figures of an opened bundle again."""
    of_study = ["--study", str(folder / STUDY / study.folder.name)] if study else []
    allowed = ["--although", although] if although else []
    return [program("runs"), "figures", str(folder / RECORDS), *of_study, *allowed, "--out", "figures"]


def _described(options: BundleOptions, records: list[Path], study: StudyFolder | None) -> Described:
    runs = [RunRecord.open(record).run for record in records]
    programs = dict.fromkeys(program_words(run.found.opjoule, run.found.commit) for run in runs if run.found.opjoule)
    simulated = any(run.simulated for run in runs)
    mark = "SIMULATED: no board was measured. " if simulated else ""
    return Described(
        options.name or (study.title if study else f"OpJoule records: {options.out.stem}"),
        f"{mark}Energy of database operations: {counted(len(records), 'run record')} with figures.",
        options.license,
        max(run.found.started_utc or "" for run in runs),
        tuple(programs),
        simulated,
    )


def run_open(options: OpenOptions) -> int:
    """Checks and unpacks a bundle, and prints what it contains. Raises: BadInput: it cannot be opened."""
    folder = options.out or RUNS / options.bundle.stem
    name, about = unpack(options.bundle, folder)
    definitions = sorted((folder / STUDY).glob("*/study.toml"))
    try:
        study = find_study(str(definitions[0].parent)) if definitions else None
    except BadInput:
        shutil.rmtree(folder)
        raise
    lines = [
        f"{name}: {about}",
        f"records {folder / RECORDS}",
        f"figures {folder / 'figures'}",
        *(f"compared {campaign / 'report.html'}" for campaign in campaigns(folder / RECORDS)),
        f"table {program('runs')} list {folder / RECORDS}",
        f"draw again {' '.join(_again(folder, study))}",
    ]
    print(*map(one_line, lines), sep="\n")
    return 0


def campaigns(records: Path) -> list[Path]:
    """Folders of campaigns and studies below a folder; they are those with an index."""
    return sorted(path.parent for path in records.rglob(INDEX))
