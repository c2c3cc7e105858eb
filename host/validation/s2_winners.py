"""Counts the cells of study S2 in which the same store is best as in its paper, by latency and space alone.

    .venv/bin/python host/validation/s2_winners.py --records 100,1000 --out /tmp/s2-winners
    .venv/bin/python host/validation/s2_winners.py --records 10000 --size 0-1KiB,1-10KiB --out /tmp/s2-winners
    .venv/bin/python host/validation/s2_winners.py --count --out /tmp/s2-winners

The study's own job makes and measures each database, by the command of study.toml, on the medium of --out. Only the
probe, the meter and the disturbance are missing. The stores of a cell follow one another. A database whose results are
in --out is not measured again, so that a later command adds cells. --count measures nothing.

Cells that have all stores of the paper are counted, by the code of `runs.py conclusions`; best.csv in --out has the
paper's store beside ours. The load of the computer was read before each database: other programs lengthen latencies.
Exit status 1 if the stores gave different answers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from opjoule.base.units import exact
from opjoule.boards.server import filled
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.study_best import BEST_TABLE, best_csv, best_systems, winners
from opjoule.results.comparison.study_rows import StudyTable
from opjoule.results.comparison.value_words import measure_unit
from opjoule.results.comparison.verdicts import RECORDS, same_winners
from opjoule.runs.evaluation.quantities.definition import Quantities
from opjoule.runs.studies.definition import SYSTEM, Part, StudyFolder
from opjoule.runs.studies.folder import find_study

ROOT: Final = Path(__file__).resolve().parents[2]
STUDY: Final = find_study("s2")
SEED: Final = "1"
LOADS: Final = "loads.txt"
NEAR: Final = 2

Cell = Mapping[str, str]


def databases(only: Mapping[str, Sequence[str]]) -> Iterator[tuple[Cell, Part]]:
    """(cell, size with one count) of each database, small ones first, the stores of a cell together."""
    cells = STUDY.cells(only)
    parts = [
        {**part, RECORDS: (count,)} for part in STUDY.parts(cells[0], 1.0, only) for count in sorted(part[RECORDS])
    ]
    for part in sorted(parts, key=lambda part: part[RECORDS]):
        for cell in sorted(cells, key=lambda cell: cell["data"]):
            yield cell, part


def results_of(cell: Cell, part: Part, block: int, out: Path) -> Path:
    """The file of a database's results."""
    return out / f"{'-'.join((*cell.values(), str(part['size']), str(part[RECORDS][0]), str(block)))}.jsonl"


def measure(cell: Cell, part: Part, results: Path, loader: Path) -> None:
    """Runs the study's job on one database."""
    load, out = os.getloadavg()[0], results.parent
    with tempfile.TemporaryDirectory(dir=out) as storage:
        places = {"loader": str(loader), "files": str(STUDY.folder), "storage": storage, "dataset": "", "seed": SEED}
        command = filled(STUDY.command, {**cell, **places, "parts": json.dumps([part])})
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'loader-cpp/probe'}:{ROOT / 'studies'}"}
        making = Path(storage, "results")
        subprocess.run([*command, "--results", str(making)], env=env, stdout=subprocess.DEVNULL, check=True)
        making.rename(results)
    with (out / LOADS).open("a") as loads:
        loads.write(f"{load:.1f} {results.stem}\n")


def rows(cell: Cell, block: int, results: Path) -> list[ComparedRun]:
    """The phases that a job has reported, without joules."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    of_record = results, False, {}, None, 0, "", "complete", "", False
    return [
        ComparedRun(
            *of_record,
            {"cell": {**cell, **line["cell"]}, "block": block},
            {},
            {name: exact(value, measure_unit(name)) for name, value in line["figures"].items()},
            Quantities([]),
            phase=line["phase"],
            operations=line["operations"],
            answer=line["answer"],
        )
        for line in lines
        if "phase" in line
    ]


def table_of(study: StudyFolder, made: Sequence[ComparedRun]) -> StudyTable:
    """The cells that have all stores of the paper."""
    stores = set(study.systems) - set(study.beside[SYSTEM])
    systems: dict[object, set[str]] = {}
    for row in made:
        systems.setdefault(row.stratum, set()).add(row.system)
    whole = tuple(row for row in made if stores <= systems[row.stratum])
    return StudyTable(study, whole)


def count_lines(table: StudyTable) -> Iterator[str]:
    """A Markdown table with a row for each figure and count."""
    compared = same_winners(table, winners(table.definition.name))
    phases = [phase for phase in table.definition.phases if any(phase in part.by_phase for part in compared)]
    yield f"| figure | here | {' | '.join(phases)} | all |"
    yield "|---" * (len(phases) + 3) + "|"
    for part in compared:
        counts = [part.by_phase[phase] for phase in phases if phase in part.by_phase]
        counts.append((sum(same for same, _ in counts), sum(cells for _, cells in counts)))
        here = ", ".join(value for _, value in part.place)
        yield f"| {part.figure} | {here} | {' | '.join(f'{same} of {cells}' for same, cells in counts)} |"


def near_lines(table: StudyTable) -> Iterator[str]:
    """For each figure, how many of the cells with another best store are nearly ties."""
    factors: dict[str, list[float]] = {}
    for best in best_systems(table):
        ratios = {frozenset((pair.a.name, pair.b.name)): pair.ratio for pair in best.ranking.contrasts}
        for winner in winners(table.definition.name):
            if winner.is_of(best.measure, best.phase, dict(best.place)) and winner.system != best.system:
                ratio = float(ratios[frozenset((best.system, winner.system))])
                factors.setdefault(winner.figure, []).append(max(ratio, 1 / ratio))
    for figure, of in factors.items():
        near = sum(factor < NEAR for factor in of)
        yield f"{figure}: another store in {len(of)} cells, the paper's within a factor of {NEAR} of it in {near}"


def load_words(out: Path) -> str:
    """The load of the computer before the databases, least, mean and greatest."""
    loads = [float(line.split()[0]) for line in (out / LOADS).read_text().splitlines()]
    mean = sum(loads) / len(loads)
    return f"load {min(loads):.1f} to {max(loads):.1f}, mean {mean:.1f}, on {os.cpu_count()} processors"


def medium_words(out: Path) -> str:
    """Device and file system of a folder."""
    ran = subprocess.run(["findmnt", "-no", "SOURCE,FSTYPE", "-T", out], capture_output=True, text=True, check=True)
    return " ".join(ran.stdout.split())


def main() -> int:
    """Measures what is missing, then counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in (RECORDS, "size", "data", "durability"):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), metavar="VALUE[,VALUE]")
    parser.add_argument("--repeats", type=int, default=1, metavar="N", help="runs of each database (default: 1)")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder of results, on the medium")
    parser.add_argument("--loader", type=Path, default=ROOT / "build/loader/loader", metavar="FILE")
    parser.add_argument("--count", action="store_true", help="count what is there")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    only = {name: getattr(asked, name) for name in (RECORDS, "size", "data", "durability") if getattr(asked, name)}
    made: list[ComparedRun] = []
    for block in range(1, asked.repeats + 1):
        for cell, part in databases({**only, "disturb": ["none"]}):
            results = results_of(cell, part, block, asked.out)
            if not results.exists() and not asked.count:
                measure(cell, part, results, asked.loader)
            made += rows(cell, block, results) if results.exists() else []
    table = table_of(STUDY, made)
    (asked.out / BEST_TABLE).write_text(best_csv(table))
    print(
        f"{medium_words(asked.out)}; {load_words(asked.out)}",
        *count_lines(table),
        *near_lines(table),
        *table.faults,
        sep="\n",
    )
    return 1 if table.faults else 0


if __name__ == "__main__":
    sys.exit(main())
